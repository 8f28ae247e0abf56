package distro

import (
	"math"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// A basis is the orthonormal DCT-II of n points: the matrix C with
//
//	C[u][x] = s(u) * cos(pi*(2x+1)*u / 2n),   s(0) = sqrt(1/n),   s(u) = sqrt(2/n) for u > 0
//
// Each element is the binary32 nearest to the real number; a test proves it for every n up to
// BlockMax.
type basis struct {
	n         int
	matrix    []float32 // C, row-major: coefficients = C * column
	transpose []float32 // C transposed, row-major: the inverse, as C is orthogonal

	packed, packedTranspose exact.Packed // the same, as right-hand sides of products

	ld     int       // n rounded up to a multiple of vec.ColumnSums
	padded []float32 // C in rows of ld, padded with zeros
}

// newBasis returns the basis of n points for the kernel of w.
func newBasis(w *exact.Worker, n int) *basis {
	b := &basis{n: n, matrix: make([]float32, n*n), transpose: make([]float32, n*n)}
	for u := range n {
		scale := math.Sqrt(2 / float64(n))
		if u == 0 {
			scale = math.Sqrt(1 / float64(n))
		}
		for x := range n {
			v := float32(float64(scale * cosPi((2*x+1)*u, 2*n)))
			b.matrix[u*n+x] = v
			b.transpose[x*n+u] = v
		}
	}
	b.ld = (n + vec.ColumnSums - 1) / vec.ColumnSums * vec.ColumnSums
	b.padded = make([]float32, n*b.ld)
	for u := range n {
		copy(b.padded[u*b.ld:], b.matrix[u*n:(u+1)*n])
	}
	w.Pack(&b.packed, n, n, b.matrix, n, 1)
	w.Pack(&b.packedTranspose, n, n, b.transpose, n, 1)
	return b
}

// cosPi returns cos(pi*a/b), for a >= 0 and b > 0, with an error below 2^-51. It has the same bits
// on every machine, unlike math.Cos. It reduces the angle to [0, pi/4] in integers, so that zeros
// and ones are exact.
func cosPi(a, b int) float64 {
	a %= 2 * b
	if a > b {
		a = 2*b - a // cos(2pi - t) = cos(t)
	}
	if 2*a > b {
		return 0 - cosPi(b-a, b) // cos(pi - t) = -cos(t); from 0, so that cos(pi/2) is +0
	}
	if 4*a <= b {
		return cosSmall(angle(a, b))
	}
	return sinSmall(angle(b-2*a, 2*b)) // cos(t) = sin(pi/2 - t)
}

// angle returns pi*a/b.
func angle(a, b int) float64 { return float64(math.Pi*float64(a)) / float64(b) }

// cosSmall and sinSmall are the Taylor polynomials about 0. On [0, pi/4] the first omitted term is
// below 2^-58 of the value. The conversion of each product keeps compilers from fusing it.
func cosSmall(t float64) float64 {
	z := float64(t * t)
	p := 1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14 * 15 * 16)
	p = float64(p*z) - 1.0/(2*3*4*5*6*7*8*9*10*11*12*13*14)
	p = float64(p*z) + 1.0/(2*3*4*5*6*7*8*9*10*11*12)
	p = float64(p*z) - 1.0/(2*3*4*5*6*7*8*9*10)
	p = float64(p*z) + 1.0/(2*3*4*5*6*7*8)
	p = float64(p*z) - 1.0/(2*3*4*5*6)
	p = float64(p*z) + 1.0/(2*3*4)
	p = float64(p*z) - 1.0/2
	return float64(p*z) + 1
}

func sinSmall(t float64) float64 {
	z := float64(t * t)
	p := -1.0 / (2 * 3 * 4 * 5 * 6 * 7 * 8 * 9 * 10 * 11 * 12 * 13 * 14 * 15)
	p = float64(p*z) + 1.0/(2*3*4*5*6*7*8*9*10*11*12*13)
	p = float64(p*z) - 1.0/(2*3*4*5*6*7*8*9*10*11)
	p = float64(p*z) + 1.0/(2*3*4*5*6*7*8*9)
	p = float64(p*z) - 1.0/(2*3*4*5*6*7)
	p = float64(p*z) + 1.0/(2*3*4*5)
	p = float64(p*z) - 1.0/(2*3)
	return t + float64(float64(p*z)*t)
}
