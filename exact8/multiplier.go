package exact8

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/entrain-network/entrain/exact"
)

// Shapes of tiles and panels. They change speed and nothing else.
const (
	mostRows = 16 // rows of C in a tile: 6, or 16
	panelA   = 48 // rows of A in a panel: 8 or 3 tiles, and 3 vectors of rows
	panelB   = 32 // columns of B in a panel, and of C in a tile
	// A piece of work is a panel of rows and wideColumns columns of C. If k has more blocks than
	// depth, it is deepRows by deepColumns, so that both operands are read from memory few times, and
	// a tile is stored after each depth blocks: what a piece needs stays in the second-level cache.
	wideColumns = 512
	depth       = 4096 / Block
	deepRows    = 5 * panelA
	deepColumns = 4 * panelB
	// Pieces are narrower, but not below deepColumns, if each worker would have fewer than evenPieces:
	// the others wait for the last.
	evenPieces = 12
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
	a       Left   // of an A and
	b       Packed // of a B that are not packed before
	workers []*worker
	worker  *exact.Worker // for what is too small to share

	in                    operands          // of the product being computed
	left                  *Left             // its A
	right                 *Packed           // its B
	piecesA               int               // pieces of quantizing's work that are A's
	from, to              int               // blocks of k that are multiplied
	partRows, partColumns int               // of a piece of C
	down                  int               // pieces one below another
	whole                 func(t *tileArgs) // kernel of whole tiles
	quantize              func(w *exact.Worker, i int)
	source                func(w *exact.Worker, from, to int)
	sinks                 []Sink // of Quantize
	quantizeRows          func(w *exact.Worker, i int)
	multiply              func(w *exact.Worker, i int)
}

// operands are the arguments of a product, or of quantizing.
type operands struct {
	k, each            int // elements along k, and those after which a new block begins anyway
	a, b, c            []float32
	ars, acs, brs, bcs int
	ldc                int
	acc                bool
}

// A worker is one worker's scratch memory and the arguments of its kernels.
type worker struct {
	floats  []float32
	bytes   []byte
	scratch []float32                  // of the kernels
	edge    [mostRows * panelB]float32 // a tile of C that is not whole
	rest    [together * Block]byte     // the last blocks of a row
	scales  [together]uint32           // and what is stored for their exponents
	args    tileArgs
}

// NewMultiplier returns a Multiplier that works on pool, with the kernels for the pool's processor.
func NewMultiplier(pool *exact.Pool) *Multiplier {
	m := &Multiplier{pool: pool, kernel: kernelsOf(pool.Kernel())[0], worker: exact.NewWorker(pool.Kernel())}
	for range pool.Workers() {
		m.workers = append(m.workers, &worker{scratch: newScratch()})
	}
	m.quantize, m.quantizeRows, m.multiply = m.quantizePiece, m.quantizeBlockOfRows, m.multiplyPiece
	return m
}

// newScratch returns scratch memory for kernels. It begins with a cache line, as all memory does
// that is as large and has no pointers.
func newScratch() []float32 { return make([]float32, 2*Block*panelB) }

// Kernel returns the name of the kernels that m computes with.
func (m *Multiplier) Kernel() string { return m.kernel.name }

// Memory returns the number of bytes that m has allocated.
func (m *Multiplier) Memory() (bytes int) {
	bytes = m.a.Memory() + m.b.Memory()
	for _, w := range m.workers {
		bytes += int(unsafe.Sizeof(*w)) + 4*(cap(w.floats)+cap(w.scratch)) + cap(w.bytes)
	}
	return bytes
}

// Gemm is the function Gemm, computed on the multiplier's pool. It panics if a slice is too short
// for its strides. It must not be called from work that runs on that pool.
func (m *Multiplier) Gemm(rows, cols, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	check("A", rows, k, a, ars, acs)
	check("B", k, cols, b, brs, bcs)
	m.left, m.right = &m.a, &m.b
	m.in = operands{k, k, a, b, c, ars, acs, brs, bcs, ldc, acc}
	m.product(m.layOutA(rows), m.layOutB(cols))
}

// GemmPacked is Gemm with a packed B.
func (m *Multiplier) GemmPacked(rows int, a []float32, ars, acs int, b *Packed, c []float32, ldc int, acc bool) {
	check("A", rows, b.k, a, ars, acs)
	m.left, m.right = &m.a, b
	m.in = operands{k: b.k, each: b.k, a: a, c: c, ars: ars, acs: acs, ldc: ldc, acc: acc}
	m.product(m.layOutA(rows), 0)
}

// Multiply is Gemm with an A and a B that are quantized already, or with blocks [from, to) of their
// k.
func (m *Multiplier) Multiply(a *Left, b *Packed, from, to int, c []float32, ldc int, acc bool) {
	if a.blocks != b.blocks || from < 0 || to < from || to > a.blocks {
		panic(fmt.Sprintf("exact8: blocks %d to %d of A's %d and B's %d", from, to, a.blocks, b.blocks))
	}
	m.left, m.right = a, b
	m.in = operands{c: c, ldc: ldc, acc: acc}
	m.multiplyBlocks(from, to)
}

// product quantizes the given numbers of pieces of A and B, and computes C.
func (m *Multiplier) product(piecesA, piecesB int) {
	m.piecesA = piecesA
	m.pool.RunOn(piecesA+piecesB, m.quantize)
	m.left.far, m.left.bad = m.reach(m.left.scales, scaleA)
	if piecesB > 0 { // several goroutines may read a packed B
		m.right.far, m.right.bad = m.reach(m.right.scales, scaleB)
	}
	m.multiplyBlocks(0, m.left.blocks)
}

// multiplyBlocks computes C from blocks [from, to) of k.
func (m *Multiplier) multiplyBlocks(from, to int) {
	in, rows, cols := &m.in, m.left.rows, m.right.cols
	m.from, m.to = from, to
	check("C", rows, cols, in.c, in.ldc, 1)
	switch {
	case in.ldc < cols:
		panic(fmt.Sprintf("exact8: rows of C of %d floats, %d apart", cols, in.ldc))
	case rows == 0 || cols == 0:
	case from == to:
		for i := 0; i < rows && !in.acc; i++ {
			clear(in.c[i*in.ldc : i*in.ldc+cols])
		}
	default:
		m.whole = m.kernel.tile
		if m.kernel.near != nil && !m.left.far && !m.right.far {
			m.whole = m.kernel.near
		}
		m.pool.RunOn(m.parts(), m.multiply)
		m.spoil(in.c, in.ldc)
	}
	m.in, m.left, m.right = operands{}, nil, nil // keeps no caller's memory alive
}

// check panics unless every element of a (rows, cols) matrix lies in x, and its rows or its columns
// lie side by side.
func check(name string, rows, cols int, x []float32, rs, cs int) {
	if rows < 0 || cols < 0 || rs < 0 || cs < 0 || min(rs, cs) > 1 || rows > 0 && cols > 0 && len(x) < (rows-1)*rs+(cols-1)*cs+1 {
		panic(fmt.Sprintf("exact8: matrix %s of %d by %d with strides %d and %d in a slice of %d floats", name, rows, cols, rs, cs, len(x)))
	}
}

// parts returns the number of pieces of work that C is.
func (m *Multiplier) parts() int {
	m.partRows, m.partColumns = panelA, wideColumns
	if m.to-m.from > depth {
		m.partRows, m.partColumns = deepRows, deepColumns
	}
	m.down = (m.left.rows + m.partRows - 1) / m.partRows
	for m.pool.Workers() > 1 && m.partColumns > deepColumns && m.pieces() < evenPieces*m.pool.Workers() {
		m.partColumns /= 2
	}
	return m.pieces()
}

func (m *Multiplier) pieces() int {
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
	l, r := m.left, m.right
	last := min(row+m.partRows, l.rows)
	for t := m.from; t < m.to; t += depth {
		for j := col; j < min(col+m.partColumns, r.cols); j += panelB {
			at := (j/panelB*l.blocks + t) * panelB
			g := &own.args
			*g = tileArgs{
				b: &r.data[j/panelB*r.stride+t*Block*panelB], scaleB: &r.scales[at], sums: &r.sums[at],
				blocks: min(m.to-t, depth), scratch: &own.scratch[0],
			}
			if acc || t > m.from {
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
	r, tileRows := m.right, m.kernel.tileRows
	whole := (last - row) / tileRows
	if j+panelB > r.cols {
		whole = 0
	}
	if whole > 0 {
		own.args.next = address(&c[row*ldc+min(j+panelB, r.cols-1)])
		m.tile(m.whole, &own.args, row, t, &c[row*ldc+j], ldc, whole)
	}
	for i := row + whole*tileRows; i < last; i += tileRows {
		if i+1 == last && j+panelB <= r.cols {
			m.tile(m.kernel.row, &own.args, i, t, &c[i*ldc+j], ldc, 1)
			continue
		}
		m.edge(own, i, t, c[i*ldc+j:], ldc, min(tileRows, last-i), min(panelB, r.cols-j))
	}
}

// tile computes count tiles of C with a kernel, one below another, from row on and from block t on.
func (m *Multiplier) tile(kernel func(*tileArgs), g *tileArgs, row, t int, c *float32, ldc, count int) {
	l := m.left
	panel, in := row/panelA, row%panelA
	g.scaleA = address(&l.scales[(panel*l.blocks+t)*panelA+in])
	if l.columns {
		g.a = address(&l.data[panel*l.stride+t*Block*panelA+m.kernel.rowBytes*in])
		g.inPanels(&m.kernel)
	} else {
		g.a = address(&l.data[row*l.stride+t*Block])
		g.inRows(&m.kernel, l.stride)
	}
	g.c, g.ldc, g.count = address(c), uintptr(4*ldc), count
	kernel(g)
}

// edge computes one tile of C, of which only rows by cols exist, in the worker's own memory.
func (m *Multiplier) edge(own *worker, row, t int, c []float32, ldc, rows, cols int) {
	if own.args.acc == 1 {
		for y := range rows {
			copy(own.edge[y*panelB:y*panelB+cols], c[y*ldc:])
		}
	}
	kernel := m.kernel.tile
	if rows == 1 {
		kernel = m.kernel.row
	}
	m.tile(kernel, &own.args, row, t, &own.edge[0], panelB, 1)
	for y := range rows {
		copy(c[y*ldc:y*ldc+cols], own.edge[y*panelB:])
	}
}

// address returns where x lies. The kernels move these addresses beyond the memory they belong to,
// so they are not pointers; the Multiplier and its caller keep the memory alive.
func address[T any](x *T) uintptr { return uintptr(unsafe.Pointer(x)) }

// spoil makes NaN of the rows of C whose row of A has a block that is not a number, and of the
// columns likewise.
func (m *Multiplier) spoil(c []float32, ldc int) {
	l, r := m.left, m.right
	nan := float32(math.NaN())
	for i := 0; i < l.rows && l.bad; i++ {
		for t := m.from; t < m.to; t++ {
			if bad(l.scales[(i/panelA*l.blocks+t)*panelA+i%panelA], scaleA(mostExponent+1)) {
				for j := range r.cols {
					c[i*ldc+j] = nan
				}
			}
		}
	}
	for j := 0; j < r.cols && r.bad; j++ {
		for t := m.from; t < m.to; t++ {
			if bad(r.scales[(j/panelB*r.blocks+t)*panelB+j%panelB], scaleB(mostExponent+1)) {
				for i := range l.rows {
					c[i*ldc+j] = nan
				}
			}
		}
	}
}
