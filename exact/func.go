package exact

import (
	"math"
	"math/bits"
)

// The functions below are called once a row, or once to fill a table. They compute in binary64,
// rounding each operation, and round to binary32 at the end. That last rounding, 0.5 ulp, is nearly
// all of their error.

// Log returns the natural logarithm of x, within 0.501 ulp. Log(0) is -Inf, Log(x) is NaN for x <
// 0, and Log(+Inf) is +Inf.
func Log(x float32) float32 { return float32(log64(float64(x))) }

// Rsqrt returns 1/√x, within 0.501 ulp. Rsqrt(±0) is ±Inf, Rsqrt(x) is NaN for x < 0, and
// Rsqrt(+Inf) is +0.
func Rsqrt(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) }

// Sqrt returns √x correctly rounded: rounding to binary64 first does not change the result (S.
// Figueroa, "When is double rounding innocuous?", 1995).
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// Sin returns the sine of x radians, within 0.501 ulp for every finite x. Sin(±Inf) is NaN.
func Sin(x float32) float32 {
	if x == 0 {
		return x // keeps the sign of zero
	}
	q, r := quadrant(x)
	return float32(quarter(q, r))
}

// Cos returns the cosine of x radians, within 0.501 ulp for every finite x. Cos(±Inf) is NaN.
func Cos(x float32) float32 {
	q, r := quadrant(x)
	return float32(quarter(q+1, r))
}

// Pow returns x to the power y for x > 0, in binary64, and NaN for any other x. The relative error
// is below (4 + |y·ln x|)·2^-52 for results from 2^-1000 to 2^1000; smaller results are 0 and
// larger ones +Inf. Pow serves the frequencies of rotary embeddings, and schedules.
func Pow(x, y float64) float64 {
	if !(x > 0) {
		return math.NaN()
	}
	return exp64(float64(y * log64(x)))
}

// log64 returns ln x with a relative error below 2^-51. It writes x = f·2^e with f in [√½, √2), and
// takes ln f = 2·artanh(s) with s = (f-1)/(f+1) as a series.
func log64(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case x != x || math.IsInf(x, 1):
		return x
	}
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = f*2, e-1
	}
	s := (f - 1) / (f + 1)
	z := float64(s * s)
	// |s| ≤ 0.1716, so the first omitted term is below 2^-62 of the sum.
	p := float64(1) / 23
	for k := 21; k > 1; k -= 2 {
		p = float64(p*z) + 1/float64(k)
	}
	// 2s dominates the sum, so it is added last.
	ln := float64(2*s) + float64(float64(2*s)*float64(p*z))
	const (
		hi = 0x1.62e42fee00000p-1 // the first 32 bits of ln 2: its product with an exponent is exact
		lo = 0x1.a39ef35793c76p-33
	)
	return float64(float64(e)*hi) + (ln + float64(float64(e)*lo))
}

// exp64 returns e^x with a relative error below 2^-51 for results from 2^-1000 to 2^1000. It
// returns 0 for smaller results and +Inf for larger ones.
func exp64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x < -1000*math.Ln2:
		return 0
	case x > 1000*math.Ln2:
		return math.Inf(1)
	}
	n := math.RoundToEven(float64(x * math.Log2E))
	const (
		hi = 0x1.62e42fee00000p-1
		lo = 0x1.a39ef35793c76p-33
	)
	r := (x - float64(n*hi)) - float64(n*lo)
	// The series of e^r up to r^15. |r| ≤ 0.3466, so the first omitted term is below 2^-68.
	p := float64(1)
	for k := 15; k > 1; k-- {
		p = float64(p*(r/float64(k))) + 1
	}
	return float64((float64(p*r) + 1) * math.Float64frombits(uint64(int64(n)+1023)<<52))
}

// quadrant writes x as (q + f)·π/2 with an integer q and |f| ≤ ½. It returns q mod 4, and r = f·π/2
// with a relative error below 2^-52. It computes x·2/π in integers, without the bits that
// contribute multiples of 4 or are below 2^-126 (M. Payne and R. Hanek, "Radian reduction for
// trigonometric functions", 1983). No nonzero binary32 is within 2^-33, relative, of a multiple of
// π/2.
func quadrant(x float32) (q uint, r float64) {
	b := math.Float32bits(x)
	exponent := int(b >> 23 & 0xff)
	switch {
	case exponent == 0xff:
		return 0, math.NaN()
	case exponent < 126: // |x| < ½
		return 0, float64(x)
	}
	m, e := uint64(b&(1<<23-1)|1<<23), exponent-150 // |x| = m·2^e
	// 64 zero bits, and the first 256 bits of 2/π after the binary point.
	table := [5]uint64{0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561}
	// The window's first bit, shifted by e, weighs 2; the table's first bit weighs 2^63.
	first := e + 62
	word, shift := first/64, uint(first%64)
	hi := table[word]<<shift | table[word+1]>>1>>(63-shift)
	lo := table[word+1]<<shift | table[word+2]>>1>>(63-shift)
	carry, lo := bits.Mul64(lo, m)
	hi = hi*m + carry
	q = uint(hi>>62 + hi>>61&1) // rounded to nearest
	hi, lo = hi<<2|lo>>62, lo<<2
	negative := hi>>63 == 1
	if negative { // f is a signed fraction of 128 bits
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	zeros := bits.LeadingZeros64(hi)
	hi = hi<<uint(zeros) | lo>>1>>(63-uint(zeros))
	r = float64(math.Ldexp(float64(hi), -64-zeros) * (math.Pi / 2))
	if negative != (x < 0) {
		r = -r
	}
	if x < 0 {
		q = -q
	}
	return q % 4, r
}

// quarter returns the sine of q·π/2 + r for |r| ≤ π/4, from the series of sine or cosine.
func quarter(q uint, r float64) float64 {
	z := float64(r * r)
	var v float64
	if q%2 == 0 {
		// r - r³/3! + ... - r¹⁵/15!
		p := float64(0)
		for k := 14; k > 0; k -= 2 {
			p = float64((1 - p) * (z / float64(k*(k+1))))
		}
		v = r - float64(r*p)
	} else {
		// 1 - r²/2! + ... + r¹⁶/16!
		p := float64(0)
		for k := 15; k > 0; k -= 2 {
			p = float64((1 - p) * (z / float64(k*(k+1))))
		}
		v = 1 - p
	}
	if q%4 >= 2 {
		v = -v
	}
	return v
}
