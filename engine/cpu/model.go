package cpu

import (
	"errors"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A Model computes losses and gradients to the bits of package llama, of sequences as long as the
// engine's.
type Model interface {
	// Start sets the parameters of the calls that follow, and with gradient the gradient to zeros.
	// The caller does not change params until it calls Start again. Parameters of the same version
	// are the same; 0 is not a version.
	Start(params []float32, version uint64, gradient bool) error
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

// A Coder is a Model that runs the run's codec too, where it has the gradient, the parameters, and
// the state of the member that encoded last. All of them are also in the caller's memory: after an
// error the caller computes on from there. In a run with inner steps a state ends with the moments
// that Updated copies, and with the count of steps, which only the caller has.
type Coder interface {
	Model
	// Code prepares for a codec, and reports whether the Coder can run it.
	Code(c codec.Codec) bool
	// Change ends inner steps: the gradient becomes what they have changed the parameters of Start
	// by, which are the parameters again. Updated then takes no parameters.
	Change() error
	// Encode is Encode of the codec on the gradient that the calls of Grad added up to, with step
	// the learning rate times the factor of clipping; after inner steps on their change, with step
	// 1. It leaves state as it is, and sets after to the codec's part of the state of version next.
	// It also returns the leaves of the gradient and of what it has of that state.
	Encode(state, after []float32, version, next uint64, step float32) (payload []byte, gradient, leaves []wire.Hash, err error)
	// Holds reports whether the parameters are those of a version.
	Holds(version uint64) bool
	// Apply is Apply of the codec on them, for a set that it accepts. It leaves params as they are,
	// sets after to the parameters of version next, and returns their leaves.
	Apply(params, after []float32, next uint64, payloads [][]byte, lr float32) (leaves []wire.Hash, err error)
}

// A Patcher is a Model that takes changes of the parameters that it has.
type Patcher interface {
	// Patch makes the parameters of a version, if it has them, those of version next, which differ
	// from them only in ranges.
	Patch(params []float32, version, next uint64, ranges []codec.Range) error
}

// An Adapter is a Model that may hold the frozen model of a run of adapters. It then merges them
// where it computes, and they are its parameters; otherwise those are the whole model's, merged.
type Adapter interface {
	Model
	Adapts() bool
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
func (h *host) Start([]float32, uint64, bool) error { return nil }

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
	h.params = h.inner.step(h.pool, h.params, h.grad, clip, s)
	n := len(h.grad)
	h.pool.Run((n+piece-1)/piece, func(i int) { clear(h.grad[i*piece : min((i+1)*piece, n)]) })
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
func (w *watched) Start(params []float32, version uint64, gradient bool) error {
	return w.watch(w.Model.Start(params, version, gradient))
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
// device fails, which ends its use. A share that is refused on both is no fault of the device's. do
// may run twice, so it starts from nothing.
func (e *Engine) compute(v engine.Vector, grad []float32, do func(m Model) error) error {
	params, err := ready(v)
	if err != nil {
		return err
	}
	if e.device == nil {
		return e.onPool(params, grad, do)
	}
	w := &watched{Model: e.device}
	err = e.onDevice(w, params, grad, do)
	if w.failed == nil {
		return err
	}
	if params, err = ready(v); err != nil { // do may have put a state in their place
		return err
	}
	again := e.onPool(params, grad, do)
	if refused := refusal(w.failed); refused == nil || !errors.Is(again, refused) {
		e.leave(w.failed)
	}
	return again
}

func (e *Engine) onDevice(w *watched, params *vector, grad []float32, do func(m Model) error) error {
	if e.adapted.lora == nil || e.adapts {
		if err := w.Start(params.Floats, params.version, grad != nil); err != nil {
			return err
		}
		if grad != nil && e.inner.here() {
			return do(&fetched{Model: w, pool: e.pool, inner: e.inner, params: params.Floats, grad: grad})
		}
		return do(w)
	}
	if err := w.Start(e.adapted.lora.Merge(params.Floats), 0, grad != nil); err != nil {
		return err
	}
	return do(e.adapted.of(w, params, grad))
}

func (e *Engine) onPool(params *vector, grad []float32, do func(m Model) error) error {
	if e.adapted.lora == nil {
		e.model.start(params.Floats, grad)
		return do(e.model)
	}
	// Inner steps on a device merged others into the same memory.
	whole := e.adapted.whole
	if grad == nil {
		whole = nil
	}
	e.model.start(e.adapted.lora.Merge(params.Floats), whole)
	return do(e.adapted.of(e.model, params, grad))
}

// leave ends the use of the device.
func (e *Engine) leave(why error) {
	e.device, e.coder = nil, nil
	if e.failed != nil {
		e.failed(why)
	}
}

// refusal returns what refuses a share that is computed right, if err does.
func refusal(err error) error {
	for _, r := range []error{llama.ErrNotFinite, codec.ErrNotFinite, codec.ErrTooLarge} {
		if errors.Is(err, r) {
			return r
		}
	}
	return nil
}

// coded is a share's payload, and what comes with it.
type coded struct {
	payload  []byte
	gradient []wire.Hash // leaves
	norm     float64     // of the gradient

	// Of a Coder, which leaves the codec's part of the new state in e.grad.
	version uint64 // of the new state; 0: the state is the new one
	leaves  []wire.Hash
}

// coding returns m if it also runs the codec.
func (e *Engine) coding(m Model) *watched {
	if w, ok := m.(*watched); ok && e.coder != nil {
		return w
	}
	return nil
}

// encode encodes the gradient of m, where it is. keep then updates the state.
func (e *Engine) encode(m Model, state *vector, lr float32) (c coded, err error) {
	w := e.coding(m)
	if w == nil {
		if err := m.Gradient(e.grad); err != nil {
			return c, err
		}
		return e.encodeHere(state, lr)
	}
	clip, weightDecay := e.clipping()
	if err := codec.CheckLR(lr, weightDecay); err != nil {
		return c, err
	}
	if c.norm, err = m.Norm(); err != nil {
		return c, err
	}
	step, err := codec.Factor(c.norm, clip)
	if err != nil {
		return c, err
	}
	if e.inner == nil {
		step *= lr
	}
	c.version = versions.Add(1)
	c.payload, c.gradient, c.leaves, err = e.coder.Encode(state.Floats, e.grad, state.version, c.version, step)
	return c, w.watch(err)
}

// clipping returns the codec's bound of a gradient's norm, and its decay of weights.
func (e *Engine) clipping() (norm, weightDecay float32) {
	if d, ok := e.codec.(codec.Disputable); ok {
		return d.Clipping()
	}
	return 0, 0
}

// keep makes state the one that c has left, unless it is.
func (e *Engine) keep(state *vector, c coded) {
	if c.version == 0 {
		return
	}
	copy(state.Floats, e.grad)
	if e.inner != nil {
		e.inner.keep(state.Floats, e.length)
		full := (len(state.Floats) - 1) / (merkle.ChunkBytes / 4) // chunks without the count of steps
		c.leaves = append(c.leaves[:full:full], merkle.Leaf(tensor.Bytes(state.Floats[full*merkle.ChunkBytes/4:])))
	}
	state.changed(c.version, c.leaves)
}

// encodeHere encodes the gradient in e.grad on the pool, and updates the state.
func (e *Engine) encodeHere(state *vector, lr float32) (c coded, err error) {
	if c.payload, err = e.codec.Encode(nil, e.inner.part(state.Floats, e.length), e.grad, lr); err != nil {
		return c, err
	}
	e.inner.keep(state.Floats, e.length)
	state.changed(versions.Add(1), nil)
	c.gradient, c.norm = e.Leaves(Floats(e.grad)), codec.Norm(e.pool, e.grad)
	return c, nil
}
