package distro

import (
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// forward computes coefficients = R * x * transposed(C), the two-dimensional DCT of a block, with R
// the basis of its rows and C that of its columns. x is (h, w) with row stride stride; coefficients
// is (h, w), row-major; spare holds at least h*w.
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

// inverseSparse is inverse for coefficients that are mostly zero. They come by columns, (w, ld)
// with the ld of the rows' basis, and are zero after h. It writes the weights (h, w), row-major, to
// out; spare holds at least w*ld. Omitting zeros changes nothing, because the coefficients are
// integers and no element of a basis is subnormal: see vec.Kernel.Columns.
func (s *shape) inverseSparse(w *exact.Worker, loop *vec.Kernel, out, coefficients, spare []float32) {
	loop.Columns(s.w, s.rows.ld, spare, s.rows.padded, coefficients)
	w.GemmPacked(s.h, s.w, s.w, spare, 1, s.rows.ld, &s.cols.packed, out, s.w, false)
}
