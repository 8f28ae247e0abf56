package sim

import (
	"math"
	"testing"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// drawn makes exposures whose checks are drawn with probability p, and which state q.
func drawn(random *prng.Source, n, rounds int, p, q float64) []Exposure {
	var all []Exposure
	for range n {
		e := Exposure{}
		for len(e.Chances) < rounds && !e.Detected {
			e.Chances = append(e.Chances, q)
			e.Detected = float64(random.Uint64()>>11)/(1<<53) < p
		}
		all = append(all, e)
	}
	return all
}

func TestFitTellsRightChancesFromWrongOnes(t *testing.T) {
	random := prng.New(wire.Sum("fit"), "test")
	low := 0
	for range 200 {
		if Fitted(drawn(&random, 300, 30, 0.1, 0.1), &random).P < 0.05 {
			low++
		}
	}
	// 10 expected; 25 or more have a probability below 1e-4.
	if low >= 25 {
		t.Errorf("%d of 200 true statements are rejected at 5 %%", low)
	}
	for _, q := range []float64{0.07, 0.14} {
		if f := Fitted(drawn(&random, 1000, 30, 0.1, q), &random); f.P > 1e-4 {
			t.Errorf("checks are drawn with 0.1, stated is %v: %+v", q, f)
		}
	}
	if f := Fitted(nil, &random); f.P != 1 || f.Count != 0 {
		t.Errorf("of nothing: %+v", f)
	}
}

func TestKolmogorovHasItsTabledValues(t *testing.T) {
	for _, c := range []struct{ x, p float64 }{{1.2238, 0.10}, {1.3581, 0.05}, {1.6276, 0.01}, {1.9495, 0.001}} {
		if p := kolmogorov(c.x); math.Abs(p-c.p) > c.p/500 {
			t.Errorf("P(K > %v) = %v, want %v", c.x, p, c.p)
		}
	}
}
