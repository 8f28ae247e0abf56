package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
)

// AdamWConfig holds AdamW's settings, except for the learning rate.
type AdamWConfig struct {
	Beta1       float32 // decay of the mean gradient, in [0, 1); usually 0.9
	Beta2       float32 // decay of the mean square, in [0, 1); 0.95 for language models
	Eps         float32 // added to the root of the mean square, in [2^-60, 1]; usually 1e-8
	WeightDecay float32 // fraction of a weight removed by a step, per unit of rate, in [0, 1]
}

// DefaultAdamW holds the settings usually used for language models.
func DefaultAdamW() AdamWConfig {
	return AdamWConfig{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
}

// epsMin keeps the divisor of a step from being subnormal. Kernels that flush subnormals would give
// different results.
const epsMin = 1.0 / (1 << 60)

// Check returns all faults of c, joined, or nil.
func (c AdamWConfig) Check() error {
	var faults []error
	for _, f := range []struct {
		name string
		ok   bool
		v    float32
		want string
	}{
		{"beta1", c.Beta1 >= 0 && c.Beta1 < 1, c.Beta1, "in [0, 1)"},
		{"beta2", c.Beta2 >= 0 && c.Beta2 < 1, c.Beta2, "in [0, 1)"},
		{"eps", c.Eps >= epsMin && c.Eps <= 1, c.Eps, "in [2^-60, 1]"},
		{"weight decay", c.WeightDecay >= 0 && c.WeightDecay <= 1, c.WeightDecay, "in [0, 1]"},
	} {
		if !f.ok {
			faults = append(faults, fmt.Errorf("%s is %g, must be %s", f.name, f.v, f.want))
		}
	}
	return errors.Join(faults...)
}

// AdamW is Adam with decoupled weight decay (I. Loshchilov and F. Hutter, "Decoupled Weight Decay
// Regularization", 2019, algorithm 2), for one flat slice of weights. With g the gradient and t the
// number of the step, from 1:
//
//	m = β1·m + (1-β1)·g
//	v = β2·v + ((1-β2)·g)·g
//	x = x·(1 - lr·WeightDecay) - (rate·m) / (√v·scale + Eps)
//	    where rate = lr/(1-β1^t) and scale = 1/√(1-β2^t)
//
// Each operation is rounded to binary32; rate, scale and 1 - lr·WeightDecay are computed in
// binary64 and rounded at the end. So the weights have the same bits on every machine and for any
// number of workers. An AdamW must not be used concurrently.
type AdamW struct {
	cfg  AdamWConfig
	pool *exact.Pool
	m, v []float32 // mean and mean square of the gradients, both initially 0
	step uint32    // steps done

	params, grad []float32 // arguments of the current step
	numbers      exact.AdamWStep
	span         span
	part         func(w *exact.Worker, i int) // AdamW.piece, bound once so that steps do not allocate
}

// NewAdamW returns an optimizer for n weights, before its first step. The error names the settings
// of cfg that are out of range.
func NewAdamW(n int, cfg AdamWConfig, pool *exact.Pool) (*AdamW, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("adamw: %w", err)
	}
	a := &AdamW{cfg: cfg, pool: pool, m: exact.Make[float32](n), v: exact.Make[float32](n)}
	a.part = a.piece
	return a, nil
}

// Restore sets the optimizer's history: copies of the mean and the mean square of the gradients,
// and the number of steps done. It panics if a slice's length differs from the number of weights.
func (a *AdamW) Restore(m, v []float32, step uint32) {
	if len(m) != len(a.m) || len(v) != len(a.v) {
		panic(fmt.Sprintf("optim: moments of %d and %d weights for an optimizer of %d", len(m), len(v), len(a.m)))
	}
	copy(a.m, m)
	copy(a.v, v)
	a.step = step
}

// Moments returns what Restore sets. The slices belong to the optimizer and change with the next
// Step.
func (a *AdamW) Moments() (m, v []float32, step uint32) { return a.m, a.v, a.step }

// adamwPiece is the number of weights in one piece of work.
const adamwPiece = 1 << 14

// Step updates params by grad. The elements of grad must be finite and at most 2^60 in magnitude,
// which codec.Clip ensures; then nothing overflows. Step panics if a slice's length differs from
// the number of weights, or unless lr is in [0, LRMax] with lr·WeightDecay at most 1.
func (a *AdamW) Step(params, grad []float32, lr float32) {
	a.check(params, grad, lr)
	a.step++
	a.Take(params, grad, a.cfg.At(a.step, lr))
}

// check panics unless a step is possible.
func (a *AdamW) check(params, grad []float32, lr float32) {
	if len(params) != len(a.m) || len(grad) != len(a.m) {
		panic(fmt.Sprintf("optim: a step of %d weights by %d gradients for an optimizer of %d", len(params), len(grad), len(a.m)))
	}
	if !(lr >= 0 && lr <= lrMax && float32(lr*a.cfg.WeightDecay) <= 1) {
		panic(fmt.Sprintf("optim: learning rate %g with weight decay %g", lr, a.cfg.WeightDecay))
	}
}

// At returns the coefficients of step number step, from 1.
func (c AdamWConfig) At(step uint32, lr float32) exact.AdamWStep {
	t := float64(step)
	return exact.AdamWStep{
		Beta1: c.Beta1, Fresh1: 1 - c.Beta1, Beta2: c.Beta2, Fresh2: 1 - c.Beta2,
		Keep:  float32(1 - float64(float64(lr)*float64(c.WeightDecay))),
		Rate:  float32(float64(lr) / bias(c.Beta1, t)),
		Scale: float32(1 / math.Sqrt(bias(c.Beta2, t))),
		Eps:   c.Eps,
	}
}

// Take is Step with the coefficients of a step, which it does not count.
func (a *AdamW) Take(params, grad []float32, s exact.AdamWStep) {
	a.take(params, grad, s, span{0, len(params)})
}

// take is Take of the weights in r.
func (a *AdamW) take(params, grad []float32, s exact.AdamWStep, r span) {
	a.params, a.grad, a.numbers, a.span = params, grad, s, r
	a.pool.RunOn((r.to-r.from+adamwPiece-1)/adamwPiece, a.part)
	a.params, a.grad = nil, nil
}

// bias returns 1 - beta^t, the total weight of t values in a mean that started at 0.
func bias(beta float32, t float64) float64 {
	if beta == 0 {
		return 1
	}
	return 1 - exact.Pow(float64(beta), t)
}

func (a *AdamW) piece(w *exact.Worker, i int) {
	from := a.span.from + i*adamwPiece
	to := min(from+adamwPiece, a.span.to)
	w.AdamW(a.params[from:to], a.m[from:to], a.v[from:to], a.grad[from:to], a.numbers)
}
