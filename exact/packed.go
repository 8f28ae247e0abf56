package exact

import "fmt"

// Packed is a matrix B (k, n) in the layout of one Pool's kernel, for use in many products: the
// keys and values of attention, or the weights of a model that generates text. The zero value is
// empty. Pack fills it and reuses its memory.
type Packed struct {
	k, n  int
	panel int // floats from panel to panel
	data  []float32
}

// Pack copies B (k, n), with element [p,j] at src[p*brs+j*bcs], into b. It panics if src is too
// short.
func (w *Worker) Pack(b *Packed, k, n int, src []float32, brs, bcs int) {
	checkB(k, n, src, brs, bcs)
	nr := w.kernel.nr
	*b = Packed{k: k, n: n, panel: panelLen(k, nr), data: grow(b.data, panels(k, n, nr))}
	if k > 0 && n > 0 {
		w.kernel.packPanelsB(b.data, src, k, n, brs, bcs)
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
