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
	eight      *exact8.Multiplier // nil if linear products are in binary32
	batch, seq int
	bytes      int // bytes that floats has allocated
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

// gemm computes a linear product in the model's arithmetic; its arguments are those of exact.Gemm.
func (b *batch) gemm(m, n, k int, x []float32, xrs, xcs int, y []float32, yrs, ycs int, z []float32, ldz int, acc bool) {
	if b.eight != nil {
		b.eight.Gemm(m, n, k, x, xrs, xcs, y, yrs, ycs, z, ldz, acc)
		return
	}
	exact.Gemm(b.pool, m, n, k, x, xrs, xcs, y, yrs, ycs, z, ldz, acc)
}

// linear computes y = x·wᵀ for each row, or y += x·wᵀ if acc is set: x is (rows, in), w (out, in),
// y (rows, out).
func (b *batch) linear(y, x, w []float32, in, out int, acc bool) {
	b.gemm(b.rows(), out, in, x, in, 1, w, 1, in, y, out, acc)
}

// linearInput computes the gradient of linear's input: dx = dy·w.
func (b *batch) linearInput(dx, dy, w []float32, in, out int) {
	b.gemm(b.rows(), in, out, dy, out, 1, w, in, 1, dx, in, false)
}

// linearWeight adds the gradient of linear's weight: dw += dyᵀ·x.
func (b *batch) linearWeight(dw, dy, x []float32, in, out int) {
	rows := b.rows()
	if b.eight != nil && b.seq%exact8.Block != 0 {
		rows = b.seq // no block of tokens spans two sequences
	}
	for from := 0; from < b.rows(); from += rows {
		b.gemm(out, in, rows, dy[from*out:], 1, out, x[from*in:], in, 1, dw, in, true)
	}
}
