package exact

import "math"

// lanes are the 16 partial sums, or partial maxima, of a row.
type lanes [16]float32

func (l *lanes) fold() float32    { return FoldSum((*[16]float32)(l)) }
func (l *lanes) foldMax() float32 { return FoldMax((*[16]float32)(l)) }

// FoldSum returns the sum of 16 partial sums, in the order that the package comment defines. It
// overwrites them.
func FoldSum(lanes *[16]float32) float32 {
	for half := len(lanes) / 2; half > 0; half /= 2 {
		for i := range half {
			lanes[i] += lanes[i+half]
		}
	}
	return lanes[0]
}

// FoldMax returns the greatest of 16 partial maxima, comparing them in the order of FoldSum. It
// overwrites them.
func FoldMax(lanes *[16]float32) float32 {
	for half := len(lanes) / 2; half > 0; half /= 2 {
		for i := range half {
			if lanes[i+half] > lanes[i] {
				lanes[i] = lanes[i+half]
			}
		}
	}
	return lanes[0]
}

// Finite returns the index of the first element of x that is NaN or infinite, or -1.
func Finite(x []float32) int {
	const exponent = 0xff << 23
	for i := 0; i < len(x); {
		// Check blocks of 256 without branches. The exponent bits of a NaN or infinity are all set,
		// so adding one to them carries into bit 31.
		end := min(i+256, len(x))
		var seen uint32
		for _, v := range x[i:end] {
			seen |= (math.Float32bits(v) & exponent) + 1<<23
		}
		if seen>>31 == 0 {
			i = end
			continue
		}
		for ; i < end; i++ {
			if math.Float32bits(x[i])&exponent == exponent {
				return i
			}
		}
	}
	return -1
}
