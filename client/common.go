package client

import (
	"slices"

	"github.com/entrain-network/entrain/client/share"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Common answers questions about a state to which all members get the same answer. A process with
// many members, as a simulation is, computes each answer once.
type Common interface {
	// Select is coordinator.State.Select.
	Select(s coordinator.State, a coordinator.Round, member coordinator.Member, candidates []wire.Hash) (i int, ok bool)
	// Shares returns the shares of a round.
	Shares(r coordinator.RoundState) *Shares
	// Roster returns the members of a state. before is that of an earlier state of the run, or nil.
	Roster(s coordinator.State, before *Roster) *Roster
	// Docket returns the open checks and disputes of a state.
	Docket(s coordinator.State) *Docket
}

// Shares are a round's shares.
type Shares = share.Shares

// Docket is the open checks and disputes of a state, which nobody changes.
type Docket struct {
	Checks   []dispute.Check
	Disputes []dispute.Dispute
	// Positions are those of the disputes, by number. Nobody changes them.
	Positions map[uint32]Position

	// places in Checks
	of     map[coordinator.Member][]int // of each author and each verifier
	at     map[Share]int
	rounds []roundChecks
}

// roundChecks are the places of the checks of a round's results.
type roundChecks struct {
	round  coordinator.Round
	places []int
}

// Roster names the members present in a state.
type Roster struct {
	Index map[key.Public]coordinator.Member

	epoch          coordinator.Epoch
	count, present uint32
}

// Present returns the number of members present.
func (r *Roster) Present() uint32 { return r.present }

// Like reports whether nobody can have come or gone between two states.
func (r *Roster) Like(o *Roster) bool {
	return r != nil && r.epoch == o.epoch && r.count == o.count && r.present == o.present
}

// Alone is the Common of a process with one member.
type Alone struct{}

// Select implements Common.
func (Alone) Select(s coordinator.State, a coordinator.Round, member coordinator.Member, candidates []wire.Hash) (int, bool) {
	return s.Select(a, member, candidates)
}

// Shares implements Common.
func (Alone) Shares(r coordinator.RoundState) *Shares { return share.All(r) }

// Docket implements Common.
func (Alone) Docket(s coordinator.State) *Docket {
	d := &Docket{Checks: s.Checks(), Disputes: s.Disputes(), Positions: map[uint32]Position{}, of: map[coordinator.Member][]int{}, at: map[Share]int{}}
	for i := range d.Disputes {
		p := PositionOf(&d.Disputes[i])
		d.Positions[p.Dispute] = p
	}
	for i, c := range d.Checks {
		d.at[Share{c.Round, c.Member}] = i
		d.of[c.Member] = append(d.of[c.Member], i)
		d.of[c.Verifier] = append(d.of[c.Verifier], i)
		k := slices.IndexFunc(d.rounds, func(r roundChecks) bool { return r.round == c.Round })
		if k < 0 {
			k, d.rounds = len(d.rounds), append(d.rounds, roundChecks{round: c.Round})
		}
		d.rounds[k].places = append(d.rounds[k].places, i)
	}
	return d
}

// Roster implements Common. It returns before if that is like it.
func (Alone) Roster(s coordinator.State, before *Roster) *Roster {
	now := Roster{epoch: s.Epoch(), count: uint32(s.Count()), present: s.Present()}
	if before.Like(&now) {
		return before
	}
	now.Index = make(map[key.Public]coordinator.Member, now.present)
	for i := range s.Count() {
		if s.Status(i).Present() {
			now.Index[s.Key(i)] = i
		}
	}
	return &now
}
