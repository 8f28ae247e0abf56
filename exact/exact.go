// Package exact provides binary32 arithmetic that gives the same bits on every machine.
//
// entrain verifies a contribution by computing it again, which proves something only if two
// machines get the same bits. Every operation here is therefore defined down to the order of its
// roundings. The result does not depend on the number of workers, the width of vectors, the
// processor or the compiler:
//
//   - Each element of a matrix product is one chain of fused multiply-adds, c = fma(a[i,k],
//     b[k,j], c) for ascending k. The chain starts with +0, or with C if the product is added to
//     it (see Gemm). How i and j are divided among tiles, vectors and workers does not matter; nor
//     does storing c after some k and resuming from there. A product that accumulates over several
//     calls therefore equals one long product.
//   - All other operations round after each multiplication and after each addition. Only Gemm and
//     FMA32 fuse.
//   - A sum along a row has 16 partial sums. Sum number s starts with +0 and adds the elements i
//     with i mod 16 = s in ascending order. Then sum i adds sum i+8 for i < 8, i+4 for i < 4, i+2
//     and i+1. Sum and all functions that sum along a row use this order.
//   - Exp, Log, Sin and the other functions are polynomials in correctly rounded operations,
//     because those of Go's package math differ between architectures. Each states its error in
//     ulp, the distance between neighbouring floats at the true result.
//
// The sign and payload of a NaN are undefined. A training step that meets a NaN has failed; see
// Finite.
//
// The definition is the plain Go code. Tests compare every assembly kernel (AVX-512, AVX2 with FMA,
// NEON) with it, bit by bit. A Pool chooses its kernel when it is made, by the processor's
// features. Go compilers may fuse x*y + z on arm64, riscv64, ppc64, s390x, and on amd64 with
// GOAMD64=v3. An explicit conversion prevents that, so this package always writes float32(x*y) + z,
// and a test searches the compiled code for fused instructions.
//
// A Pool divides work among Workers, which hold the kernels and scratch memory, so nothing is
// allocated once the pool is warm. The package has no global state.
package exact

//go:generate sh -c "go run ./internal/gen amd64 > kernels_amd64.s"
//go:generate sh -c "go run ./internal/gen amd64.go > kernels_amd64.go"
//go:generate sh -c "go run ./internal/gen arm64 > kernels_arm64.s"
//go:generate sh -c "go run ./internal/gen arm64.go > kernels_arm64.go"
