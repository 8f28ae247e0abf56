package vulkan

import (
	"math"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/llama"
)

// recorder records the passes of package llama: the same operations in the same order.
type recorder struct {
	*kernel.Kernels
	sizes
	m *memory
	c *gpu.Commands
}

// The parts of what a pass takes from the host.
func (r *recorder) tokens() gpu.Words { return r.m.tokens }
func (r *recorder) order() gpu.Words  { return r.m.tokens.At(r.sequences * (r.seq + 1)) }
func (r *recorder) first() gpu.Words  { return r.order().At(r.rows()) }
func (r *recorder) weight() gpu.Words { return r.first().At(r.rows() + 1) }

// linear, linearInput and linearWeight are those of package llama.
func (r *recorder) linear(y, x, w gpu.Words, in, out int, add bool) {
	r.product(y, kernel.Rows(x, in), kernel.Rows(w, in), r.rows(), out, in, in, add)
}

func (r *recorder) linearInput(dx, dy, w gpu.Words, in, out int) {
	r.product(dx, kernel.Rows(dy, out), kernel.Columns(w, in), r.rows(), in, out, out, false)
}

func (r *recorder) linearWeight(dw, dy, x gpu.Words, in, out int) {
	r.product(dw, kernel.Columns(dy, out), kernel.Columns(x, in), out, in, r.rows(), r.seq, true)
}

// product records y = a·bᵀ, or y += a·bᵀ with add: a is (rows, depth), b (columns, depth). In 8
// bits a block ends where each elements along the depth do.
func (r *recorder) product(y gpu.Words, a, b kernel.Matrix, rows, columns, depth, each int, add bool) {
	if r.Numerics != llama.Exact8 {
		b.Row, b.Column = b.Column, b.Row
		r.Gemm(r.c, rows, columns, depth, a, b, y, columns, add, kernel.Full, kernel.One)
		return
	}
	left := r.Pack(r.c, r.m.left, a, rows, depth, each)
	r.Gemm8(r.c, left, r.Pack(r.c, r.m.right, b, columns, depth, each), y, columns, add)
}

// forward records a forward pass up to the last norm's output in h.
func (r *recorder) forward() {
	m, d, rows := r.m, r.Hidden, r.rows()
	r.Embed(r.c, m.layers[0].x, m.params.embed, r.tokens(), rows, d, r.seq)
	for l := range m.layers {
		a, w, next := &m.layers[l], &m.params.layers[l], m.last
		if l+1 < len(m.layers) {
			next = m.layers[l+1].x
		}
		r.RMSNorm(r.c, m.h, a.x, w.norm1, a.inv1, a.x2, rows, d, r.Eps)
		r.linear(a.qkv, m.h, w.qkv, d, r.width(), false)
		if r.Bias {
			r.AddBias(r.c, a.qkv, w.bias, rows, r.width())
		}
		if r.QKNorm {
			r.NormHeads(r.c, a.qkv, w.heads, a.invQK, a.qk, r.normed(), rows, r.Eps)
		}
		r.Rotate(r.c, a.qkv, m.cosine, m.sine, rows, r.seq, r.width(), r.turned(), r.HeadDim, false)
		r.eachHeads(func(u heads) {
			r.probabilities(u, a)
			z := u.batch()
			z.A, z.AH, z.B, z.BH, z.C, z.CH = u.scores(), r.seq*r.seq, r.seq*r.width(), r.HeadDim, r.seq*r.q(), r.HeadDim
			r.Gemm(r.c, r.seq, r.HeadDim, r.seq, kernel.Rows(m.p, r.seq), kernel.Rows(u.values(a.qkv), r.width()), u.queries(a.att, r.q()), r.q(), false, kernel.LowerA, z)
		})
		r.linear(a.x2, a.att, w.o, r.q(), d, true)
		r.RMSNorm(r.c, m.h, a.x2, w.norm2, a.inv2, next, rows, d, r.Eps)
		r.linear(a.gu, m.h, w.gu, d, 2*r.FFN, false)
		r.SwiGLU(r.c, m.f, a.gu, rows, r.FFN)
		r.linear(next, m.f, w.down, r.FFN, d, true)
		r.c.Cut()
	}
	r.RMSNorm(r.c, m.h, m.last, m.params.norm, m.lastInv, m.dx, rows, d, r.Eps) // dx is not in use yet
}

// normed returns the heads that models with QKNorm normalize.
func (s sizes) normed() kernel.Heads {
	return kernel.Heads{Queries: s.Heads, Keys: s.KVHeads, Width: s.HeadDim, Row: s.width()}
}

// head records the head and its loss, chunk by chunk. With backward it also sets dh, and adds to
// the gradient of the head.
func (r *recorder) head(backward bool) {
	m, d := r.m, r.Hidden
	if r.Numerics == llama.Exact8 {
		r.head8(backward)
		return
	}
	for first := 0; first < r.rows(); first += r.chunk() {
		n := min(r.chunk(), r.rows()-first)
		h := m.h.At(first * d)
		r.product(m.logits, kernel.Rows(h, d), kernel.Rows(m.params.head, d), n, r.Vocab, d, d, false)
		r.CrossEntropy(r.c, m.logits, r.tokens(), m.results, r.weight(), n, first, r.Vocab, r.seq, false)
		if backward {
			r.product(m.dh.At(first*d), kernel.Rows(m.logits, r.Vocab), kernel.Columns(m.params.head, d), n, d, r.Vocab, r.Vocab, false)
			r.product(m.grad.head, kernel.Columns(m.logits, r.Vocab), kernel.Columns(h, d), r.Vocab, d, n, n, true)
		}
		r.c.Cut()
	}
}

// head8 is head in 8 bits: a chunk is whole blocks of one sequence, and what the targets are due is
// subtracted as it is.
func (r *recorder) head8(backward bool) {
	m, d, c := r.m, r.Hidden, r.c
	var in kernel.Packed
	out := r.Pack(c, m.headOut, kernel.Rows(m.params.head, d), r.Vocab, d, d)
	if backward {
		in = r.Pack(c, m.headIn, kernel.Columns(m.params.head, d), d, r.Vocab, r.Vocab)
	}
	for s := 0; s < r.rows(); s += r.seq {
		for first := s; first < s+r.seq; first += r.chunk() {
			n := min(r.chunk(), s+r.seq-first)
			h, dh := m.h.At(first*d), m.dh.At(first*d)
			r.Gemm8(c, r.Pack(c, m.left, kernel.Rows(h, d), n, d, d), out, m.logits, r.Vocab, false)
			r.CrossEntropy(c, m.logits, r.tokens(), m.results, r.weight(), n, first, r.Vocab, r.seq, true)
			if backward {
				r.Gemm8(c, r.Pack(c, m.left, kernel.Rows(m.logits, r.Vocab), n, r.Vocab, r.Vocab), in, dh, d, false)
				r.SubtractFromRows(c, dh, m.params.head, r.tokens(), r.weight(), n, first, d, r.seq)
				r.product(m.grad.head, kernel.Columns(m.logits, r.Vocab), kernel.Columns(h, d), r.Vocab, d, n, n, true)
			}
			c.Cut()
		}
		if backward {
			r.SubtractFromHead(c, m.grad.head, m.h.At(s*d), r.tokens(), r.weight(), r.seq, s, d, r.seq)
		}
	}
}

// backward records the gradients for the forward pass before it.
func (r *recorder) backward() {
	m, d, rows := r.m, r.Hidden, r.rows()
	r.c.Clear(m.dx.First(rows * d))
	r.RMSNormBackward(r.c, m.dx, m.grad.norm, m.dh, m.last, m.params.norm, m.lastInv, m.partial, r.sequences, r.seq, d)
	for l := len(m.layers) - 1; l >= 0; l-- {
		a, w, g := &m.layers[l], &m.params.layers[l], &m.grad.layers[l]
		r.linearInput(m.f, m.dx, w.down, r.FFN, d)
		r.SwiGLUBackward(r.c, m.f, a.gu, rows, r.FFN)
		r.linearWeight(g.down, m.dx, m.f, r.FFN, d)
		r.Normalize(r.c, m.h, a.x2, w.norm2, a.inv2, rows, d)
		r.linearWeight(g.gu, a.gu, m.h, d, 2*r.FFN)
		r.linearInput(m.dh, a.gu, w.gu, d, 2*r.FFN)
		r.RMSNormBackward(r.c, m.dx, g.norm2, m.dh, a.x2, w.norm2, a.inv2, m.partial, r.sequences, r.seq, d)

		r.linearWeight(g.o, m.dx, a.att, r.q(), d)
		r.linearInput(m.datt, m.dx, w.o, r.q(), d)
		r.eachHeads(func(u heads) { r.attentionBackward(u, a) })
		r.Rotate(r.c, m.dqkv, m.cosine, m.sine, rows, r.seq, r.width(), r.turned(), r.HeadDim, true)
		if r.QKNorm {
			r.NormHeadsBackward(r.c, m.dqkv, g.heads, a.qk, w.heads, a.invQK, m.partial, r.normed(), r.sequences, r.seq)
		}
		if r.Bias {
			r.AddBiasBackward(r.c, g.bias, m.dqkv, m.partial, r.sequences, r.seq, r.width())
		}
		r.Normalize(r.c, m.h, a.x, w.norm1, a.inv1, rows, d)
		r.linearWeight(g.qkv, m.dqkv, m.h, d, r.width())
		r.linearInput(m.dh, m.dqkv, w.qkv, d, r.width())
		r.RMSNormBackward(r.c, m.dx, g.norm1, m.dh, a.x, w.norm1, a.inv1, m.partial, r.sequences, r.seq, d)
		r.c.Cut()
	}
	r.EmbedBackward(r.c, m.grad.embed, m.dx, r.tokens(), r.order(), r.first(), rows, d, r.seq)
}

// heads is what attention computes at once: groups of heads that share keys, in sequences.
type heads struct {
	sizes
	first, count  int // sequences
	group, groups int
}

// eachHeads calls f for all heads of all sequences.
func (r *recorder) eachHeads(f func(u heads)) {
	sequences, groups := r.attended()
	for s := 0; s < r.sequences; s += sequences {
		for g := 0; g < r.KVHeads; g += groups {
			f(heads{r.sizes, s, min(sequences, r.sequences-s), g, min(groups, r.KVHeads-g)})
		}
	}
}

// scores returns the number of scores of a sequence.
func (u heads) scores() int { return u.groups * u.each() * u.seq * u.seq }

// rows returns the number of rows of scores.
func (u heads) rows() int { return u.count * u.groups * u.each() * u.seq }

// batch returns the batch of all query heads, still without places.
func (u heads) batch() kernel.Batch {
	return kernel.Batch{Count: u.count * u.groups * u.each(), Heads: u.groups * u.each(), Each: u.each()}
}

// queries returns the first query head in a matrix of rows of width floats that begin with queries.
func (u heads) queries(x gpu.Words, width int) gpu.Words {
	return x.At(u.first*u.seq*width + u.group*u.each()*u.HeadDim)
}

// keys and values return the first key and value head in a matrix like qkv.
func (u heads) keys(qkv gpu.Words) gpu.Words {
	return qkv.At(u.first*u.seq*u.width() + u.q() + u.group*u.HeadDim)
}

func (u heads) values(qkv gpu.Words) gpu.Words { return u.keys(qkv).At(u.kv()) }

// probabilities leaves attention's probabilities in p. They are computed again for the backward
// pass, to the same bits, because storing those of all layers would take memory by the square of a
// sequence.
func (r *recorder) probabilities(u heads, a *activations) {
	z := u.batch()
	z.A, z.AH, z.B, z.BH, z.C, z.CH = r.seq*r.width(), r.HeadDim, r.seq*r.width(), r.HeadDim, u.scores(), r.seq*r.seq
	r.Gemm(r.c, r.seq, r.seq, r.HeadDim, kernel.Rows(u.queries(a.qkv, r.width()), r.width()), kernel.Columns(u.keys(a.qkv), r.width()), r.m.p, r.seq, false, kernel.LowerC, z)
	r.Softmax(r.c, r.m.p, u.rows(), r.seq, r.scale(), r.Window)
}

func (s sizes) scale() float32 { return float32(1 / math.Sqrt(float64(s.HeadDim))) }

// attentionBackward sets the gradients of queries, keys and values in dqkv.
func (r *recorder) attentionBackward(u heads, a *activations) {
	m, d, width, square := r.m, r.HeadDim, r.width(), r.seq*r.seq
	r.probabilities(u, a)
	z := u.batch()
	z.A, z.AH, z.B, z.BH, z.C, z.CH = r.seq*r.q(), d, r.seq*width, d, u.scores(), square
	datt := u.queries(m.datt, r.q())
	r.Gemm(r.c, r.seq, r.seq, d, kernel.Rows(datt, r.q()), kernel.Columns(u.values(a.qkv), width), m.dp, r.seq, false, kernel.LowerC, z)
	r.SoftmaxBackward(r.c, m.dp, m.p, u.rows(), r.seq, r.scale(), r.Window)
	z.A, z.AH, z.B, z.BH, z.C, z.CH = u.scores(), square, r.seq*width, d, r.seq*width, d
	r.Gemm(r.c, r.seq, d, r.seq, kernel.Rows(m.dp, r.seq), kernel.Rows(u.keys(a.qkv), width), u.queries(m.dqkv, width), width, false, kernel.LowerA, z)
	// dv += pᵀ·dout and dk += dpᵀ·q, one chain over the query heads of a group.
	each := r.each()
	for e := range each {
		z := kernel.Batch{Count: u.count * u.groups, Heads: u.groups, Each: 1, A: u.scores(), AH: each * square, BH: each * d, C: r.seq * width, CH: d}
		z.B = r.seq * r.q()
		r.Gemm(r.c, r.seq, d, r.seq, kernel.Columns(m.p.At(e*square), r.seq), kernel.Rows(datt.At(e*d), r.q()), u.values(m.dqkv), width, e > 0, kernel.UpperA, z)
		z.B = r.seq * width
		r.Gemm(r.c, r.seq, d, r.seq, kernel.Columns(m.dp.At(e*square), r.seq), kernel.Rows(u.queries(a.qkv, width).At(e*d), width), u.keys(m.dqkv), width, e > 0, kernel.UpperA, z)
	}
}
