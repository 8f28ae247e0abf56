package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigFMA is x*y + z by arbitrary precision: 700 bits hold any product and sum of finite binary32
// exactly.
func bigFMA(x, y, z float32) float32 {
	p := new(big.Float).SetPrec(700).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
	p.Add(p, big.NewFloat(float64(z)))
	f, _ := p.Float32()
	if f == 0 && p.Sign() == 0 {
		// An exact zero: big.Float follows IEEE's signs only for its own operands, so ask binary64,
		// in which the product is exact.
		return float32(float64(x)*float64(y) + float64(z))
	}
	return f
}

func TestFMA32RoundsOnce(t *testing.T) {
	check := func(x, y, z float32) {
		if got, want := FMA32(x, y, z), bigFMA(x, y, z); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
	}
	for _, x := range hostile {
		for _, y := range hostile {
			for _, z := range hostile {
				check(x, y, z)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		x, y := float32(r.NormFloat64()), float32(r.NormFloat64())
		check(x, y, float32(math.Ldexp(r.NormFloat64(), r.IntN(60)-30)))
	}
	for range 50000 {
		v := random(r, 3, 1)
		check(v[0], v[1], v[2])
	}
}

// The short way and the long way agree; the long way alone is right too.
func TestFMA32GoesTheLongWayWhereItMust(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 300000 {
		v := random(r, 3, r.IntN(4))
		if got, want := FMA32(v[0], v[1], v[2]), fmaToOdd(v[0], v[1], v[2]); !same(got, want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, the long way gives %x", v[0], v[1], v[2], got, want)
		}
	}
}

// The case that rounding twice gets wrong: the sum lies so close to the midpoint of two binary32
// that binary64 rounds it onto the midpoint.
func TestFMA32IsNotRoundedTwice(t *testing.T) {
	// The product is (2^46 - 1)·2^-70 = 2^-24 - 2^-70, the midpoint above z is z + 2^-24.
	x, y, z := float32(0x1.000002p-12), float32(0x1.fffffcp-13), float32(0x1.000002p0)
	if got := FMA32(x, y, z); got != z || got != bigFMA(x, y, z) {
		t.Errorf("FMA32 = %x, want %x", got, z)
	}
	if twice := float32(math.FMA(float64(x), float64(y), float64(z))); twice == z {
		t.Error("the example no longer shows what rounding twice does")
	}
	a, b, c := []float32{x}, []float32{y}, []float32{z}
	for _, kernel := range Kernels() {
		c[0] = z
		if NewWorker(kernel).Gemm(1, 1, 1, a, 1, 1, b, 1, 1, c, 1, true); c[0] != z {
			t.Errorf("%s: %x, want %x", kernel.Name(), c[0], z)
		}
	}
}

func TestFMA32OfInfinitiesAndNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct{ x, y, z, want float32 }{
		{inf, 1, 1, inf}, {inf, -1, 1, -inf}, {1, 1, inf, inf}, {1, 1, -inf, -inf}, {inf, 1, -inf, nan}, {inf, 0, 1, nan},
		{nan, 1, 1, nan}, {1, nan, 1, nan}, {1, 1, nan, nan}, {math.MaxFloat32, 2, 0, inf}, {math.MaxFloat32, 2, -math.MaxFloat32, math.MaxFloat32},
	} {
		if got := FMA32(c.x, c.y, c.z); !same(got, c.want) {
			t.Errorf("FMA32(%g, %g, %g) = %g, want %g", c.x, c.y, c.z, got, c.want)
		}
	}
}
