package slice

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

const (
	unit      = 1.0 / 16 // the unit of sent values
	valueMax  = 127      // greatest magnitude of a value
	meanDecay = 0.95     // decay of the sum of squares
	// eps is added to the root of a sum of squares. It prevents division by zero and is far below
	// the gradient of any weight that matters.
	eps      = 0x1p-60
	stateMax = 0x1p126 // Encode's sums of squares are below 20 * codec.NormMax^2
	span     = 1 << 12 // elements in a task; it does not affect results
)

// value returns a/unit, which is exact, rounded to the nearest integer in -127..127, ties to even.
// Adding 3*2^22 leaves the integer in the low bits of the sum, because a binary32 of that size has
// no fraction.
func value(a float32) int8 {
	x := float32(a * (1 / unit))
	if x > valueMax {
		return valueMax
	}
	if x < -valueMax {
		return -valueMax
	}
	return int8(math.Float32bits(x + 3<<22))
}

// Encode adds the gradient to state and appends the sealed update to dst. See codec.Codec and the
// package comment.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != c.StateLen() || len(grad) != c.n {
		panic(fmt.Sprintf("slice: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	j := c.get()
	defer c.put(j)
	scale, err := j.clipper.Clip(grad, c.cfg.ClipNorm)
	if err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	if err := j.check(state); err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	dst = append(dst, c.sealed[:]...)
	dst = append(dst, make([]byte, c.n)...)
	j.state, j.grad, j.values = state, grad, dst[len(dst)-c.n:]
	j.numbers = exact.AdamWStep{
		Fresh1: scale, Beta2: meanDecay, Fresh2: float32(scale * scale),
		Keep: c.cfg.Decay, Rate: -1, Scale: 1, Eps: eps,
	}
	c.pool.RunOn(spans(c.n), j.encode)
	return dst, nil
}

// spans returns the number of tasks for n elements.
func spans(n int) int { return (n + span - 1) / span }

// encodeSpan encodes the elements of one task. With Beta1 0, Rate -1 and Keep the decay,
// exact.AdamW computes the step of the package comment.
func (j *job) encodeSpan(w *exact.Worker, task int) {
	from, to := task*span, min((task+1)*span, j.c.n)
	unsent, squares := j.state[from:to], j.state[j.c.n+from:j.c.n+to]
	mean := j.scratch[w.Index()].mean[:to-from]
	clear(mean) // 0 times the old mean could be -0
	w.AdamW(unsent, mean, squares, j.grad[from:to], j.numbers)
	values := j.values[from:to]
	for i, a := range unsent {
		values[i] = byte(value(a))
	}
}

// check returns an error if state has a NaN, an infinity, an element so large that sums could
// overflow, or a negative sum of squares.
func (j *job) check(state []float32) error {
	if err := j.checkState.Check(state, stateMax); err != nil {
		return err
	}
	j.state = state
	j.c.pool.RunOn(spans(j.c.n), j.signs)
	for task, below := range j.below {
		if !below {
			continue
		}
		for i, x := range state[j.c.n+task*span:] {
			if x < 0 {
				return fmt.Errorf("state at element %d, a sum of squares, is %g: %w", j.c.n+task*span+i, x, codec.ErrTooLarge)
			}
		}
	}
	return nil
}

// signsOfSpan records whether a task's sums of squares include a negative one.
func (j *job) signsOfSpan(_ *exact.Worker, task int) {
	var all uint32
	for _, x := range j.state[j.c.n+task*span : j.c.n+min((task+1)*span, j.c.n)] {
		all |= math.Float32bits(x)
	}
	j.below[task] = all>>31 == 1
}

// Settle subtracts from state what the slice that seed draws has sent. Members call it once for
// each sealed update that they committed to, before the next Encode. It panics if state has the
// wrong length.
func (c *Codec) Settle(state []float32, seed wire.Hash) {
	if len(state) != c.StateLen() {
		panic(fmt.Sprintf("slice: state of %d elements for a layout of %d", len(state), c.n))
	}
	d := newDraw(seed)
	for i := range c.plan.groups {
		g := &c.plan.groups[i]
		r := c.plan.leafRange(g, d.next(g))
		unsent := state[r.From:r.To]
		for k, a := range unsent {
			unsent[k] = a - float32(float32(value(a))*unit)
		}
	}
}
