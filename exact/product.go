package exact

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A product is a Gemm shared by the workers of a pool. It goes through B in blocks of depth rows and width columns, a phase for each. In a phase the
// workers first pack the block of B, a few panels a piece of work, then multiply parts of A by it, each with an A of its own. Two blocks of B have
// room, so that one is packed while the last products with the other are still being computed.
//
// Pieces are handed out in order, those of a phase after those of the phase before. So whatever a piece waits for is done or in some worker's hands:
// waiting ends, however few of the workers run.
type product struct {
	m, n, k, ars, acs, brs, bcs, ldc int
	a, b, c                          []float32
	acc                              bool

	kernel            Kernel
	depth, width      int    // of a block of B
	across            int    // blocks of B side by side; they are taken one after another, each from top to bottom
	parts             []part // of a phase, as they are handed out
	packing           int    // pieces of packing in a phase
	phases            int
	panelsPerPiece    int
	packed            [2][]float32
	packs, multiplies []counter // pieces done, by phase
	partsDone         []counter // phases done, by part
	sleepers          sleepers
}

// A part is what a piece of work multiplies: rows of A by columns of the block of B.
type part struct{ row, rows, col, cols int }

const (
	// rowsMax is how many blocks of rows a part has at most: several, so that all but the first are packed on the side.
	rowsMax = 4
	// tailRows is how many rows of tiles the last parts of a packed A have, and tailColumns into how many parts the last blocks of rows are cut if A
	// needs no packing, which each of them would have to do.
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
	for i := range min(len(p.packed), p.phases) {
		p.packed[i] = grow(p.packed[i], panels(p.depth, p.width, kernel.nr))
	}
	p.packs = p.sleepers.counters(p.packs, p.phases)
	p.multiplies = p.sleepers.counters(p.multiplies, p.phases)
	p.partsDone = p.sleepers.counters(p.partsDone, len(p.parts))
}

// cutParts cuts a phase into parts: first many rows at a time, then fewer and fewer, so that the workers end together though one was disturbed.
func (p *product) cutParts(workers int) {
	mr, nr := p.kernel.mr, p.kernel.nr
	block := blockRows * mr
	rows, pieces, tail := block, tailColumns, 2*workers*block
	if packsA(p.width, p.acs, nr) {
		rows, pieces, tail = tailRows*mr, 1, workers*block
	}
	p.parts = p.parts[:0]
	at := 0
	for left := p.m; left > tail; left = p.m - at {
		n := block * min(rowsMax, max(1, left/tail))
		p.parts = append(p.parts, part{at, n, 0, p.width})
		at += n
	}
	pieces = max(pieces, divideUp(4*workers, divideUp(p.m-at, rows)))
	cols := max(2*nr, roundUp(divideUp(p.width, pieces), nr))
	for ; at < p.m; at += rows {
		for col := 0; col < p.width; col += cols {
			p.parts = append(p.parts, part{at, min(rows, p.m-at), col, min(cols, p.width-col)})
		}
	}
}

// pieces is the number of pieces of work.
func (p *product) pieces() int { return p.phases * (p.packing + len(p.parts)) }

// piece does piece of work number i.
func (p *product) piece(w *Worker, i int) {
	phase, i := i/(p.packing+len(p.parts)), i%(p.packing+len(p.parts))
	steps := p.phases / p.across // of depth
	j, q := phase/steps*p.width, phase%steps*p.depth
	n, kc := min(p.width, p.n-j), min(p.depth, p.k-q)
	panel, nr := panelLen(kc, p.kernel.nr), p.kernel.nr
	block := p.packed[phase%2]
	if i < p.packing {
		if phase >= 2 {
			p.multiplies[phase-2].wait(len(p.parts))
		}
		from := i * p.panelsPerPiece * nr
		if cols := min(p.panelsPerPiece*nr, n-from); cols > 0 {
			p.kernel.packPanelsB(block[from/nr*panel:], p.b[q*p.brs+(j+from)*p.bcs:], kc, cols, p.brs, p.bcs)
		}
		p.packs[phase].add()
		return
	}
	i -= p.packing
	p.packs[phase].wait(p.packing)
	p.partsDone[i].wait(phase) // C is gone on with from there
	t := p.parts[i]
	if cols := min(t.cols, n-t.col); cols > 0 {
		w.tiles(t.rows, cols, kc, p.a[t.row*p.ars+q*p.acs:], p.ars, p.acs, block[t.col/nr*panel:], panel, p.c[t.row*p.ldc+j+t.col:], p.ldc, p.acc || q > 0)
	}
	p.partsDone[i].add()
	p.multiplies[phase].add()
}

// A counter says how much of something is done.
type counter struct {
	n     atomic.Int32
	sleep *sleepers
}

// sleepers are the workers that have waited for a counter longer than such a wait should take: others have the processor.
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

// wait returns when the counter stands at n. What is waited for takes microseconds, less than sleeping and waking.
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
