package sim

import (
	"math"
	"slices"

	"github.com/entrain-network/entrain/prng"
)

// Exposure is one adversary's time in the open: the probabilities with which each of its accepted
// results was drawn to be checked by an honest verifier, up to the one it was convicted for, or
// all of them if it never was.
type Exposure struct {
	Client   int       `json:"client"`
	Kind     string    `json:"kind"`
	Chances  []float64 `json:"chances"`
	Detected bool      `json:"detected"` // by a check of the last one
}

// quantile is where the moment of detection lies in its distribution: uniform between 0 and 1 if
// results are checked with the probabilities stated and each check finds the cheat. The
// distribution has steps, and within the step u decides. One that was not detected lies somewhere
// above the probability of having been.
func (e Exposure) quantile(u float64) float64 {
	undetected := 1.0
	for i, p := range e.Chances {
		if e.Detected && i == len(e.Chances)-1 {
			return 1 - undetected + undetected*p*u
		}
		undetected *= 1 - p
	}
	return 1 - undetected + undetected*u
}

// Expected returns the expected number of accepted results before the one that convicts the
// adversary, at these probabilities, if the last of them continued forever.
func (e Exposure) Expected() float64 {
	if len(e.Chances) == 0 {
		return 0
	}
	var sum float64
	undetected := 1.0
	for _, p := range e.Chances {
		undetected *= 1 - p
		sum += undetected
	}
	last := e.Chances[len(e.Chances)-1]
	return sum + undetected*(1-last)/last
}

// Fit is how well the times of detection agree with the stated probabilities of checking.
type Fit struct {
	Count int `json:"count"` // of adversaries
	// of Kolmogorov and Smirnov, between the quantiles seen and uniform ones
	Distance float64 `json:"distance"`
	P        float64 `json:"p"` // probability of a distance as large if the statement is true
}

// Fitted compares exposures with what they say of themselves. Source breaks the ties of a
// distribution in steps.
func Fitted(all []Exposure, random *prng.Source) Fit {
	var q []float64
	for _, e := range all {
		if len(e.Chances) > 0 {
			q = append(q, e.quantile(float64(random.Uint64()>>11)/(1<<53)))
		}
	}
	f := Fit{Count: len(q), P: 1}
	if f.Count == 0 {
		return f
	}
	slices.Sort(q)
	n := float64(f.Count)
	for i, x := range q {
		f.Distance = max(f.Distance, x-float64(i)/n, float64(i+1)/n-x)
	}
	f.P = kolmogorov(f.Distance * (math.Sqrt(n) + 0.12 + 0.11/math.Sqrt(n)))
	return f
}

// kolmogorov is the probability that the limit distribution of Kolmogorov exceeds x. The argument
// above has Stephens' correction for small samples (Journal of the Royal Statistical Society B
// 32, 1970).
func kolmogorov(x float64) float64 {
	if x < 0.2 {
		return 1 // the series below needs many terms there, and the value is 1 to 12 digits
	}
	var sum float64
	for k := 1.0; k <= 100; k++ {
		term := math.Exp(-2 * k * k * x * x)
		if int(k)%2 == 1 {
			sum += term
		} else {
			sum -= term
		}
	}
	return min(1, max(0, 2*sum))
}
