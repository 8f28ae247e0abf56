package optim

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// Muon steps matrices by the orthonormal factor of their momentum, and all other weights as AdamW
// (K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024). The changes
// of members that trained on different data then differ less than those of AdamW, and their mean is
// a better step (B. Thérien et al., "MuLoCo: Muon is a Practical Inner Optimizer for DiLoCo",
// 2025). With G a matrix's gradient:
//
//	M = β·M + (1-β)·G                                        β = 0.95
//	X = (β·M + (1-β)·G)/|β·M + (1-β)·G|
//	five times: X = (a·1 + b·XXᵀ + c·(XXᵀ)²)·X               a, b, c = 3.4445, -4.775, 2.0315
//	W = W·(1 - lr·WeightDecay) - lr·0.2·√max(rows, columns)·X
//
// With the last factor a step is about as long as one of AdamW, so both have one rate and one decay
// (J. Liu et al., "Muon is Scalable for LLM Training", 2025).
//
// Each operation is rounded to binary32. Products are those of exact.Gemm, of XXᵀ with itself and
// with X; a matrix with more rows than columns has XᵀX, on the right of X. The norm is the root of
// the sum of squares in binary64, of each row and then of the rows in order; the quotient by it and
// the step's factor are computed in binary64 and rounded. So the weights have the same bits on
// every machine and for any number of workers. A Muon must not be used concurrently.
type Muon struct {
	*AdamW
	matrices []tensor.Tensor
	rest     []span // weights outside of matrices

	x, y, gram, poly []float32 // work space for the largest matrix
	sums             []float64
}

// A span is the weights [from, to).
type span struct{ from, to int }

const (
	muonBeta  = 0.95
	muonSteps = 5
	muonRate  = 0.2
	polyA     = 3.4445
	polyB     = -4.775
	polyC     = 2.0315
)

// NewMuon returns an optimizer for n weights, before its first step, that treats some of them as
// matrices, which are in ascending order. The mean of a matrix's gradients is its momentum, and the
// mean of squares stays 0. The error names the settings of cfg that are out of range.
func NewMuon(n int, matrices []tensor.Tensor, cfg AdamWConfig, pool *exact.Pool) (*Muon, error) {
	a, err := NewAdamW(n, cfg, pool)
	if err != nil {
		return nil, err
	}
	o := &Muon{AdamW: a, matrices: matrices}
	at := 0
	for _, t := range matrices {
		if len(t.Shape) != 2 || t.Offset < at || t.Offset+t.Len > n {
			return nil, fmt.Errorf("muon: tensor %q of shape %v at %d is not a matrix among %d weights, after the one before", t.Name, t.Shape, t.Offset, n)
		}
		if t.Offset > at {
			o.rest = append(o.rest, span{at, t.Offset})
		}
		at = t.Offset + t.Len
	}
	if at < n {
		o.rest = append(o.rest, span{at, n})
	}
	long, square, rows := largest(matrices)
	o.x, o.y = exact.Make[float32](long), exact.Make[float32](long)
	o.gram, o.poly = exact.Make[float32](square), exact.Make[float32](square)
	o.sums = make([]float64, rows)
	return o, nil
}

// MuonWork returns how many numbers a Muon of matrices holds besides an AdamW's.
func MuonWork(matrices []tensor.Tensor) int {
	long, square, _ := largest(matrices)
	return 2 * (long + square)
}

// largest returns the most elements that a matrix has, and its product with itself, and the most
// rows.
func largest(matrices []tensor.Tensor) (long, square, rows int) {
	for _, t := range matrices {
		side := min(t.Shape[0], t.Shape[1])
		long, square, rows = max(long, t.Len), max(square, side*side), max(rows, t.Shape[0])
	}
	return long, square, rows
}

// Step is AdamW's, with Muon's steps of matrices.
func (o *Muon) Step(params, grad []float32, lr float32) {
	o.check(params, grad, lr)
	o.step++
	o.Take(params, grad, o.cfg.At(o.step, lr), lr)
}

// Take is Step with AdamW's coefficients of a step, which it does not count.
func (o *Muon) Take(params, grad []float32, s exact.AdamWStep, lr float32) {
	for _, r := range o.rest {
		o.take(params, grad, s, r)
	}
	for _, t := range o.matrices {
		o.matrix(t, t.Of(params), t.Of(grad), s.Keep, lr)
	}
}

// matrix steps one matrix.
func (o *Muon) matrix(t tensor.Tensor, w, g []float32, keep, lr float32) {
	rows, columns := t.Shape[0], t.Shape[1]
	m, x := t.Of(o.m), o.x[:t.Len]
	o.pool.Run(rows, func(i int) {
		var sum float64
		for k := i * columns; k < (i+1)*columns; k++ {
			fresh := float32((1 - muonBeta) * g[k])
			m[k] = float32(muonBeta*m[k]) + fresh
			x[k] = float32(muonBeta*m[k]) + fresh
			sum += float64(float64(x[k]) * float64(x[k]))
		}
		o.sums[i] = sum
	})
	var sum float64
	for _, s := range o.sums[:rows] {
		sum += s
	}
	if sum == 0 { // no gradient ever: X is 0
		sum = 1
	}
	norm := math.Sqrt(sum)
	o.pool.Run(rows, func(i int) {
		for k := i * columns; k < (i+1)*columns; k++ {
			x[k] = float32(float64(x[k]) / norm)
		}
	})
	for range muonSteps {
		o.iterate(rows, columns)
	}
	x = o.x[:t.Len]
	step := float32(float64(lr) * float64(muonRate*math.Sqrt(float64(max(rows, columns)))))
	o.pool.Run(rows, func(i int) {
		for k := i * columns; k < (i+1)*columns; k++ {
			w[k] = float32(w[k]*keep) - float32(step*x[k])
		}
	})
}

// iterate brings the singular values of o.x nearer to 1.
func (o *Muon) iterate(rows, columns int) {
	x, y, n := o.x[:rows*columns], o.y[:rows*columns], min(rows, columns)
	gram, poly := o.gram[:n*n], o.poly[:n*n]
	if rows <= columns {
		exact.Gemm(o.pool, n, n, columns, x, columns, 1, x, 1, columns, gram, n, false)
	} else {
		exact.Gemm(o.pool, n, n, rows, x, 1, columns, x, columns, 1, gram, n, false)
	}
	exact.Gemm(o.pool, n, n, n, gram, n, 1, gram, n, 1, poly, n, false)
	o.pool.Run(n, func(i int) {
		for k := i * n; k < (i+1)*n; k++ {
			poly[k] = float32(polyC*poly[k]) + float32(polyB*gram[k])
		}
		poly[i*n+i] += polyA
	})
	if rows <= columns {
		exact.Gemm(o.pool, n, columns, n, poly, n, 1, x, columns, 1, y, columns, false)
	} else {
		exact.Gemm(o.pool, rows, n, n, x, n, 1, poly, n, 1, y, n, false)
	}
	o.x, o.y = o.y, o.x
}
