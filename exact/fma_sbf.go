//go:build sbf

package exact

import "math"

//export f32_fma
func fma32(x, y, z uint32) uint32

// FMA32 returns x*y + z with a single rounding to binary32, in integers.
func FMA32(x, y, z float32) float32 {
	return math.Float32frombits(fma32(math.Float32bits(x), math.Float32bits(y), math.Float32bits(z)))
}
