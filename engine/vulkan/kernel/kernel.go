// Package kernel is the arithmetic of package exact on a Vulkan device, to the same bits, and the
// proof that a device computes it. Functions record; what they record runs later.
package kernel

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/exact"
)

// A Mode says what is computed otherwise than the plain way, because that would give other bits on
// a device. Its properties do not tell; only computing does (Prove).
type Mode uint32

// The parts of a Mode.
const (
	// SoftFMA computes fused multiply-adds in integers: the device rounds them twice.
	SoftFMA Mode = 1
	// Guarded computes in integers again what a flushed subnormal may have spoiled.
	Guarded Mode = 2
)

// Modes returns all modes, the fastest first.
func Modes() []Mode { return []Mode{0, Guarded, SoftFMA, SoftFMA | Guarded} }

// String returns the name of m.
func (m Mode) String() string {
	return [...]string{"native", "fma in integers", "guarded", "fma in integers, guarded"}[m&3]
}

// Kernels is the kernels of one device in one mode. Each method is named after the function of
// package exact that it computes for many rows.
type Kernels struct {
	Device *gpu.Device
	Mode   Mode
	// Matrices are those of bytes that the device multiplies itself, or why it does not; "" is none.
	Matrices string

	small, large, soft       *gpu.Kernel // products: tiles of 64, of 128, and in integers
	smallScaled, largeScaled *gpu.Kernel // of tiles in which the others may have flushed a subnormal
	flags                    gpu.Words   // of tiles

	quantize, small8, large8, target *gpu.Kernel // products in 8 bits
	matrix8                          *gpu.Kernel // by matrices, or nil

	adamw, squares *gpu.Kernel // of inner steps

	momentum, pick, votes, signStep, put, meanStep, leaves *gpu.Kernel // of the codec, and hashes

	norm, normBack, gainBack, gainAdd, bias, rope, softmax, softmaxBack, swiglu, swigluBack, embed, embedBack, loss *gpu.Kernel
}

// New makes the kernels of a device. They are released with it.
func New(d *gpu.Device, mode Mode) (*Kernels, error) {
	k := &Kernels{Device: d, Mode: mode}
	all := uint32(mode & SoftFMA) // tiles, not only flagged ones
	gemm8 := "gemm8"
	if d.DotProducts() {
		gemm8 = "gemm8_dot"
	}
	for _, x := range []struct {
		k         **gpu.Kernel
		name      string
		constants []uint32
	}{
		{&k.small, "gemm", []uint32{8, 8 * 8}}, {&k.large, "gemm", []uint32{16, 16 * 16}},
		{&k.smallScaled, "gemm", []uint32{8, 8 * 8, 1}}, {&k.largeScaled, "gemm", []uint32{16, 16 * 16, 1}},
		{&k.soft, "gemm_soft", []uint32{all}},
		{&k.quantize, "quantize", nil}, {&k.small8, gemm8, []uint32{4}}, {&k.large8, gemm8, []uint32{8}}, {&k.target, "target", nil},
		{&k.adamw, "adamw", nil}, {&k.squares, "squares", nil},
		{&k.momentum, "momentum", nil}, {&k.pick, "pick", nil}, {&k.votes, "votes", nil}, {&k.signStep, "sign_step", nil}, {&k.put, "put", nil}, {&k.meanStep, "mean_step", nil}, {&k.leaves, "leaves", nil},
		{&k.norm, "norm", nil}, {&k.normBack, "norm_back", nil}, {&k.gainBack, "gain_back", nil}, {&k.gainAdd, "gain_add", nil},
		{&k.bias, "bias", nil}, {&k.rope, "rope", nil}, {&k.softmax, "softmax", nil}, {&k.softmaxBack, "softmax_back", nil},
		{&k.swiglu, "swiglu", nil}, {&k.swigluBack, "swiglu_back", nil},
		{&k.embed, "embed", nil}, {&k.embedBack, "embed_back", nil}, {&k.loss, "loss", nil},
	} {
		if x.k == &k.soft && mode == 0 || x.name == "gemm" && mode&SoftFMA != 0 || len(x.constants) == 3 && mode != Guarded {
			continue // this mode never runs it
		}
		var err error
		if *x.k, err = d.NewKernel(x.name, shader.SPIRV(x.name), uint32(mode), x.constants...); err != nil {
			return nil, err
		}
	}
	var err error
	if k.flags, err = d.New(flagsMost); err != nil {
		return nil, err
	}
	k.newMatrix8()
	return k, nil
}

// Close frees what the kernels hold besides themselves.
func (k *Kernels) Close() { k.flags.Free() }

// flagsMost bounds the tiles of a product in guarded modes.
const flagsMost = 1 << 20

// A Shape says which part of a square operand is known to be zero, in blocks of 64.
type Shape int

// The shapes of a product's operands.
const (
	Full   Shape = iota
	LowerA       // A[i,p] for p beyond i's block is not read
	UpperA       // A[i,p] for p before i's block is not read
	LowerC       // C[i,j] for j beyond i's block is not computed
)

// A Matrix is where a matrix is: element (i, j) is number i·Row + j·Column.
type Matrix struct {
	At          gpu.Words
	Row, Column int
}

// Rows returns a matrix whose rows are width floats apart.
func Rows(at gpu.Words, width int) Matrix { return Matrix{at, width, 1} }

// Columns returns the transpose of Rows.
func Columns(at gpu.Words, width int) Matrix { return Matrix{at, 1, width} }

// A Batch says where the operands of several products are. Number s·Heads + h has its A s·A + h·AH
// floats behind the first, its B s·B + h/Each·BH, and its C s·C + h·CH. Low is the row of a square
// operand of a Shape with which its rows begin, or for UpperA, where it is transposed, its columns:
// a multiple of 64.
type Batch struct{ Count, Heads, Each, A, AH, B, BH, C, CH, Low int }

// One is a single product.
var One = Batch{Count: 1, Heads: 1, Each: 1}

// LoopsMost bounds the iterations of all loops of an invocation: lavapipe ends them after 65535,
// without an error.
const LoopsMost = 65535

// deepest bounds the depth of a product that is computed at once. The chain goes on from what is in
// C.
const deepest = 1 << 15

// largeFrom is the number of tiles of 128 from which on a product is computed in these, which
// read less for an element: with fewer of them many of a device's cores would wait. Measured on
// a device with 132.
const largeFrom = 512

// Gemm is exact.Gemm: C = A·B, or C += A·B with add. C has rows of ldc floats, A is (m, depth) and
// B (depth, n).
func (k *Kernels) Gemm(c *gpu.Commands, m, n, depth int, a, b Matrix, out gpu.Words, ldc int, add bool, shape Shape, z Batch) {
	large := shape == Full && up(m, 128)*up(n, 128) >= largeFrom
	k.gemm(c, large, m, n, depth, a, b, out, ldc, add, shape, z)
}

// gemm is Gemm with the tiles that are asked for.
func (k *Kernels) gemm(c *gpu.Commands, large bool, m, n, depth int, a, b Matrix, out gpu.Words, ldc int, add bool, shape Shape, z Batch) {
	tile, fast, scaled := 64, k.small, k.smallScaled
	if large {
		tile, fast, scaled = 128, k.large, k.largeScaled
	}
	if tiles := up(n, tile) * up(m, tile) * z.Count; k.Mode == Guarded && tiles > flagsMost {
		c.Fail(fmt.Errorf("vulkan: a product of %d tiles, at most %d where subnormals are guarded", tiles, flagsMost))
	}
	for first := 0; first < max(depth, 1); first += deepest {
		args := []any{a.At, b.At, out, k.flags, m, n, min(first+deepest, depth), a.Row, a.Column, b.Row, b.Column, ldc, flag(add || first > 0), int(shape),
			z.Heads, z.Each, z.A, z.AH, z.B, z.BH, z.C, z.CH, tile, z.Low, first}
		if k.Mode&SoftFMA == 0 {
			c.Dispatch(fast, up(n, tile), up(m, tile), z.Count, args...)
		}
		if k.Mode == Guarded {
			c.Dispatch(scaled, up(n, tile), up(m, tile), z.Count, args...)
		}
		if k.Mode != 0 {
			c.Dispatch(k.soft, up(n, tile), up(m, 16), z.Count, args...)
		}
	}
}

// line dispatches n workgroups that take their number from both dimensions.
func line(c *gpu.Commands, k *gpu.Kernel, n int, args ...any) {
	x, y := gpu.Line(n)
	c.Dispatch(k, x, y, 1, args...)
}

// RMSNorm computes y = norm(x)·g of each row, inv of each, and a copy of x in kept.
func (k *Kernels) RMSNorm(c *gpu.Commands, y, x, g, inv, kept gpu.Words, rows, n int, eps float32) {
	line(c, k.norm, up(rows, 16), x, g, y, inv, kept, rows, n, eps, 0, 1, 1, 1, n)
}

// Normalize computes y from inv, as RMSNorm did.
func (k *Kernels) Normalize(c *gpu.Commands, y, x, g, inv gpu.Words, rows, n int) {
	line(c, k.norm, up(rows, 16), x, g, y, inv, x, rows, n, float32(0), 1, 0, 1, 1, n)
}

// RMSNormBackward adds the gradients of the norm of rows of sequences to dx and dg. partial has
// room for a row for each block of 64 tokens of a sequence.
func (k *Kernels) RMSNormBackward(c *gpu.Commands, dx, dg, dy, x, g, inv, partial gpu.Words, sequences, seq, n int) {
	line(c, k.normBack, up(sequences*seq, 16), dy, x, g, inv, dx, sequences*seq, n, 0, 1, 1, n)
	blocks := sequences * up(seq, 64)
	c.Dispatch(k.gainBack, up(n, 64), blocks, 1, dy, x, inv, partial, n, seq, 0, 1, n)
	line(c, k.gainAdd, up(n, 64), partial, dg, blocks, n, 1, 0, 1)
}

// Heads says where the heads are that are normalized: the first Queries+Keys heads of Width floats
// of each row of Row floats. Gains are those of queries, and behind them those of keys.
type Heads struct{ Queries, Keys, Width, Row int }

func (h Heads) all() int { return h.Queries + h.Keys }

// NormHeads normalizes the heads of rows of x. It keeps what they were in kept, one after another,
// and inv of each.
func (k *Kernels) NormHeads(c *gpu.Commands, x, gains, inv, kept gpu.Words, h Heads, rows int, eps float32) {
	n := rows * h.all()
	line(c, k.norm, up(n, 16), x, gains, x, inv, kept, n, h.Width, eps, 0, 1, h.all(), h.Queries, h.Row)
}

// NormHeadsBackward replaces dx, the gradient of what NormHeads made, by that of its input, and
// adds those of the gains to dgains, block by block, in each head by head. partial has room for the
// heads of a row for each block of 64 tokens of a sequence.
func (k *Kernels) NormHeadsBackward(c *gpu.Commands, dx, dgains, kept, gains, inv, partial gpu.Words, h Heads, sequences, seq int) {
	n, blocks, heads := h.all()*h.Width, sequences*up(seq, 64), sequences*seq*h.all()
	c.Dispatch(k.gainBack, up(n, 64), blocks, 1, dx, kept, inv, partial, n, seq, 0, h.all(), h.Row)
	line(c, k.gainAdd, up(h.Width, 64), partial, dgains, blocks, h.Width, h.all(), 0, h.Queries)
	line(c, k.gainAdd, up(h.Width, 64), partial, dgains.At(h.Width), blocks, h.Width, h.all(), h.Queries, h.all())
	line(c, k.normBack, up(heads, 16), dx, kept, gains, inv, dx, heads, h.Width, 1, h.all(), h.Queries, h.Row)
}

// AddBias adds bias to each row of x (rows, n).
func (k *Kernels) AddBias(c *gpu.Commands, x, bias gpu.Words, rows, n int) {
	line(c, k.bias, up(rows*n, 64), bias, x, rows, n)
}

// AddBiasBackward adds the sums of dx over blocks of tokens to dbias.
func (k *Kernels) AddBiasBackward(c *gpu.Commands, dbias, dx, partial gpu.Words, sequences, seq, n int) {
	blocks := sequences * up(seq, 64)
	c.Dispatch(k.gainBack, up(n, 64), blocks, 1, dx, dx, dx, partial, n, seq, 1, 1, n)
	line(c, k.gainAdd, up(n, 64), partial, dbias, blocks, n, 1, 0, 1)
}

// Rotate rotates the first heads of each row of width floats, or rotates them back.
func (k *Kernels) Rotate(c *gpu.Commands, x, cosine, sine gpu.Words, rows, seq, width, heads, headDim int, back bool) {
	line(c, k.rope, up(rows*heads*headDim/2, 64), x, cosine, sine, rows, seq, width, heads, headDim/2, flag(back))
}

// Scores says where attention's scores are: Rows rows of Width floats, of which each Each are the
// queries from Low on of one head. A query has scores of the positions up to its own, or with a
// Window of the last Window of them. Scale is what scores are multiplied by.
type Scores struct {
	Rows, Width, Each, Low, Window int
	Scale                          float32
}

// Softmax is exact.Worker.Softmax of the scores of each row. It sets the rest of the row up to the
// end of a block of 64 to +0.
func (k *Kernels) Softmax(c *gpu.Commands, s gpu.Words, of Scores) {
	line(c, k.softmax, up(of.Rows, 16), s, of.Rows, of.Width, of.Scale, of.Window, of.Each, of.Low)
}

// SoftmaxBackward is exact.Worker.SoftmaxBackward of the same scores.
func (k *Kernels) SoftmaxBackward(c *gpu.Commands, dp, p gpu.Words, of Scores) {
	line(c, k.softmaxBack, up(of.Rows, 16), dp, p, of.Rows, of.Width, of.Scale, of.Window, of.Each, of.Low)
}

// SwiGLU computes h (rows, n) from gu (rows, 2n), in which each row starts with the gate's half.
func (k *Kernels) SwiGLU(c *gpu.Commands, h, gu gpu.Words, rows, n int) {
	line(c, k.swiglu, up(rows*n, 64), gu, h, rows, n)
}

// SwiGLUBackward replaces gu by its gradient and dh by h.
func (k *Kernels) SwiGLUBackward(c *gpu.Commands, dh, gu gpu.Words, rows, n int) {
	line(c, k.swigluBack, up(rows*n, 64), gu, dh, rows, n)
}

// Embed copies each row's vector of n floats from the table.
func (k *Kernels) Embed(c *gpu.Commands, x, table, tokens gpu.Words, rows, n, seq int) {
	line(c, k.embed, up(rows*n, 64), table, x, tokens, rows, n, seq)
}

// EmbedBackward adds each row's gradient to its token's, in the order of the rows. order has the
// rows sorted by token, and first the place in it of each token's first row, for groups tokens.
func (k *Kernels) EmbedBackward(c *gpu.Commands, dtable, dx, tokens, order, first gpu.Words, groups, n, seq int) {
	x, y := gpu.Line(groups)
	c.Dispatch(k.embedBack, x, y, up(n, 64), dx, dtable, tokens, order, first, groups, n, seq)
}

// CrossEntropy turns logits (rows, vocab), the first of them of row first, into their gradient,
// with shares without what the target is due, as exact.Worker.CrossEntropyShares. out takes two
// numbers for each row, z and a: the row's loss is Log(z) - a. weight is one float.
func (k *Kernels) CrossEntropy(c *gpu.Commands, logits, tokens, out, weight gpu.Words, rows, first, vocab, seq int, shares bool) {
	line(c, k.loss, up(rows, 16), logits, tokens, out, weight, rows, first, vocab, seq, flag(shares))
}

// AdamW is exact.Worker.AdamW of n parameters by the gradient g times clip. It sets g to zeros.
func (k *Kernels) AdamW(c *gpu.Commands, x, m, v, g gpu.Words, n int, clip float32, s exact.AdamWStep) {
	line(c, k.adamw, up(n, 64), x, m, v, g, n, clip, s.Beta1, s.Fresh1, s.Beta2, s.Fresh2, s.Keep, s.Rate, s.Scale, s.Eps)
}

// lanes is the number of sums of a segment.
const lanes = len(Squares{})

// SquaresLen returns the number of words that the sums of n elements take: of each segment a
// codec.Squares, in binary64, low word first.
func SquaresLen(n int) int { return 2 * lanes * up(n, codec.NormSegment) }

// Squares adds the squares of n elements to the sums of codec.Norm's segments. lead is the number
// of x's first element in the first of them.
func (k *Kernels) Squares(c *gpu.Commands, x, sums gpu.Words, n, lead int) {
	all := lanes * up(lead+n, codec.NormSegment)
	line(c, k.squares, up(all, 64), x, sums, n, lead, all)
}

// Squares are the sums of a segment's squares.
type Squares codec.Squares

// Same reports whether sums are those that the processor has: the same, or not finite on both,
// where the device has a NaN.
func (s *Squares) Same(want *codec.Squares) bool {
	for i, got := range s {
		if got != want[i] && !(math.IsNaN(got) && !(want[i] <= math.MaxFloat64)) {
			return false
		}
	}
	return true
}

// ReadSquares reads the sums of all segments.
func ReadSquares(sums gpu.Words) ([]Squares, error) {
	words := make([]uint32, sums.Len)
	err := gpu.Read(words, sums)
	all := make([]Squares, sums.Len/(2*lanes))
	for i := range all {
		for j := range all[i] {
			at := words[2*(i*lanes+j):]
			all[i][j] = math.Float64frombits(uint64(at[0]) | uint64(at[1])<<32)
		}
	}
	return all, err
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

func up(n, by int) int { return (n + by - 1) / by }
