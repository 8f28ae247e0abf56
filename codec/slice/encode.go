package slice

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

const (
	unit      = 1.0 / 16 // what a value of 1 stands for
	valueMax  = 127      // greatest magnitude of a value
	meanDecay = 0.95     // of the sum of squares, a window
	// eps is what is added to the root of a sum of squares: enough that nothing is divided by zero,
	// and far below the gradient of any weight that matters.
	eps      = 0x1p-60
	stateMax = 0x1p126 // sums of squares that Encode leaves behind are below 20 * codec.NormMax^2
	span     = 1 << 12 // elements of a task; the results do not depend on it
)

// value is what is sent for a: a/unit, which is exact, rounded to the nearest, ties to even. The
// sum's lowest bits are the integer: a binary32 near 3*2^22 has none after the point.
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

// Encode adds the gradient to state and appends the sealed update. See codec.Codec and the package
// comment.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != c.StateLen() || len(grad) != c.n {
		panic(fmt.Sprintf("slice: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	j := c.take()
	defer c.give(j)
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

// spans is how many tasks so many elements make.
func spans(n int) int { return (n + span - 1) / span }

// encodeSpan does the elements of one task. With Beta1 0, Rate -1 and Keep the decay, the step of
// exact.AdamW is that of the package comment.
func (j *job) encodeSpan(w *exact.Worker, task int) {
	from, to := task*span, min((task+1)*span, j.c.n)
	unsent, squares := j.state[from:to], j.state[j.c.n+from:j.c.n+to]
	mean := j.scratch[w.Index()].mean[:to-from]
	clear(mean) // 0 times what was there could be of either sign
	w.AdamW(unsent, mean, squares, j.grad[from:to], j.numbers)
	values := j.values[from:to]
	for i, a := range unsent {
		values[i] = byte(value(a))
	}
}

// check refuses a state that Encode has not left behind: one of numbers so large, or no numbers,
// that sums could overflow, or with a sum of squares below zero.
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
				return fmt.Errorf("state at element %d is %g, and a sum of squares is not negative: %w", j.c.n+task*span+i, x, codec.ErrTooLarge)
			}
		}
	}
	return nil
}

// signsOfSpan tells whether a part of the sums of squares may have one below zero.
func (j *job) signsOfSpan(_ *exact.Worker, task int) {
	var all uint32
	for _, x := range j.state[j.c.n+task*span : j.c.n+min((task+1)*span, j.c.n)] {
		all |= math.Float32bits(x)
	}
	j.below[task] = all>>31 == 1
}

// Settle takes out of state what the slice that the seed draws has sent. It is called before the
// next Encode, once for each sealed update that the member committed to. It panics if state has the
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
