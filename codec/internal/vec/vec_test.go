package vec_test

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

func TestGeneratedFilesAreWhatTheGeneratorWrites(t *testing.T) {
	for name, file := range map[string]string{"amd64": "kernels_amd64.s", "amd64.go": "kernels_amd64.go"} {
		want, err := exec.Command("go", "run", "../gen", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate", file)
		}
	}
}

// hostile are numbers at which a loop could differ: zeros of both signs, the ends of the denormals
// and of all numbers, infinities, neighbours.
var hostile = []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, 1.1754942e-38, -1.1754944e-38, math.MaxFloat32, -math.MaxFloat32,
	float32(math.Inf(1)), float32(math.Inf(-1)), 1, -1, math.Nextafter32(1, 2), .1, -3}

// numbers draws n numbers, some of them hostile. Drawing few and repeating them in a stride that is
// odd is fast and fills all lanes.
func numbers(t *rapid.T, n int, name string) []float32 {
	one := rapid.OneOf(rapid.Float32(), rapid.SampledFrom(hostile), rapid.Float32Range(-2, 2))
	some := rapid.SliceOfN(one, 1, 37).Draw(t, name)
	v := make([]float32, n)
	for i := range v {
		v[i] = some[i*7%len(some)]
	}
	return v
}

// same compares bits; NaNs are the same whatever their bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
	})
}

// checkKernels compares the loops of every kernel with plain Go.
func checkKernels(t *rapid.T, kernels []exact.Kernel) {
	n := rapid.IntRange(0, 300).Draw(t, "n")
	x, y := numbers(t, n, "x"), numbers(t, n, "y")
	a, b := rapid.Float32Range(0, 2).Draw(t, "a"), rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(0, 1024)).Draw(t, "b")
	bound := rapid.OneOf(rapid.Just(math.Float32bits(x0(x))&vec.Abs), rapid.Uint32Range(1, vec.Abs)).Draw(t, "bound")
	bound = max(1, bound)
	plain := new(vec.Kernel)
	for _, e := range kernels {
		k := vec.For(e)

		var sums, wantSums [vec.Lanes]float64
		k.SumSquares(x, &sums)
		plain.SumSquares(x, &wantSums)
		for i := range sums {
			if sums[i] != wantSums[i] && sums[i] == sums[i] {
				t.Fatalf("%s: sum of squares %d is %v, want %v", e.Name(), i, sums[i], wantSums[i])
			}
		}

		var most, wantMost [vec.Lanes]float32
		got, want := slices.Clone(x), slices.Clone(x)
		k.Momentum(got, y, a, b, &most)
		plain.Momentum(want, y, a, b, &wantMost)
		if !same(got, want) || most != wantMost && !slices.ContainsFunc(want, func(v float32) bool { return v != v }) {
			t.Fatalf("%s: momentum %v with %v is %v, most %x, want %v, %x", e.Name(), x, y, got, most, want, wantMost)
		}
		if got, want := k.Most(x, &most), plain.Most(x, &wantMost); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%s: greatest magnitude of %v is %x, want %x", e.Name(), x, got, want)
		}

		set, wantSet := make([]uint64, (n+63)/64+1), make([]uint64, (n+63)/64+1)
		k.Reach(x, bound, set)
		plain.Reach(x, bound, wantSet)
		if !slices.Equal(set, wantSet) {
			t.Fatalf("%s: of %v, those that reach %x are %x, want %x", e.Name(), x, bound, set, wantSet)
		}

		got, want = slices.Clone(x), slices.Clone(x)
		k.SignStep(got, y, a, b)
		plain.SignStep(want, y, a, b)
		if !same(got, want) {
			t.Fatalf("%s: %v stepped by %v is %v, want %v", e.Name(), x, y, got, want)
		}
	}
}

// checkColumns compares Columns of every kernel with plain Go, for coefficients of which few, all
// or none are not zero, down to the last row that basis has.
func checkColumns(t *rapid.T, kernels []exact.Kernel) {
	cols, ld := rapid.IntRange(0, 5).Draw(t, "columns"), vec.ColumnSums*rapid.IntRange(1, 2).Draw(t, "sums")
	rows := rapid.IntRange(1, ld).Draw(t, "rows")
	basis := numbers(t, rows*ld, "basis")
	coefficients := make([]float32, cols*ld)
	values := numbers(t, 41, "coefficients")
	gap := rapid.IntRange(1, 300).Draw(t, "gap")
	for i := rapid.IntRange(0, 299).Draw(t, "first"); i < len(coefficients); i += gap {
		if i%ld < rows {
			coefficients[i] = values[i%len(values)]
		}
	}
	want := make([]float32, cols*ld)
	new(vec.Kernel).Columns(cols, ld, want, basis, coefficients)
	for _, e := range kernels {
		k, got := vec.For(e), numbers(t, cols*ld, "before")
		k.Columns(cols, ld, got, basis, coefficients)
		if !same(got, want) {
			t.Fatalf("%s: %d columns of %d with %d rows: %v, want %v", e.Name(), cols, ld, rows, got, want)
		}
	}
}

func TestColumnsAgreeWithPlainGo(t *testing.T) {
	kernels := exact.Kernels()
	rapid.Check(t, func(t *rapid.T) { checkColumns(t, kernels) })
}

func FuzzColumnsAgreeWithPlainGo(f *testing.F) {
	kernels := exact.Kernels()
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkColumns(t, kernels) }))
}

func x0(x []float32) float32 {
	if len(x) == 0 {
		return 1
	}
	return x[0]
}

func TestKernelsAgreeWithPlainGo(t *testing.T) {
	kernels := exact.Kernels()
	rapid.Check(t, func(t *rapid.T) { checkKernels(t, kernels) })
}

func FuzzKernelsAgreeWithPlainGo(f *testing.F) {
	kernels := exact.Kernels()
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkKernels(t, kernels) }))
}

// What plain Go does is compared with the formulas written down once more, the slow way.
func TestPlainLoopsAreTheFormulas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 130).Draw(t, "n")
		x, y := numbers(t, n, "x"), numbers(t, n, "y")
		bound := max(1, math.Float32bits(x0(x))&vec.Abs)
		keep, lr := rapid.Float32Range(0, 1).Draw(t, "keep"), rapid.Float32Range(0, 10).Draw(t, "lr")
		plain := new(vec.Kernel)
		set := make([]uint64, 3)
		plain.Reach(x, bound, set)
		stepped := slices.Clone(x)
		plain.SignStep(stepped, y, keep, lr)
		for i, v := range x {
			if got, want := set[i/64]>>uint(i%64)&1 == 1, math.Float32bits(float32(math.Abs(float64(v)))) >= bound; got != want {
				t.Fatalf("%v reaches %x: %v", v, bound, got)
			}
			want := float32(v * keep)
			switch {
			case y[i] > 0:
				want -= lr
			case y[i] < 0:
				want += lr
			}
			if y[i] == y[i] && want != stepped[i] && want == want {
				t.Fatalf("%v stepped by %v is %v, want %v", v, y[i], stepped[i], want)
			}
		}
	})
}
