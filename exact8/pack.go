package exact8

import (
	"fmt"

	"github.com/entrain-network/entrain/exact"
)

// Left is a matrix A quantized, as bytes q or q+128, whatever the kernel multiplies. If the rows of
// A lie one after another in memory, so do the bytes; if its columns do, A is kept in panels of
// panelA rows, in which the bytes of a row for four k lie together, and those of all rows for the
// same k. The zero value is empty.
type Left struct {
	rows    int
	blocks  int  // of a row
	columns bool // kept in panels
	stride  int  // bytes from row to row, or from panel to panel
	data    []byte
	// (panels, blocks, panelA): 2^(e-133) as what is added to the bits of a scale of B.
	scales []uint32
	bad    bool // a block is no number
}

// Memory returns the number of bytes that l has allocated.
func (l *Left) Memory() int { return cap(l.data) + 4*cap(l.scales) }

// Reserve makes room for an A of these rows and blocks of k, of which PackBoth quantizes some at a
// time.
func (l *Left) Reserve(rows, blocks int) { l.reserve(rows, blocks, true) }

// Blocks returns the number of blocks of k elements, of which a new one begins after each.
func Blocks(k, each int) int {
	if k == 0 {
		return 0
	}
	return (k/each)*((each+Block-1)/Block) + (k%each+Block-1)/Block
}

// block returns the elements of k that block t has: n, from p on.
func (in *operands) block(t int) (p, n int) {
	per := (in.each + Block - 1) / Block
	p = t/per*in.each + t%per*Block
	return p, min(Block, in.k-p, (t/per+1)*in.each-p)
}

// Packed is a matrix B, quantized for products that use it more than once: the weights of a step.
// It has panels of panelB columns, in which the bytes q of a column for four k lie together, and
// those of all columns for the same k. The zero value is empty; Pack fills it and reuses its
// memory.
type Packed struct {
	cols, k int
	blocks  int // of a column
	stride  int // bytes from panel to panel
	data    []byte
	scales  []uint32 // (panels, blocks, panelB): the bits of 2^(e-133)
	sums    []uint32 // likewise: -128·Σq, which makes up for the 128 in A's bytes
	bad     bool     // a block is no number
}

// Memory returns the number of bytes that p has allocated.
func (p *Packed) Memory() int { return cap(p.data) + 4*(cap(p.scales)+cap(p.sums)) }

// What e is stored as: scaleA(e) + scaleB(e') are the bits of 2^(e+e'-266).
func scaleA(e uint32) uint32 { return (e - 133) << 23 }
func scaleB(e uint32) uint32 { return (e - 6) << 23 }

// Pack quantizes B (k, cols), whose element [p,j] is b[p*brs+j*bcs], into p. A new block begins
// after each elements of k; unless that is k, columns must lie side by side.
func (m *Multiplier) Pack(p *Packed, cols, k, each int, b []float32, brs, bcs int) {
	check("B", k, cols, b, brs, bcs)
	m.right, m.piecesA = p, 0
	m.in = operands{k: k, each: each, b: b, brs: brs, bcs: bcs}
	m.pool.RunOn(m.layOutB(cols), m.quantize)
	_, p.bad = m.sawBad()
	m.in = operands{}
}

// PackBoth quantizes x (rows, cols), row-major, for products along both: into a as it is, and into
// the reserved t transposed, from block first of t's k on. A new block of k begins after each rows
// of x. All of x is read from memory once.
func (m *Multiplier) PackBoth(a, t *Left, first, rows, cols, each int, x []float32) {
	check("A", rows, cols, x, cols, 1)
	m.in = operands{k: rows, each: each, a: x, ars: cols}
	blocks := Blocks(rows, each)
	if t.rows != cols || first < 0 || first+blocks > t.blocks {
		panic(fmt.Sprintf("exact8: blocks %d to %d of %d rows into room for %d of %d", first, first+blocks, cols, t.blocks, t.rows))
	}
	a.reserve(rows, (cols+Block-1)/Block, false)
	m.left, m.from, m.both = a, first, t
	m.pool.RunOn(blocks, m.quantizeBoth)
	a.bad, _ = m.sawBad()
	t.bad = t.bad || a.bad
	m.in, m.left, m.both = operands{}, nil, nil
}

// quantizeBothPiece quantizes the rows of one block.
func (m *Multiplier) quantizeBothPiece(w *exact.Worker, i int) {
	own, in, cols := m.workers[w.Index()], &m.in, m.in.ars
	p, n := in.block(i)
	for row := p; row < p+n; row++ {
		m.leftRow(own, m.left, row, cols, in.a[row*cols:])
	}
	m.leftColumns(own, m.both, m.from+i, in.a[p*cols:], n, cols)
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// apart keeps rows and panels from lying a power of two apart, where they would share few places in
// a cache.
const apart = 64

// reserve makes room for an A of these rows and blocks of k.
func (l *Left) reserve(rows, blocks int, columns bool) {
	l.rows, l.blocks, l.columns, l.bad = rows, blocks, columns, false
	panels, padded := (rows+panelA-1)/panelA, blocks*Block
	l.scales = grow(l.scales, panels*panelA*blocks)
	if columns {
		l.stride = padded*panelA + apart
		l.data = grow(l.data, panels*l.stride)
		return
	}
	l.stride = padded + apart
	l.data = grow(l.data, panels*panelA*l.stride)
}

// layOutA makes room for A, and returns the number of pieces of work that quantizing it is: a panel
// of rows each, or a block of k of its columns.
func (m *Multiplier) layOutA(rows int) int {
	m.left.reserve(rows, Blocks(m.in.k, m.in.each), m.in.acs != 1)
	if m.left.columns || m.left.blocks == 0 {
		return m.left.blocks
	}
	return (rows + panelA - 1) / panelA
}

// layOutB is layOutA for B.
func (m *Multiplier) layOutB(cols int) int {
	r := m.right
	r.cols, r.k, r.blocks, r.bad = cols, m.in.k, Blocks(m.in.k, m.in.each), false
	panels := (cols + panelB - 1) / panelB
	r.stride = r.blocks*Block*panelB + apart
	r.data = grow(r.data, panels*r.stride)
	r.scales, r.sums = grow(r.scales, panels*r.blocks*panelB), grow(r.sums, panels*r.blocks*panelB)
	switch {
	case r.blocks == 0:
		return 0
	case m.in.bcs == 1:
		return r.blocks
	}
	return panels
}

// quantizePiece does one piece of quantizing.
func (m *Multiplier) quantizePiece(w *exact.Worker, i int) {
	own, in, l := m.workers[w.Index()], &m.in, m.left
	switch {
	case i >= m.piecesA && in.bcs == 1:
		m.rightColumns(own, i-m.piecesA)
	case i >= m.piecesA:
		m.rightRows(own, i-m.piecesA, in.k, in.b, in.bcs)
	case l.columns:
		p, n := in.block(i)
		m.leftColumns(own, l, i, in.a[p*in.acs:], n, in.acs)
	default:
		for row := i * panelA; row < min(l.rows, (i+1)*panelA); row++ {
			m.leftRow(own, l, row, in.k, in.a[row*in.ars:])
		}
	}
}

// leftRow quantizes a row of A.
func (m *Multiplier) leftRow(own *worker, l *Left, row, k int, x []float32) {
	scales := l.scales[row/panelA*panelA*l.blocks+row%panelA:]
	m.row(own, k, x, l.data[row*l.stride:], scales, panelA, true)
	for t := range l.blocks {
		own.badA |= bad(scales[t*panelA], scaleA(mostExponent+1))
	}
}

// bad returns a number whose first bit is set if a scale is at least limit; scales are in order as
// signed numbers.
func bad(scale, limit uint32) uint32 { return ^(scale - limit) }

// sawBad reports whether the workers saw a block of A, or of B, that is no number, and forgets it.
func (m *Multiplier) sawBad() (a, b bool) {
	for _, w := range m.workers {
		a, b = a || w.badA>>31 == 1, b || w.badB>>31 == 1
		w.badA, w.badB = 0, 0
	}
	return a, b
}

// row quantizes k elements that lie side by side to bytes, with a scale for each block, step words
// apart.
func (m *Multiplier) row(own *worker, k int, x []float32, dst []byte, scale []uint32, step int, isLeft bool) {
	flip, base := uint32(0), uint32(6)
	if isLeft {
		flip, base = m.kernel.flip, 133
	}
	whole := k / Block / together
	if whole > 0 {
		m.kernel.quantizeRow(whole, &x[0], &dst[0], flip, base, &scale[0], uintptr(4*step), &own.scratch[0])
	}
	if done := whole * together * Block; done < k {
		own.floats = grow(own.floats, together*Block)
		clear(own.floats[copy(own.floats, x[done:k]):])
		m.kernel.quantizeRow(1, &own.floats[0], &own.rest[0], flip, base, &own.scales[0], 4, &own.scratch[0])
		rest := (k - done + Block - 1) / Block
		copy(dst[done:done+rest*Block], own.rest[:])
		for i := range rest {
			scale[(whole*together+i)*step] = own.scales[i]
		}
	}
}

// block returns rows of n floats that begin at x[0] and lie stride floats apart: those of a block
// of k, or, if that is not whole or has fewer than wide columns, a copy filled up with zeros.
func (w *worker) block(x []float32, rows, n, stride, wide int) (*float32, int) {
	if rows == Block && n >= wide {
		return &x[0], stride
	}
	w.floats = grow(w.floats, Block*wide)
	clear(w.floats)
	for p := range rows {
		copy(w.floats[p*wide:p*wide+min(n, wide)], x[p*stride:])
	}
	return &w.floats[0], wide
}

// leftColumns quantizes block t of k of an A whose columns lie side by side: n of them, acs floats
// apart, from x on.
func (m *Multiplier) leftColumns(own *worker, l *Left, t int, x []float32, n, acs int) {
	const wide = 16
	for i := 0; i < l.rows; i += wide {
		from, stride := own.block(x[i:], n, l.rows-i, acs, wide)
		panel, row := i/panelA, i%panelA
		scales := l.scales[(panel*l.blocks+t)*panelA+row:][:wide]
		m.kernel.quantizeLeft(from, uintptr(4*stride), &l.data[panel*l.stride+t*Block*panelA+four*row], &scales[0], &own.scratch[0])
		for _, s := range scales {
			own.badA |= bad(s, scaleA(mostExponent+1))
		}
	}
}

// rightColumns quantizes block t of k of a B whose columns lie side by side.
func (m *Multiplier) rightColumns(own *worker, t int) {
	r, brs := m.right, m.in.brs
	p, n := m.in.block(t)
	for j := 0; j < r.cols; j += panelB {
		x, stride := own.block(m.in.b[p*brs+j:], n, r.cols-j, brs, panelB)
		at := (j/panelB*r.blocks + t) * panelB
		scales := r.scales[at:][:panelB]
		m.kernel.quantizeRight(x, uintptr(4*stride), &r.data[j/panelB*r.stride+t*Block*panelB], &scales[0], &r.sums[at], &own.scratch[0])
		for _, s := range scales {
			own.badB |= bad(s, scaleB(mostExponent+1))
		}
	}
}

// rightRows quantizes panel j of a B whose rows lie side by side.
func (m *Multiplier) rightRows(own *worker, j, k int, b []float32, bcs int) {
	r, blocks := m.right, m.right.blocks
	dst, scale, sums := r.data[j*r.stride:], r.scales[j*blocks*panelB:], r.sums[j*blocks*panelB:]
	stride := blocks*Block + apart
	own.bytes = grow(own.bytes, panelB*stride)
	for q := range panelB {
		row := own.bytes[q*stride:]
		if j*panelB+q < r.cols {
			m.row(own, k, b[(j*panelB+q)*bcs:], row, scale[q:], panelB, false)
			continue
		}
		clear(row[:blocks*Block])
		for t := range blocks {
			scale[t*panelB+q] = scaleB(leastExponent)
		}
	}
	for q := 0; q < panelB; q += 8 {
		m.kernel.transpose(blocks, &own.bytes[q*stride], uintptr(stride), &dst[four*q], four*panelB)
	}
	m.kernel.sums(blocks, &dst[0], &sums[0])
	for _, s := range scale[:blocks*panelB] {
		own.badB |= bad(s, scaleB(mostExponent+1))
	}
}
