// Package docket finds the checks and disputes of a state by round and member.
package docket

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// A Share names the computation of one member in one round.
type Share struct {
	Round  coordinator.Round
	Member coordinator.Member
}

// Position is the place in a dispute at which a move is due.
type Position struct {
	Dispute         uint32
	Stage           dispute.Stage
	Accuser         coordinator.Member
	Level           dispute.Level
	Op, Tile, Slice uint32
	Depth           uint8
	Index           uint32
}

// PositionOf returns the place that a dispute has reached.
func PositionOf(d *dispute.Dispute) Position {
	return Position{Dispute: d.ID, Stage: d.Stage, Accuser: d.Accuser, Level: d.Level, Op: d.Op, Tile: d.Tile, Slice: d.Slice, Depth: d.Depth, Index: d.Index}
}

// Docket is the open checks and disputes of a state, which nobody changes.
type Docket struct {
	Checks   []dispute.Check
	Disputes []dispute.Dispute
	// Positions are those of the disputes, by number. Nobody changes them.
	Positions map[uint32]Position

	// places in Checks
	Of     map[coordinator.Member][]int // of each author and each verifier
	At     map[Share]int
	Rounds []RoundChecks
}

// RoundChecks are the places of the checks of a round's results.
type RoundChecks struct {
	Round  coordinator.Round
	Places []int
}

// New returns the docket of a state.
func New(s coordinator.State) *Docket {
	d := &Docket{Checks: s.Checks(), Disputes: s.Disputes(), Positions: map[uint32]Position{}, Of: map[coordinator.Member][]int{}, At: map[Share]int{}}
	for i := range d.Disputes {
		p := PositionOf(&d.Disputes[i])
		d.Positions[p.Dispute] = p
	}
	for i, c := range d.Checks {
		d.At[Share{Round: c.Round, Member: c.Member}] = i
		d.Of[c.Member] = append(d.Of[c.Member], i)
		d.Of[c.Verifier] = append(d.Of[c.Verifier], i)
		k := slices.IndexFunc(d.Rounds, func(r RoundChecks) bool { return r.Round == c.Round })
		if k < 0 {
			k, d.Rounds = len(d.Rounds), append(d.Rounds, RoundChecks{Round: c.Round})
		}
		d.Rounds[k].Places = append(d.Rounds[k].Places, i)
	}
	return d
}
