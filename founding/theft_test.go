package founding

import (
	"math"
	"math/big"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/spec"
)

// exactly computes Committee.atLeast in integers.
func exactly(c Committee, k uint32) float64 {
	sum := new(big.Int)
	for x := int64(k); x <= int64(c.Witnesses); x++ {
		honest := int64(c.Members - c.Colluding)
		if x > int64(c.Colluding) || int64(c.Witnesses)-x > honest {
			continue
		}
		term := new(big.Int).Binomial(int64(c.Colluding), x)
		sum.Add(sum, term.Mul(term, new(big.Int).Binomial(honest, int64(c.Witnesses)-x)))
	}
	all := new(big.Int).Binomial(int64(c.Members), int64(c.Witnesses))
	p, _ := new(big.Rat).SetFrac(sum, all).Float64()
	return p
}

func TestCommitteesAgainstIntegers(t *testing.T) {
	for _, n := range []uint32{1, 2, 9, 64, 256, 1024, 10_000} {
		for _, percent := range []uint32{0, 10, 20, 30, 33, 100} {
			for _, w := range []uint32{1, 3, 4, 16, 32, 64} {
				c := Committee{Members: n, Colluding: n * percent / 100, Witnesses: min(w, n)}
				if err := c.Fault(); err != nil {
					t.Fatal(err)
				}
				q := committee.Quorum(c.Witnesses)
				for _, p := range []struct {
					name      string
					got, want float64
				}{
					{"captured", c.Captured(), exactly(c, q)},
					{"blocked", c.Blocked(), exactly(c, c.Witnesses-q+1)},
				} {
					if math.Abs(p.got-p.want) > 1e-7*p.want {
						t.Errorf("%+v: %s %g, in integers %g", c, p.name, p.got, p.want)
					}
				}
			}
		}
	}
}

// The figures that made two committees in a row a rule: 32 witnesses of 10,000 members, 30 % of them colluding.
func TestTwoCommitteesInARow(t *testing.T) {
	c := Committee{Members: 10_000, Colluding: 3_000, Witnesses: 32}
	if p := c.Settled(100_000, 1); p < 0.48 || p > 0.50 {
		t.Errorf("one committee: %g, want 49 %%", p)
	}
	if p := c.Settled(100_000, 2); p < 4e-6 || p > 6e-6 {
		t.Errorf("two committees: %g, want 5e-6", p)
	}
}

func TestCommitteeFaults(t *testing.T) {
	for _, c := range []Committee{{}, {Members: 4, Witnesses: 5}, {Members: 4, Colluding: 5, Witnesses: 1}, {Members: 1 << 25, Witnesses: 1}} {
		if c.Fault() == nil {
			t.Errorf("%+v has no fault", c)
		}
	}
}

// TestTheftIsRefused has a run whose witnesses are too few for its members, or barely enough.
func TestTheftIsRefused(t *testing.T) {
	for _, c := range []struct {
		capacity, slots uint32
		witnesses       uint16
		steps, least    uint32
		refused         bool
	}{
		{64, 0, 3, 1000, 14, true},
		{64, 0, 8, 1000, 14, true},
		{64, 0, 16, 1000, 14, false},
		{64, 0, 16, 100_000, 17, true},
		{64, 0, 0, 100_000, 17, false},
		{10_000, 0, 0, 100_000, 24, false},
		{10_000, 9, 3, 1, 2, false},
		{4, 0, 3, 1000, 2, false}, // one of four colludes
	} {
		s := spec.Default(all.Kinds())
		s.Members.Capacity, s.Members.Slots, s.Members.Witnesses, s.Steps = c.capacity, c.slots, c.witnesses, c.steps
		theft := newTheft(s)
		if refused := theft.Fault() != nil; refused != c.refused || theft.Least != c.least {
			t.Errorf("%+v: %v, at least %d: %v", c, refused, theft.Least, theft.Fault())
		}
		if enough := theft.Committee; theft.Fault() != nil {
			enough.Witnesses = theft.Least
			if p := enough.Settled(float64(theft.Rounds), 2); p > 1e-3 {
				t.Errorf("%+v: %d are not enough: %g", c, theft.Least, p)
			}
		}
	}
}
