package client

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
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
}

// Shares are a round's shares, by their batch.Hash.
type Shares struct {
	Hashes []wire.Hash // by member; zero: it has none
	Count  int         // members that have one
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
func (Alone) Shares(r coordinator.RoundState) *Shares {
	s := &Shares{}
	if !r.Trains() {
		return s
	}
	r.Shares(func(i coordinator.Member, spans []batch.Span) {
		if more := int(i) + 1 - len(s.Hashes); more > 0 {
			s.Hashes = append(s.Hashes, make([]wire.Hash, more)...)
		}
		s.Hashes[i] = batch.Hash(spans)
		s.Count++
	})
	return s
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
