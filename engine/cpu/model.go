package cpu

import (
	"errors"

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
}

// host is package llama's model, on the pool.
type host struct {
	*llama.Model
	sequence     int
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

// compute calls do with the device's model, if there is one, and again with the pool's if the
// device fails, which ends its use. A share that is not finite on both is no fault of the device's.
// do may run twice, so it starts from nothing.
func (e *Engine) compute(params, grad []float32, do func(m Model) error) error {
	if e.device != nil {
		w := &watched{Model: e.device}
		err := w.Start(params, grad != nil)
		if err == nil {
			err = do(w)
		}
		if w.failed == nil {
			return err
		}
		e.model.start(params, grad)
		again := do(e.model)
		if !errors.Is(again, llama.ErrNotFinite) || !errors.Is(w.failed, llama.ErrNotFinite) {
			e.device = nil
			if e.failed != nil {
				e.failed(w.failed)
			}
		}
		return again
	}
	e.model.start(params, grad)
	return do(e.model)
}
