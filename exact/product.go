package exact

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A product is a Gemm shared by the workers of a pool. It divides B into blocks of depth rows and
// width columns, and computes one block in each phase. In a phase the workers first pack the block
// of B, a few panels at a time, and then multiply parts of A by it; each worker packs its own A.
// There is memory for two blocks of B, so workers can pack one while others still multiply by the
// previous one.
//
// A worker enters the next phase when all pieces of its phase are taken. Everything a piece waits
// for is therefore done or in progress, so there is no deadlock, even if only one worker runs. Each
// worker has a band of rows, the same in all phases, and helps the others when it has finished its
// own.
type product struct {
	m, n, k, ars, acs, brs, bcs, ldc int
	a, b, c                          []float32
	acc                              bool

	kernel            Kernel
	depth, width      int    // of a block of B
	across            int    // columns of blocks of B, computed one after another from top to bottom
	parts             []part // of a phase, by band
	bands             []int  // index of each worker's first part, and the number of parts
	rows              int    // of the largest part
	packing           int    // pieces of packing work in a phase
	phases            int
	panelsPerPiece    int
	packed            [2][]float32
	shares            []share   // of packing and of parts, by phase
	packs, multiplies []counter // finished pieces, by phase
	partsDone         []counter // finished phases, by part
	sleepers          sleepers
}

// A part is the range of C that one piece of work computes: rows of A by columns of the block of B.
type part struct{ row, rows, col, cols int }

const (
	// rowsMax is the most blocks of rows in a part. With several blocks, all but the first are
	// packed while the previous one is multiplied.
	rowsMax = 4
	// tailRows is the number of rows of tiles in the last parts of a packed A. tailColumns is the
	// number of parts into which the last blocks of rows are divided if A is not packed; with a
	// packed A, each such part would pack it.
	tailRows    = 2
	tailColumns = 8
)

// cut chooses the sizes of all blocks for the given number of workers.
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

// cutParts divides a phase into parts, with a band of rows for each worker. Parts get smaller
// towards the end of a band, so that all workers finish together even if one was interrupted.
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

// cutBand divides the rows [at, end) into parts.
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
	if p.m < workers*rows { // not enough rows for all workers: divide columns too
		pieces = max(pieces, divideUp(4*workers, divideUp(p.m, rows)))
	}
	cols := max(2*nr, roundUp(divideUp(p.width, pieces), nr))
	for ; at < end; at += rows {
		for col := 0; col < p.width; col += cols {
			p.parts = append(p.parts, part{at, min(rows, end-at), col, min(cols, p.width-col)})
		}
	}
}

// cutShares sets the workers' shares of all phases.
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

// run does one worker's work in all phases.
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

// A block is the block of B that a phase multiplies by: cols columns from column j, kc rows from
// row q.
type block struct {
	phase, j, q, cols, kc int
	packed                []float32
	panel                 int // floats from one panel to the next
}

// pack packs piece i of a block.
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

// multiply multiplies part i of A by a block.
func (p *product) multiply(w *Worker, b block, i int) {
	p.packs[b.phase].wait(p.packing)
	p.partsDone[i].wait(b.phase) // resumes this part of C after the previous phase
	t := p.parts[i]
	if cols := min(t.cols, b.cols-t.col); cols > 0 {
		a, c := p.a[t.row*p.ars+b.q*p.acs:], p.c[t.row*p.ldc+b.j+t.col:]
		w.tiles(t.rows, cols, b.kc, a, p.ars, p.acs, b.packed[t.col/p.kernel.nr*b.panel:], b.panel, c, p.ldc, p.acc || b.q > 0)
	}
	p.partsDone[i].add()
	p.multiplies[b.phase].add()
}

// A counter counts finished pieces of work.
type counter struct {
	n     atomic.Int32
	sleep *sleepers
}

// sleepers are the workers that have waited so long for a counter that others must have the
// processor.
type sleepers struct {
	count atomic.Int32
	awake sync.Cond
}

// counters returns n counters of value 0, reusing the memory of c.
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

// add increments the counter and wakes sleepers.
func (c *counter) add() {
	c.n.Add(1)
	if c.sleep.count.Load() > 0 {
		c.sleep.awake.L.Lock()
		c.sleep.awake.Broadcast()
		c.sleep.awake.L.Unlock()
	}
}

// wait returns when the counter has reached n. It polls at first, because most waits are shorter
// than sleeping and waking.
func (c *counter) wait(n int) {
	for range spinRounds {
		for range spinPolls {
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
