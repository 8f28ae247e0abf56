package exact

import "math"

// FMA32 returns x*y + z rounded once to binary32, on any hardware.
//
// The product of two binary32 is exact in binary64. The sum with z is rounded to odd there: unless it is exact, its last bit is set to 1, so
// that it is on no midpoint between two binary32, and the last rounding decides as it would on the exact sum (S. Boldo and G. Melquiond,
// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). float32(math.FMA(...)) rounds twice and is
// not the same.
func FMA32(x, y, z float32) float32 {
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
