package exact

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A product is a Gemm shared by the workers of a pool. It goes through B in blocks of depth rows
// and width columns, a phase for each. In a phase the workers first pack the block of B, a few
// panels a piece of work, then multiply parts of A by it, each with an A of its own. Two blocks of
// B have room, so that one is packed while the last products with the other are still being
// computed.
//
// A worker goes from phase to phase, and to the next one only when all pieces of the one before are
// taken. So whatever a piece waits for is done or in some worker's hands: waiting ends, however few
// of the workers run. Each worker has a band of rows, the same in all phases, and helps the others
// when it is through with its own.
type product struct {
	m, n, k, ars, acs, brs, bcs, ldc int
	a, b, c                          []float32
	acc                              bool

	kernel            Kernel
	depth, width      int    // of a block of B
	across            int    // blocks of B side by side; they are taken one after another, each from top to bottom
	parts             []part // of a phase, band after band
	bands             []int  // where each worker's parts begin, and their end
	rows              int    // of the largest part
	packing           int    // pieces of packing in a phase
	phases            int
	panelsPerPiece    int
	packed            [2][]float32
	shares            []share   // of packing and of parts, for each phase
	packs, multiplies []counter // pieces done, by phase
	partsDone         []counter // phases done, by part
	sleepers          sleepers
}

// A part is what a piece of work multiplies: rows of A by columns of the block of B.
type part struct{ row, rows, col, cols int }

const (
	// rowsMax is how many blocks of rows a part has at most: several, so that all but the first are
	// packed on the side.
	rowsMax = 4
	// tailRows is how many rows of tiles the last parts of a packed A have, and tailColumns into
	// how many parts the last blocks of rows are cut if A needs no packing, which each of them
	// would have to do.
	tailRows    = 2
	tailColumns = 8
)

// cut chooses the sizes of all blocks for so many workers.
func (p *product) cut(workers int, kernel Kernel) {
	p.kernel = kernel
	p.depth = evenly(p.k, blockK, 1)
	p.width = min(evenly(p.n, blockN, kernel.nr), roundUp(p.n, kernel.nr))
	p.across = divideUp(p.n, p.width)
	p.phases = p.across * divideUp(p.k, p.depth)
	all := p.width / kernel.nr
	p.panelsPerPiece = divideUp(all, 4*workers)
	p.packing = divideUp(all, p.panelsPerPiece)
	p.cutParts(workers)
	p.cutShares(workers)
	for i := range min(len(p.packed), p.phases) {
		p.packed[i] = grow(p.packed[i], panels(p.depth, p.width, kernel.nr))
	}
	p.packs = p.sleepers.counters(p.packs, p.phases)
	p.multiplies = p.sleepers.counters(p.multiplies, p.phases)
	p.partsDone = p.sleepers.counters(p.partsDone, len(p.parts))
}

// cutParts cuts a phase into parts, a band of rows for each worker: first many rows at a time, then
// fewer and fewer, so that the workers end together though one was disturbed.
func (p *product) cutParts(workers int) {
	p.parts, p.bands = p.parts[:0], p.bands[:0]
	unit := p.kernel.mr
	if p.m >= 2*workers*blockRows*unit {
		unit *= blockRows
	}
	for w := range workers {
		p.bands = append(p.bands, len(p.parts))
		p.cutBand(min(p.m, roundUp(p.m*w/workers, unit)), min(p.m, roundUp(p.m*(w+1)/workers, unit)), workers)
	}
	p.bands = append(p.bands, len(p.parts))
	p.rows = 0
	for _, t := range p.parts {
		p.rows = max(p.rows, t.rows)
	}
}

// cutBand cuts the rows [at, end).
func (p *product) cutBand(at, end, workers int) {
	mr, nr := p.kernel.mr, p.kernel.nr
	block := blockRows * mr
	rows, pieces, tail := block, tailColumns, 2*block
	if packsA(p.width, p.acs, nr) {
		rows, pieces, tail = tailRows*mr, 1, block
	}
	for left := end - at; left > tail; left = end - at {
		n := block * min(rowsMax, max(1, left/tail))
		p.parts = append(p.parts, part{at, n, 0, p.width})
		at += n
	}
	if p.m < workers*rows { // not even a few rows for each
		pieces = max(pieces, divideUp(4*workers, divideUp(p.m, rows)))
	}
	cols := max(2*nr, roundUp(divideUp(p.width, pieces), nr))
	for ; at < end; at += rows {
		for col := 0; col < p.width; col += cols {
			p.parts = append(p.parts, part{at, min(rows, end-at), col, min(cols, p.width-col)})
		}
	}
}

// cutShares gives the workers their shares of all phases.
func (p *product) cutShares(workers int) {
	if n := 2 * p.phases * workers; cap(p.shares) < n {
		p.shares = make([]share, n)
	} else {
		p.shares = p.shares[:n]
	}
	for phase := range p.phases {
		packing, parts := p.sharesOf(phase, workers)
		divide(packing, p.packing)
		for w := range parts {
			parts[w].set(p.bands[w], p.bands[w+1])
		}
	}
}

// sharesOf returns the workers' shares of packing and of parts in a phase.
func (p *product) sharesOf(phase, workers int) (packing, parts []share) {
	s := p.shares[2*phase*workers : 2*(phase+1)*workers]
	return s[:workers], s[workers:]
}

// run does a worker's part of all phases.
func (p *product) run(w *Worker, _ int) {
	steps := p.phases / p.across // of depth
	for phase := range p.phases {
		packing, parts := p.sharesOf(phase, len(p.bands)-1)
		b := block{phase: phase, j: phase / steps * p.width, q: phase % steps * p.depth}
		b.cols, b.kc = min(p.width, p.n-b.j), min(p.depth, p.k-b.q)
		b.panel = panelLen(b.kc, p.kernel.nr)
		b.packed = p.packed[phase%2]
		for i, ok := take(packing, w.index); ok; i, ok = take(packing, w.index) {
			p.pack(b, i)
		}
		for i, ok := take(parts, w.index); ok; i, ok = take(parts, w.index) {
			p.multiply(w, b, i)
		}
	}
}

// A block is one of B's, which a phase is about: cols columns from j on, kc rows from q on.
type block struct {
	phase, j, q, cols, kc int
	packed                []float32
	panel                 int // floats from panel to panel
}

// pack does piece i of packing a block.
func (p *product) pack(b block, i int) {
	if b.phase >= 2 {
		p.multiplies[b.phase-2].wait(len(p.parts))
	}
	nr := p.kernel.nr
	from := i * p.panelsPerPiece * nr
	if cols := min(p.panelsPerPiece*nr, b.cols-from); cols > 0 {
		p.kernel.packPanelsB(b.packed[from/nr*b.panel:], p.b[b.q*p.brs+(b.j+from)*p.bcs:], b.kc, cols, p.brs, p.bcs)
	}
	p.packs[b.phase].add()
}

// multiply multiplies part i by a block.
func (p *product) multiply(w *Worker, b block, i int) {
	p.packs[b.phase].wait(p.packing)
	p.partsDone[i].wait(b.phase) // C is gone on with from there
	t := p.parts[i]
	if cols := min(t.cols, b.cols-t.col); cols > 0 {
		a, c := p.a[t.row*p.ars+b.q*p.acs:], p.c[t.row*p.ldc+b.j+t.col:]
		w.tiles(t.rows, cols, b.kc, a, p.ars, p.acs, b.packed[t.col/p.kernel.nr*b.panel:], b.panel, c, p.ldc, p.acc || b.q > 0)
	}
	p.partsDone[i].add()
	p.multiplies[b.phase].add()
}

// A counter says how much of something is done.
type counter struct {
	n     atomic.Int32
	sleep *sleepers
}

// sleepers are the workers that have waited for a counter longer than such a wait should take:
// others have the processor.
type sleepers struct {
	count atomic.Int32
	awake sync.Cond
}

// counters returns n counters that stand at 0, in c if it has room.
func (s *sleepers) counters(c []counter, n int) []counter {
	if cap(c) < n {
		c = make([]counter, n)
	}
	c = c[:n]
	for i := range c {
		c[i].n.Store(0)
		c[i].sleep = s
	}
	return c
}

// add counts one.
func (c *counter) add() {
	c.n.Add(1)
	if c.sleep.count.Load() > 0 {
		c.sleep.awake.L.Lock()
		c.sleep.awake.Broadcast()
		c.sleep.awake.L.Unlock()
	}
}

// wait returns when the counter stands at n. What is waited for takes microseconds, less than
// sleeping and waking.
func (c *counter) wait(n int) {
	for range patience {
		for range looks {
			if int(c.n.Load()) >= n {
				return
			}
		}
		runtime.Gosched()
	}
	c.sleep.awake.L.Lock()
	c.sleep.count.Add(1)
	for int(c.n.Load()) < n {
		c.sleep.awake.Wait()
	}
	c.sleep.count.Add(-1)
	c.sleep.awake.L.Unlock()
}
