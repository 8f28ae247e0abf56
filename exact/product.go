package exact

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A product is a Gemm shared by the workers of a pool. It goes through B in blocks of depth rows and width columns, a phase for each. In a phase the
// workers first pack the block of B, a few panels a piece of work, then multiply blocks of rows of A by it, each with an A of its own. Two blocks of B
// have room, so that one is packed while the last products with the other are still being computed.
//
// Pieces are handed out in order, those of a phase after those of the phase before. So whatever a piece waits for is done or in some worker's hands:
// waiting ends, however few of the workers run.
type product struct {
	m, n, k, ars, acs, brs, bcs, ldc int
	a, b, c                          []float32
	acc                              bool

	kernel               Kernel
	depth, width         int // of a block of B
	across               int // blocks of B side by side; they are taken one after another, each from top to bottom
	rows, cols           int // of C that a piece multiplies
	packing, multiplying int // pieces of each kind in a phase
	phases, colsPerPhase int
	panelsPerPiece       int
	packed               [2][]float32
	toPack, toMultiply   []countdown // by phase
	sleepers             sleepers
}

// rowsMax is how many blocks of rows a piece has at most: several, so that all but the first are packed on the side, and few, so that workers end
// together.
const rowsMax = 4

// cut chooses the sizes of all blocks for so many workers.
func (p *product) cut(workers int, kernel Kernel) {
	p.kernel = kernel
	p.depth = evenly(p.k, blockK, 1)
	p.width = min(evenly(p.n, blockN, kernel.nr), roundUp(p.n, kernel.nr))
	p.across = divideUp(p.n, p.width)
	p.phases = p.across * divideUp(p.k, p.depth)
	all := p.width / kernel.nr
	p.panelsPerPiece = divideUp(all, 2*workers)
	p.packing = divideUp(all, p.panelsPerPiece)
	// Several pieces for each worker, so that one which is disturbed does not hold up the rest; more rows to a piece are better than more columns,
	// because the rows may have to be packed.
	const each = 4
	p.rows = min(rowsMax*blockRows*kernel.mr, roundUp(divideUp(p.m, each*workers), kernel.mr))
	down := divideUp(p.m, p.rows)
	p.cols = roundUp(divideUp(p.width, divideUp(each*workers, down)), kernel.nr)
	p.colsPerPhase = divideUp(p.width, p.cols)
	p.multiplying = down * p.colsPerPhase
	for i := range min(len(p.packed), p.phases) {
		p.packed[i] = grow(p.packed[i], panels(p.depth, p.width, kernel.nr))
	}
	if cap(p.toPack) < p.phases {
		p.toPack, p.toMultiply = make([]countdown, p.phases), make([]countdown, p.phases)
	}
	p.toPack, p.toMultiply = p.toPack[:p.phases], p.toMultiply[:p.phases]
	for i := range p.phases {
		p.toPack[i].begin(p.packing, &p.sleepers)
		p.toMultiply[i].begin(p.multiplying, &p.sleepers)
	}
}

// pieces is the number of pieces of work.
func (p *product) pieces() int { return p.phases * (p.packing + p.multiplying) }

// piece does piece of work number i.
func (p *product) piece(w *Worker, i int) {
	phase, i := i/(p.packing+p.multiplying), i%(p.packing+p.multiplying)
	steps := p.phases / p.across // of depth
	j, q := phase/steps*p.width, phase%steps*p.depth
	n, kc := min(p.width, p.n-j), min(p.depth, p.k-q)
	panel, nr := panelLen(kc, p.kernel.nr), p.kernel.nr
	block := p.packed[phase%2]
	if i < p.packing {
		if phase >= 2 {
			p.toMultiply[phase-2].wait()
		}
		from := i * p.panelsPerPiece * nr
		if cols := min(p.panelsPerPiece*nr, n-from); cols > 0 {
			p.kernel.packPanelsB(block[from/nr*panel:], p.b[q*p.brs+(j+from)*p.bcs:], kc, cols, p.brs, p.bcs)
		}
		p.toPack[phase].done()
		return
	}
	i -= p.packing
	p.toPack[phase].wait()
	if phase > 0 {
		p.toMultiply[phase-1].wait() // which gave C what this goes on from
	}
	r, from := i/p.colsPerPhase*p.rows, i%p.colsPerPhase*p.cols
	rows, cols := min(p.rows, p.m-r), min(p.cols, n-from)
	if rows > 0 && cols > 0 {
		w.tiles(rows, cols, kc, p.a[r*p.ars+q*p.acs:], p.ars, p.acs, block[from/nr*panel:], panel, p.c[r*p.ldc+j+from:], p.ldc, p.acc || q > 0)
	}
	p.toMultiply[phase].done()
}

// A countdown is how many pieces of a kind a phase has left.
type countdown struct {
	left  atomic.Int32
	sleep *sleepers
}

// sleepers are the workers that have waited for a countdown longer than such a wait should take: others have the processor.
type sleepers struct {
	count atomic.Int32
	awake sync.Cond
}

func (c *countdown) begin(n int, s *sleepers) {
	c.left.Store(int32(n))
	c.sleep = s
}

// done takes one piece off.
func (c *countdown) done() {
	if c.left.Add(-1) == 0 && c.sleep.count.Load() > 0 {
		c.sleep.awake.L.Lock()
		c.sleep.awake.Broadcast()
		c.sleep.awake.L.Unlock()
	}
}

// wait returns when none is left. What is waited for takes microseconds, less than sleeping and waking.
func (c *countdown) wait() {
	for range patience {
		for range looks {
			if c.left.Load() == 0 {
				return
			}
		}
		runtime.Gosched()
	}
	c.sleep.awake.L.Lock()
	c.sleep.count.Add(1)
	for c.left.Load() != 0 {
		c.sleep.awake.Wait()
	}
	c.sleep.count.Add(-1)
	c.sleep.awake.L.Unlock()
}
