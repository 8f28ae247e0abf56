package exact

import (
	"fmt"
	"unsafe"
)

// Block sizes of a product. They affect speed only.
const (
	// blockK is the number of k that a tile accumulates before it is stored. At 1024, the tile's
	// loads and stores cost little, and C, which may be in memory, is traversed rarely.
	blockK = 1024
	// blockN is the number of columns of B packed at a time.
	blockN = 1024
	// blockRows is the number of tiles of rows of A multiplied by one panel of B before the next
	// panel. These rows and the panel stay in the second-level cache. The rows take at most a
	// quarter of it, because rows that lie a power of two apart in memory share a few of its sets.
	blockRows = 8
	// gemmParallel is the number of multiply-adds below which waking other workers costs more than
	// it saves.
	gemmParallel = 1 << 17
)

// Gemm computes C = A·B, or C = C + A·B if acc is set. A is (m, k), with element [i,p] at
// a[i*ars+p*acs]. B is (k, n), with element [p,j] at b[p*brs+j*bcs]. C is (m, n) and row-major,
// with ldc floats from row to row. To transpose a row-major matrix, exchange its two strides. Each
// element of C is one chain c = fma(a[i,p], b[p,j], c) for ascending p, starting with +0, or with C
// if acc is set.
//
// C must not overlap A or B. Gemm panics if a slice is too short for its strides. Work that runs on
// a pool must not call Gemm with that pool; it calls Worker.Gemm instead.
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
	p.a, p.b, p.c = a, b, c
	p.m, p.n, p.k, p.ars, p.acs, p.brs, p.bcs, p.ldc, p.acc = m, n, k, ars, acs, brs, bcs, ldc, acc
	p.cut(len(pool.workers), pool.kernel)
	if packsA(p.width, acs, pool.kernel.nr) {
		for _, w := range pool.workers { // any worker may get the largest part
			w.a = grow(w.a, packedBlocks(p.rows, p.depth, pool.kernel.mr))
		}
	}
	pool.runOn(len(pool.workers), pool.gemm)
	p.a, p.b, p.c = nil, nil, nil // releases the caller's memory
}

// checkGemm panics unless each slice holds all elements of its matrix.
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

// Gemm is like the function Gemm but runs on this worker alone.
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
	w.b = grow(w.b, panels(depth, min(width, n), nr))
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		for p := 0; p < k; p += depth {
			kc := min(depth, k-p)
			w.kernel.packPanelsB(w.b, b[p*brs+j*bcs:], kc, cols, brs, bcs)
			w.tiles(m, cols, kc, a[p*acs:], ars, acs, w.b, panelLen(kc, nr), c[j:], ldc, acc || p > 0)
		}
	}
}

// evenly returns the size of equal parts of n, each at most most, rounded up to a multiple of unit.
func evenly(n, most, unit int) int { return roundUp(divideUp(n, divideUp(n, most)), unit) }

// divideUp returns n/by, rounded up.
func divideUp(n, by int) int { return (n + by - 1) / by }

// roundUp returns the least multiple of to that is at least n.
func roundUp(n, to int) int { return divideUp(n, to) * to }

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return Make[float32](n)
	}
	return s[:n]
}

// packsA reports whether a product with n columns first copies A into panels of mr rows. A tile
// reads mr rows of A side by side. That is as fast as a panel if the rows are contiguous, but each
// k of a transposed A is on another cache line and often on another page. Packing does not pay if
// each element is read only once or twice.
func packsA(n, acs, nr int) bool { return n > 2*nr && acs != 1 }

// tiles multiplies A (m, kc) by packed panels of B (kc, n). The panel with columns j to j+nr begins
// at b[j/nr*panel].
func (w *Worker) tiles(m, n, kc int, a []float32, ars, acs int, b []float32, panel int, c []float32, ldc int, acc bool) {
	mr := w.kernel.mr
	block := blockRows * mr
	if !packsA(n, acs, w.kernel.nr) {
		for i := 0; i < m; i += block {
			w.block(min(block, m-i), n, kc, operand{a[i*ars:], ars, acs, mr * ars, false}, b, panel, c[i*ldc:], ldc, acc, nil)
		}
		return
	}
	w.a = grow(w.a, packedBlocks(m, kc, mr))
	one := panels(kc, min(m, block), mr)
	here, next := w.a[:one], w.a[one:]
	w.kernel.packPanelsA(here, a, kc, min(block, m), ars, acs)
	for i := 0; i < m; i += block {
		var side *sideCopy
		more := min(block, m-i-block) // rows of the next block
		if more > 0 {
			side = &w.side
			side.begin(w.kernel, next, a[(i+block)*ars:], kc, more, ars, acs)
		}
		w.block(min(block, m-i), n, kc, operand{here, 1, mr, panelLen(kc, mr), true}, b, panel, c[i*ldc:], ldc, acc, side)
		if more > 0 {
			side.end(w.kernel, kc, more, ars, acs)
		}
		here, next = next, here
	}
}

// packedBlocks returns the number of floats that tiles needs to pack blocks of A (m, kc): the
// current block and, if there is one, the next.
func packedBlocks(m, kc, mr int) int {
	if block := blockRows * mr; m > block {
		return 2 * panels(kc, block, mr)
	}
	return panels(kc, m, mr)
}

// An operand is a block of A as tiles read it. rs and cs are the strides of its rows and columns in
// floats; the next tile's rows begin step floats later.
type operand struct {
	a            []float32
	rs, cs, step int
	packed       bool // in panels, which always have mr rows
}

// block multiplies a block of A by all panels of B. It also runs side, unless nil.
func (w *Worker) block(rows, n, kc int, a operand, b []float32, panel int, c []float32, ldc int, acc bool, side *sideCopy) {
	mr, nr := w.kernel.mr, w.kernel.nr
	var from, to *float32
	if side != nil {
		from, to = &side.src[0], &side.dst[0]
	}
	whole := rows / mr
	rest := operand{a.a[min(whole*a.step, len(a.a)):], a.rs, a.cs, 0, a.packed}
	if m := rows % mr; m > 1 && !a.packed { // packed once for all panels
		w.a = grow(w.a, panels(kc, m, mr))
		w.kernel.packPanelsA(w.a, rest.a, kc, m, a.rs, a.cs)
		rest = operand{w.a, 1, mr, 0, true}
	}
	for j := 0; j < n; j += nr {
		bj := b[j/nr*panel : j/nr*panel+kc*nr]
		if whole > 0 && j+nr <= n {
			w.kernel.tile(kc, &a.a[0], uintptr(4*a.rs), uintptr(4*a.cs), &bj[0], &c[j], uintptr(4*ldc), flag(acc), whole, uintptr(4*a.step), side, from, to)
		}
		for i := 0; i < whole && j+nr > n; i++ {
			w.edge(mr, n-j, kc, operand{a.a[i*a.step:], a.rs, a.cs, 0, a.packed}, bj, c[i*mr*ldc+j:], ldc, acc)
		}
		if r := whole * mr; r < rows {
			w.edge(rows-r, min(nr, n-j), kc, rest, bj, c[r*ldc+j:], ldc, acc)
		}
	}
}

// edge computes a tile of which C holds only m rows and n columns, in the worker's scratch tile. a
// has mr rows nonetheless, unless m is 1.
func (w *Worker) edge(m, n, kc int, a operand, b, c []float32, ldc int, acc bool) {
	mr, nr := w.kernel.mr, w.kernel.nr
	tile := w.kernel.tile
	switch {
	case m > 1:
	case w.kernel.row != nil:
		tile = w.kernel.row
	case !a.packed:
		w.a = grow(w.a, panels(kc, 1, mr))
		w.kernel.packPanelsA(w.a, a.a, kc, 1, a.rs, a.cs)
		a = operand{w.a, 1, mr, 0, true}
	}
	if acc {
		for i := range m {
			copy(w.c[i*nr:i*nr+n], c[i*ldc:])
		}
	}
	tile(kc, &a.a[0], uintptr(4*a.rs), uintptr(4*a.cs), &b[0], &w.c[0], uintptr(4*nr), flag(acc), 1, 0, nil, nil, nil)
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

// tilePlain defines a column of tiles. For each of count tiles it multiplies A (4, kc), with row
// stride rs and column stride cs in bytes, by a packed panel of B (kc, 16). It stores the product
// in C (4, 16), with row stride ldc in bytes, or adds it to C if acc is not 0. Tile t has its A at
// t·step bytes and its C at row 4·t.
func tilePlain(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr, count int, step uintptr, _ *sideCopy, _, _ *float32) {
	for t := range uintptr(count) {
		at, ct := unsafe.Add(unsafe.Pointer(a), t*step), unsafe.Add(unsafe.Pointer(c), 4*t*ldc)
		oneTilePlain(kc, (*float32)(at), rs, cs, b, (*float32)(ct), ldc, acc)
	}
}

func oneTilePlain(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr) {
	var t [4][16]float32
	for i := range t {
		row := (*[16]float32)(unsafe.Add(unsafe.Pointer(c), uintptr(i)*ldc))
		if acc != 0 {
			t[i] = *row
		}
		for p := range kc {
			x := *(*float32)(unsafe.Add(unsafe.Pointer(a), uintptr(i)*rs+uintptr(p)*cs))
			y := (*[16]float32)(unsafe.Add(unsafe.Pointer(b), p*64))
			for j := range y { // FMA32, which the compiler does not inline
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
