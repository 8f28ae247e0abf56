package kernel

import (
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact8"
)

// A Packed is where a matrix in the 8 bits of package exact8 is: of each row its blocks along k,
// each of PackedWords words and an exponent.
type Packed struct {
	At, E        gpu.Words
	rows, blocks int
}

// PackedWords is the number of words that the bytes of a block take.
const PackedWords = exact8.Block / 4

// Pack quantizes x (rows, depth) as exact8.Multiplier.Pack does. A block also ends where each
// elements along the depth do. PackedLen returns the length of to.
func (k *Kernels) Pack(c *gpu.Commands, to gpu.Words, x Matrix, rows, depth, each int) Packed {
	p := Packed{rows: rows, blocks: exact8.Blocks(depth, each)}
	p.At, p.E = to, to.At(rows*p.blocks*PackedWords)
	line(c, k.quantize, up(rows*p.blocks, 64), x.At, p.At, p.E, rows, depth, x.Row, x.Column, each)
	return p
}

// PackedLen returns the number of words that blocks blocks of each of rows rows take.
func PackedLen(rows, blocks int) int { return rows * blocks * (PackedWords + 1) }

// Gemm8 is exact8.Gemm of what was packed: C = A·Bᵀ, or C += A·Bᵀ with add. C has rows of ldc
// floats. No mode of a device matters: the one rounding of a block is that of a sum.
func (k *Kernels) Gemm8(c *gpu.Commands, a, b Packed, out gpu.Words, ldc int, add bool) {
	high, kernel := 64, k.small8
	if a.rows >= 128 && b.rows >= 128 {
		high, kernel = 128, k.large8
	}
	const most = deepest / exact8.Block
	for first := 0; first < a.blocks; first += most {
		c.Dispatch(kernel, up(b.rows, 64), up(a.rows, high), 1, a.At, a.E, b.At, b.E, out, a.rows, b.rows, a.blocks, ldc,
			flag(add || first > 0), first, min(first+most, a.blocks))
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
