package distro

import (
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

var _ codec.Disputable = (*Codec)(nil)

// Blocks implements [codec.Disputable].
func (c *Codec) Blocks() int { return c.blocks }

// Block implements [codec.Disputable].
func (c *Codec) Block(i int) codec.Block {
	b := c.at(i)
	return codec.Block{
		Offset: b.offset, Stride: b.stride, Rows: b.shape.h, Cols: b.shape.w, State: b.state, Bit: b.bit, Bits: b.shape.Bits,
	}
}

// Header implements [codec.Disputable].
func (c *Codec) Header() codec.Header { return c.header }

// Clipping implements [codec.Disputable].
func (c *Codec) Clipping() (norm, weightDecay float32) { return c.cfg.ClipNorm, c.cfg.WeightDecay }

// Columns computes columns [from, to) of out = R * x, both row-major, for block i. It copies them
// if the block has one row.
func (c *Codec) Columns(w *exact.Worker, i int, out, x []float32, from, to int) {
	s := c.at(i).shape
	if s.h == 1 {
		copy(out[from:to], x[from:to])
		return
	}
	w.Gemm(s.h, to-from, s.h, s.rows.matrix, s.h, 1, x[from:], s.w, 1, out[from:], s.w, false)
}

// Rows computes rows [from, to) of out = x * transposed(C), both row-major, for block i. After
// Columns it gives the block's coefficients.
func (c *Codec) Rows(w *exact.Worker, i int, out, x []float32, from, to int) {
	s := c.at(i).shape
	w.Gemm(to-from, s.w, s.w, x[from*s.w:], s.w, 1, s.cols.transpose, s.w, 1, out[from*s.w:], s.w, false)
}

// Momentum computes momentum = Decay*momentum + step*coefficients for a block. step is the learning
// rate times the factor of codec.Clip, rounded.
func (c *Codec) Momentum(momentum, coefficients []float32, step float32) {
	for i, x := range coefficients[:len(momentum)] {
		momentum[i] = float32(c.cfg.Decay*momentum[i]) + float32(step*x)
	}
}

// Code removes the largest coefficients from the momentum of block i, and returns their code,
// lowest word first.
func (c *Codec) Code(i int, momentum []float32) []uint64 {
	shape := c.at(i).shape
	s := scratch{picker: subset.NewPicker(len(momentum), shape.K)}
	s.picker.Pick(momentum, shape.K, &s.votes)
	s.send(momentum)
	code := shape.Code(&s.votes)
	return code[:shape.Words]
}

// send records the signs of the chosen coefficients and removes them from the momentum.
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

// countBlocks returns the number of blocks of a layout without making a codec.
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
