package distro

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// Encode adds the gradient to the momentum in state, appends the payload with the largest
// coefficients, and clears these. See codec.Codec and the package comment.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != c.StateLen() || len(grad) != c.n {
		panic(fmt.Sprintf("distro: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	j := c.get()
	defer c.put(j)
	scale, err := j.clipper.Clip(grad, c.cfg.ClipNorm)
	if err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	if err := j.checkState.Check(state, stateMax); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	j.state, j.grad, j.step = state, grad, float32(lr*scale)
	c.pool.RunOn(c.tasks(), j.encode)
	return c.appendPayload(dst, j.codes), nil
}

// encodeBlocks encodes the blocks of one task.
func (j *job) encodeBlocks(w *exact.Worker, task int) {
	s, words := &j.scratch[w.Index()], j.c.words
	next := j.c.at(task * blocksPerTask)
	for i := next.i; i < min((task+1)*blocksPerTask, j.c.blocks); i++ {
		b := next.block
		if i+1 < j.c.blocks { // load the next block meanwhile
			next.next()
			j.c.loop.Fetch(j.grad[next.offset:], next.shape.h, next.shape.w, next.stride)
		}
		code := j.encodeBlock(w, s, &b)
		copy(j.codes[i*words:(i+1)*words], code[:])
	}
}

// encodeBlock computes momentum = decay*momentum + step*DCT(gradient) for one block, removes the
// largest coefficients from it, and returns their code.
func (j *job) encodeBlock(w *exact.Worker, s *scratch, b *block) subset.Number {
	n, run := b.shape.h*b.shape.w, b.shape.run
	coefficients, momentum := s.a[:n], j.state[b.state:b.state+n]
	b.shape.forward(w, coefficients, j.grad[b.offset:], b.stride, s.b)
	s.picker.Most = s.picker.Most[:0]
	for i := 0; i < n; i += run {
		s.lanes = [vec.Lanes]float32{}
		to := min(i+run, n)
		j.c.loop.Momentum(momentum[i:to], coefficients[i:to], j.c.cfg.Decay, j.step, &s.lanes)
		s.picker.Most = append(s.picker.Most, s.lanes[:]...)
	}
	s.picker.Top(&j.c.loop, momentum, b.shape.K, &s.votes)
	s.send(momentum)
	return b.shape.Code(&s.votes)
}

// appendPayload appends the header and the codes, c.words words for each block.
func (c *Codec) appendPayload(dst []byte, codes []uint64) []byte {
	start := len(dst)
	dst = slices.Grow(dst, c.PayloadMax())[:start+c.PayloadMax()]
	clear(dst[start:])
	body := dst[start+copy(dst[start:], c.header[:]):]
	for b := c.at(0); b.i < c.blocks; b.next() {
		subset.WriteNumber(body, b.bit, b.shape.Bits, codes[b.i*c.words:])
	}
	return dst
}
