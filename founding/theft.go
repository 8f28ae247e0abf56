package founding

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/spec"
)

const (
	// colludingPercent is the part of its members that a run should withstand, and theftMax the
	// probability with which it may fail to.
	colludingPercent = 30
	theftMax         = 1e-3
	witnessesMax     = 32
)

// Theft says how likely colluding members settle parameters of their choice in a run, by which
// honest results look wrong. For that they must be a quorum of the witnesses of two rounds in a
// row.
type Theft struct {
	Committee
	Rounds      uint32  // that train
	Probability float64 // that they do within all of these
	Least       uint32  // least number of witnesses that suffices, as all above do; 33 if 32 do not
}

// newTheft returns how likely theft is in a run that has as many members as it can have, 30 % of
// which collude.
func newTheft(s spec.Spec) Theft {
	n, w := s.Members.Capacity, uint32(s.Members.Witnesses)
	if s.Members.Slots > 0 {
		n = s.Members.Slots
	}
	if w == 0 {
		w = witnessesMax
	}
	t := Theft{Committee: Committee{Members: n, Colluding: n * colludingPercent / 100, Witnesses: min(w, n)}, Rounds: s.Steps - s.Before()}
	t.Probability = t.Settled(float64(t.Rounds), 2)
	// Of more witnesses a quorum may be a smaller part, so all numbers from the least on must do.
	for t.Least = min(witnessesMax, n) + 1; t.Least > 1; t.Least-- {
		c := t.Committee
		if c.Witnesses = t.Least - 1; c.Settled(float64(t.Rounds), 2) > theftMax {
			break
		}
	}
	return t
}

// String describes the probability in a sentence.
func (t Theft) String() string {
	return fmt.Sprintf("with %d witnesses, %d of %d members that collude settle wrong parameters within %d rounds with probability %.1g",
		t.Witnesses, t.Colluding, t.Members, t.Rounds, t.Probability)
}

// Fault returns an error that says what to change, or nil if theft is unlikely enough.
func (t Theft) Fault() error {
	if t.Probability <= theftMax {
		return nil
	}
	change := fmt.Sprintf("elect at least %d", t.Least)
	if t.Least > witnessesMax {
		change = "plan fewer steps"
	}
	return fmt.Errorf("members.witnesses: %s, and %g is allowed; %s, or insist with --few-witnesses", t, theftMax, change)
}

// Committee is a round's draw of witnesses from members, some of whom collude.
type Committee struct {
	Members   uint32 // active members that the witnesses are drawn from
	Colluding uint32 // members that act together
	Witnesses uint32 // witnesses drawn in a round, at most Members
}

// Fault returns an error that names every number out of its range.
func (c Committee) Fault() error {
	var faults []error
	if c.Members == 0 || c.Members > committee.MembersMax {
		faults = append(faults, fmt.Errorf("members: %d, want 1 to %d", c.Members, committee.MembersMax))
	}
	if c.Colluding > c.Members {
		faults = append(faults, fmt.Errorf("colluding: %d, want at most the %d members", c.Colluding, c.Members))
	}
	if c.Witnesses == 0 || c.Witnesses > c.Members {
		faults = append(faults, fmt.Errorf("witnesses: %d, want 1 to the %d members", c.Witnesses, c.Members))
	}
	return errors.Join(faults...)
}

// Captured returns the probability that a round's colluding witnesses are a quorum of their own.
func (c Committee) Captured() float64 { return c.atLeast(committee.Quorum(c.Witnesses)) }

// Blocked returns the probability that a round's honest witnesses are too few for a quorum.
func (c Committee) Blocked() float64 {
	return c.atLeast(c.Witnesses - committee.Quorum(c.Witnesses) + 1)
}

// Settled returns the probability that colluding members settle parameters of their choice within
// a number of rounds. Parameters are settled once the quorums of the given number of committees
// in a row have named them. The seeds of rounds are independent, so k committees in a row are
// captured with the k-th power of the probability of one.
func (c Committee) Settled(rounds float64, committees int) float64 {
	p := math.Pow(c.Captured(), float64(committees))
	return -math.Expm1(rounds * math.Log1p(-p))
}

// atLeast returns the probability that k or more of the witnesses collude. Witnesses are drawn
// without replacement, so their number has the hypergeometric distribution
//
//	P(X = x) = C(K, x)·C(N-K, w-x) / C(N, w)        with N members, K colluding, w witnesses
func (c Committee) atLeast(k uint32) float64 {
	n, bad, w := int(c.Members), int(c.Colluding), int(c.Witnesses)
	all := logChoose(n, w)
	sum := 0.0
	for x := min(bad, w); x >= max(int(k), w-(n-bad)); x-- { // the smallest terms first
		sum += math.Exp(logChoose(bad, x) + logChoose(n-bad, w-x) - all)
	}
	return min(sum, 1)
}

// logChoose returns the natural logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
