package sim

import (
	"math"
	"slices"

	"github.com/entrain-network/entrain/prng"
)

// Exposure is the sequence of probabilities with which an adversary's accepted results were checked
// by an honest verifier, up to the one that convicted it, or all of them if none did.
type Exposure struct {
	Client   int       `json:"client"`
	Kind     string    `json:"kind"`
	Chances  []float64 `json:"chances"`
	Detected bool      `json:"detected"` // a check of the last result convicted it
}

// quantile returns the quantile of the moment of detection in its distribution. It is uniform
// between 0 and 1 if results are checked with the stated probabilities and each check finds the
// cheat. The distribution is discrete; u chooses within a step. For an undetected adversary it is
// above the probability of detection.
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

// Fit is the agreement of the times of detection with the stated probabilities of checks.
type Fit struct {
	Count int `json:"count"` // number of adversaries
	// Kolmogorov-Smirnov distance between the quantiles and uniform ones
	Distance float64 `json:"distance"`
	P        float64 `json:"p"` // probability of such a distance if the stated probabilities are true
}

// Fitted compares exposures with their probabilities. source breaks ties of a discrete
// distribution.
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

// kolmogorov returns the probability that the limit distribution of Kolmogorov exceeds x. Its
// caller applies Stephens' correction for small samples (Journal of the Royal Statistical Society B
// 32, 1970).
func kolmogorov(x float64) float64 {
	if x < 0.2 {
		return 1 // to 12 digits; the series would need many terms
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
