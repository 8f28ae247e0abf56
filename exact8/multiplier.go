package exact8

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/entrain-network/entrain/exact"
)

// Shapes of tiles and panels. They change speed and nothing else.
const (
	tileRows = 6  // rows of C in a tile
	panelA   = 48 // rows of A in a panel: 8 tiles, or 3 vectors of rows
	panelB   = 32 // columns of B in a panel, and of C in a tile
	// A piece of work is a panel of rows and wideColumns columns of C. If k has more blocks than
	// depth, it is deepRows by deepColumns, so that both operands are read from memory few times, and
	// a tile is stored after each depth blocks: what a piece needs stays in the second-level cache.
	wideColumns = 512
	depth       = 4096 / Block
	deepRows    = 5 * panelA
	deepColumns = 4 * panelB
	// four is the number of consecutive elements along k whose bytes lie together, as one operand
	// of a dot-product instruction.
	four  = 4
	fours = Block / four
	// together is the number of blocks that quantizeRow takes at a time.
	together = 8
)

// A Multiplier computes Gemm on a pool, and holds the memory for it. It must not be used
// concurrently.
type Multiplier struct {
	pool    *exact.Pool
	kernel  kernel
	a       left
	b       Packed // of a B that is not packed before
	workers []*worker

	in                    operands // of the product being computed
	right                 *Packed  // its B
	piecesA               int      // pieces of quantizing's work that are A's
	partRows, partColumns int      // of a piece of C
	down                  int      // pieces one below another
	quantize              func(w *exact.Worker, i int)
	multiply              func(w *exact.Worker, i int)
}

// operands are the arguments of a product.
type operands struct {
	k                  int
	a, b, c            []float32
	ars, acs, brs, bcs int
	ldc                int
	acc                bool
}

// A worker is one worker's scratch memory and the arguments of its kernels.
type worker struct {
	floats  []float32
	bytes   []byte
	scratch [2 * Block * panelB]float32 // of the kernels
	edge    [tileRows * panelB]float32  // a tile of C that is not whole
	rest    [together * Block]byte      // the last blocks of a row
	scales  [together]uint32            // and what is stored for their exponents
	args    tileArgs
}

// left is A quantized, as bytes q+128. If the rows of A lie one after another in memory, so do the
// bytes; if its columns do, A is kept in panels of panelA rows, in which the bytes of a row for
// four k lie together, and those of all rows for the same k.
type left struct {
	rows    int
	blocks  int  // of a row
	columns bool // kept in panels
	stride  int  // bytes from row to row, or from panel to panel
	data    []byte
	// (panels, blocks, panelA): 2^(e-133) as what is added to the bits of a scale of B.
	scales []uint32
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
}

// Memory returns the number of bytes that p has allocated.
func (p *Packed) Memory() int { return cap(p.data) + 4*(cap(p.scales)+cap(p.sums)) }

// What e is stored as: scaleA(e) + scaleB(e') are the bits of 2^(e+e'-266).
func scaleA(e uint32) uint32 { return (e - 133) << 23 }
func scaleB(e uint32) uint32 { return (e - 6) << 23 }

// NewMultiplier returns a Multiplier that works on pool, with the kernels for the pool's processor.
func NewMultiplier(pool *exact.Pool) *Multiplier {
	m := &Multiplier{pool: pool, kernel: kernelOf(pool.Kernel())}
	for range pool.Workers() {
		m.workers = append(m.workers, new(worker))
	}
	m.quantize, m.multiply = m.quantizePiece, m.multiplyPiece
	return m
}

// Kernel returns the name of the kernels that m computes with.
func (m *Multiplier) Kernel() string { return m.kernel.name }

// Memory returns the number of bytes that m has allocated.
func (m *Multiplier) Memory() (bytes int) {
	bytes = cap(m.a.data) + 4*cap(m.a.scales) + m.b.Memory()
	for _, w := range m.workers {
		bytes += int(unsafe.Sizeof(*w)) + 4*cap(w.floats) + cap(w.bytes)
	}
	return bytes
}

// Gemm is the function Gemm, computed on the multiplier's pool. It panics if a slice is too short
// for its strides. It must not be called from work that runs on that pool.
func (m *Multiplier) Gemm(rows, cols, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	check("A", rows, k, a, ars, acs)
	check("B", k, cols, b, brs, bcs)
	m.right = &m.b
	m.in = operands{k, a, b, c, ars, acs, brs, bcs, ldc, acc}
	m.product(rows, m.layOutB(cols))
}

// Pack quantizes B (k, cols), whose element [p,j] is b[p*brs+j*bcs], into p.
func (m *Multiplier) Pack(p *Packed, cols, k int, b []float32, brs, bcs int) {
	check("B", k, cols, b, brs, bcs)
	m.right, m.piecesA = p, 0
	m.in = operands{k: k, b: b, brs: brs, bcs: bcs}
	m.pool.RunOn(m.layOutB(cols), m.quantize)
	m.in = operands{}
}

// GemmPacked is Gemm with a packed B.
func (m *Multiplier) GemmPacked(rows int, a []float32, ars, acs int, b *Packed, c []float32, ldc int, acc bool) {
	check("A", rows, b.k, a, ars, acs)
	m.right = b
	m.in = operands{k: b.k, a: a, c: c, ars: ars, acs: acs, ldc: ldc, acc: acc}
	m.product(rows, 0)
}

// product quantizes A, and the pieces of B that are still to be quantized, and computes C.
func (m *Multiplier) product(rows, piecesB int) {
	in, cols := &m.in, m.right.cols
	check("C", rows, cols, in.c, in.ldc, 1)
	switch {
	case in.ldc < cols:
		panic(fmt.Sprintf("exact8: rows of C of %d floats, %d apart", cols, in.ldc))
	case rows == 0 || cols == 0:
	case in.k == 0:
		for i := 0; i < rows && !in.acc; i++ {
			clear(in.c[i*in.ldc : i*in.ldc+cols])
		}
	default:
		m.piecesA = m.layOutA(rows)
		m.pool.RunOn(m.piecesA+piecesB, m.quantize)
		m.pool.RunOn(m.parts(), m.multiply)
		m.spoil(in.c, in.ldc)
	}
	m.in = operands{} // keeps no caller's memory alive
}

// check panics unless every element of a (rows, cols) matrix lies in x, and its rows or its columns
// lie side by side.
func check(name string, rows, cols int, x []float32, rs, cs int) {
	if rows < 0 || cols < 0 || rs < 0 || cs < 0 || min(rs, cs) > 1 || rows > 0 && cols > 0 && len(x) < (rows-1)*rs+(cols-1)*cs+1 {
		panic(fmt.Sprintf("exact8: matrix %s of %d by %d with strides %d and %d in a slice of %d floats", name, rows, cols, rs, cs, len(x)))
	}
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

// layOutA makes room for A quantized, and returns the number of pieces of work that quantizing it
// is: a panel of rows each, or a block of k of its columns.
func (m *Multiplier) layOutA(rows int) int {
	l := &m.a
	l.rows, l.blocks, l.columns = rows, (m.in.k+Block-1)/Block, m.in.acs != 1
	panels, padded := (rows+panelA-1)/panelA, l.blocks*Block
	l.scales = grow(l.scales, panels*panelA*l.blocks)
	if l.columns {
		l.stride = padded*panelA + apart
		l.data = grow(l.data, panels*l.stride)
		return l.blocks
	}
	l.stride = padded + apart
	l.data = grow(l.data, panels*panelA*l.stride)
	return panels
}

// layOutB is layOutA for B.
func (m *Multiplier) layOutB(cols int) int {
	r := m.right
	r.cols, r.k, r.blocks = cols, m.in.k, (m.in.k+Block-1)/Block
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
	own, in, l := m.workers[w.Index()], &m.in, &m.a
	switch {
	case i >= m.piecesA && in.bcs == 1:
		m.rightColumns(own, i-m.piecesA, in.k, in.b, in.brs)
	case i >= m.piecesA:
		m.rightRows(own, i-m.piecesA, in.k, in.b, in.bcs)
	case l.columns:
		m.leftColumns(own, i, in.k, in.a, in.acs)
	default:
		for row := i * panelA; row < min(l.rows, (i+1)*panelA); row++ {
			at := row/panelA*panelA*l.blocks + row%panelA
			m.row(own, in.k, in.a[row*in.ars:], l.data[row*l.stride:], l.scales[at:], panelA, true)
		}
	}
}

// row quantizes k elements that lie side by side to bytes, with a scale for each block, step words
// apart.
func (m *Multiplier) row(own *worker, k int, x []float32, dst []byte, scale []uint32, step int, isLeft bool) {
	flip, base := uint32(0), uint32(6)
	if isLeft {
		flip, base = 0x80808080, 133
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

// leftColumns quantizes block t of k of an A whose columns lie side by side.
func (m *Multiplier) leftColumns(own *worker, t, k int, a []float32, acs int) {
	const wide = 16
	l := &m.a
	for i := 0; i < l.rows; i += wide {
		x, stride := own.block(a[t*Block*acs+i:], min(Block, k-t*Block), l.rows-i, acs, wide)
		panel, row := i/panelA, i%panelA
		m.kernel.quantizeLeft(x, uintptr(4*stride), &l.data[panel*l.stride+t*Block*panelA+four*row], &l.scales[(panel*l.blocks+t)*panelA+row], &own.scratch[0])
	}
}

// rightColumns quantizes block t of k of a B whose columns lie side by side.
func (m *Multiplier) rightColumns(own *worker, t, k int, b []float32, brs int) {
	r := m.right
	for j := 0; j < r.cols; j += panelB {
		x, stride := own.block(b[t*Block*brs+j:], min(Block, k-t*Block), r.cols-j, brs, panelB)
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

// parts returns the number of pieces of work that C is.
func (m *Multiplier) parts() int {
	m.partRows, m.partColumns = panelA, wideColumns
	if m.a.blocks > depth {
		m.partRows, m.partColumns = deepRows, deepColumns
	}
	m.down = (m.a.rows + m.partRows - 1) / m.partRows
	return m.down * ((m.right.cols + m.partColumns - 1) / m.partColumns)
}

// multiplyPiece computes one piece of C, or adds to it. Pieces that share columns of B follow each
// other.
func (m *Multiplier) multiplyPiece(w *exact.Worker, i int) {
	m.part(m.workers[w.Index()], i%m.down*m.partRows, i/m.down*m.partColumns, m.in.c, m.in.ldc, m.in.acc)
}

// part multiplies the rows of A from row on by the columns of B from col on, a depth of k at a
// time.
func (m *Multiplier) part(own *worker, row, col int, c []float32, ldc int, acc bool) {
	l, r := &m.a, m.right
	last := min(row+m.partRows, l.rows)
	for t := 0; t < l.blocks; t += depth {
		for j := col; j < min(col+m.partColumns, r.cols); j += panelB {
			at := (j/panelB*l.blocks + t) * panelB
			g := &own.args
			*g = tileArgs{
				b: &r.data[j/panelB*r.stride+t*Block*panelB], scaleB: &r.scales[at], sums: &r.sums[at],
				blocks: min(l.blocks-t, depth),
			}
			if acc || t > 0 {
				g.acc = 1
			}
			for i := row; i < last; i += panelA {
				m.column(own, i, min(i+panelA, last), t, j, c, ldc)
			}
		}
	}
}

// column computes the tiles of a panel of A and a panel of B, from block t on.
func (m *Multiplier) column(own *worker, row, last, t, j int, c []float32, ldc int) {
	r := m.right
	whole := (last - row) / tileRows
	if j+panelB > r.cols {
		whole = 0
	}
	if whole > 0 {
		own.args.next = address(&c[row*ldc+min(j+panelB, r.cols-1)])
		m.tile(&own.args, row, t, &c[row*ldc+j], ldc, whole)
	}
	for i := row + whole*tileRows; i < last; i += tileRows {
		m.edge(own, i, t, c[i*ldc+j:], ldc, min(tileRows, last-i), min(panelB, r.cols-j))
	}
}

// tile computes count tiles of C, one below another, from row on and from block t on.
func (m *Multiplier) tile(g *tileArgs, row, t int, c *float32, ldc, count int) {
	l := &m.a
	panel, in := row/panelA, row%panelA
	g.scaleA = address(&l.scales[(panel*l.blocks+t)*panelA+in])
	if l.columns {
		g.a = address(&l.data[panel*l.stride+t*Block*panelA+four*in])
		g.rowStep, g.fourStep, g.tileStep = four, four*panelA, four*tileRows
	} else {
		g.a = address(&l.data[row*l.stride+t*Block])
		g.rowStep, g.fourStep, g.tileStep = uintptr(l.stride), four, uintptr(tileRows*l.stride)
	}
	g.c, g.ldc, g.count = address(c), uintptr(4*ldc), count
	m.kernel.tile(g)
}

// edge computes one tile of C, of which only rows by cols exist, in the worker's own memory.
func (m *Multiplier) edge(own *worker, row, t int, c []float32, ldc, rows, cols int) {
	if own.args.acc == 1 {
		for y := range rows {
			copy(own.edge[y*panelB:y*panelB+cols], c[y*ldc:])
		}
	}
	m.tile(&own.args, row, t, &own.edge[0], panelB, 1)
	for y := range rows {
		copy(c[y*ldc:y*ldc+cols], own.edge[y*panelB:])
	}
}

// address returns where x lies. The kernels move these addresses beyond the memory they belong to,
// so they are no pointers; the Multiplier and its caller keep the memory alive.
func address[T any](x *T) uintptr { return uintptr(unsafe.Pointer(x)) }

// spoil makes NaN of the rows of C whose row of A has a block that is no number, and of the columns
// likewise.
func (m *Multiplier) spoil(c []float32, ldc int) {
	l, r := &m.a, m.right
	nan := float32(math.NaN())
	if badA := worst(l.scales) > int32(scaleA(mostExponent)); badA {
		for i := range l.rows {
			for t := range l.blocks {
				if int32(l.scales[(i/panelA*l.blocks+t)*panelA+i%panelA]) > int32(scaleA(mostExponent)) {
					for j := range r.cols {
						c[i*ldc+j] = nan
					}
				}
			}
		}
	}
	if badB := worst(r.scales) > int32(scaleB(mostExponent)); badB {
		for j := range r.cols {
			for t := range l.blocks {
				if int32(r.scales[(j/panelB*l.blocks+t)*panelB+j%panelB]) > int32(scaleB(mostExponent)) {
					for i := range l.rows {
						c[i*ldc+j] = nan
					}
				}
			}
		}
	}
}

// worst returns the greatest of scales, which are in order as signed numbers.
func worst(scales []uint32) int32 {
	most := int32(math.MinInt32)
	for _, s := range scales {
		most = max(most, int32(s))
	}
	return most
}
