package kernel

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact8"
)

// Sums that are longer than a driver's loops: lavapipe ends those of an invocation after 65535
// iterations and reports nothing. Of ones, every mode computes them.
func TestDeepProducts(t *testing.T) {
	k := kernels(t)
	const depth = 140_000
	a, out := put(t, k, slices.Repeat([]float32{1}, depth)), put(t, k, make([]float32, 1))
	run(t, k, func(s *gpu.Commands) {
		k.Gemm(s, 1, 1, depth, Rows(a, depth), Columns(a, depth), out, 1, false, Full, One)
	})
	compare(t, "a sum", get(t, out), []float32{depth})
	packed := put(t, k, make([]uint32, PackedLen(1, exact8.Blocks(depth, depth))))
	run(t, k, func(s *gpu.Commands) {
		p := k.Pack(s, packed, Rows(a, depth), 1, depth, depth)
		k.Gemm8(s, p, p, out, 1, false)
	})
	compare(t, "a sum in 8 bits", get(t, out), []float32{depth})
}
