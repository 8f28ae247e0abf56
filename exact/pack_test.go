package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// checkPanels compares what a kernel packs with the definition, element by element. Between panels
// nothing changes.
func checkPanels(t *testing.T, what string, pack func(dst, src []float32), wide int, src []float32, depth, n, ps, xs int) {
	t.Helper()
	const untouched = 1e30
	panel := panelLen(depth, wide)
	got, want := make([]float32, panels(depth, n, wide)), make([]float32, panels(depth, n, wide))
	for i := range got {
		got[i], want[i] = untouched, untouched
	}
	for x := range roundUp(n, wide) {
		for p := range depth {
			v := float32(0)
			if x < n {
				v = src[p*ps+x*xs]
			}
			want[x/wide*panel+p*wide+x%wide] = v
		}
	}
	pack(got, src)
	expectSame(t, what, got, want)
}

func TestPanelsAreWhatPackingSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, depth := range []int{1, 4, 7, 8, 9, 15, 16, 17, 23, 24, 32, 40, 100} {
		for _, n := range []int{1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64, 70, 96} {
			src := random(r, 2*(depth+9)*(n+9), 0)
			for _, layout := range []struct {
				name   string
				ps, xs int
			}{{"rows", n, 1}, {"rows apart", n + 3, 1}, {"columns", 1, depth}, {"columns apart", 1, depth + 5}, {"neither", 2*n + 1, 2}} {
				src := src[:(depth-1)*layout.ps+(n-1)*layout.xs+1]
				for _, kn := range Kernels() {
					what := fmt.Sprintf("%s, %d by %d, %s", kn.Name(), depth, n, layout.name)
					checkPanels(t, "B "+what, func(dst, src []float32) { kn.packPanelsB(dst, src, depth, n, layout.ps, layout.xs) },
						kn.nr, src, depth, n, layout.ps, layout.xs)
					checkPanels(t, "A "+what, func(dst, src []float32) { kn.packPanelsA(dst, src, depth, n, layout.xs, layout.ps) },
						kn.mr, src, depth, n, layout.ps, layout.xs)
				}
			}
		}
	}
}
