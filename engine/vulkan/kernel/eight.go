package kernel

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// A Packed is where a matrix in the 8 bits of package exact8 is: of each row its blocks along k,
// each of packedWords words and an exponent.
type Packed struct {
	At, E        gpu.Words
	rows, blocks int
}

// packedWords is the number of words that the bytes of a block take.
const packedWords = exact8.Block / 4

// Pack quantizes x (rows, depth) as exact8.Multiplier.Pack does. A block also ends where each
// elements along the depth do. PackedLen returns the length of to.
func (k *Kernels) Pack(c *gpu.Commands, to gpu.Words, x Matrix, rows, depth, each int) Packed {
	p := Packed{rows: rows, blocks: exact8.Blocks(depth, each)}
	p.At, p.E = to, to.At(rows*p.blocks*packedWords)
	line(c, k.quantize, up(rows*p.blocks, 64), x.At, p.At, p.E, rows, depth, x.Row, x.Column, each)
	return p
}

// PackedLen returns the number of words that blocks blocks of each of rows rows take.
func PackedLen(rows, blocks int) int { return rows * blocks * (packedWords + 1) }

// Gemm8 is exact8.Gemm of what was packed: C = A·Bᵀ, or C += A·Bᵀ with add. C has rows of ldc
// floats. No mode of a device matters: the one rounding of a block is that of a sum.
func (k *Kernels) Gemm8(c *gpu.Commands, a, b Packed, out gpu.Words, ldc int, add bool) {
	high, kernel, tile := 64, k.small8, 0
	if k.matrix8 != nil {
		tile = matrixTile
	} else if a.rows >= 128 && b.rows >= 128 {
		high, kernel = 128, k.large8
	}
	const most = deepest / exact8.Block
	for first := 0; first < a.blocks; first += most {
		args := []any{a.At, a.E, b.At, b.E, out, k.flags, a.rows, b.rows, a.blocks, ldc, flag(add || first > 0), first, min(first+most, a.blocks), tile}
		if k.matrix8 != nil {
			c.Dispatch(k.matrix8, up(b.rows, tile), up(a.rows, tile), 1, args[:len(args)-1]...)
		}
		c.Dispatch(kernel, up(b.rows, 64), up(a.rows, high), 1, args...)
	}
}

// matrixTile is the number of rows and columns of what a workgroup of matrix8 computes: four
// subgroups have 64 by 64 each. Of seven ways to divide it this was the fastest on an H200.
const matrixTile = 128

// newMatrix8 makes the kernel that multiplies bytes by the device's own products of matrices, if
// it has some that divide a subgroup's part, and they are right.
func (k *Kernels) newMatrix8() {
	m := k.Device.Matrices()
	if m.M == 0 || 64%m.M != 0 || 64%m.N != 0 || exact8.Block%m.K != 0 || m.K%8 != 0 || matrixTile*8%(4*m.Subgroup) != 0 {
		return
	}
	constants := []int{m.M, 4 * m.Subgroup, m.N, m.K, 64 / m.M, 64 / m.N, 2, 2}
	words := make([]uint32, len(constants))
	for i, c := range constants {
		words[i] = uint32(c)
	}
	k.Matrices = fmt.Sprintf("matrices of %d by %d by %d bytes", m.M, m.N, m.K)
	var err error
	if k.matrix8, err = k.Device.NewKernel("gemm8_matrix", shader.SPIRV("gemm8_matrix"), uint32(k.Mode), words...); err != nil {
		k.matrix8 = nil
		k.Matrices += " are not used: " + err.Error()
		return
	}
	random := prng.New(wire.Sum("entrain/prove"), "matrices")
	for _, deep := range []int{170, exact8.Block} {
		var f Finding
		err := f.product(k, &random, 260, 300, deep, false, true, ordinary)
		if err != nil || f.Wrong > 0 {
			k.matrix8 = nil
			k.Matrices += fmt.Sprintf(" are not used: %v", cmp.Or(err, errors.New(f.String())))
			return
		}
	}
}

// targetGroups is the number of workgroups over which targets are spread.
const targetGroups = 64

// SubtractFromRows subtracts weight·head[target] from each row of dh, the first of them of row
// first. n is the width of both.
func (k *Kernels) SubtractFromRows(c *gpu.Commands, dh, head, tokens, weight gpu.Words, rows, first, n, seq int) {
	c.Dispatch(k.target, up(n, 64), min(rows, targetGroups), 1, head, dh, tokens, weight, rows, first, n, seq, 1)
}

// SubtractFromHead subtracts weight·h[r] from dhead[target] for rows r of h, in their order.
func (k *Kernels) SubtractFromHead(c *gpu.Commands, dhead, h, tokens, weight gpu.Words, rows, first, n, seq int) {
	c.Dispatch(k.target, up(n, 64), targetGroups, 1, h, dhead, tokens, weight, rows, first, n, seq, 0)
}
