package codec

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
)

// normSegment is how many elements one task of Norm adds up. It is part of the definition of Norm: another number gives other bits.
const normSegment = 1 << 14

// Norm returns the Euclidean norm of v. It is NaN or an infinity exactly if v holds a NaN or an infinity.
//
// The order of the sum is part of the definition: segments of 16384 elements; in each, element i is squared and added to partial sum i mod 16;
// the 16 are folded by halves (0+8, 1+9, ...; then 0+4, ...; 0+2, 1+3; 0+1); the segments' sums are added in their order, beginning with +0.
// All of it in binary64, in which the square of a binary32 is exact (so it is no matter whether a compiler fuses it into the sum) and no sum
// of such squares overflows.
func Norm(pool *exact.Pool, v []float32) float64 {
	segments := (len(v) + normSegment - 1) / normSegment
	sums := make([]float64, segments)
	pool.Run(segments, func(i int) {
		sums[i] = sumSquares(v[i*normSegment : min((i+1)*normSegment, len(v))])
	})
	var sum float64
	for _, s := range sums {
		sum += s
	}
	return math.Sqrt(sum)
}

// sumSquares adds up the squares of one segment in 16 interleaved partial sums.
func sumSquares(v []float32) float64 {
	var p [16]float64
	for ; len(v) >= len(p); v = v[len(p):] {
		for i, x := range v[:len(p)] {
			p[i] += float64(x) * float64(x)
		}
	}
	for i, x := range v {
		p[i] += float64(x) * float64(x)
	}
	for half := len(p) / 2; half > 0; half /= 2 {
		for i := range half {
			p[i] += p[i+half]
		}
	}
	return p[0]
}

// Clip returns the factor, at most 1, which brings grad to a Euclidean norm of at most max; a max of 0 stands for no limit. The error wraps
// ErrNotFinite if grad holds a NaN or an infinity; a norm above NormMax is an error too. grad is not changed: the factor is to be multiplied
// into whatever else scales the gradient.
func Clip(pool *exact.Pool, grad []float32, max float32) (float32, error) {
	norm := Norm(pool, grad)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("gradient at element %d: %w", firstNotFinite(grad), ErrNotFinite)
	}
	if norm > NormMax {
		return 0, fmt.Errorf("gradient has norm %g, more than %g: the batch or the model is broken", norm, float64(NormMax))
	}
	if max == 0 || norm <= float64(max) {
		return 1, nil
	}
	return float32(float64(max) / norm), nil
}

// firstNotFinite returns the index of the first NaN or infinity in v, -1 if there is none.
func firstNotFinite(v []float32) int {
	for i, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
