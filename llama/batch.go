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
	pool         *exact.Pool
	eight        *eight // nil if linear products are in binary32
	batch, seq   int
	bytes        int // bytes that floats has allocated
	outer, inner gradient

	source    source // that fill runs
	fillShare func(w *exact.Worker, i int)
}

// A source computes rows [from, to) of a matrix, and no others.
type source func(w *exact.Worker, from, to int)

// eight is what the linear products of a pass in 8 bits share.
type eight struct {
	*exact8.Multiplier
	weight exact8.Packed // a weight
	input  exact8.Packed // the input of a product, for the gradient of its weight
}

// A gradient is that of a linear's output, d (rows, width), and in 8 bits for products along both.
type gradient struct {
	d             []float32
	width         int
	rows, columns exact8.Left
}

// floats allocates memory for n floats and counts it.
func (b *batch) floats(n int) []float32 {
	b.bytes += 4 * n
	return exact.Make[float32](n)
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

// fill computes all rows of a matrix.
func (b *batch) fill(s source) {
	b.source = s
	b.pool.RunOn(b.shares(), b.fillShare)
}

func (b *batch) doFill(w *exact.Worker, i int) {
	low, high := b.share(i)
	b.source(w, low, high)
}

// linear computes y = x·wᵀ for each row, or y += x·wᵀ if acc is set: x is (rows, in), w (out, in),
// y (rows, out). Unless nil, s computes x first: in 8 bits each row is quantized while a cache
// holds it, and so is, unless that is nil, kept: x for linearWeight.
func (b *batch) linear(y, x, w []float32, in, out int, acc bool, s source, kept *exact8.Packed) {
	if e := b.eight; e != nil {
		left := &b.inner.rows // which holds nothing between layers
		e.Quantize(b.rows(), b.seq, s, exact8.Sink{X: x, Cols: in, Stride: in, Rows: left, Right: kept})
		e.Pack(&e.weight, out, in, in, w, 1, in)
		e.Multiply(left, &e.weight, 0, exact8.Blocks(in, in), y, out, acc)
		return
	}
	if s != nil {
		b.fill(s)
	}
	exact.Gemm(b.pool, b.rows(), out, in, x, in, 1, w, 1, in, y, out, acc)
}

// take sets g to d (rows, width), the gradient of a linear's output, for linearInput and
// linearWeight. x (rows, in) is what the next linearWeight multiplies. Unless nil, s computes first
// what is missing of both. In 8 bits they are read here, once for all products.
func (b *batch) take(g *gradient, d []float32, width int, x []float32, in int, s source) {
	g.d, g.width = d, width
	switch e := b.eight; {
	case e != nil:
		e.Quantize(b.rows(), b.seq, s, // no block of tokens spans two sequences
			exact8.Sink{X: d, Cols: width, Stride: width, Rows: &g.rows, Columns: &g.columns},
			exact8.Sink{X: x, Cols: in, Stride: in, Right: &e.input})
	case s != nil:
		b.fill(s)
	}
}

// again makes x (rows, in), which s computes, what the next linearWeight multiplies.
func (b *batch) again(x []float32, in int, s source) {
	if e := b.eight; e != nil {
		e.Quantize(b.rows(), b.seq, s, exact8.Sink{X: x, Cols: in, Stride: in, Right: &e.input})
		return
	}
	b.fill(s)
}

// linearInput computes the gradient of linear's input: dx = dy·w.
func (b *batch) linearInput(dx []float32, g *gradient, w []float32, in int) {
	if e := b.eight; e != nil {
		e.Pack(&e.weight, in, g.width, g.width, w, in, 1)
		e.Multiply(&g.rows, &e.weight, 0, exact8.Blocks(g.width, g.width), dx, in, false)
		return
	}
	exact.Gemm(b.pool, b.rows(), in, g.width, g.d, g.width, 1, w, in, 1, dx, in, false)
}

// linearWeight adds the gradient of linear's weight: dw += dyᵀ·x. A dw of nil needs none. In 8 bits
// x is what take or again took, or kept if that is not nil.
func (b *batch) linearWeight(dw []float32, g *gradient, x []float32, in int, kept *exact8.Packed) {
	switch {
	case dw == nil:
	case b.eight != nil:
		if kept == nil {
			kept = &b.eight.input
		}
		b.eight.Multiply(&g.columns, kept, 0, exact8.Blocks(b.rows(), b.seq), dw, in, true)
	default:
		exact.Gemm(b.pool, g.width, in, b.rows(), g.d, 1, g.width, x, in, 1, dw, in, true)
	}
}
