package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
)

// Leaves are merkle's, whatever parts the floats are in and wherever the last block ends.
func TestLeavesAreThoseOfMerkle(t *testing.T) {
	k := kernels(t)
	r := rand.New(rand.NewPCG(5, 5))
	const chunk = merkle.ChunkBytes / 4
	for _, lens := range [][]int{{1}, {13}, {14}, {5, 24, 3}, {chunk - 100, 101, chunk}} {
		var all []float32
		var parts []gpu.Words
		for _, n := range lens {
			x := numbers(r, n, true)
			all, parts = append(all, x...), append(parts, put(t, k, x))
		}
		table, out := put(t, k, Table(parts)), put(t, k, make([]uint32, LeavesLen(len(all))))
		run(t, k, func(c *gpu.Commands) { k.Leaves(c, out, table, len(all)) })
		got, err := ReadLeaves(out, len(all))
		if err != nil || !slices.Equal(got, merkle.BlobLeaves(tensor.Bytes(all))) {
			t.Errorf("parts of %d: %x, %v", lens, got, err)
		}
	}
}
