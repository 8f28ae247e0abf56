package exact

import "math"

// lanes are the 16 partial sums, or partial maxima, of a row.
type lanes [16]float32

// fold adds the lanes in the order that is part of the definition of every sum here.
func (l *lanes) fold() float32 {
	for half := len(l) / 2; half > 0; half /= 2 {
		for i := range half {
			l[i] += l[i+half]
		}
	}
	return l[0]
}

// foldMax returns the greatest lane in the same order.
func (l *lanes) foldMax() float32 {
	for half := len(l) / 2; half > 0; half /= 2 {
		for i := range half {
			if l[i+half] > l[i] {
				l[i] = l[i+half]
			}
		}
	}
	return l[0]
}

// Sum returns the sum of x in the order that the package comment defines.
func Sum(x []float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%16] += v
	}
	return l.fold()
}

// Finite returns the index of the first element of x that is a NaN or an infinity, or -1.
func Finite(x []float32) int {
	const exponent = 0xff << 23
	for i := 0; i < len(x); {
		// Blocks without a branch inside; a NaN or infinity has all exponent bits set, and adding one to them there carries into bit 31.
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
