//go:build !sbf

package exact

// FMA32 returns x*y + z with a single rounding to binary32, on any hardware.
//
// The product of two binary32 numbers is exact in binary64. Rounding the sum to binary64 and then
// to binary32 gives a wrong result only if the binary64 sum is a midpoint of two binary32 numbers,
// or if the result is subnormal, where the midpoints are others. fmaToOdd handles these cases.
// float32(math.FMA(...)) would round twice.
func FMA32(x, y, z float32) float32 {
	s := float64(float64(x)*float64(y)) + float64(z)
	if roundsOnce(s) {
		return float32(s)
	}
	return fmaToOdd(x, y, z)
}
