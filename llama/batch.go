package llama

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

const (
	// blockRows is the number of tokens of a sequence in a block. It is part of the definition of the
	// gradient of gains, and the number of rows that attention computes at a time.
	blockRows = 64
	// shareRows is the number of rows in one piece of work where rows are independent.
	shareRows = 16
)

// A batch is the state that all operations of one pass share: the pool, and the tokens as batch·seq
// rows, one sequence after another.
type batch struct {
	pool       *exact.Pool
	eight      *eight // nil if linear products are in binary32
	batch, seq int
	bytes      int // bytes that floats has allocated
}

// eight is what the linear products of a pass in 8 bits share.
type eight struct {
	*exact8.Multiplier
	dy, dyT exact8.Left   // the gradient of linear's output, and its transpose
	right   exact8.Packed // what they are multiplied by
}

// floats allocates memory for n floats and counts it.
func (b *batch) floats(n int) []float32 {
	b.bytes += 4 * n
	return make([]float32, n)
}

func (b *batch) rows() int { return b.batch * b.seq }

// blocks returns the number of blocks. Sequences are cut separately, so sums over blocks do not
// depend on which sequences are computed together.
func (b *batch) blocks() int { return b.batch * ((b.seq + blockRows - 1) / blockRows) }

// block returns the rows [low, high) of block i.
func (b *batch) block(i int) (low, high int) {
	each := (b.seq + blockRows - 1) / blockRows
	start := i / each * b.seq
	low = start + i%each*blockRows
	return low, min(low+blockRows, start+b.seq)
}

// shares returns the number of pieces of shareRows rows; share returns the rows [low, high) of
// piece i.
func (b *batch) shares() int { return (b.rows() + shareRows - 1) / shareRows }

func (b *batch) share(i int) (low, high int) {
	return i * shareRows, min((i+1)*shareRows, b.rows())
}

// linear computes y = x·wᵀ for each row, or y += x·wᵀ if acc is set: x is (rows, in), w (out, in),
// y (rows, out).
func (b *batch) linear(y, x, w []float32, in, out int, acc bool) {
	if b.eight != nil {
		b.eight.Gemm(b.rows(), out, in, x, in, 1, w, 1, in, y, out, acc)
		return
	}
	exact.Gemm(b.pool, b.rows(), out, in, x, in, 1, w, 1, in, y, out, acc)
}

// gradient tells that dy (rows, out) is the gradient of linear's output, from which linearInput and
// linearWeight compute the others. In 8 bits it is read here, once for both.
func (b *batch) gradient(dy []float32, out int) {
	if b.eight != nil {
		b.eight.dyT.Reserve(out, exact8.Blocks(b.rows(), b.seq))
		b.eight.PackBoth(&b.eight.dy, &b.eight.dyT, 0, b.rows(), out, b.seq, dy)
	}
}

// linearInput computes the gradient of linear's input: dx = dy·w.
func (b *batch) linearInput(dx, dy, w []float32, in, out int) {
	if e := b.eight; e != nil {
		e.Pack(&e.right, in, out, out, w, in, 1)
		e.Multiply(&e.dy, &e.right, 0, exact8.Blocks(out, out), dx, in, false)
		return
	}
	exact.Gemm(b.pool, b.rows(), in, out, dy, out, 1, w, in, 1, dx, in, false)
}

// linearWeight adds the gradient of linear's weight: dw += dyᵀ·x. A dw of nil needs none.
func (b *batch) linearWeight(dw, dy, x []float32, in, out int) {
	if dw == nil {
		return
	}
	if e := b.eight; e != nil {
		e.Pack(&e.right, in, b.rows(), b.seq, x, in, 1) // no block of tokens spans two sequences
		e.Multiply(&e.dyT, &e.right, 0, exact8.Blocks(b.rows(), b.seq), dw, in, true)
		return
	}
	exact.Gemm(b.pool, out, in, b.rows(), dy, 1, out, x, in, 1, dw, in, true)
}
