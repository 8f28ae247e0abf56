package distro

import (
	"math"
	"math/big"
	"testing"

	"github.com/entrain-network/entrain/exact"
)

const precision = 200 // bits of the reference

func TestBasisIsRoundedCorrectly(t *testing.T) {
	w := exact.NewWorker(exact.Kernels()[0])
	for n := 1; n <= BlockMax; n++ {
		b := newBasis(w, n)
		// Row u only needs cos(pi*m/2n) for m = (2x+1)u mod 4n.
		cosines := make([]*big.Float, 4*n)
		for m := range cosines {
			cosines[m] = bigCosPi(m, 2*n)
		}
		for u := range n {
			square := big.NewRat(2, int64(n))
			if u == 0 {
				square = big.NewRat(1, int64(n))
			}
			scale := new(big.Float).SetPrec(precision).SetRat(square)
			scale.Sqrt(scale)
			for x := range n {
				v := new(big.Float).SetPrec(precision).Mul(scale, cosines[(2*x+1)*u%(4*n)])
				want, _ := v.Float32()
				if got := b.matrix[u*n+x]; math.Float32bits(got) != math.Float32bits(want) {
					t.Errorf("element (%d, %d) of the basis of %d points is %v, want %v", u, x, n, got, want)
				}
				if b.transpose[x*n+u] != b.matrix[u*n+x] {
					t.Errorf("element (%d, %d) of the basis of %d points is not in the transpose", u, x, n)
				}
			}
		}
	}
}

// pi to 60 decimals, enough for precision.
const piDecimals = "3.141592653589793238462643383279502884197169399375105820974945"

// bigCosPi returns cos(pi*a/b), with a zero that is exactly zero.
func bigCosPi(a, b int) *big.Float {
	a %= 2 * b
	if a > b {
		a = 2*b - a
	}
	if 2*a == b {
		return new(big.Float).SetPrec(precision)
	}
	pi, _, err := big.ParseFloat(piDecimals, 10, precision, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	t := new(big.Float).SetPrec(precision).Quo(new(big.Float).Mul(pi, big.NewFloat(float64(a))), big.NewFloat(float64(b)))
	z := new(big.Float).Mul(t, t)
	sum, term := big.NewFloat(1).SetPrec(precision), big.NewFloat(1).SetPrec(precision)
	for i := 1; i < 60; i++ { // pi^120/120! is below 2^-400
		term.Mul(term, z)
		term.Quo(term, big.NewFloat(float64((2*i-1)*2*i)))
		term.Neg(term)
		sum.Add(sum, term)
	}
	return sum
}

// The vectors of this test are Psyche's own (its shared/modeling/src/distro.rs), to the digits
// given there.
func TestDCTAgreesWithPsyche(t *testing.T) {
	w := exact.NewWorker(exact.Kernels()[0])
	four := []float32{
		.5, .6533, .5, .2706,
		.5, .2706, -.5, -.6533,
		.5, -.2706, -.5, .6533,
		.5, -.6533, .5, -.2706,
	}
	b := newBasis(w, 4)
	for i, want := range four { // its matrix is written with a frequency a column
		if got := b.transpose[i]; math.Abs(float64(got-want)) > 5e-5 {
			t.Errorf("element %d of the basis of 4 points is %v, want %v", i, got, want)
		}
	}

	row := &shape{h: 1, w: 8, rows: newBasis(w, 1), cols: newBasis(w, 8)}
	got := make([]float32, 8)
	row.forward(w, got, []float32{0, 1, 2, 3, 4, 5, 6, 7}, 8, make([]float32, 8))
	for i, want := range []float32{9.8995, -6.4423, 0, -.67345, 0, -.2009, 0, -.050702} {
		if math.Abs(float64(got[i]-want)) > 5e-5 {
			t.Errorf("coefficient %d of 0..7 is %v, want %v", i, got[i], want)
		}
	}

	square := &shape{h: 4, w: 4, rows: b, cols: b}
	identity := []float32{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
	got = make([]float32, 16)
	square.forward(w, got, identity, 4, make([]float32, 16))
	for i, want := range identity {
		if math.Abs(float64(got[i]-want)) > 1e-6 {
			t.Errorf("coefficient %d of the identity is %v, want %v", i, got[i], want)
		}
	}
}

func TestInverseUndoesForward(t *testing.T) {
	w := exact.NewWorker(exact.Kernels()[0])
	for _, size := range [][2]int{{1, 1}, {1, 64}, {64, 1}, {7, 6}, {64, 64}, {57, 58}, {128, 128}} {
		h, cols := size[0], size[1]
		s := &shape{h: h, w: cols, rows: newBasis(w, h), cols: newBasis(w, cols)}
		const stride = 130 // rows of a wider matrix
		x := splitmix(uint64(h*cols), h*stride)
		coefficients, spare := make([]float32, h*cols), make([]float32, h*cols)
		s.forward(w, coefficients, x, stride, spare)
		s.inverse(w, coefficients, spare)
		for i := range h {
			for j := range cols {
				if d := coefficients[i*cols+j] - x[i*stride+j]; math.Abs(float64(d)) > 4e-6 {
					t.Errorf("(%d, %d): element (%d, %d) comes back with error %g", h, cols, i, j, d)
				}
			}
		}
	}
}
