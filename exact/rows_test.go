package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// rowOperations run each method of Worker that works on a row, on copies of x, y and z of one
// length, and return all they changed or returned.
var rowOperations = []struct {
	name string
	run  func(w *Worker, x, y, z []float32, a, b float32) [][]float32
}{
	{"Add", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 { w.Add(x, y); return [][]float32{x} }},
	{"Scale", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 { w.Scale(x, a); return [][]float32{x} }},
	{"RMSNorm", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		return [][]float32{{w.RMSNorm(z, x, y, float32(math.Abs(float64(a))))}, z}
	}},
	{"Normalize", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.Normalize(x, x, y, a)
		return [][]float32{x}
	}},
	{"RMSNormBackward", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		dx, dg := append([]float32(nil), y...), append([]float32(nil), z...)
		w.RMSNormBackward(dx, dg, x, y, z, a)
		return [][]float32{dx, dg}
	}},
	{"Rotate", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.Rotate(x[:len(x)&^1], y, z)
		return [][]float32{x}
	}},
	{"RotateBack", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.RotateBack(x[:len(x)&^1], y, z)
		return [][]float32{x}
	}},
	{"Softmax", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		shift, inv := w.Softmax(x, float32(math.Abs(float64(a))))
		return [][]float32{{shift, inv}, x}
	}},
	{"SoftmaxAgain", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.SoftmaxAgain(x, a, b, 0.25)
		return [][]float32{x}
	}},
	{"SoftmaxBackward", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.SoftmaxBackward(x, y, a)
		return [][]float32{x}
	}},
	{"SwiGLU", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 { w.SwiGLU(z, x, y); return [][]float32{z} }},
	{"SwiGLUBackward", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		w.SwiGLUBackward(z, x, y)
		return [][]float32{x, y, z}
	}},
	{"CrossEntropy", func(w *Worker, x, y, z []float32, a, b float32) [][]float32 {
		return [][]float32{{w.CrossEntropy(x, len(x)/2, a), w.CrossEntropyLoss(y, len(y)-1)}, x}
	}},
}

// checkRows runs every row operation on every kernel and compares the bits with those of plain Go.
func checkRows(t *testing.T, x, y, z []float32, a, b float32) {
	t.Helper()
	kernels := Kernels()
	plain := NewWorker(kernels[len(kernels)-1])
	clone := func(v []float32) []float32 { return append([]float32(nil), v...) }
	for _, op := range rowOperations {
		want := op.run(plain, clone(x), clone(y), clone(z), a, b)
		for _, kernel := range kernels[:len(kernels)-1] {
			got := op.run(NewWorker(kernel), clone(x), clone(y), clone(z), a, b)
			for i := range want {
				expectSame(t, fmt.Sprintf("%s by %s, %d elements, result %d", op.name, kernel.Name(), len(x), i), got[i], want[i])
			}
		}
	}
}

func TestRowKernelsAreEqualToPlainGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 80, 100, 257, 1000} {
		for mode := range 4 {
			for range 6 {
				s := random(r, 2, mode%3)
				checkRows(t, random(r, n, mode), random(r, n, mode), random(r, n, mode), s[0], s[1])
			}
			checkRows(t, random(r, n, 0), random(r, n, mode), random(r, n, 0), 1, 0.5)
		}
	}
}

// Each pair of special numbers as the two that are the same for a row, and so many rows of them
// that all triples meet.
func TestRowKernelsAreEqualToPlainGoOnSpecialNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, a := range special {
		for _, b := range special {
			const n = 320 // each half of a row that is rotated is whole vectors
			checkRows(t, random(r, n, 4), random(r, n, 4), random(r, n, 4), a, b)
		}
	}
}

// Row kernels that change the lanes, one after another on the same lanes, whatever these hold
// before.
func TestLaneKernelsAreEqualToPlainGo(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, kernel := range Kernels() {
		if kernel.dot == nil {
			continue
		}
		for i := range 4000 {
			mode, n := i%5, 16*(1+r.IntN(5))
			x, y, z := random(r, n, mode), random(r, n, mode), random(r, n, mode)
			if mode == 4 { // a NaN would hide the lane's sums
				mode = 2
			}
			k := random(r, 2, mode)
			var before lanes
			copy(before[:], random(r, len(before), mode))
			check := func(name string, run func(l *lanes), plain func(l *lanes)) {
				got, want := before, before
				run(&got)
				plain(&want)
				expectSame(t, fmt.Sprintf("%s by %s, %d elements", name, kernel.Name(), n), got[:], want[:])
			}
			check("dot", func(l *lanes) { kernel.dot(n, &x[0], &y[0], l) }, func(l *lanes) { dotPlain(x, y, l) })
			check("dot3", func(l *lanes) { kernel.dot3(n, &x[0], &y[0], &z[0], l) }, func(l *lanes) { dot3Plain(x, y, z, l) })
			check("max", func(l *lanes) { kernel.max(n, &x[0], l) }, func(l *lanes) { maxPlain(x, l) })
			got := append([]float32(nil), x...)
			check("expSum", func(l *lanes) { kernel.expSum(n, &got[0], k[0], k[1], l) }, func(l *lanes) { expSumPlain(x, k[0], k[1], l) })
			expectSame(t, "expSum by "+kernel.Name(), got, x)
		}
	}
}

// Every part of Exp's range, and the places where it changes its ways.
func TestExpInVectorsIsExp(t *testing.T) {
	var x []float32
	for _, edge := range []float32{0, -104, 89, 88.72284, -87.33654, -103.97208, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
		for i := -40; i < 40; i++ {
			x = append(x, math.Float32frombits(math.Float32bits(edge)+uint32(i)))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 2000000 { // of a quarter of a million one differs if the last product of the reduction is fused
		x = append(x, 220*r.Float32()-120)
		if i%10 == 0 {
			x = append(x, math.Float32frombits(r.Uint32()))
		}
	}
	for _, kernel := range Kernels() {
		got := append([]float32(nil), x...)
		NewWorker(kernel).SoftmaxAgain(got, 1, 0, 1)
		for i, v := range x {
			if want := Exp(v - 0); !same(got[i], want) {
				t.Fatalf("%s: Exp(%x) = %x, want %x", kernel.Name(), v, got[i], want)
			}
		}
	}
}

func FuzzRows(f *testing.F) {
	f.Add(uint64(1), uint16(40), uint8(0))
	f.Add(uint64(2), uint16(16), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, mode uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		length, m := 1+int(n%600), int(mode%4)
		s := random(r, 2, m)
		checkRows(t, random(r, length, m), random(r, length, m), random(r, length, m), s[0], s[1])
	})
}

// A softmax row sums to 1, its gradient to 0, and the loss is what the formula says, whatever the
// sizes.
func TestSoftmaxAndCrossEntropyAreWhatTheyAreCalled(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := NewWorker(Kernels()[0])
	for _, n := range []int{1, 7, 64, 1000} {
		x := random(r, n, 0)
		p := append([]float32(nil), x...)
		shift, inv := w.Softmax(p, 0.5)
		again := append([]float32(nil), x...)
		w.SoftmaxAgain(again, 0.5, shift, inv)
		expectSame(t, "SoftmaxAgain", again, p)
		if s := sum(p); math.Abs(float64(s)-1) > 1e-6 {
			t.Errorf("a softmax of %d sums to %g", n, s)
		}
		var z float64
		for _, v := range x {
			z += math.Exp(float64(v))
		}
		want := math.Log(z) - float64(x[n/2])
		if got := w.CrossEntropy(x, n/2, 1); math.Abs(float64(got)-want) > 1e-6*(1+want) || math.Abs(float64(sum(x))) > 1e-6 {
			t.Errorf("cross-entropy of %d is %g, want %g; its gradient sums to %g", n, got, want, sum(x))
		}
	}
}

func TestFoldsAreThoseOfTheLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	zero := float32(math.Copysign(0, -1))
	for _, kernel := range Kernels() {
		w := NewWorker(kernel)
		for i := range 2000 {
			var l lanes
			copy(l[:], random(r, len(l), i%4))
			for range i % 5 { // equal lanes, and zeros of both signs
				l[r.IntN(16)] = []float32{l[r.IntN(16)], zero, 0, float32(math.Inf(-1))}[r.IntN(4)]
			}
			if i%7 == 0 {
				for j := range l {
					l[j] = []float32{0, zero}[r.IntN(2)]
				}
			}
			w.lanes = l
			sum := l
			if got, want := w.fold(), sum.fold(); math.Float32bits(got) != math.Float32bits(want) && want == want {
				t.Fatalf("%s: the sum of %v is %g, want %g", kernel.Name(), l, got, want)
			}
			w.lanes = l
			greatest := l
			if got, want := w.foldMax(), greatest.foldMax(); math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%s: the maximum of %v is %g, want %g", kernel.Name(), l, got, want)
			}
		}
	}
}
