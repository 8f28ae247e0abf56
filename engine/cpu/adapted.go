package cpu

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// adapted is a Model of adapters: another Model computes the whole model, merged with them, on the
// pool or on a device that is no Adapter. What concerns the adapters alone, and the inner steps, is
// computed here.
type adapted struct {
	Model                 // of the whole model; set for each computation
	lora   *llama.Adapted // nil in a run that trains all parameters
	pool   *exact.Pool
	inner  *inner
	whole  []float32 // gradient of the whole model
	params []float32 // adapters
	grad   []float32 // their gradient
}

// newAdapted returns what a run of adapters needs besides its model, or nothing for others.
func newAdapted(run engine.Run, pool *exact.Pool, in *inner) (a adapted, err error) {
	if run.Model.LoRA == (llama.LoRA{}) {
		return adapted{}, nil
	}
	if run.Base == nil {
		return adapted{}, errors.New("engine: the frozen model, to which the run's adapters belong, is missing")
	}
	a = adapted{pool: pool, inner: in}
	if a.lora, err = llama.NewAdapted(run.Model, pool, run.Base); err != nil {
		return adapted{}, fmt.Errorf("engine: %w", err)
	}
	a.whole = make([]float32, len(run.Base))
	return a, nil
}

// of returns a for one computation, in which m computes the whole model.
func (a adapted) of(m Model, params *vector, grad []float32) *adapted {
	a.Model, a.params, a.grad = m, params.Floats, grad
	return &a
}

// Gradient implements Model: it is made from the whole model's.
func (a *adapted) Gradient(grad []float32) error {
	if err := a.Model.Gradient(a.whole); err != nil {
		return err
	}
	return a.lora.Gradient(grad, a.params, a.whole)
}

// Moments implements Model.
func (a *adapted) Moments(mean, square []float32) error {
	a.inner.adamw.Restore(mean, square, 0)
	return nil
}

// Norm implements Model.
func (a *adapted) Norm() (float64, error) {
	if err := a.Gradient(a.grad); err != nil {
		return 0, err
	}
	return codec.Norm(a.pool, a.grad), nil
}

// Update implements Model. The parameters of Start stay as they are.
func (a *adapted) Update(clip float32, s exact.AdamWStep) error {
	a.params = a.inner.step(a.pool, a.params, a.grad, clip, s)
	merged := a.lora.Merge(a.params)
	if h, ok := a.Model.(*host); ok {
		h.start(merged, a.whole)
	}
	return a.Model.Start(merged, 0, true)
}

// Updated implements Model: they are in their places.
func (a *adapted) Updated(_, _, _ []float32) error { return nil }
