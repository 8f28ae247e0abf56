package cpu

import (
	"errors"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// A Model computes losses and gradients to the bits of package llama, of sequences as long as the
// engine's.
type Model interface {
	// Start sets the parameters of the calls that follow, and with gradient the gradient to zeros.
	// The caller does not change params until it calls Start again.
	Start(params []float32, gradient bool) error
	// Grad is llama.Model.Grad of n sequences.
	Grad(tokens []uint32, n, total int) (loss float32, err error)
	// Loss is llama.Model.Loss of n sequences.
	Loss(tokens []uint32, n int) (float32, error)
	// Gradient copies to grad what the calls of Grad since Start added up to. It returns an error
	// that wraps llama.ErrNotFinite if an element is not finite.
	Gradient(grad []float32) error

	// Inner steps begin with the parameters of Start. Parameters and moments stay where the model
	// computes, from step to step, and the moments from share to share.

	// Moments sets the means of gradients and of their squares, which the calls of Update change.
	Moments(mean, square []float32) error
	// Norm returns codec.Norm of what the calls of Grad added up to. It returns an error that wraps
	// llama.ErrNotFinite if an element is not finite.
	Norm() (float64, error)
	// Update takes a step of AdamW by the gradient times clip, and sets the gradient to zeros.
	Update(clip float32, s exact.AdamWStep) error
	// Updated copies parameters and moments.
	Updated(params, mean, square []float32) error
}

// host is package llama's model, on the pool.
type host struct {
	*llama.Model
	sequence     int
	pool         *exact.Pool
	inner        *inner // nil if a share is one gradient
	params, grad []float32
}

// start sets the parameters of the calls that follow, and the gradient, which stays in grad, to
// zeros.
func (h *host) start(params, grad []float32) {
	h.params, h.grad = params, grad
	clear(grad)
}

// Start implements Model: start did it.
func (h *host) Start([]float32, bool) error { return nil }

// Grad implements Model.
func (h *host) Grad(tokens []uint32, n, total int) (float32, error) {
	return h.Model.Grad(h.params, h.grad, tokens, n, h.sequence, total)
}

// Loss implements Model.
func (h *host) Loss(tokens []uint32, n int) (float32, error) {
	return h.Model.Loss(h.params, tokens, n, h.sequence)
}

// Gradient implements Model: it is in its place.
func (h *host) Gradient([]float32) error { return nil }

// Moments implements Model.
func (h *host) Moments(mean, square []float32) error {
	h.inner.adamw.Restore(mean, square, 0)
	return nil
}

// Norm implements Model. Grad has found what is not finite.
func (h *host) Norm() (float64, error) { return codec.Norm(h.pool, h.grad), nil }

// Update implements Model. The parameters of Start stay as they are.
func (h *host) Update(clip float32, s exact.AdamWStep) error {
	n := len(h.grad)
	run := func(do func(from, to int)) {
		h.pool.Run((n+piece-1)/piece, func(i int) { do(i*piece, min((i+1)*piece, n)) })
	}
	if local := h.inner.local; &local[0] != &h.params[0] { // the first step
		copy(local, h.params)
		h.params = local
	}
	if clip != 1 {
		run(func(from, to int) {
			for k := from; k < to; k++ {
				h.grad[k] *= clip
			}
		})
	}
	h.inner.adamw.Take(h.params, h.grad, s)
	run(func(from, to int) { clear(h.grad[from:to]) })
	return nil
}

// Updated implements Model: they are in their places.
func (h *host) Updated(_, _, _ []float32) error { return nil }

// watched is a Model that remembers its failure.
type watched struct {
	Model
	failed error
}

func (w *watched) watch(err error) error {
	if err != nil {
		w.failed = err
	}
	return err
}

// Start implements Model.
func (w *watched) Start(params []float32, gradient bool) error {
	return w.watch(w.Model.Start(params, gradient))
}

// Grad implements Model.
func (w *watched) Grad(tokens []uint32, n, total int) (float32, error) {
	loss, err := w.Model.Grad(tokens, n, total)
	return loss, w.watch(err)
}

// Loss implements Model.
func (w *watched) Loss(tokens []uint32, n int) (float32, error) {
	loss, err := w.Model.Loss(tokens, n)
	return loss, w.watch(err)
}

// Gradient implements Model.
func (w *watched) Gradient(grad []float32) error { return w.watch(w.Model.Gradient(grad)) }

// Moments implements Model.
func (w *watched) Moments(mean, square []float32) error {
	return w.watch(w.Model.Moments(mean, square))
}

// Norm implements Model.
func (w *watched) Norm() (float64, error) {
	norm, err := w.Model.Norm()
	return norm, w.watch(err)
}

// Update implements Model.
func (w *watched) Update(clip float32, s exact.AdamWStep) error {
	return w.watch(w.Model.Update(clip, s))
}

// Updated implements Model.
func (w *watched) Updated(params, mean, square []float32) error {
	return w.watch(w.Model.Updated(params, mean, square))
}

// compute calls do with the device's model, if there is one, and again with the pool's if the
// device fails, which ends its use. A share that is not finite on both is no fault of the device's.
// do may run twice, so it starts from nothing.
func (e *Engine) compute(params, grad []float32, do func(m Model) error) error {
	if e.adapted.lora == nil {
		return e.onWhole(func() []float32 { return params }, grad, do)
	}
	whole := e.adapted.whole
	if grad == nil {
		whole = nil
	}
	// Inner steps merge others into the same memory, so that a second attempt needs these again.
	return e.onWhole(func() []float32 { return e.adapted.lora.Merge(params) }, whole, func(m Model) error {
		a := e.adapted
		a.Model, a.params, a.grad = m, params, grad
		return do(&a)
	})
}

// onWhole is compute for the parameters of the whole model and their gradient.
func (e *Engine) onWhole(params func() []float32, grad []float32, do func(m Model) error) error {
	if e.device != nil {
		w := &watched{Model: e.device}
		err := w.Start(params(), grad != nil)
		if err == nil {
			err = do(w)
		}
		if w.failed == nil {
			return err
		}
		e.model.start(params(), grad)
		again := do(e.model)
		if !errors.Is(again, llama.ErrNotFinite) || !errors.Is(w.failed, llama.ErrNotFinite) {
			e.device = nil
			if e.failed != nil {
				e.failed(w.failed)
			}
		}
		return again
	}
	e.model.start(params(), grad)
	return do(e.model)
}
