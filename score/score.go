// Package score computes what a member's contribution to a window is worth from a validator's
// computations.
//
// A validator holds d, the part of the member's delta that the window's slice reveals, and g, the
// gradient of the member's share at the same places, which the validator has computed itself. With
// <a,b> the inner product, |a| the Euclidean norm, and t ranging over the model's tensors,
//
//	whole   =  <d,g> / (|d| |g|)
//	tensors =  SUM_t |g_t| cos(d_t, g_t) / SUM_t |g_t|
//	s       =  min(whole, tensors)
//
// whole is Boltzmann's s. It looks only at direction. Alone, it can be gamed by learning the few
// tensors that hold most of the norm, or by a delta with most of its norm in one of them. tensors
// weighs each tensor separately, so both must be right. The following rules can only lower the
// score ([Rules.Score]):
//
//   - If the norm |d| is more than Norm times the median of the window, or less than 1/Norm
//     of it, the delta earns nothing: a cosine does not see lengths.
//   - A delta that, applied alone, raises the loss both on the member's sequences and on others
//     earns nothing.
//   - The fraction Loss of s depends on how much more the delta lowers the loss on the member's
//     own sequences than on unassigned ones. Where arithmetic is not exact, this distinguishes
//     training on the assigned data from training on any data (Gauntlet, arXiv 2505.21684, calls
//     it a proof of computation).
//   - If the root of the recomputed gradient does not open the commitment's Work, the result is
//     worth -1, regardless of the rest. Where arithmetic is exact this is a proof, and it needs
//     no private state of the member.
//   - A share that was assigned but not delivered is worth 0.
//
// A member's scores are averaged over its evaluations ([Book]) and sent to the chain as fixed-point
// numbers ([Fixed]).
//
// All numbers here have the same bits on every machine. Products of two binary32 numbers are exact
// in binary64, so no compiler can round them differently; sums run in one direction; square roots
// and quotients are correctly rounded. Two validators that evaluate the same result agree.
package score

import (
	"errors"
	"fmt"
	"math"
)

// Likeness is how closely a delta matches a gradient.
type Likeness struct {
	Whole   float64   `json:"cosine"`         // over all tensors at once
	Tensors float64   `json:"tensor_cosine"`  // mean over the tensors, weighted by gradient norm
	Each    []float64 `json:"tensor_cosines"` // one for each tensor
	Norm    float64   `json:"norm"`           // norm of the delta
	Grad    float64   `json:"gradient_norm"`  // norm of the gradient over the same places
}

// Compare compares a delta with a gradient, both over the places of a slice. parts holds the number
// of places of each tensor. A vector with norm 0 has cosine 0 with any other.
func Compare(parts []int, d, g []float32) (Likeness, error) {
	total := 0
	for _, n := range parts {
		if n < 0 || n > len(d)-total {
			return Likeness{}, fmt.Errorf("score: tensors of %d places and more in a slice of %d", total, len(d))
		}
		total += n
	}
	if total != len(d) || len(d) != len(g) {
		return Likeness{}, fmt.Errorf("score: %d values of a delta and %d of a gradient at %d places", len(d), len(g), total)
	}
	l := Likeness{Each: make([]float64, len(parts))}
	var dg, dd, gg, weighed, weights float64
	for t, n := range parts {
		a := sums(d[:n], g[:n])
		d, g = d[n:], g[n:]
		dg, dd, gg = dg+a.dg, dd+a.dd, gg+a.gg
		norm := math.Sqrt(a.gg)
		l.Each[t] = a.cosine()
		weighed += float64(norm * l.Each[t])
		weights += norm
	}
	whole := products{dg, dd, gg}
	if !whole.finite() {
		return Likeness{}, errNotFinite
	}
	l.Whole, l.Norm, l.Grad = whole.cosine(), math.Sqrt(dd), math.Sqrt(gg)
	if weights > 0 {
		l.Tensors = clamp(weighed / weights)
	}
	return l, nil
}

// errNotFinite reports a NaN or an infinity. Neither strict decoding nor the engine lets one
// through.
var errNotFinite = errors.New("score: a delta or a gradient holds a number that is not finite")

// Norm returns the Euclidean norm of values.
func Norm(v []float32) float64 { return math.Sqrt(sums(v, v).dd) }

// products are the inner products of two vectors.
type products struct{ dg, dd, gg float64 }

func sums(d, g []float32) (p products) {
	for i, x := range d {
		a, b := float64(x), float64(g[i])
		p.dg += a * b // exact products: fused multiply-add gives the same sum
		p.dd += a * a
		p.gg += b * b
	}
	return p
}

func (p products) finite() bool {
	s := p.dg + p.dd + p.gg
	return !math.IsNaN(s) && !math.IsInf(s, 0)
}

// cosine returns the cosine of the angle between the vectors, or 0 if there is no angle.
func (p products) cosine() float64 {
	if p.dd <= 0 || p.gg <= 0 {
		return 0
	}
	return clamp(p.dg / float64(math.Sqrt(p.dd)*math.Sqrt(p.gg)))
}

// clamp removes what rounding adds beyond 1.
func clamp(x float64) float64 { return max(-1, min(1, x)) }
