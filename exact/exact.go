// Package exact is binary32 arithmetic with the same bits on every machine.
//
// Recomputation is how entrain proves that a contribution is honest, and it is a proof only if two
// machines that compute the same thing get the same bits. So each operation here is defined down to
// the order of its roundings, and neither the number of workers, the width of the vectors, the
// processor nor the compiler has a say in the result:
//
//   - A matrix product is one chain for each element, c = fma(a[i,k], b[k,j], c) for k ascending, which begins with +0, or with C when the
//     product is added to it (Gemm). How i and j are cut up among tiles, vectors and workers is free; so is storing c after some k and going on
//     from there, which is why a product that accumulates over several calls equals one long product.
//   - Everything else rounds after each multiplication and after each addition. Only Gemm and FMA32 fuse.
//   - A sum along a row is 16 interleaved partial sums, of the elements i with equal i mod 16, each beginning with +0 and taken in ascending
//     order; then lane i adds lane i+8 for i < 8, then i+4 for i < 4, i+2, i+1 (Sum and whatever sums along a row).
//   - Functions (Exp, Log, Sin, ...) are our own polynomials in correctly rounded operations. The platform's library, math.Exp for one, differs
//     between architectures. Each states its error in ulp, the distance between neighbouring floats at the true result.
//
// Two things are not defined: the sign and payload of a NaN. A step that meets a NaN has failed
// (see Finite).
//
// Plain Go is the definition, and every kernel in assembly (AVX-512, AVX2 with FMA, NEON) is tested
// to agree with it to the last bit. Which one is used is decided when a Pool is made, by what the
// processor can do. Go compilers may fuse x*y + z into one operation on arm64, riscv64, ppc64,
// s390x and on amd64 at GOAMD64=v3; an explicit conversion forbids that, which is why this package
// reads float32(x*y) + z throughout, and a test looks for fused instructions in what the compiler
// made.
//
// Work is shared by a Pool; its Workers carry the kernels and the scratch memory, so that nothing
// is allocated once it is warm. Nothing in this package is a variable that changes.
package exact

//go:generate sh -c "go run ./internal/gen amd64 > kernels_amd64.s"
//go:generate sh -c "go run ./internal/gen amd64.go > kernels_amd64.go"
//go:generate sh -c "go run ./internal/gen arm64 > kernels_arm64.s"
//go:generate sh -c "go run ./internal/gen arm64.go > kernels_arm64.go"
