package exact

import (
	"fmt"
	"unsafe"
)

// Sizes of the blocks a product is cut into. They change speed and nothing else.
const (
	// blockK is how many k a tile runs over before it is stored: a panel of B of this depth stays in the second-level cache, and the tile's
	// loads and stores cost little beside so many fused multiply-adds.
	blockK = 1024
	// blockN is how many columns of B are packed at a time.
	blockN = 1024
	// blockRows is how many tiles of rows of A are used against one panel of B, and again against the next: they stay in the cache.
	blockRows = 24
	// gemmParallel is the number of multiply-adds below which waking other workers costs more than it saves.
	gemmParallel = 1 << 17
)

// Gemm computes C = A·B, or C = C + A·B if acc is set. A is (m, k), its element [i,p] at a[i*ars+p*acs]; B is (k, n), its element [p,j] at
// b[p*brs+j*bcs]; C is (m, n), row-major with ldc floats from row to row. So the transpose of a row-major matrix is the same slice with its two
// strides exchanged. Each element of C is one chain c = fma(a[i,p], b[p,j], c) for p ascending, from +0, or from C if acc is set.
//
// C must not overlap A or B. Gemm panics if a slice is too short for its strides. It must not be called from work that runs on the same pool:
// that has Worker.Gemm.
func Gemm(pool *Pool, m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	if pool == nil {
		NewWorker(Kernels()[0]).Gemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc, acc)
		return
	}
	pool.running.Lock()
	defer pool.running.Unlock()
	if len(pool.workers) == 1 || m*n*k < gemmParallel {
		pool.workers[0].Gemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc, acc)
		return
	}
	checkGemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc)
	p := &pool.product
	*p = product{m: m, n: n, k: k, ars: ars, acs: acs, brs: brs, bcs: bcs, ldc: ldc, a: a, b: b, c: c, acc: acc}
	p.cut(len(pool.workers), pool.kernel)
	pool.runOn(p.across*p.down, pool.share)
	*p = product{} // keeps no caller's memory alive
}

// checkGemm panics unless every element the product names lies in its slice.
func checkGemm(m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int) {
	if m < 0 || n < 0 || k < 0 || ars < 0 || acs < 0 || brs < 0 || bcs < 0 || ldc < n {
		panic(fmt.Sprintf("exact: Gemm of m=%d n=%d k=%d with strides A %d,%d B %d,%d C %d", m, n, k, ars, acs, brs, bcs, ldc))
	}
	if m == 0 || n == 0 {
		return
	}
	if len(c) < (m-1)*ldc+n || k > 0 && (len(a) < (m-1)*ars+(k-1)*acs+1 || len(b) < (k-1)*brs+(n-1)*bcs+1) {
		panic(fmt.Sprintf("exact: Gemm of m=%d n=%d k=%d with strides A %d,%d B %d,%d C %d reaches beyond slices of %d, %d and %d floats",
			m, n, k, ars, acs, brs, bcs, ldc, len(a), len(b), len(c)))
	}
}

// A product is a Gemm cut into blocks of C for several workers.
type product struct {
	m, n, k, ars, acs, brs, bcs, ldc int
	a, b, c                          []float32
	acc                              bool
	rows, cols                       int // of a block of C
	down, across                     int // blocks
}

// cut chooses the blocks: several for each worker, so that one which is disturbed does not hold up the rest, and cut along the side where it
// packs the least twice. A block of columns packs its own part of B and all of A, a block of rows its own part of A and all of B; an A whose
// rows are contiguous is not packed.
func (p *product) cut(workers int, kernel Kernel) {
	const each = 3
	blocks := workers * each
	alongN := p.acs == 1 || p.n >= p.m
	p.rows, p.cols = p.m, p.n
	if alongN {
		p.cols = roundUp((p.n+blocks-1)/blocks, 2*kernel.nr)
		blocks = (blocks + p.n/p.cols - 1) / max(1, p.n/p.cols)
		if p.n/p.cols < workers {
			p.rows = roundUp((p.m+blocks-1)/blocks, 4*kernel.mr)
		}
	} else {
		p.rows = roundUp((p.m+blocks-1)/blocks, 4*kernel.mr)
		blocks = (blocks + p.m/p.rows - 1) / max(1, p.m/p.rows)
		if p.m/p.rows < workers {
			p.cols = roundUp((p.n+blocks-1)/blocks, 2*kernel.nr)
		}
	}
	p.down, p.across = (p.m+p.rows-1)/p.rows, (p.n+p.cols-1)/p.cols
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// share computes block number i of C.
func (p *product) share(w *Worker, i int) {
	r, c := i/p.across*p.rows, i%p.across*p.cols
	m, n := min(p.rows, p.m-r), min(p.cols, p.n-c)
	w.Gemm(m, n, p.k, p.a[min(r*p.ars, len(p.a)):], p.ars, p.acs, p.b[min(c*p.bcs, len(p.b)):], p.brs, p.bcs, p.c[r*p.ldc+c:], p.ldc, p.acc)
}

// Gemm is the function Gemm on this worker alone.
func (w *Worker) Gemm(m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	checkGemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		for i := 0; i < m && !acc; i++ {
			clear(c[i*ldc : i*ldc+n])
		}
		return
	}
	nr := w.kernel.nr
	depth := evenly(k, blockK, 1)
	width := evenly(n, blockN, nr)
	w.b = grow(w.b, roundUp(min(width, n), nr)*depth)
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		for p := 0; p < k; p += depth {
			kc := min(depth, k-p)
			w.kernel.packB(w.b, b[p*brs+j*bcs:], kc, cols, brs, bcs)
			w.tiles(m, cols, kc, a[p*acs:], ars, acs, w.b, kc*nr, c[j:], ldc, acc || p > 0)
		}
	}
}

// evenly returns the size of equal parts of n, each at most most and a multiple of unit.
func evenly(n, most, unit int) int {
	parts := (n + most - 1) / most
	return roundUp((n+parts-1)/parts, unit)
}

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// tiles multiplies A (m, kc) by packed panels of B, of which panel number j/nr begins at b[j/nr*panel] and holds columns j to j+nr of kc rows, in
// that order.
func (w *Worker) tiles(m, n, kc int, a []float32, ars, acs int, b []float32, panel int, c []float32, ldc int, acc bool) {
	mr, nr := w.kernel.mr, w.kernel.nr
	// An A that is transposed in memory touches a new cache line at every k, and rows a large power of two apart fall on the same few sets of
	// the cache; both are copied into panels of mr rows first. A product that reads each element of A only once or twice is not worth that.
	pack := n > 2*nr && (acs != 1 || ars%512 == 0)
	for i := 0; i < m; i += blockRows * mr {
		rows := min(blockRows*mr, m-i)
		ai, rs, cs, step := a[i*ars:], ars, acs, mr*ars
		if pack {
			w.a = grow(w.a, roundUp(rows, mr)*kc)
			w.kernel.packA(w.a, ai, kc, rows, ars, acs)
			ai, rs, cs, step = w.a, 1, mr, mr*kc
		}
		for j := 0; j < n; j += nr {
			bj := b[j/nr*panel : j/nr*panel+kc*nr]
			for r := 0; r < rows; r += mr {
				ct := c[(i+r)*ldc+j:]
				if r+mr <= rows && j+nr <= n {
					w.kernel.tile(kc, &ai[r/mr*step], uintptr(4*rs), uintptr(4*cs), &bj[0], &ct[0], uintptr(4*ldc), flag(acc))
					continue
				}
				w.edge(min(mr, rows-r), min(nr, n-j), kc, ai[r/mr*step:], rs, cs, pack, bj, ct, ldc, acc)
			}
		}
	}
}

// edge computes a tile that reaches beyond C in a tile of the worker's own. packed says that A has mr rows there, whatever C has.
func (w *Worker) edge(m, n, kc int, a []float32, rs, cs int, packed bool, b, c []float32, ldc int, acc bool) {
	mr, nr := w.kernel.mr, w.kernel.nr
	if m < mr && !packed {
		w.a = grow(w.a, mr*kc)
		w.kernel.packA(w.a, a, kc, m, rs, cs)
		a, rs, cs = w.a, 1, mr
	}
	if acc {
		for i := range m {
			copy(w.c[i*nr:i*nr+n], c[i*ldc:])
		}
	}
	w.kernel.tile(kc, &a[0], uintptr(4*rs), uintptr(4*cs), &b[0], &w.c[0], uintptr(4*nr), flag(acc))
	for i := range m {
		copy(c[i*ldc:i*ldc+n], w.c[i*nr:(i+1)*nr])
	}
}

func flag(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// tilePlain is the definition of a tile: the product of A (4, kc), whose rows are rs bytes and columns cs bytes apart, and a packed panel of B
// (kc, 16), on C (4, 16) with rows ldc bytes apart, added to it if acc is not 0.
func tilePlain(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr) {
	var t [4][16]float32
	for i := range t {
		row := (*[16]float32)(unsafe.Add(unsafe.Pointer(c), uintptr(i)*ldc))
		if acc != 0 {
			t[i] = *row
		}
		for p := range kc {
			x := *(*float32)(unsafe.Add(unsafe.Pointer(a), uintptr(i)*rs+uintptr(p)*cs))
			y := (*[16]float32)(unsafe.Add(unsafe.Pointer(b), p*64))
			for j := range y { // FMA32, written out because the compiler does not inline it
				if s := float64(float64(x)*float64(y[j])) + float64(t[i][j]); roundsOnce(s) {
					t[i][j] = float32(s)
				} else {
					t[i][j] = fmaToOdd(x, y[j], t[i][j])
				}
			}
		}
		*row = t[i]
	}
}
