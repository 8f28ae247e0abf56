package exact

import (
	"runtime"
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
	packsLeft, multsLeft []atomic.Int32 // by phase
}

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
	p.rows = min(blockRows*kernel.mr, roundUp(divideUp(p.m, each*workers), kernel.mr))
	down := divideUp(p.m, p.rows)
	p.cols = roundUp(divideUp(p.width, divideUp(each*workers, down)), kernel.nr)
	p.colsPerPhase = divideUp(p.width, p.cols)
	p.multiplying = down * p.colsPerPhase
	for i := range min(len(p.packed), p.phases) {
		p.packed[i] = grow(p.packed[i], panels(p.depth, p.width, kernel.nr))
	}
	if cap(p.packsLeft) < p.phases {
		p.packsLeft, p.multsLeft = make([]atomic.Int32, p.phases), make([]atomic.Int32, p.phases)
	}
	p.packsLeft, p.multsLeft = p.packsLeft[:p.phases], p.multsLeft[:p.phases]
	for i := range p.phases {
		p.packsLeft[i].Store(int32(p.packing))
		p.multsLeft[i].Store(int32(p.multiplying))
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
			wait(&p.multsLeft[phase-2])
		}
		from := i * p.panelsPerPiece * nr
		if cols := min(p.panelsPerPiece*nr, n-from); cols > 0 {
			p.kernel.packPanelsB(block[from/nr*panel:], p.b[q*p.brs+(j+from)*p.bcs:], kc, cols, p.brs, p.bcs)
		}
		p.packsLeft[phase].Add(-1)
		return
	}
	i -= p.packing
	wait(&p.packsLeft[phase])
	if phase > 0 {
		wait(&p.multsLeft[phase-1]) // which gave C what this goes on from
	}
	r, from := i/p.colsPerPhase*p.rows, i%p.colsPerPhase*p.cols
	rows, cols := min(p.rows, p.m-r), min(p.cols, n-from)
	if rows > 0 && cols > 0 {
		w.tiles(rows, cols, kc, p.a[r*p.ars+q*p.acs:], p.ars, p.acs, block[from/nr*panel:], panel, p.c[r*p.ldc+j+from:], p.ldc, p.acc || q > 0)
	}
	p.multsLeft[phase].Add(-1)
}

// wait returns when left is 0. What is waited for takes microseconds, less than sleeping and waking.
func wait(left *atomic.Int32) {
	for left.Load() != 0 {
		runtime.Gosched()
	}
}
