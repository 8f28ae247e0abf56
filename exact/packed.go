package exact

import (
	"fmt"
)

// Packed is a matrix B (k, n) in the layout of one Pool's kernel, for use in many products: the
// keys and values of attention, or the weights of a model that generates text. The zero value is
// empty. Pack fills it and reuses its memory.
type Packed struct {
	k, n  int
	wide  int // columns of a panel
	panel int // floats from panel to panel
	data  []float32
}

// Pack copies B (k, n), with element [p,j] at src[p*brs+j*bcs], into b. It panics if src is too
// short.
func (w *Worker) Pack(b *Packed, k, n int, src []float32, brs, bcs int) {
	checkB(k, n, src, brs, bcs)
	nr := w.kernel.nr
	*b = Packed{k: k, n: n, wide: nr, panel: panelLen(k, nr), data: grow(b.data, panels(k, n, nr))}
	if k > 0 && n > 0 {
		w.kernel.packPanelsB(b.data, src, k, n, brs, bcs)
	}
}

// PackedLine is a multiple of the number of columns in a panel, with every kernel.
const PackedLine = 32

// Columns returns columns [from, to) of b, which shares their memory. from must be a multiple of
// PackedLine.
func (b *Packed) Columns(from, to int) Packed {
	if from < 0 || from%PackedLine != 0 || to < from || to > b.n {
		panic(fmt.Sprintf("exact: columns %d to %d of %d", from, to, b.n))
	}
	return Packed{k: b.k, n: to - from, wide: b.wide, panel: b.panel, data: b.data[from/max(b.wide, 1)*b.panel:]}
}

// PackColumn makes x, of k elements, column j of b, a matrix of k rows, and all columns behind it
// void. j is at most the number of columns so far, and below most, for which b has memory at most.
// A matrix that grows by columns, or by rows (PackRow), packs each element once.
func (w *Worker) PackColumn(b *Packed, j, most int, x []float32) {
	nr := w.kernel.nr
	if j == 0 {
		*b = Packed{k: len(x), wide: nr, panel: panelLen(len(x), nr), data: b.data[:0]}
	}
	if j > b.n || j >= most || len(x) != b.k {
		panic(fmt.Sprintf("exact: column %d of %d elements for a packed matrix of n=%d k=%d", j, len(x), b.n, b.k))
	}
	if end := (j/nr + 1) * b.panel; cap(b.data) < end {
		b.data = append(make([]float32, 0, divideUp(min(2*j+PackedLine, most), nr)*b.panel), b.data...)
	}
	b.data = b.data[:max(len(b.data), (j/nr+1)*b.panel)]
	b.n = j + 1
	column := b.data[j/nr*b.panel+j%nr:]
	for p, v := range x {
		column[p*nr] = v
	}
}

// PackRow makes x, of n elements, row p of b, a matrix of n columns, and all rows behind it void. p
// is at most the number of rows so far, and below most, for which b has memory at most.
func (w *Worker) PackRow(b *Packed, p, most int, x []float32) {
	nr := w.kernel.nr
	if p == 0 {
		*b = Packed{n: len(x), wide: nr, panel: b.panel, data: b.data}
	}
	if p > b.k || p >= most || len(x) != b.n {
		panic(fmt.Sprintf("exact: row %d of %d elements for a packed matrix of n=%d k=%d", p, len(x), b.n, b.k))
	}
	across := divideUp(b.n, nr)
	if panel := panelLen(p+1, nr); b.panel < panel || len(b.data) < across*b.panel {
		panel = panelLen(min(2*p+PackedLine, most), nr)
		data := Make[float32](across * panel)
		for i := range across {
			copy(data[i*panel:], b.data[min(len(b.data), i*b.panel):min(len(b.data), i*b.panel+p*nr)])
		}
		b.panel, b.data = panel, data
	}
	b.k = p + 1
	for i := range across {
		copy(b.data[i*b.panel+p*nr:][:nr], x[i*nr:])
	}
}

// Memory returns the number of bytes that b has allocated.
func (b *Packed) Memory() int { return 4 * cap(b.data) }

// GemmPacked is like Gemm with the first k rows and n columns of a packed B: C = A·B[:k,:n], or C +
// A·B[:k,:n] if acc is set. It gives the same bits, and panics if B has fewer rows or columns.
func (w *Worker) GemmPacked(m, n, k int, a []float32, ars, acs int, b *Packed, c []float32, ldc int, acc bool) {
	if k > b.k || n > b.n || k < 1 {
		panic(fmt.Sprintf("exact: GemmPacked of n=%d k=%d with a packed matrix of n=%d k=%d", n, k, b.n, b.k))
	}
	checkGemm(m, n, k, a, ars, acs, b.data, 0, 0, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	w.tiles(m, n, k, a, ars, acs, b.data, b.panel, c, ldc, acc)
}

// checkB panics unless b holds all elements of B.
func checkB(k, n int, b []float32, brs, bcs int) {
	if k < 0 || n < 0 || brs < 0 || bcs < 0 || k > 0 && n > 0 && len(b) < (k-1)*brs+(n-1)*bcs+1 {
		panic(fmt.Sprintf("exact: a matrix of %d by %d with strides %d,%d reaches beyond a slice of %d floats", k, n, brs, bcs, len(b)))
	}
}
