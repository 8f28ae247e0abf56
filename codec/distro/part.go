package distro

import (
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

var _ codec.Disputable = (*Codec)(nil)

// Blocks is the number of blocks. They lie in the state, and their codes in a payload, one after
// another without gaps.
func (c *Codec) Blocks() int { return len(c.blocks) }

// Block is number i of them.
func (c *Codec) Block(i int) codec.Block {
	b := &c.blocks[i]
	return codec.Block{
		Offset: b.offset, Stride: b.stride, Rows: b.shape.h, Cols: b.shape.w, State: b.state, Bit: b.bit, Bits: b.shape.Bits,
	}
}

// Header is what every payload begins with.
func (c *Codec) Header() codec.Header { return c.header }

// Clipping implements [codec.Disputable].
func (c *Codec) Clipping() (norm, weightDecay float32) { return c.cfg.ClipNorm, c.cfg.WeightDecay }

// Columns transforms columns [from, to) of block i: those of out = R * x, both row-major. Of a
// block of one row they are only copied.
func (c *Codec) Columns(w *exact.Worker, i int, out, x []float32, from, to int) {
	s := c.blocks[i].shape
	if s.h == 1 {
		copy(out[from:to], x[from:to])
		return
	}
	w.Gemm(s.h, to-from, s.h, s.rows.matrix, s.h, 1, x[from:], s.w, 1, out[from:], s.w, false)
}

// Rows transforms rows [from, to) of block i: those of out = x * transposed(C), both row-major.
// After Columns it makes the block's coefficients.
func (c *Codec) Rows(w *exact.Worker, i int, out, x []float32, from, to int) {
	s := c.blocks[i].shape
	w.Gemm(to-from, s.w, s.w, x[from*s.w:], s.w, 1, s.cols.transpose, s.w, 1, out[from*s.w:], s.w, false)
}

// Momentum adds coefficients to the momentum of a block: momentum = Decay*momentum +
// step*coefficients. step is the learning rate times the factor of codec.Clip, rounded.
func (c *Codec) Momentum(momentum, coefficients []float32, step float32) {
	for i, x := range coefficients[:len(momentum)] {
		momentum[i] = float32(c.cfg.Decay*momentum[i]) + float32(step*x)
	}
}

// Code takes the largest coefficients out of the momentum of block i, and returns the code that
// sends them, lowest word first.
func (c *Codec) Code(i int, momentum []float32) []uint64 {
	shape := c.blocks[i].shape
	s := scratch{picker: subset.NewPicker(len(momentum), shape.K)}
	s.picker.Pick(momentum, shape.K, &s.votes)
	s.send(momentum)
	code := shape.Code(&s.votes)
	return code[:shape.Words]
}

// send notes the signs of the coefficients voted for, and takes them out of the momentum.
func (s *scratch) send(momentum []float32) {
	for i, p := range s.votes.Positions[:s.votes.N] {
		s.votes.Negative |= uint64(math.Float32bits(momentum[p])>>31) << uint(i)
		momentum[p] = 0
	}
}

// CheckMagnitude implements [codec.Disputable].
func (c *Codec) CheckMagnitude(most float32) error {
	return codec.CheckRange("magnitude of the state", most, stateMax)
}

// countBlocks returns the number of blocks that New cuts the parameters in.
func countBlocks(o codec.Options, layout tensor.Layout) (n uint64) {
	side := o.(Config).Block
	pieces := func(size int) uint64 { return uint64((size + side - 1) / side) }
	for _, t := range layout.Tensors() {
		last := len(t.Shape) - 1
		if last < 0 { // a number
			n++
			continue
		}
		rows, cols, matrices := 1, t.Shape[last], 1
		if last > 0 {
			rows = t.Shape[last-1]
			for _, d := range t.Shape[:last-1] {
				matrices *= d
			}
		}
		n += uint64(matrices) * pieces(rows) * pieces(cols)
	}
	return n
}
