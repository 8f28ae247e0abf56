package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// reference is the definition of Gemm, for contiguous row-major matrices.
func reference(m, n, k int, a, b, c []float32, acc bool) []float32 {
	out := make([]float32, m*n)
	for i := range m {
		for j := range n {
			var x float32
			if acc {
				x = c[i*n+j]
			}
			for p := range k {
				x = FMA32(a[i*k+p], b[p*n+j], x)
			}
			out[i*n+j] = x
		}
	}
	return out
}

func transposed(rows, cols int, x []float32) []float32 {
	y := make([]float32, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

// spread returns the matrix with rows stride floats apart, and other numbers between them.
func spread(rows, cols, stride int, x []float32) []float32 {
	y := make([]float32, rows*stride)
	for i := range y {
		y[i] = 1e30
	}
	for i := range rows {
		copy(y[i*stride:], x[i*cols:(i+1)*cols])
	}
	return y
}

var gemmShapes = [][3]int{{1, 1, 1}, {1, 1, 0}, {3, 5, 0}, {8, 32, 1}, {37, 51, 70}, {64, 96, 130}, {129, 67, 33}, {5, 300, 40}, {300, 4, 17},
	{17, 16, 9}, {9, 33, 1100}, {7, 1100, 9}, {250, 40, 8}, {16, 8, 512}, {40, 70, 512}, {150, 100, 70}, {140, 620, 40}, {1, 70, 50}}

func TestGemmIsOneChainForEachElement(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, shape := range gemmShapes {
		m, n, k := shape[0], shape[1], shape[2]
		for mode := range 4 {
			if m*n*k > 1<<20 && mode != i%4 {
				continue // the largest shapes are there for the ends of blocks, the modes for the numbers
			}
			a, b, c := random(r, m*k, mode), random(r, k*n, mode), random(r, m*n, mode)
			for _, acc := range []bool{false, true} {
				want := reference(m, n, k, a, b, c, acc)
				for _, kernel := range Kernels() {
					what := fmt.Sprintf("%s m=%d n=%d k=%d mode=%d acc=%v", kernel.Name(), m, n, k, mode, acc)
					checkGemmOf(t, what, kernel, m, n, k, a, b, c, acc, want)
				}
			}
		}
	}
}

// checkGemmOf compares a kernel's product with want for A and B as they are and transposed in
// memory, apart and packed.
func checkGemmOf(t *testing.T, what string, kernel Kernel, m, n, k int, a, b, c []float32, acc bool, want []float32) {
	t.Helper()
	at, bt := transposed(m, k, a), transposed(k, n, b)
	wide := spread(m, k, k+3, a)
	w := NewWorker(kernel)
	for _, v := range []struct {
		name     string
		a        []float32
		ars, acs int
		b        []float32
		brs, bcs int
	}{
		{"AB", a, k, 1, b, n, 1}, {"AtB", at, 1, m, b, n, 1}, {"ABt", a, k, 1, bt, 1, k}, {"AtBt", at, 1, m, bt, 1, k}, {"wide A", wide, k + 3, 1, b, n, 1},
	} {
		got := append([]float32(nil), c...)
		w.Gemm(m, n, k, v.a, v.ars, v.acs, v.b, v.brs, v.bcs, got, n, acc)
		expectSame(t, what+" "+v.name, got, want)
		if k > 0 {
			var packed Packed
			w.Pack(&packed, k, n, v.b, v.brs, v.bcs)
			copy(got, c)
			w.GemmPacked(m, n, k, v.a, v.ars, v.acs, &packed, got, n, acc)
			expectSame(t, what+" packed "+v.name, got, want)
		}
	}
}

func TestGemmDoesNotDependOnWorkers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	counts := []int{1, 2, 3, 4, 9}
	shapes := [][3]int{{70, 90, 64}, {300, 65, 40}, {33, 700, 30}, {1, 3000, 50}, {2000, 3, 40}, {128, 128, 100}, {40, 70, 1100}, {600, 70, 20}}
	if testing.Short() { // in an emulator: what divides a product is the same Go on every machine
		counts, shapes = []int{1, 4}, [][3]int{{70, 90, 64}, {33, 350, 30}, {1, 3000, 50}, {128, 128, 40}, {20, 35, 1100}}
	}
	for _, shape := range shapes {
		m, n, k := shape[0], shape[1], shape[2]
		a, b, c := random(r, m*k, 0), random(r, k*n, 0), random(r, m*n, 0)
		want := reference(m, n, k, a, b, c, true)
		for _, kernel := range Kernels() {
			for _, workers := range counts {
				p := NewPoolOf(workers, kernel)
				for _, v := range []struct {
					a        []float32
					ars, acs int
				}{{a, k, 1}, {transposed(m, k, a), 1, m}} {
					got := append([]float32(nil), c...)
					Gemm(p, m, n, k, v.a, v.ars, v.acs, b, n, 1, got, n, true)
					expectSame(t, fmt.Sprintf("%s m=%d n=%d k=%d on %d workers", kernel.Name(), m, n, k, workers), got, want)
				}
				p.Close()
			}
		}
	}
}

// A product in two calls that accumulate is the product in one, and leaves what lies between the
// rows of C alone.
func TestGemmGoesOnWhereItStopped(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const m, n, k, ldc = 19, 45, 77, 50
	a, b := random(r, m*k, 0), random(r, k*n, 0)
	for _, kernel := range Kernels() {
		p := NewPoolOf(2, kernel)
		once, twice := random(r, m*ldc, 0), make([]float32, m*ldc)
		copy(twice, once)
		Gemm(p, m, n, k, a, k, 1, b, n, 1, once, ldc, false)
		Gemm(p, m, n, 30, a, k, 1, b, n, 1, twice, ldc, false)
		Gemm(p, m, n, k-30, a[30:], k, 1, b[30*n:], n, 1, twice, ldc, true)
		expectSame(t, kernel.Name(), twice, once)
		p.Close()
	}
}

func TestGemmWithAPartOfAPackedMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const m, n, k = 21, 70, 50
	a, b := random(r, m*k, 0), random(r, k*n, 0)
	for _, kernel := range Kernels() {
		w := NewWorker(kernel)
		var packed Packed
		w.Pack(&packed, k, n, b, n, 1)
		for _, part := range [][2]int{{1, 1}, {n, 13}, {40, k}, {33, 7}} {
			cols, depth := part[0], part[1]
			got, want := make([]float32, m*cols), make([]float32, m*cols)
			w.GemmPacked(m, cols, depth, a, k, 1, &packed, got, cols, false)
			w.Gemm(m, cols, depth, a, k, 1, b, n, 1, want, cols, false)
			expectSame(t, fmt.Sprint(kernel.Name(), part), got, want)
		}
	}
}

// A matrix that grew, by columns or by rows, and was cut back now and then is the one packed at once;
// so are some of its columns.
func TestGemmWithAPackedMatrixThatGrew(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 10))
	const m, n, k = 5, 150, 90
	a, b := random(r, m*k, 0), random(r, k*n, 0)
	column := make([]float32, k)
	for _, kernel := range Kernels() {
		w := NewWorker(kernel)
		var byColumns, byRows Packed
		for again, end := range []int{20, 77, n} {
			for j := again * 7; j < end; j++ {
				for p := range column {
					column[p] = b[p*n+j]
				}
				w.PackColumn(&byColumns, j, n, column)
			}
		}
		for again, end := range []int{20, 77, k} {
			for p := again * 7; p < end; p++ {
				w.PackRow(&byRows, p, k, b[p*n:(p+1)*n])
			}
		}
		want := make([]float32, m*n)
		w.Gemm(m, n, k, a, k, 1, b, n, 1, want, n, false)
		for what, packed := range map[string]*Packed{"columns": &byColumns, "rows": &byRows} {
			got := make([]float32, m*n)
			w.GemmPacked(m, n, k, a, k, 1, packed, got, n, false)
			expectSame(t, kernel.Name()+" by "+what, got, want)
			clear(got)
			for from := 0; from < n; from += PackedLine {
				some := packed.Columns(from, min(n, from+PackedLine))
				w.GemmPacked(m, min(n-from, PackedLine), k, a, k, 1, &some, got[from:], n, false)
			}
			expectSame(t, kernel.Name()+" by "+what+", line by line", got, want)
			if most := 4 * (k + PackedLine) * (n + PackedLine); packed.Memory() > most {
				t.Errorf("%s: %d bytes for %d by %d, want at most %d", what, packed.Memory(), k, n, most)
			}
		}
	}
}

func TestGemmRefusesWhatLiesBeyondItsSlices(t *testing.T) {
	x := make([]float32, 12)
	for name, f := range map[string]func(){
		"A too short": func() { Gemm(nil, 4, 3, 4, x, 4, 1, x, 3, 1, x, 3, false) },
		"B too short": func() { Gemm(nil, 3, 4, 4, x, 4, 1, x, 4, 1, x, 4, false) },
		"C too short": func() { Gemm(nil, 4, 4, 3, x, 3, 1, x, 4, 1, x, 4, false) },
		"ldc":         func() { Gemm(nil, 1, 4, 1, x, 1, 1, x, 4, 1, x, 3, false) },
		"negative":    func() { Gemm(nil, 1, 4, 1, x, -1, 1, x, 4, 1, x, 4, false) },
		"packed":      func() { NewWorker(Kernels()[0]).GemmPacked(1, 1, 1, x, 1, 1, new(Packed), x, 1, false) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(40), uint16(20), uint8(1), true, false)
	f.Add(uint64(2), uint8(17), uint8(33), uint16(1030), uint8(3), false, true)
	f.Add(uint64(3), uint8(140), uint8(200), uint16(30), uint8(0), true, true)
	f.Fuzz(func(t *testing.T, seed uint64, rows, cols uint8, depth uint16, mode uint8, acc, tr bool) {
		m, n, k := int(rows%150), int(cols), int(depth%1100)
		r := rand.New(rand.NewPCG(seed, 0))
		a, b, c := random(r, m*k, int(mode%4)), random(r, k*n, int(mode%4)), random(r, m*n, int(mode%4))
		want := reference(m, n, k, a, b, c, acc)
		aa, ars, acs := a, k, 1
		if tr {
			aa, ars, acs = transposed(m, k, a), 1, m
		}
		for _, kernel := range Kernels() {
			got := append([]float32(nil), c...)
			NewWorker(kernel).Gemm(m, n, k, aa, ars, acs, b, n, 1, got, n, acc)
			expectSame(t, kernel.Name(), got, want)
		}
	})
}
