package distro

import (
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// forward computes coefficients = R * x * transposed(C), the two-dimensional DCT of a block, where
// R and C are the bases of its rows' and its columns' number of points. x is (h, w) with rows
// stride apart; coefficients is (h, w) row-major; spare holds at least h*w.
func (s *shape) forward(w *exact.Worker, coefficients, x []float32, stride int, spare []float32) {
	if s.h > 1 {
		w.Gemm(s.h, s.w, s.h, s.rows.matrix, s.h, 1, x, stride, 1, spare, s.w, false)
		x, stride = spare, s.w
	}
	w.GemmPacked(s.h, s.w, s.w, x, stride, 1, &s.cols.packedTranspose, coefficients, s.w, false)
}

// inverse replaces the coefficients (h, w), row-major, by transposed(R) * coefficients * C. spare
// holds at least h*w.
func (s *shape) inverse(w *exact.Worker, coefficients, spare []float32) {
	if s.h > 1 {
		w.Gemm(s.h, s.w, s.h, s.rows.transpose, s.h, 1, coefficients, s.w, 1, spare, s.w, false)
	} else {
		copy(spare, coefficients)
	}
	w.GemmPacked(s.h, s.w, s.w, spare, s.w, 1, &s.cols.packed, coefficients, s.w, false)
}

// inverseSparse is inverse for coefficients of which few are not zero, given by columns: (w, ld)
// with ld that of the rows' basis, zeros after h. It writes the weights (h, w), row-major, to out;
// spare holds at least w*ld. The coefficients are integers and the elements of a basis of normal
// size, so that leaving out zeros changes nothing: see vec.Kernel.Columns.
func (s *shape) inverseSparse(w *exact.Worker, loop *vec.Kernel, out, coefficients, spare []float32) {
	loop.Columns(s.w, s.rows.ld, spare, s.rows.padded, coefficients)
	w.GemmPacked(s.h, s.w, s.w, spare, 1, s.rows.ld, &s.cols.packed, out, s.w, false)
}
