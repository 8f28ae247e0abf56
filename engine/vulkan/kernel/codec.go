package kernel

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Blocks says which blocks of a matrix with rows of Stride numbers are treated: Down rows of
// Columns blocks, each Rows by Cols. A private state has them in rows of blocks Rows*Stride apart,
// and in those one block after another; work space has all one after another.
type Blocks struct{ Rows, Cols, Stride, Down, Columns int }

func (b Blocks) size() int { return b.Rows * b.Cols }

// Len returns the number of elements of all blocks, which must be below 2^31.
func (b Blocks) Len() int { return b.Down * b.Columns * b.size() }

// batch returns the batch of all blocks whose operand A, B or C lies in the matrix, or in work
// space, or is the same for all.
func (b Blocks) batch() Batch {
	return Batch{Count: b.Down * b.Columns, Heads: b.Columns, Each: 1, C: b.Columns * b.size(), CH: b.size()}
}

// DCT computes the transform of each block of x, as codec/distro does, from x to out by way of
// spare. rows and cols are the bases of as many points.
func (k *Kernels) DCT(c *gpu.Commands, out, spare, x, rows, cols gpu.Words, b Blocks) {
	z := b.batch()
	from := Rows(x, b.Stride)
	if b.Rows > 1 {
		z.B, z.BH = b.Rows*b.Stride, b.Cols
		k.Gemm(c, b.Rows, b.Cols, b.Rows, Rows(rows, b.Rows), from, spare, b.Cols, false, Full, z)
		from, z.A, z.AH = Rows(spare, b.Cols), z.C, z.CH
		z.B, z.BH = 0, 0
	} else {
		z.A, z.AH = b.Stride, b.Cols
	}
	k.Gemm(c, b.Rows, b.Cols, b.Cols, from, Columns(cols, b.Cols), out, b.Cols, false, Full, z)
}

// Inverse is the inverse of DCT from work space to out, by way of spare.
func (k *Kernels) Inverse(c *gpu.Commands, out, spare, x, rows, cols gpu.Words, b Blocks) {
	z := b.batch()
	if b.Rows > 1 {
		z.B, z.BH = z.C, z.CH
		k.Gemm(c, b.Rows, b.Cols, b.Rows, Columns(rows, b.Rows), Rows(x, b.Cols), spare, b.Cols, false, Full, z)
		x = spare
	}
	z.A, z.AH, z.B, z.BH = z.C, z.CH, 0, 0
	k.Gemm(c, b.Rows, b.Cols, b.Cols, Rows(x, b.Cols), Rows(cols, b.Cols), out, b.Cols, false, Full, z)
}

// Momentum computes state = decay*state + step*x of all blocks, and raises most, one word, to the
// greatest magnitude that the state had.
func (k *Kernels) Momentum(c *gpu.Commands, state, x, most gpu.Words, b Blocks, decay, step float32) {
	line(c, k.momentum, up(b.Len(), 64), x, state, most, b.Len(), b.Columns*b.size(), b.Rows*b.Stride, decay, step)
}

// Pick writes which the most largest magnitudes of each block of the state are, as
// distro.Codec.Payload takes them, each words for a block. A row of blocks has the picks of across
// blocks. It sets what is picked to +0, or if there is room for values, writes it there, one for
// each pick.
func (k *Kernels) Pick(c *gpu.Commands, state, picks, values gpu.Words, b Blocks, most, each, across int) {
	keep := flag(values.Len > 0)
	if keep == 0 {
		values = state
	}
	line(c, k.pick, b.Down*b.Columns, state, picks, values, b.size(), min(most, b.size()), each, b.Columns, across, b.Rows*b.Stride, b.Down*b.Columns, keep)
}

// Put adds what is sent, as sparseloco.Codec.Sent has it, to chunks of size numbers, one after the
// other in x. each is the number of words of a chunk's positions.
func (k *Kernels) Put(c *gpu.Commands, x, sent gpu.Words, chunks, size, each int) {
	line(c, k.put, up(chunks*each, 64), sent, x, chunks*each, size, each)
}

// MeanStep computes y = x - rate*(sums/count) of n numbers.
func (k *Kernels) MeanStep(c *gpu.Commands, y, x, sums gpu.Words, n int, count, rate float32) {
	line(c, k.meanStep, up(n, 64), x, sums, y, n, count, rate)
}

// Votes adds the signs in the picks of some payloads to sums, integers of all blocks. A payload has
// stride words of picks, those of a row of blocks across blocks behind those of the row before.
func (k *Kernels) Votes(c *gpu.Commands, sums, picks gpu.Words, b Blocks, payloads, each, across, stride int) {
	n := payloads * stride
	line(c, k.votes, up(n, 64), picks, sums, n, b.size(), each, b.Columns, across, stride, 0, 0)
}

// Limit turns sums of Votes into floats between -most and most, or all if most is 0.
func (k *Kernels) Limit(c *gpu.Commands, sums gpu.Words, b Blocks, most int) {
	line(c, k.votes, up(b.Len(), 64), sums, sums, b.Len(), 1, 1, 1, 1, 1, most, 1)
}

// SignStep computes x = x*keep - rate*sign(direction) of the blocks of a matrix.
func (k *Kernels) SignStep(c *gpu.Commands, x, direction gpu.Words, b Blocks, keep, rate float32) {
	line(c, k.signStep, up(b.Len(), 64), direction, x, b.Len(), b.Rows, b.Cols, b.Columns, b.Stride, keep, rate)
}

// LeavesLen returns the number of words that the leaves of n floats take.
func LeavesLen(n int) int { return len(wire.Hash{}) / 4 * up(n, merkle.ChunkBytes/4) }

// Leaves computes the Merkle leaves of n > 0 floats in parts, which [Table] describes.
func (k *Kernels) Leaves(c *gpu.Commands, leaves, table gpu.Words, n int) {
	const blocks, most = merkle.ChunkBytes/64 + 1, 512 // see leaves.comp
	count := up(n, merkle.ChunkBytes/4)
	for first := 0; first < blocks; first += most {
		line(c, k.leaves, up(count, 64), table, leaves, n, count, first, most)
	}
}

// Table describes parts that follow each other, in three words each.
func Table(parts []gpu.Words) (table []uint32) {
	n := 0
	for _, p := range parts {
		n += p.Len
		table = append(table, uint32(p.Address()), uint32(p.Address()>>32), uint32(n))
	}
	return table
}

// ReadLeaves reads the leaves of n floats.
func ReadLeaves(leaves gpu.Words, n int) ([]wire.Hash, error) {
	words := make([]uint32, LeavesLen(n))
	err := gpu.Read(words, leaves)
	all := make([]wire.Hash, len(words)/8)
	for i, w := range words {
		binary.BigEndian.PutUint32(all[i/8][i%8*4:], w)
	}
	return all, err
}
