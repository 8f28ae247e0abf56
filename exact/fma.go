package exact

import "math"

// roundsOnce reports whether rounding the binary64 sum s to binary32 gives the correctly rounded
// result of the exact sum.
func roundsOnce(s float64) bool {
	const (
		beyond   = 1<<29 - 1 // the bits that binary32 lacks
		midpoint = 1 << 28
		normal   = (1023 - 126) << 53 // the least normal binary32, without its sign bit
	)
	b := math.Float64bits(s)
	return b&beyond != midpoint && b<<1 >= normal
}

// fmaToOdd rounds the sum to odd: it sets the last bit unless the sum is exact. The sum then never
// is a midpoint of two binary32 numbers, and the last rounding decides as it would on the exact sum
// (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
// rounding to odd", 2008).
func fmaToOdd(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y))
	c := float64(z)
	s := p + c
	// e is the exact error of the sum, s + e = p + c (D. Knuth's TwoSum).
	t := s - p
	e := (p - (s - t)) + (c - t)
	bits := math.Float64bits(s)
	if e == 0 || bits&1 == 1 || e != e { // e is NaN if s is NaN or infinite
		return float32(s)
	}
	if (e > 0) == (s > 0) {
		return float32(math.Float64frombits(bits + 1))
	}
	return float32(math.Float64frombits(bits - 1))
}
