package exact8

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/exact"
)

// product is Gemm, or a Multiplier's.
type product func(m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool)

// forced replaces the kernels of products, unless it is nil.
var forced *kernel

// others are kernels for pools of AVX-512 that this processor can run and does not choose.
var others []kernel

// testedOf returns the kernels that tests run on pools with a kernel of package exact.
func testedOf(k exact.Kernel) []kernel {
	switch {
	case forced != nil:
		return []kernel{*forced}
	case k.Name() == "avx512":
		return slices.Concat(kernelsOf(k), others)
	}
	return kernelsOf(k)
}

// products passes the products that this processor can compute, by name, to f.
func products(t *testing.T, f func(t *testing.T, multiply product)) {
	t.Run("definition", func(t *testing.T) { f(t, Gemm) })
	for _, k := range exact.Kernels() {
		kernels := testedOf(k)
		for i := range 2 * len(kernels) {
			pool := exact.NewPoolOf(1+i%2*2, k)
			m := NewMultiplier(pool)
			m.kernel = kernels[i/2]
			workers := pool.Workers()
			name := fmt.Sprintf("%s of a pool of %s, %d workers", m.Kernel(), k.Name(), workers)
			t.Run(name, func(t *testing.T) { f(t, m.Gemm) })
			var p Packed
			t.Run(name+", packed", func(t *testing.T) {
				f(t, func(rows, cols, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
					m.Pack(&p, cols, k, k, b, brs, bcs)
					m.GemmPacked(rows, a, ars, acs, &p, c, ldc, acc)
				})
			})
			pool.Close()
		}
	}
}

// numbers returns ordinary numbers and hostile ones, the same on every machine.
func numbers(n int, seed uint64) []float32 {
	x := make([]float32, n)
	for i := range x {
		seed = seed*6364136223846793005 + 1442695040888963407
		bits := uint32(seed >> 32)
		switch bits % 37 {
		case 0:
			bits = 0
		case 1:
			bits = 1 << 31
		case 2:
			bits &= 0x807fffff // subnormal
		case 3:
			bits = bits&0x807fffff | (64+bits>>24%128)<<23 // 2^-63 to 2^64
		case 4:
			bits = 0x3fff0000 // rounds up to the next power of two
		case 5:
			bits = 0x3ffeffff
		default:
			bits = bits&0x807fffff | (118+bits>>27%12)<<23
		}
		x[i] = math.Float32frombits(bits)
	}
	return x
}

// nearNumbers returns numbers whose blocks have exponents of at most nearExponent, for kernels that
// need it; some have just that.
func nearNumbers(n int, seed uint64) []float32 {
	x := numbers(n, seed)
	for i, v := range x {
		for math.Abs(float64(v)) >= 1<<59-1<<51 {
			v /= 2
		}
		x[i] = v
	}
	return x
}

// normal returns normally distributed numbers.
func normal(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// strides returns the strides of a (rows, cols) matrix, or of its transpose.
func strides(rows, cols int, transposed bool) (rs, cs int) {
	if transposed {
		return 1, rows
	}
	return cols, 1
}

// The hash is also that of a separate implementation in plain Go.
func TestProductsHaveTheSameBitsOnEveryMachine(t *testing.T) {
	const golden = "b6493b4534ce6f4e"
	products(t, func(t *testing.T, multiply product) {
		h := sha256.New()
		for i, s := range [][3]int{{8, 32, 32}, {33, 70, 257}, {64, 96, 512}, {5, 3, 40}} {
			m, n, k := s[0], s[1], s[2]
			for form := range 8 {
				a, b, c := numbers(m*k, uint64(form+100*i)), numbers(k*n, uint64(form+100*i+50)), numbers(m*n, uint64(form))
				ars, acs := strides(m, k, form&1 != 0)
				brs, bcs := strides(k, n, form&2 != 0)
				multiply(m, n, k, a, ars, acs, b, brs, bcs, c, n, form&4 != 0)
				binary.Write(h, binary.LittleEndian, c)
			}
		}
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != golden {
			t.Errorf("the hash is %s, not %s", got, golden)
		}
	})
}

func TestEveryKernelComputesTheDefinition(t *testing.T) {
	shapes := [][3]int{{1, 1, 1}, {6, 32, 32}, {8, 32, 31}, {64, 64, 256}, {7, 33, 50}, {70, 17, 129}, {130, 530, 300}, {16, 40, 4200}, {49, 545, 96}, {48, 64, 4096}}
	if testing.Short() {
		shapes = shapes[:6]
	}
	type sample struct{ a, b, c, want []float32 }
	samples := map[string]sample{}
	products(t, func(t *testing.T, multiply product) {
		for i, s := range shapes {
			m, n, k := s[0], s[1], s[2]
			for form := range 8 {
				name := fmt.Sprint(s, form)
				numbers := numbers
				if i%2 == 1 {
					numbers = nearNumbers
				}
				x, ok := samples[name]
				ldc, acc := n+form%3, form&4 != 0
				ars, acs := strides(m, k, form&1 != 0)
				brs, bcs := strides(k, n, form&2 != 0)
				if !ok {
					x = sample{a: numbers(m*k, uint64(form)), b: numbers(k*n, uint64(form+8)), c: numbers(m*ldc, uint64(form+16))}
					x.want = slices.Clone(x.c)
					Gemm(m, n, k, x.a, ars, acs, x.b, brs, bcs, x.want, ldc, acc)
					samples[name] = x
				}
				got := slices.Clone(x.c)
				multiply(m, n, k, x.a, ars, acs, x.b, brs, bcs, got, ldc, acc)
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(x.want[i]) {
						t.Fatalf("%v, form %d: c[%d,%d] = %g, want %g", s, form, i/ldc, i%ldc, got[i], x.want[i])
					}
				}
			}
		}
	})
}

// What is no number, or too large, makes NaN of what it is multiplied by and of nothing else.
func TestABlockThatIsNoNumberSpoilsItsRowOrColumn(t *testing.T) {
	const m, n, k = 50, 70, 100
	products(t, func(t *testing.T, multiply product) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1 << 70, -math.MaxFloat32} {
			for form := range 8 {
				a, b := make([]float32, m*k), make([]float32, k*n)
				for i := range a {
					a[i] = 1
				}
				for i := range b {
					b[i] = 1
				}
				ars, acs := strides(m, k, form&1 != 0)
				brs, bcs := strides(k, n, form&2 != 0)
				row, col := 49, 66
				if form&4 != 0 {
					a[row*ars+99*acs] = bad
				} else {
					b[35*brs+col*bcs] = bad
				}
				c := make([]float32, m*n)
				multiply(m, n, k, a, ars, acs, b, brs, bcs, c, n, false)
				for i, x := range c {
					spoiled := i/n == row
					if form&4 == 0 {
						spoiled = i%n == col
					}
					if isNaN := x != x; isNaN != spoiled || !isNaN && x != k {
						t.Fatalf("%g, form %d: c[%d,%d] = %g", bad, form, i/n, i%n, x)
					}
				}
				// The next product does not inherit it.
				clear(a)
				clear(b)
				multiply(m, n, k, a, ars, acs, b, brs, bcs, c, n, false)
				if i := exact.Finite(c); i >= 0 {
					t.Fatalf("%g, form %d: the next product has %g", bad, form, c[i])
				}
			}
		}
	})
}

// What is quantized along both sides at once, a part after the other, in blocks that end with
// sequences,
// is multiplied as the definition multiplies it.
func TestBothSidesAtOnceAreTheDefinitions(t *testing.T) {
	const rows, cols, each, n = 120, 4500, 40, 5
	x, y, z := numbers(rows*cols, 1), numbers(cols*n, 2), numbers(rows*n, 3)
	want, wantT := make([]float32, rows*n), make([]float32, cols*n)
	Gemm(rows, n, cols, x, cols, 1, y, n, 1, want, n, false)
	for from := 0; from < rows; from += each {
		Gemm(cols, n, each, x[from*cols:], 1, cols, z[from*n:], n, 1, wantT, n, true)
	}
	for _, kernel := range exact.Kernels() {
		pool := exact.NewPoolOf(2, kernel)
		m := NewMultiplier(pool)
		var a, at Left
		var b, bt Packed
		got, gotT := make([]float32, rows*n), make([]float32, cols*n)
		m.Pack(&b, n, cols, cols, y, n, 1)
		m.Quantize(rows, each, nil, Sink{X: x, Cols: cols, Stride: cols, Rows: &a, Columns: &at}, Sink{X: z, Cols: n, Stride: n, Right: &bt})
		m.Multiply(&a, &b, 0, Blocks(cols, cols), got, n, false)
		m.Multiply(&at, &bt, 0, 3, gotT, n, false)
		m.Multiply(&at, &bt, 3, 6, gotT, n, true)
		if i := different(got, want); i >= 0 {
			t.Errorf("%s: element %d is %g, want %g", kernel.Name(), i, got[i], want[i])
		}
		if i := different(gotT, wantT); i >= 0 {
			t.Errorf("%s: element %d of the transpose is %g, want %g", kernel.Name(), i, gotT[i], wantT[i])
		}
		pool.Close()
	}
}

// different returns the index of the first element that differs in its bits, or -1.
func different(x, y []float32) int {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return i
		}
	}
	return -1
}

// Products of one block, of the sizes of tiles, equal the definition with every kernel.
func TestAProductOfOneBlockIsTheDefinitions(t *testing.T) {
	for _, kernel := range exact.Kernels() {
		w := exact.NewWorker(kernel)
		for i, s := range [][3]int{{32, 32, 32}, {32, 32, 31}, {1, 1, 1}, {7, 30, 32}, {32, 5, 9}, {3, 4, 0}} {
			for form := range 16 {
				m, n, k := s[0], s[1], s[2]
				a, b, c := numbers(m*k, uint64(form+100*i)), numbers(k*n, uint64(form+50)), numbers(m*n, 3)
				if form&8 != 0 && k > 0 {
					a[len(a)/2], b[len(b)/3] = float32(math.NaN()), 1<<70
				}
				ars, acs := strides(m, k, form&1 != 0)
				brs, bcs := strides(k, n, form&2 != 0)
				want := slices.Clone(c)
				Gemm(m, n, k, a, ars, acs, b, brs, bcs, want, n, form&4 != 0)
				GemmOn(w, m, n, k, a, ars, acs, b, brs, bcs, c, n, form&4 != 0)
				for i := range c {
					if math.Float32bits(c[i]) != math.Float32bits(want[i]) && (c[i] == c[i] || want[i] == want[i]) {
						t.Fatalf("%s, %v, form %d: element %d is %g, want %g", kernel.Name(), s, form, i, c[i], want[i])
					}
				}
			}
		}
	}
}

func TestEightBitsAreCloseToBinary32(t *testing.T) {
	const m, n, k = 64, 64, 512
	a, b := normal(m*k, 3), normal(k*n, 4)
	want, got := make([]float32, m*n), make([]float32, m*n)
	exact.Gemm(nil, m, n, k, a, k, 1, b, n, 1, want, n, false)
	Gemm(m, n, k, a, k, 1, b, n, 1, got, n, false)
	var difference, size float64
	for i := range want {
		difference += math.Pow(float64(want[i]-got[i]), 2)
		size += math.Pow(float64(want[i]), 2)
	}
	// A uniform error of a step of 1/64 to 1/127 of the greatest of 32 normal numbers, twice.
	if relative := math.Sqrt(difference / size); relative > 0.013 || relative < 0.004 {
		t.Errorf("the relative error of a product of normal numbers is %.4f", relative)
	}
}

func TestAProductWithoutDepthIsZeroOrC(t *testing.T) {
	products(t, func(t *testing.T, multiply product) {
		for _, acc := range []bool{false, true} {
			c := []float32{1, 2, 3, 4}
			multiply(2, 2, 0, nil, 0, 1, nil, 1, 0, c, 2, acc)
			if want := []float32{0, 0, 0, 0}; !acc && !slices.Equal(c, want) || acc && !slices.Equal(c, []float32{1, 2, 3, 4}) {
				t.Errorf("acc %v: %v", acc, c)
			}
		}
	})
}

func TestQuantumRoundsToEven(t *testing.T) {
	for x, want := range map[float32]int32{0: 0, 0.5: 0, 1.5: 2, 2.5: 2, -0.5: 0, -1.5: -2, 126.5: 126, 127.49: 127, -127.49: -127, 1e-40: 0} {
		if got := quantum(x, 1); got != want {
			t.Errorf("%g becomes %d, want %d", x, got, want)
		}
	}
}

func TestGeneratedFilesAreWhatTheGeneratorWrites(t *testing.T) {
	for name, file := range map[string]string{"amd64": "kernels_amd64.s", "amd64.go": "kernels_amd64.go", "arm64": "kernels_arm64.s", "arm64.go": "kernels_arm64.go"} {
		want, err := exec.Command("go", "run", "./internal/gen", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the generator writes: run go generate", file)
		}
	}
}

func FuzzMultiplier(f *testing.F) {
	f.Add(uint8(7), uint8(33), uint8(50), uint8(5), uint64(1), uint32(0x7fc00000))
	f.Add(uint8(47), uint8(63), uint8(250), uint8(5), uint64(2), uint32(1))
	var multipliers []*Multiplier
	for _, k := range exact.Kernels() {
		for _, kernel := range testedOf(k) {
			m := NewMultiplier(exact.NewPoolOf(1, k))
			m.kernel = kernel
			multipliers = append(multipliers, m)
		}
	}
	f.Fuzz(func(t *testing.T, rows, cols, depth, form uint8, seed uint64, bits uint32) {
		m, n, k := int(rows%70)+1, int(cols%80)+1, int(depth)+1
		numbers := numbers
		if seed%2 == 0 {
			numbers = nearNumbers
		}
		a, b, c := numbers(m*k, seed), numbers(k*n, seed+1), numbers(m*n, seed+2)
		a[seed%uint64(len(a))] = math.Float32frombits(bits)
		ars, acs := strides(m, k, form&1 != 0)
		brs, bcs := strides(k, n, form&2 != 0)
		want := slices.Clone(c)
		Gemm(m, n, k, a, ars, acs, b, brs, bcs, want, n, form&4 != 0)
		for _, multiplier := range multipliers {
			got := slices.Clone(c)
			multiplier.Gemm(m, n, k, a, ars, acs, b, brs, bcs, got, n, form&4 != 0)
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
					t.Fatalf("%s: c[%d,%d] = %g, want %g", multiplier.Kernel(), i/n, i%n, got[i], want[i])
				}
			}
		}
	})
}

// spent returns the processor time that this program has taken, where the system tells it, or the
// time of the clock.
var spent = func() time.Duration { return time.Since(began) }

var began = time.Now()

// BenchmarkGemm compares with binary32 on the same kernel of package exact, quantizing included. The
// rate is that of the product that took the least processor time, as on an idle machine.
func BenchmarkGemm(b *testing.B) {
	for _, k := range exact.Kernels() {
		if k.Name() == "plain" {
			continue
		}
		pool := exact.NewPoolOf(1, k)
		multiplier := NewMultiplier(pool)
		for _, s := range []struct {
			name    string
			m, n, k int
			tA, tB  bool
		}{
			{"square", 1024, 1024, 1024, false, true}, {"square", 2048, 2048, 2048, false, true},
			{"forward", 2048, 2816, 512, false, true}, {"input", 2048, 512, 2816, false, false}, {"weight", 2816, 512, 2048, true, false},
		} {
			x, y, c := normal(s.m*s.k, 1), normal(s.k*s.n, 2), make([]float32, s.m*s.n)
			ars, acs := strides(s.m, s.k, s.tA)
			brs, bcs := strides(s.k, s.n, s.tB)
			run := func(name string, multiply func()) {
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d/%s", k.Name(), s.name, s.m, s.n, s.k, name), func(b *testing.B) {
					least := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := spent()
						multiply()
						least = min(least, spent()-start)
					}
					b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)/float64(least.Nanoseconds()), "GOP/s")
				})
			}
			run("exact", func() { exact.Gemm(pool, s.m, s.n, s.k, x, ars, acs, y, brs, bcs, c, s.n, false) })
			for _, multiplier.kernel = range testedOf(k) {
				run(multiplier.Kernel(), func() { multiplier.Gemm(s.m, s.n, s.k, x, ars, acs, y, brs, bcs, c, s.n, false) })
			}
		}
		pool.Close()
	}
}
