package economics

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/committee"
)

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
