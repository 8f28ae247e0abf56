package founding

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/client/holders"
	"github.com/entrain-network/entrain/spec"
)

// Groups are the groups of aggregators among which a round's slices are divided, at a time when all
// groups are as small as they can be.
type Groups struct {
	Members     uint32
	Colluding   uint32 // members that act together
	Aggregators uint32 // of each slice, at most Members
}

// newGroups returns the groups of a run that has as many members as it can have, 30 % of which
// collude. ok is false if its updates are not made in slices.
func newGroups(s spec.Spec) (g Groups, ok bool) {
	n := s.Members.Capacity
	return Groups{Members: n, Colluding: n * colludingPercent / 100, Aggregators: min(n, s.Aggregators())}, s.Slices()
}

// Slices returns the number of slices.
func (g Groups) Slices() uint32 { return g.Members / g.Aggregators }

// Invented returns a bound on the probability that within a number of rounds the colluding members
// of one group suffice to make others take a slice of their invention, and Denied that in a round
// those of one group suffice to keep out what they like, or to have a payload accepted that nobody
// else has.
func (g Groups) Invented(rounds float64) float64 {
	p := g.atLeast(client.SliceQuorum(int(g.Aggregators)))
	return -math.Expm1(rounds * math.Log1p(-min(p, 1-1e-16)))
}

// Denied: see Invented.
func (g Groups) Denied() float64 { return g.atLeast(holders.Quorum(int(g.Aggregators))) }

// Recounted returns a bound on the mean number of slices of a round of which colluding members can
// make each witness fetch all ranges.
func (g Groups) Recounted() float64 {
	n := int(g.Aggregators)
	return float64(g.Slices()) * g.group().atLeast(uint32(n-client.SliceQuorum(n)+1))
}

func (g Groups) group() Committee {
	return Committee{Members: g.Members, Colluding: g.Colluding, Witnesses: g.Aggregators}
}

// atLeast returns a bound on the probability that k or more members of any group collude: the sum
// over the groups.
func (g Groups) atLeast(k int) float64 {
	return min(1, float64(g.Slices())*g.group().atLeast(uint32(k)))
}

// Fault returns an error that says what to change, or nil if colluding members are unlikely enough
// to invent a slice within a number of rounds.
func (g Groups) Fault(rounds uint32) error {
	p := g.Invented(float64(rounds))
	if p <= theftMax {
		return nil
	}
	least := g
	for least.Aggregators < g.Members && least.Invented(float64(rounds)) > theftMax {
		least.Aggregators++
	}
	return fmt.Errorf("exchange.aggregators: with %d members for each slice, %d of %d members that collude invent one within %d rounds with probability %.1g, and %g is allowed; set at least %d, or insist with --few-witnesses",
		g.Aggregators, g.Colluding, g.Members, rounds, p, theftMax, least.Aggregators)
}

// weakness returns why a run should not be created: colluding members too easily settle parameters,
// or invent slices.
func weakness(s spec.Spec) error {
	t := newTheft(s)
	if err := t.Fault(); err != nil {
		return err
	}
	if g, ok := newGroups(s); ok {
		return g.Fault(t.Rounds)
	}
	return nil
}
