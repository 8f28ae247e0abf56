package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// Sums of products with infinities and NaN, of both signs of zero, added and not, on all layouts.
func TestProductsAreThoseOfTheProcessor(t *testing.T) {
	k := kernels(t)
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct{ m, n, depth int }{{1, 1, 1}, {3, 5, 7}, {65, 130, 33}, {130, 129, 20}} {
		for variant := range 4 {
			for _, hostile := range []bool{false, true} {
				a, b, out := numbers(r, c.m*c.depth, hostile), numbers(r, c.depth*c.n, hostile), numbers(r, c.m*c.n, hostile)
				if hostile {
					a[r.IntN(len(a))], b[r.IntN(len(b))] = float32(math.Inf(1)), float32(math.NaN())
				}
				at, bt, to := put(t, k, a), put(t, k, b), put(t, k, out)
				x, y := Rows(at, c.depth), Rows(bt, c.n)
				if variant&1 != 0 {
					x = Columns(at, c.m)
				}
				if variant&2 != 0 {
					y = Columns(bt, c.depth)
				}
				add := variant != 1
				run(t, k, func(s *gpu.Commands) { k.gemm(s, c.m >= 128, c.m, c.n, c.depth, x, y, to, c.n, add, Full, One) })
				exact.Gemm(nil, c.m, c.n, c.depth, a, x.Row, x.Column, b, y.Row, y.Column, out, c.n, add)
				compare(t, fmt.Sprintf("%v, variant %d, hostile %v", c, variant, hostile), get(t, to), out)
			}
		}
	}
}

// Where subnormals are flushed, only tiles in which a sum is subnormal, or a factor is large,
// are computed in integers: small factors, as the gradients of attention have, are scaled.
func TestTilesThatNeedIntegers(t *testing.T) {
	k := kernels(t)
	if k.Mode != Guarded {
		t.Skip("in this mode tiles have no flags")
	}
	const m, n, depth = 130, 40, 50
	r := rand.New(rand.NewPCG(8, 8))
	for _, c := range []struct {
		name     string
		change   func(a, b, out []float32)
		integers bool
	}{
		{"ordinary", func(a, b, out []float32) {}, false},
		{"small", func(a, b, out []float32) {
			for i := range a {
				a[i] *= 0x1p-70
			}
			for i := range b {
				b[i] *= 0x1p-20
			}
			clear(out)
		}, false},
		{"a subnormal factor", func(a, b, out []float32) { a[7], b[9] = 0x1p-140, -0x1.8p-130 }, false},
		{"a small sum", func(a, b, out []float32) {
			clear(a[:depth])
			out[3] = 0x1p-120
		}, false},
		{"a sum that becomes subnormal", func(a, b, out []float32) {
			for i := range a {
				a[i] *= 0x1p-90
			}
			for i := range b {
				b[i] *= 0x1p-40
			}
			clear(out)
		}, true},
		{"a subnormal sum", func(a, b, out []float32) { out[5] = 0x1p-127 }, true},
		{"small and large", func(a, b, out []float32) { a[0], a[1], b[n] = 0x1p-110, 0x1p40, 0x1p40 }, true},
	} {
		for _, large := range []bool{false, true} {
			a, b, out := numbers(r, m*depth, false), numbers(r, depth*n, false), numbers(r, m*n, false)
			c.change(a, b, out)
			at, bt, to := put(t, k, a), put(t, k, b), put(t, k, out)
			run(t, k, func(s *gpu.Commands) {
				k.gemm(s, large, m, n, depth, Rows(at, depth), Rows(bt, n), to, n, true, Full, One)
			})
			exact.Gemm(nil, m, n, depth, a, depth, 1, b, n, 1, out, n, true)
			compare(t, c.name, get(t, to), out)
			flags := make([]uint32, 3)
			if err := gpu.Read(flags, k.flags); err != nil {
				t.Fatal(err)
			}
			if large {
				flags = flags[:2]
			}
			if got := slices.Contains(flags, 1); got != c.integers {
				t.Errorf("%s, large %v: flags %v, want integers %v", c.name, large, flags, c.integers)
			}
		}
	}
}

// Products in 8 bits with everything that package exact8 treats otherwise: infinities and NaN,
// magnitudes at which a product overflows and a sum does not, or makes nothing of a small sum
// unless it is 0, sums that begin with subnormals, blocks that end with a sequence.
func TestProductsInEightBitsAreThoseOfTheProcessor(t *testing.T) {
	k := kernels(t)
	testEight(t, k, "")
	for name, mode := range map[string]Mode{"gemm8": k.Mode, "gemm8_dot": k.Mode | Guarded} {
		if name == "gemm8_dot" && !k.Device.DotProducts() {
			continue
		}
		other := *k
		for each, to := range map[uint32]**gpu.Kernel{4: &other.small8, 8: &other.large8} {
			made, err := k.Device.NewKernel(name, shader.SPIRV(name), uint32(mode), each)
			if err != nil {
				t.Fatal(err)
			}
			*to = made
		}
		testEight(t, &other, name+": ")
	}
}

func testEight(t *testing.T, k *Kernels, name string) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, c := range []struct{ m, n, depth, each int }{{1, 1, 1, 1}, {3, 5, 7, 7}, {65, 130, 99, 33}, {130, 129, 64, 64}} {
		for variant := range 4 {
			for _, kind := range []string{"ordinary", "hostile", "large", "apart"} {
				a, b, out := numbers(r, c.m*c.depth, kind == "hostile"), numbers(r, c.depth*c.n, kind == "hostile"), numbers(r, c.m*c.n, kind == "hostile")
				x, y := Rows(gpu.Words{}, c.depth), Rows(gpu.Words{}, c.depth)
				if variant&1 != 0 {
					x = Columns(gpu.Words{}, c.m)
				}
				if variant&2 != 0 {
					y = Columns(gpu.Words{}, c.n)
				}
				switch kind {
				case "hostile":
					a[r.IntN(len(a))], b[r.IntN(len(b))] = float32(math.Inf(1)), float32(math.NaN())
				case "large", "apart":
					for i := range a {
						a[i] *= 0x1p60
						if p := i / x.Column % c.depth; kind == "apart" && p%2 == 0 {
							a[i] = 0
						}
					}
					for i := range b {
						b[i] *= 0x1p60
						if p := i / y.Column % c.depth; kind == "apart" && p%2 == 1 {
							b[i] = 0
						}
					}
					for i := range out {
						size := math.MaxFloat32
						if kind == "apart" {
							size = 0x1.fffffep-122
						}
						out[i] = float32(math.Copysign(size, float64(out[i])))
					}
				}
				x.At, y.At = put(t, k, a), put(t, k, b)
				to := put(t, k, out)
				add := variant != 1
				blocks := exact8.Blocks(c.depth, c.each)
				left, right := put(t, k, make([]uint32, PackedLen(c.m, blocks))), put(t, k, make([]uint32, PackedLen(c.n, blocks)))
				run(t, k, func(s *gpu.Commands) {
					k.Gemm8(s, k.Pack(s, left, x, c.m, c.depth, c.each), k.Pack(s, right, y, c.n, c.depth, c.each), to, c.n, add)
				})
				for from := 0; from < c.depth; from += c.each {
					exact8.Gemm(c.m, c.n, c.each, a[from*x.Column:], x.Row, x.Column, b[from*y.Column:], y.Column, y.Row, out, c.n, add || from > 0)
				}
				compare(t, fmt.Sprintf("%s%v, variant %d, %s", name, c, variant, kind), get(t, to), out)
			}
		}
	}
}

// A device's own products of matrices compute ordinary numbers, and leave others to the other kernel.
func TestMatricesOfBytes(t *testing.T) {
	k := kernels(t)
	if k.matrix8 == nil {
		t.Skip("the device multiplies no matrices of bytes")
	}
	const m, n, depth = 140, 150, 100
	r := rand.New(rand.NewPCG(9, 9))
	for _, c := range []struct {
		name   string
		change func(a, out []float32)
		left   bool
	}{
		{"ordinary", func(a, out []float32) {}, false},
		{"large", func(a, out []float32) { a[5] = 0x1p60 }, false},
		{"a product that may overflow", func(a, out []float32) { a[5] = 0x1p69 }, true},
		{"no number", func(a, out []float32) { a[5] = float32(math.Inf(-1)) }, true},
		{"a small sum", func(a, out []float32) { out[7] = 0x1p-110 }, k.Mode&Guarded != 0},
	} {
		a, b, out := numbers(r, m*depth, false), numbers(r, n*depth, false), numbers(r, m*n, false)
		b[3] = 0x1p55
		c.change(a, out)
		blocks := exact8.Blocks(depth, depth)
		at, bt, to := put(t, k, a), put(t, k, b), put(t, k, out)
		left, right := put(t, k, make([]uint32, PackedLen(m, blocks))), put(t, k, make([]uint32, PackedLen(n, blocks)))
		run(t, k, func(s *gpu.Commands) {
			x := k.Pack(s, left, Rows(at, depth), m, depth, depth)
			k.Gemm8(s, x, k.Pack(s, right, Rows(bt, depth), n, depth, depth), to, n, true)
		})
		exact8.Gemm(m, n, depth, a, depth, 1, b, 1, depth, out, n, true)
		compare(t, c.name, get(t, to), out)
		flags := make([]uint32, 4)
		if err := gpu.Read(flags, k.flags); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(flags, 1); got != c.left {
			t.Errorf("%s: flags %v, want a tile left: %v", c.name, flags, c.left)
		}
	}
}

// Products as those of a step of 124m with 4,096 tokens, in the kernels among which Gemm and Gemm8
// choose. Of implementations on processors it takes small ones.
func BenchmarkProducts(b *testing.B) {
	k := kernels(b)
	unit := 1024
	if k.Device.Kind == gpu.Processor {
		unit = 64
	}
	for _, s := range []struct {
		name        string
		m, n, depth int
	}{{"wide", 4 * unit, 4 * unit, unit}, {"narrow", 4 * unit, 3 * unit / 4, 2 * unit}, {"deep", 3 * unit / 4, 3 * unit / 4, 4 * unit}} {
		r := rand.New(rand.NewPCG(6, 6))
		blocks := exact8.Blocks(s.depth, s.depth)
		at, bt, to := put(b, k, numbers(r, s.m*s.depth, false)), put(b, k, numbers(r, s.n*s.depth, false)), put(b, k, make([]float32, s.m*s.n))
		left, right := put(b, k, make([]uint32, PackedLen(s.m, blocks))), put(b, k, make([]uint32, PackedLen(s.n, blocks)))
		tiles := func(large bool) func(c *gpu.Commands) {
			return func(c *gpu.Commands) {
				k.gemm(c, large, s.m, s.n, s.depth, Rows(at, s.depth), Columns(bt, s.depth), to, s.n, false, Full, One)
			}
		}
		var x, y Packed
		run(b, k, func(c *gpu.Commands) {
			x, y = k.Pack(c, left, Rows(at, s.depth), s.m, s.depth, s.depth), k.Pack(c, right, Rows(bt, s.depth), s.n, s.depth, s.depth)
		})
		bytes := func(k Kernels) func(c *gpu.Commands) {
			return func(c *gpu.Commands) { k.Gemm8(c, x, y, to, s.n, false) }
		}
		dots := *k
		dots.matrix8 = nil
		for _, way := range []struct {
			name   string
			record func(c *gpu.Commands)
		}{{"tiles of 64", tiles(false)}, {"tiles of 128", tiles(true)}, {"8 bits", bytes(*k)}, {"8 bits by dot products", bytes(dots)}} {
			const each = 10 // in one submission
			commands, err := k.Device.Record(func(c *gpu.Commands) {
				for range each {
					way.record(c)
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(s.name+"/"+way.name, func(b *testing.B) {
				for b.Loop() {
					if err := commands.Run(); err != nil {
						b.Fatal(err)
					}
				}
				operations := 2 * float64(s.m) * float64(s.n) * float64(s.depth) * each * float64(b.N)
				b.ReportMetric(operations/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
			commands.Free()
		}
	}
}
