package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
)

// Arbitrary-precision series, in bigPrecision bits: what the functions are measured against. They
// share nothing with the code they test.

const bigPrecision = 240

func bigNew(x float64) *big.Float { return new(big.Float).SetPrec(bigPrecision).SetFloat64(x) }

func bigOp() *big.Float { return new(big.Float).SetPrec(bigPrecision) }

// bigExp is e^x: the series at x/2^k, squared k times.
func bigExp(x float64) *big.Float {
	const k = 12
	r := bigOp().SetMantExp(bigNew(x), -k)
	sum, term := bigNew(1), bigNew(1)
	for i := 1; term.Sign() != 0 && (term.MantExp(nil) > -bigPrecision); i++ {
		term.Quo(term.Mul(term, r), bigNew(float64(i)))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigArtanh2 is 2·artanh(s).
func bigArtanh2(s *big.Float) *big.Float {
	sum, power, square := bigOp().Set(s), bigOp().Set(s), bigOp().Mul(s, s)
	for i := 3; power.Sign() != 0 && power.MantExp(nil) > s.MantExp(nil)-bigPrecision; i += 2 {
		power.Mul(power, square)
		sum.Add(sum, bigOp().Quo(power, bigNew(float64(i))))
	}
	return sum.Mul(sum, bigNew(2))
}

var bigLn2 = sync.OnceValue(func() *big.Float { return bigArtanh2(bigOp().Quo(bigNew(1), bigNew(3))) })

// bigLog is ln x for x > 0.
func bigLog(x float64) *big.Float {
	m := bigOp()
	e := bigNew(x).MantExp(m) // x = m·2^e, ½ ≤ m < 1
	s := bigOp().Quo(bigOp().Sub(m, bigNew(1)), bigOp().Add(m, bigNew(1)))
	if x > 0.6 && x < 1.5 { // no cancellation near 1
		return bigArtanh2(bigOp().Quo(bigOp().Sub(bigNew(x), bigNew(1)), bigOp().Add(bigNew(x), bigNew(1))))
	}
	return bigOp().Add(bigArtanh2(s), bigOp().Mul(bigNew(float64(e)), bigLn2()))
}

// bigPi is π by Machin's formula, 16·artan(1/5) - 4·artan(1/239).
var bigPi = sync.OnceValue(func() *big.Float {
	const precision = 600
	artan := func(n float64) *big.Float {
		x := new(big.Float).SetPrec(precision).Quo(big.NewFloat(1).SetPrec(precision), big.NewFloat(n))
		sum, power := new(big.Float).Copy(x), new(big.Float).Copy(x)
		square := new(big.Float).SetPrec(precision).Mul(x, x)
		for i := 3; power.MantExp(nil) > -precision; i += 2 {
			power.Neg(power.Mul(power, square))
			sum.Add(sum, new(big.Float).SetPrec(precision).Quo(power, big.NewFloat(float64(i))))
		}
		return sum
	}
	a, b := artan(5), artan(239)
	return a.Sub(a.Mul(a, big.NewFloat(16)), b.Mul(b, big.NewFloat(4)))
})

// bigSin is the sine of x plus shift quarter turns.
func bigSin(x float64, shift int64) *big.Float {
	const precision = 600
	half := new(big.Float).SetPrec(precision).Quo(bigPi(), big.NewFloat(2))
	angle := new(big.Float).SetPrec(precision).SetFloat64(x)
	angle.Add(angle, new(big.Float).SetPrec(precision).Mul(half, new(big.Float).SetInt64(shift)))
	turns, _ := new(big.Float).SetPrec(precision).Quo(angle, new(big.Float).SetPrec(precision).Mul(bigPi(), big.NewFloat(2))).Int(nil)
	angle.Sub(angle, new(big.Float).SetPrec(precision).Mul(new(big.Float).SetPrec(precision).Mul(bigPi(), big.NewFloat(2)), new(big.Float).SetInt(turns)))
	sum, term := bigOp().Set(angle), bigOp().Set(angle)
	square := bigOp().Mul(sum, sum)
	for i := 2; term.Sign() != 0 && term.MantExp(nil) > -2*bigPrecision; i += 2 {
		term.Neg(term.Quo(term.Mul(term, square), bigNew(float64(i*(i+1)))))
		sum.Add(sum, term)
	}
	return sum
}

// ulps is the distance of got from want in units of the last place at want.
func ulps(got float32, want *big.Float) float64 {
	if want.Sign() == 0 {
		if got == 0 {
			return 0
		}
		return math.Inf(1)
	}
	if math.IsInf(float64(got), 0) {
		got = float32(math.Copysign(math.MaxFloat32, float64(got))) // the true result may round to infinity; then MaxFloat32 is near
	}
	unit := max(want.MantExp(nil)-24, -149)
	d := bigOp().Sub(bigNew(float64(got)), want)
	f, _ := d.SetMantExp(d, -unit).Float64()
	return math.Abs(f)
}

// measured are the functions with their stated errors, and inputs that cover their range.
var measured = []struct {
	name  string
	f     func(float32) float32
	big   func(float64) *big.Float
	bound float64
	// low and high bound the magnitudes of the dense inputs.
	low, high float32
	negative  bool
}{
	{"Exp", Exp, bigExp, 1.0, 1e-9, 87.3, true},
	{"Exp near the least result", func(x float32) float32 { return Exp(-x) }, func(x float64) *big.Float { return bigExp(-x) }, 1.1, 87.3, 110, false},
	{"Exp near the greatest result", Exp, bigExp, 1.0, 87, 88.7228, false},
	{"Sigmoid", Sigmoid, func(x float64) *big.Float {
		return bigOp().Quo(bigNew(1), bigOp().Add(bigNew(1), bigExp(-x)))
	}, 2.5, 1e-9, 100, true},
	{"Silu", Silu, func(x float64) *big.Float {
		return bigOp().Quo(bigNew(x), bigOp().Add(bigNew(1), bigExp(-x)))
	}, 3.5, 1e-9, 85, true},
	{"Log", Log, bigLog, 0.501, math.SmallestNonzeroFloat32, math.MaxFloat32, false},
	{"Log near 1", Log, bigLog, 0.501, 0.9, 1.1, false},
	{"Rsqrt", Rsqrt, func(x float64) *big.Float { return bigOp().Quo(bigNew(1), bigOp().Sqrt(bigNew(x))) }, 0.501, math.SmallestNonzeroFloat32,
		math.MaxFloat32, false},
	{"Sqrt", Sqrt, func(x float64) *big.Float { return bigOp().Sqrt(bigNew(x)) }, 0.5, math.SmallestNonzeroFloat32, math.MaxFloat32, false},
	{"Sin", Sin, func(x float64) *big.Float { return bigSin(x, 0) }, 0.501, 1e-30, math.MaxFloat32, true},
	{"Cos", Cos, func(x float64) *big.Float { return bigSin(x, 1) }, 0.501, 1e-30, math.MaxFloat32, true},
	{"Sin of an angle", Sin, func(x float64) *big.Float { return bigSin(x, 0) }, 0.501, 0.1, 10000, true},
	{"Cos of an angle", Cos, func(x float64) *big.Float { return bigSin(x, 1) }, 0.501, 0.1, 10000, true},
}

func TestFunctionsAreWithinTheirErrors(t *testing.T) {
	for _, m := range measured {
		t.Run(m.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			low, high := math.Float32bits(m.low), math.Float32bits(m.high)
			worst, at := 0.0, float32(0)
			for i := range 4000 {
				x := math.Float32frombits(low + r.Uint32N(high-low+1)) // evenly over the representable numbers
				if i%2 == 1 {
					x = m.low + (m.high-m.low)*r.Float32() // evenly over the range
				}
				if m.negative && r.IntN(2) == 0 {
					x = -x
				}
				if e := ulps(m.f(x), m.big(float64(x))); e > worst {
					worst, at = e, x
				}
			}
			t.Logf("largest error %.4f ulp, at %x", worst, at)
			if worst > m.bound {
				t.Errorf("%s(%x) = %x is off by %.4f ulp, stated are %g", m.name, at, m.f(at), worst, m.bound)
			}
		})
	}
}

// Multiples of π/2, where sine or cosine nearly vanish, and the binary32 that comes closest to one
// of all: 16367173·2^72.
func TestSineAndCosineNearTheirZeros(t *testing.T) {
	inputs := []float32{16367173 * 0x1p72, 0x1.6ac5b2p102}
	for i := 1; i < 3000; i++ {
		inputs = append(inputs, float32(float64(i)*(math.Pi/2)))
	}
	for _, x := range inputs {
		if e := ulps(Sin(x), bigSin(float64(x), 0)); e > 0.501 {
			t.Errorf("Sin(%x) = %x is off by %.3f ulp", x, Sin(x), e)
		}
		if e := ulps(Cos(-x), bigSin(-float64(x), 1)); e > 0.501 {
			t.Errorf("Cos(%x) = %x is off by %.3f ulp", -x, Cos(-x), e)
		}
	}
}

func TestFunctionsAtTheEdges(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(0)
	negative := float32(math.Copysign(0, -1))
	const tiny = math.SmallestNonzeroFloat32
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want float32
	}{
		{"Exp", Exp, zero, 1}, {"Exp", Exp, negative, 1}, {"Exp", Exp, inf, inf}, {"Exp", Exp, -inf, 0}, {"Exp", Exp, nan, nan},
		{"Exp", Exp, tiny, 1}, {"Exp", Exp, -tiny, 1}, {"Exp", Exp, math.MaxFloat32, inf}, {"Exp", Exp, -math.MaxFloat32, 0},
		{"Exp", Exp, 88.72284, inf}, {"Exp", Exp, -103.97209, 0}, {"Exp", Exp, -103.9, tiny},
		{"Sigmoid", Sigmoid, zero, 0.5}, {"Sigmoid", Sigmoid, negative, 0.5}, {"Sigmoid", Sigmoid, inf, 1}, {"Sigmoid", Sigmoid, -inf, 0},
		{"Sigmoid", Sigmoid, nan, nan}, {"Sigmoid", Sigmoid, 200, 1}, {"Sigmoid", Sigmoid, -200, 0},
		{"Silu", Silu, zero, 0}, {"Silu", Silu, negative, negative}, {"Silu", Silu, inf, inf}, {"Silu", Silu, -inf, nan}, {"Silu", Silu, nan, nan},
		{"Silu", Silu, math.MaxFloat32, math.MaxFloat32},
		{"Log", Log, 1, 0}, {"Log", Log, zero, -inf}, {"Log", Log, negative, -inf}, {"Log", Log, -1, nan}, {"Log", Log, -tiny, nan},
		{"Log", Log, inf, inf}, {"Log", Log, -inf, nan}, {"Log", Log, nan, nan},
		{"Rsqrt", Rsqrt, 4, 0.5}, {"Rsqrt", Rsqrt, zero, inf}, {"Rsqrt", Rsqrt, negative, -inf}, {"Rsqrt", Rsqrt, -1, nan}, {"Rsqrt", Rsqrt, inf, 0},
		{"Rsqrt", Rsqrt, nan, nan},
		{"Sin", Sin, zero, 0}, {"Sin", Sin, negative, negative}, {"Sin", Sin, tiny, tiny}, {"Sin", Sin, inf, nan}, {"Sin", Sin, -inf, nan},
		{"Sin", Sin, nan, nan},
		{"Cos", Cos, zero, 1}, {"Cos", Cos, negative, 1}, {"Cos", Cos, tiny, 1}, {"Cos", Cos, inf, nan}, {"Cos", Cos, nan, nan},
	} {
		if got := c.f(c.x); !same(got, c.want) {
			t.Errorf("%s(%g) = %g, want %g", c.name, c.x, got, c.want)
		}
	}
}

func TestPowIsWithinItsError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		x, y := math.Exp(20*r.Float64()-5), 10*r.Float64()-5
		ln := bigLog(x)
		f, _ := ln.Mul(ln, bigNew(y)).Float64()
		want := bigExpOf(ln)
		got := Pow(x, y)
		d := bigOp().Sub(bigNew(got), want)
		e, _ := d.Quo(d, want).Float64()
		if bound := (4 + math.Abs(f)) * 0x1p-52; math.Abs(e) > bound {
			t.Errorf("Pow(%g, %g) = %g is off by %g of it, stated are %g", x, y, got, e, bound)
		}
	}
	if Pow(10000, 0) != 1 || Pow(1, 5) != 1 || !math.IsNaN(Pow(-1, 2)) || !math.IsNaN(Pow(0, 1)) || Pow(10, 400) != math.Inf(1) || Pow(10, -400) != 0 {
		t.Error("Pow at its edges")
	}
}

// bigExpOf is e^x for a small enough x of full precision.
func bigExpOf(x *big.Float) *big.Float {
	f, _ := x.Float64()
	rest := bigOp().Sub(x, bigNew(f))
	return bigOp().Mul(bigExp(f), bigOp().Add(bigNew(1), rest))
}

func TestFiniteFindsTheFirst(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testFinite(t, Finite) })
	for _, kernel := range Kernels() {
		t.Run(kernel.Name(), func(t *testing.T) { testFinite(t, NewWorker(kernel).Finite) })
	}
}

func testFinite(t *testing.T, finite func(x []float32) int) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		x := random(r, n, 2)
		if got := finite(x); got != -1 {
			t.Errorf("Finite of %d finite floats = %d", n, got)
		}
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0x7f800001)} {
			for i := 0; i < n; i += 1 + n/7 {
				old := x[i]
				x[i] = bad
				if got := finite(x); got != i {
					t.Errorf("Finite = %d, want %d of %d", got, i, n)
				}
				x[i] = old
			}
		}
	}
}

// The order of a sum, written out for 35 elements.
func TestSumAddsInItsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := random(r, 35, 0)
	var l [16]float32
	for i := range l {
		l[i] = (0 + x[i]) + x[i+16]
	}
	for i := range 3 {
		l[i] = l[i] + x[i+32]
	}
	a := ((l[0] + l[8]) + (l[4] + l[12])) + ((l[2] + l[10]) + (l[6] + l[14]))
	b := ((l[1] + l[9]) + (l[5] + l[13])) + ((l[3] + l[11]) + (l[7] + l[15]))
	if got := sum(x); got != a+b {
		t.Errorf("Sum = %x, want %x", got, a+b)
	}
}

// sum returns the sum of x in the order that the package comment defines.
func sum(x []float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%16] += v
	}
	return l.fold()
}
