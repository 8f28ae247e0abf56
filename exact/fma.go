package exact

import "math"

// FMA32 returns x*y + z rounded once to binary32, on any hardware.
//
// The product of two binary32 is exact in binary64. Rounding the sum to binary64 and then to
// binary32 goes wrong only where the first result is a midpoint of two binary32, or where the
// second is subnormal and so has other midpoints; those cases go the long way.
// float32(math.FMA(...)) would round twice and is not the same.
func FMA32(x, y, z float32) float32 {
	s := float64(float64(x)*float64(y)) + float64(z)
	if roundsOnce(s) {
		return float32(s)
	}
	return fmaToOdd(x, y, z)
}

// roundsOnce tells whether a sum that was rounded to binary64 may be rounded to binary32 as if it
// were exact.
func roundsOnce(s float64) bool {
	const (
		beyond   = 1<<29 - 1 // the bits that binary32 has no room for
		midpoint = 1 << 28
		normal   = (1023 - 126) << 53 // the exponent of the least normal binary32, where shifting the sign out leaves it
	)
	b := math.Float64bits(s)
	return b&beyond != midpoint && b<<1 >= normal
}

// fmaToOdd rounds the sum to odd: unless it is exact, its last bit is set to 1, so that it is on no
// midpoint between two binary32, and the last rounding decides as it would on the exact sum (S.
// Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
// rounding to odd", 2008).
func fmaToOdd(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y))
	c := float64(z)
	s := p + c
	// The error of the sum, exactly (D. Knuth's TwoSum): s + e = p + c.
	t := s - p
	e := (p - (s - t)) + (c - t)
	bits := math.Float64bits(s)
	if e == 0 || bits&1 == 1 || e != e { // e is NaN when s is an infinity or NaN, which are results already
		return float32(s)
	}
	if (e > 0) == (s > 0) {
		return float32(math.Float64frombits(bits + 1))
	}
	return float32(math.Float64frombits(bits - 1))
}
