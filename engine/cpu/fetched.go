package cpu

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// fetched is a Model on a device whose inner steps the processor takes, for the device has AdamW
// only. In each step the gradient comes here and the parameters go back.
type fetched struct {
	Model
	pool         *exact.Pool
	inner        *inner
	params, grad []float32
}

// here reports whether the processor computes the inner steps of every Model.
func (in *inner) here() bool { return in != nil && in.muon != nil }

// Moments implements Model.
func (f *fetched) Moments(mean, square []float32) error {
	f.inner.adamw.Restore(mean, square, 0)
	return nil
}

// Norm implements Model.
func (f *fetched) Norm() (float64, error) {
	if err := f.Model.Gradient(f.grad); err != nil {
		return 0, err
	}
	return codec.Norm(f.pool, f.grad), nil
}

// Update implements Model.
func (f *fetched) Update(clip float32, s exact.AdamWStep) error {
	f.params = f.inner.step(f.pool, f.params, f.grad, clip, s)
	return f.Model.Start(f.params, 0, true)
}

// Updated implements Model: they are in their places.
func (f *fetched) Updated(_, _, _ []float32) error { return nil }
