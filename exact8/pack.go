package exact8

import (
	"math"
	"unsafe"

	"github.com/entrain-network/entrain/exact"
)

// Left is a matrix A quantized, as bytes q or q+128, whatever the kernel multiplies. If the rows of
// A lie one after another in memory, so do the bytes; if its columns do, A is kept in panels of
// panelA rows, in which the bytes of a row for four k lie together, and those of all rows for the
// same k; or, if the kernel wants it so, those of a row for a block. The zero value is empty.
type Left struct {
	rows    int
	blocks  int  // of a row
	columns bool // kept in panels
	stride  int  // bytes from row to row, or from panel to panel
	data    []byte
	// (panels, blocks, panelA): 2^(e-133) as what is added to the bits of a scale of B.
	scales []uint32
	far    bool // a block's exponent is above nearExponent
	bad    bool // a block is not a number
}

// Memory returns the number of bytes that l has allocated.
func (l *Left) Memory() int { return cap(l.data) + 4*cap(l.scales) }

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
	far     bool     // a block's exponent is above nearExponent
	bad     bool     // a block is not a number
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
	p.far, p.bad = m.reach(p.scales, scaleB)
	m.in, m.right = operands{}, nil
}

// A Sink is how Quantize quantizes a matrix X (rows, Cols), whose rows lie Stride floats apart: for
// products along its rows, and along its columns as a left and as a right operand. Nil is not.
type Sink struct {
	X             []float32
	Cols, Stride  int
	Rows, Columns *Left
	Right         *Packed
}

// Quantize quantizes matrices of as many rows, a block of rows after the other, which source,
// unless nil, computes just before: they come from a cache then. A new block of columns begins
// after each rows.
func (m *Multiplier) Quantize(rows, each int, source func(w *exact.Worker, from, to int), sinks ...Sink) {
	m.in = operands{k: rows, each: each}
	m.source, m.sinks = source, append(m.sinks[:0], sinks...)
	blocks := Blocks(rows, each)
	for _, s := range sinks {
		check("X", rows, s.Cols, s.X, s.Stride, 1)
		if s.Rows != nil {
			s.Rows.reserve(rows, Blocks(s.Cols, s.Cols), false)
		}
		if s.Columns != nil {
			s.Columns.reserve(s.Cols, blocks, true)
		}
		if s.Right != nil {
			s.Right.reserve(s.Cols, rows, blocks)
		}
	}
	m.pool.RunOn(blocks, m.quantizeRows)
	for _, s := range sinks {
		if s.Rows != nil {
			s.Rows.far, s.Rows.bad = m.reach(s.Rows.scales, scaleA)
		}
		if s.Columns != nil {
			s.Columns.far, s.Columns.bad = m.reach(s.Columns.scales, scaleA)
		}
		if s.Right != nil {
			s.Right.far, s.Right.bad = m.reach(s.Right.scales, scaleB)
		}
	}
	clear(m.sinks)
	m.source = nil
}

// quantizeBlockOfRows quantizes block i of the rows of all sinks.
func (m *Multiplier) quantizeBlockOfRows(w *exact.Worker, i int) {
	own := m.workers[w.Index()]
	p, n := m.in.block(i)
	if m.source != nil {
		m.source(w, p, p+n)
	}
	for k := range m.sinks {
		s := &m.sinks[k]
		for row := p; row < p+n && s.Rows != nil; row++ {
			m.leftRow(own, s.Rows, row, s.Cols, s.X[row*s.Stride:])
		}
		if s.Columns != nil {
			m.leftColumns(own, s.Columns, i, s.X[p*s.Stride:], n, s.Stride)
		}
		if s.Right != nil {
			m.rightColumns(own, s.Right, i, s.X[p*s.Stride:], n, s.Stride)
		}
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return exact.Make[T](n)
	}
	return s[:n]
}

// apart keeps rows and panels from lying a power of two apart, where they would share few places in
// a cache.
const apart = 64

// Reserve allocates the memory of an A (rows, k), quantized along its rows or its columns, so that
// smaller ones leave no garbage behind.
func (l *Left) Reserve(rows, k int, columns bool) { l.reserve(rows, Blocks(k, k), columns) }

// Reserve is Left.Reserve for a B (k, cols).
func (p *Packed) Reserve(cols, k int) { p.reserve(cols, k, Blocks(k, k)) }

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

// reserve makes room for a B of these columns, k and blocks of k.
func (p *Packed) reserve(cols, k, blocks int) {
	p.cols, p.k, p.blocks, p.bad = cols, k, blocks, false
	panels := (cols + panelB - 1) / panelB
	p.stride = blocks*Block*panelB + apart
	p.data = grow(p.data, panels*p.stride)
	p.scales, p.sums = grow(p.scales, panels*blocks*panelB), grow(p.sums, panels*blocks*panelB)
}

// layOutB is layOutA for B.
func (m *Multiplier) layOutB(cols int) int {
	r := m.right
	r.reserve(cols, m.in.k, Blocks(m.in.k, m.in.each))
	if r.blocks == 0 || m.in.bcs == 1 {
		return r.blocks
	}
	return (cols + panelB - 1) / panelB
}

// quantizePiece does one piece of quantizing.
func (m *Multiplier) quantizePiece(w *exact.Worker, i int) {
	own, in, l := m.workers[w.Index()], &m.in, m.left
	switch {
	case i >= m.piecesA && in.bcs == 1:
		p, n := in.block(i - m.piecesA)
		m.rightColumns(own, m.right, i-m.piecesA, in.b[p*in.brs:], n, in.brs)
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
}

// bad reports whether a scale is at least limit.
func bad(scale, limit uint32) bool { return int32(scale-limit) >= 0 }

// reach reports whether one of the scales, which scale makes of exponents, is that of an exponent
// above nearExponent, and above mostExponent. As floats they compare to those likewise: where e-133
// is negative, the float is.
func (m *Multiplier) reach(scales []uint32, scale func(e uint32) uint32) (far, bad bool) {
	if len(scales) == 0 {
		return false, false
	}
	most := m.worker.Max(unsafe.Slice((*float32)(unsafe.Pointer(&scales[0])), len(scales)))
	return most >= math.Float32frombits(scale(nearExponent+1)), most >= math.Float32frombits(scale(mostExponent+1))
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
		m.kernel.quantizeLeft(from, uintptr(4*stride), &l.data[panel*l.stride+t*Block*panelA+m.kernel.rowBytes*row], &scales[0], &own.scratch[0])
	}
}

// rightColumns quantizes block t of k of a B whose columns lie side by side: n of them, brs floats
// apart, from b on.
func (m *Multiplier) rightColumns(own *worker, r *Packed, t int, b []float32, n, brs int) {
	for j := 0; j < r.cols; j += panelB {
		x, stride := own.block(b[j:], n, r.cols-j, brs, panelB)
		at := (j/panelB*r.blocks + t) * panelB
		m.kernel.quantizeRight(x, uintptr(4*stride), &r.data[j/panelB*r.stride+t*Block*panelB], &r.scales[at], &r.sums[at], &own.scratch[0])
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
}
