// Package score says what a member's contribution to a window is worth, from what a validator has
// computed of it.
//
// A validator holds d, the part of the member's delta that the window's slice shows, and g, the
// gradient of the member's share at the same places, which it has computed itself. With <a,b> the
// inner product and |a| the Euclidean norm, t going over the tensors of the model,
//
//	whole   =  <d,g> / (|d| |g|)
//	tensors =  SUM_t |g_t| cos(d_t, g_t) / SUM_t |g_t|
//	s       =  min(whole, tensors)
//
// whole is Boltzmann's s; it looks at direction only. It alone can be had by learning the few
// tensors that hold most of the norm, or by a delta most of whose norm is in one of them; tensors
// looks at each by itself, so that both must be right. Then, each rule taking only away
// ([Rules.Score]):
//
//   - a norm |d| more than Norm times the median of the window's, or less than that part of it, earns nothing: a cosine does not see lengths;
//   - a delta which, applied alone, raises the loss on the member's sequences and on others too earns nothing;
//   - the part Loss of s depends on how much more the delta lowers the loss on the member's own sequences than on others that nobody gave to it:
//     this is what tells training on the assigned data from training on any where arithmetic is not exact (Gauntlet, arXiv 2505.21684,
//     calls it a proof of computation);
//   - a commitment whose Work is not opened by the root of the recomputed gradient is worth -1, whatever the rest: where arithmetic is exact that
//     is a proof, and needs no private state of the member;
//   - a share that was given and not delivered is worth 0.
//
// The scores of a member are averaged over its evaluations ([Book]) and told to the chain as
// fixed-point numbers ([Fixed]).
//
// All numbers here have the same bits on every machine: products of two binary32 are exact in
// binary64, so no compiler can round them otherwise, sums go one way, and square roots and
// quotients are correctly rounded. Two validators that evaluate the same result agree.
package score

import (
	"errors"
	"fmt"
	"math"
)

// Likeness is how a delta lies to a gradient.
type Likeness struct {
	Whole   float64   `json:"cosine"`         // over all tensors at once
	Tensors float64   `json:"tensor_cosine"`  // mean over the tensors, weighed by their norms in the gradient
	Each    []float64 `json:"tensor_cosines"` // by tensor
	Norm    float64   `json:"norm"`           // of the delta
	Grad    float64   `json:"gradient_norm"`  // of the gradient, at the same places
}

// Compare compares a delta with a gradient, both at the places of a slice, parts being how many
// places each tensor has. What has norm 0 has cosine 0 with everything.
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

// errNotFinite is what comes of numbers that are none. Neither strict decoding nor the engine lets
// them pass.
var errNotFinite = errors.New("score: a delta or a gradient holds a number that is not finite")

// Norm is the Euclidean norm of values.
func Norm(v []float32) float64 { return math.Sqrt(sums(v, v).dd) }

// products are the inner products of two vectors.
type products struct{ dg, dd, gg float64 }

func sums(d, g []float32) (p products) {
	for i, x := range d {
		a, b := float64(x), float64(g[i])
		p.dg += a * b // exact products: a fused sum is the same
		p.dd += a * a
		p.gg += b * b
	}
	return p
}

func (p products) finite() bool {
	s := p.dg + p.dd + p.gg
	return !math.IsNaN(s) && !math.IsInf(s, 0)
}

// cosine is that of the angle between the vectors, 0 if there is none.
func (p products) cosine() float64 {
	if p.dd <= 0 || p.gg <= 0 {
		return 0
	}
	return clamp(p.dg / float64(math.Sqrt(p.dd)*math.Sqrt(p.gg)))
}

// clamp takes off what rounding leaves beyond 1.
func clamp(x float64) float64 { return max(-1, min(1, x)) }
