#include "exact.glsl"

// C = A*B or C += A*B as exact.Gemm: each element is one chain c = fma(a[i,p], b[p,j], c) over
// ascending p. Nothing is padded along p: adding +0 would turn -0 into +0.
//
// gl_WorkGroupID.z is one of several products: number z = s*heads + h lies s*as + h*ah floats behind
// A, s*bs + (h/each)*bh behind B, and s*cs + h*ch behind C.
layout(push_constant, scalar) uniform Args {
	In a, b;
	Out c;
	Flags unsafe; // of each tile of the fast kernel: 1 if subnormals may have been flushed
	uint m, n, k, ars, acs, brs, bcs, ldc, acc;
	uint causal; // 0, or which part is known to be zero, in blocks of 64: see bounds
	uint heads, each, as, ah, bs, bh, cs, ch;
	uint tile; // rows and columns of the fast kernel's tiles
	uint low;  // which row of a square is its first here, or which column of a transposed one
	uint first; // the p with which the product begins; k is the end of what is left of it
};

// bounds sets the first and last p of rows [row, row+rows), and returns whether they have none of C
// from column col on.
bool bounds(uint row, uint rows, uint col, out uint from, out uint to) {
	from = first;
	to = k;
	uint block = row / 64u * 64u, last = low + (row + rows - 1u) / 64u * 64u + 63u; // of the last row's block
	if (causal == 1u) to = min(k, last + 1u);                          // A is lower triangular
	if (causal == 2u) from = max(first, block > low ? min(k, block - low) : 0u); // A is upper triangular
	return causal == 3u && col > last;                                 // C is lower triangular
}
