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
	m     *memory
	c     *gpu.Commands
	texts []llama.Slotted // that are read, one behind the other; nil in training
}

// The parts of what a pass takes from the host.
func (r *recorder) tokens() gpu.Words { return r.m.tokens }
func (r *recorder) order() gpu.Words  { return r.m.tokens.At(r.sequences * (r.seq + 1)) }
func (r *recorder) first() gpu.Words  { return r.order().At(r.rows()) }
func (r *recorder) weight() gpu.Words { return r.first().At(r.firsts()) }

// linear, linearInput and linearWeight are those of package llama.
func (r *recorder) linear(y, x, w gpu.Words, in, out int, add bool) {
	r.product(y, kernel.Rows(x, in), kernel.Rows(w, in), r.rows(), out, in, in, add)
}

func (r *recorder) linearInput(dx, dy, w gpu.Words, in, out int) {
	r.product(dx, kernel.Rows(dy, out), kernel.Columns(w, in), r.rows(), in, out, out, false)
}

func (r *recorder) linearWeight(dw, dy, x gpu.Words, in, out int) {
	if dw.Len == 0 { // frozen
		return
	}
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

// embed records what makes the first layer's input.
func (r *recorder) embed() {
	seq := r.seq
	if r.texts != nil {
		seq = r.rows() // no sequence ends before
	}
	r.Embed(r.c, r.m.layers[0].x, r.m.params.embed, r.tokens(), r.rows(), r.Hidden, seq)
}

// forward records the layers' forward pass, to out.
func (r *recorder) forward() {
	m, d, rows := r.m, r.Hidden, r.rows()
	for l := range m.layers {
		a, w, next := &m.layers[l], &m.params.layers[l], m.out
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
		if r.texts != nil {
			r.attendTexts(l, a)
		} else {
			r.Rotate(r.c, a.qkv, m.cosine, m.sine, rows, r.seq, r.width(), r.turned(), r.HeadDim, false)
			r.eachHeads(func(u heads) { r.attend(u, a) })
		}
		r.linear(a.x2, a.att, w.o, r.q(), d, true)
		r.RMSNorm(r.c, m.h, a.x2, w.norm2, a.inv2, next, rows, d, r.Eps)
		r.linear(a.gu, m.h, w.gu, d, 2*r.FFN, false)
		r.SwiGLU(r.c, m.f, a.gu, rows, r.FFN)
		r.linear(next, m.f, w.down, r.FFN, d, true)
		r.c.Cut()
	}
}

// attend records attention of whole sequences.
func (r *recorder) attend(u heads, a *activations) {
	r.probabilities(u, a)
	z := u.batch()
	z.A, z.AH, z.B, z.BH, z.C, z.CH = u.scores(), u.square(), r.seq*r.width(), r.HeadDim, r.seq*r.q(), r.HeadDim
	r.Gemm(r.c, u.size, r.HeadDim, u.keys(), kernel.Rows(r.m.p, r.seq), kernel.Rows(u.value(a.qkv), r.width()), u.query(a.att, r.q()), r.q(), false, kernel.LowerA, z)
}

// attendTexts records attention of layer l: of each text the queries that are read, to the keys and
// values that its slot holds and those that it gets.
func (r *recorder) attendTexts(l int, a *activations) {
	row, kept, width := 0, 2*r.kv(), r.width()
	for _, t := range r.texts {
		n, qkv, turn := len(t.Tokens), a.qkv.At(row*width), t.At*r.HeadDim/2
		r.Rotate(r.c, qkv, r.m.cosine.At(turn), r.m.sine.At(turn), n, r.seq, width, r.turned(), r.HeadDim, false)
		keys := r.m.texts[t.Slot].At(l * r.seq * kept)
		r.c.Gather(keys.At(t.At*kept), qkv.At(r.q()), n, width, kept)
		for at := 0; at < n; { // up to the end of a block, behind which a row of scores has no +0
			size := min(n-at, block-(t.At+at)%block)
			r.attendBlock(a.att.At((row+at)*r.q()), qkv.At(at*width), keys, t.At+at, size)
			at += size
		}
		row += n
	}
}

// attendBlock records attention of n queries from position at on, all of one block.
func (r *recorder) attendBlock(out, queries, keys gpu.Words, at, n int) {
	z := kernel.Batch{Count: r.Heads, Heads: r.Heads, Each: r.each(), AH: r.HeadDim, BH: r.HeadDim, CH: n * r.seq}
	kept, seen := 2*r.kv(), at+n
	r.Gemm(r.c, n, seen, r.HeadDim, kernel.Rows(queries, r.width()), kernel.Columns(keys, kept), r.m.p, r.seq, false, kernel.Full, z)
	r.Softmax(r.c, r.m.p, kernel.Scores{Rows: r.Heads * n, Width: r.seq, Low: at, Each: n, Window: r.Window, Scale: r.scale()})
	z.AH, z.CH = z.CH, r.HeadDim
	r.Gemm(r.c, n, r.HeadDim, seen, kernel.Rows(r.m.p, r.seq), kernel.Rows(keys.At(r.kv()), kept), out, r.q(), false, kernel.Full, z)
}

// normed returns the heads that models with QKNorm normalize.
func (s sizes) normed() kernel.Heads {
	return kernel.Heads{Queries: s.Heads, Keys: s.KVHeads, Width: s.HeadDim, Row: s.width()}
}

// loss records the last norm, the head and its loss, and with backward what makes dx, the gradient
// of the last layer's output.
func (r *recorder) loss(backward bool) {
	m, d, rows := r.m, r.Hidden, r.rows()
	r.RMSNorm(r.c, m.h, m.last, m.params.norm, m.lastInv, m.dx, rows, d, r.Eps) // dx is not in use yet
	r.head(backward)
	if backward {
		r.c.Clear(m.dx.First(rows * d))
		r.RMSNormBackward(r.c, m.dx, m.grad.norm, m.dh, m.last, m.params.norm, m.lastInv, m.partial, r.sequences, r.seq, d)
	}
}

// read records a forward pass up to the last norm's output in h. That of the rows whose logits are
// asked for goes to dh.
func (r *recorder) read() {
	r.embed()
	r.forward()
	m, d, row, n := r.m, r.Hidden, 0, 0
	r.RMSNorm(r.c, m.h, m.last, m.params.norm, m.lastInv, m.dx, r.rows(), d, r.Eps)
	for _, t := range r.texts {
		row += len(t.Tokens)
		r.c.Copy(m.dh.At(n*d), m.h.At((row-t.Want)*d), t.Want*d)
		n += t.Want
	}
}

// logits records the head of n rows of dh.
func (r *recorder) logits(first, n int) {
	m, d := r.m, r.Hidden
	h, head := kernel.Rows(m.dh.At(first*d), d), kernel.Rows(m.params.head, d)
	if r.Numerics != llama.Exact8 {
		r.product(m.logits, h, head, n, r.Vocab, d, d, false)
		return
	}
	r.Gemm8(r.c, r.Pack(r.c, m.left, h, n, d, d), r.Pack(r.c, m.headOut, head, r.Vocab, d, d), m.logits, r.Vocab, false)
}

// head records the head and its loss, chunk by chunk. With backward it also sets dh, and adds to
// the gradient of the head what the embedding's does not come before.
func (r *recorder) head(backward bool) {
	m, d := r.m, r.Hidden
	eight := r.Numerics == llama.Exact8
	var in, out kernel.Packed
	if eight {
		out = r.Pack(r.c, m.headOut, kernel.Rows(m.params.head, d), r.Vocab, d, d)
	}
	if eight && backward {
		in = r.Pack(r.c, m.headIn, kernel.Columns(m.params.head, d), d, r.Vocab, r.Vocab)
	}
	r.chunks(0, r.rows(), func(first, n int, logits gpu.Words) {
		h, dh := kernel.Rows(m.h.At(first*d), d), m.dh.At(first*d)
		if eight {
			r.Gemm8(r.c, r.Pack(r.c, m.left, h, n, d, d), out, logits, r.Vocab, false)
		} else {
			r.product(logits, h, kernel.Rows(m.params.head, d), n, r.Vocab, d, d, false)
		}
		r.CrossEntropy(r.c, logits, r.tokens(), m.results, r.weight(), n, first, r.Vocab, r.seq, eight)
		switch {
		case !backward:
		case eight: // what the targets are due is subtracted as it is
			r.Gemm8(r.c, r.Pack(r.c, m.left, kernel.Rows(logits, r.Vocab), n, r.Vocab, r.Vocab), in, dh, d, false)
			r.SubtractFromRows(r.c, dh, m.params.head, r.tokens(), r.weight(), n, first, d, r.seq)
		default:
			r.product(dh, kernel.Rows(logits, r.Vocab), kernel.Columns(m.params.head, d), n, d, r.Vocab, r.Vocab, false)
		}
		if backward && !r.keeps() {
			r.headGradient(m.h, first, n, logits)
		}
		r.c.Cut()
	})
	if backward && r.keeps() {
		r.chunks(0, r.seq, func(first, n int, logits gpu.Words) { r.headGradient(m.h, first, n, logits) })
	}
}

// chunks calls f for the chunks of rows [from, to), and where their logits are. In 8 bits those
// of which the head's gradient is computed at once are whole blocks of one sequence.
func (r *recorder) chunks(from, to int, f func(first, n int, logits gpu.Words)) {
	most := r.chunk()
	for from < to {
		n, logits := min(most, to-from), r.m.logits
		if r.Numerics == llama.Exact8 && !r.keeps() {
			n = min(n, r.seq-from%r.seq)
		}
		if r.keeps() {
			logits = logits.At(from * r.Vocab)
		}
		f(from, n, logits)
		from += n
	}
}

// headGradient adds to the gradient of the head for n rows of h, the head's input, whose logits
// have become their gradients.
func (r *recorder) headGradient(h gpu.Words, first, n int, logits gpu.Words) {
	m, d := r.m, r.Hidden
	if m.grad.head.Len == 0 { // frozen
		return
	}
	r.product(m.grad.head, kernel.Columns(logits, r.Vocab), kernel.Columns(h.At(first*d), d), r.Vocab, d, n, n, true)
	if from := first + n - r.seq; r.Numerics == llama.Exact8 && from%r.seq == 0 { // a sequence ends
		r.SubtractFromHead(r.c, m.grad.head, h.At(from*d), r.tokens(), r.weight(), r.seq, from, d, r.seq)
	}
}

// backward records the layers' gradients for the forward pass before it, from dx to dx.
func (r *recorder) backward() {
	m, d, rows := r.m, r.Hidden, r.rows()
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
		if _, _, queries := r.attended(); queries < r.seq {
			r.c.Clear(m.dqkv.First(rows * r.width()))
		}
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
}

// embedBackward records the embedding's gradient, and what head has left of the head's.
func (r *recorder) embedBackward() {
	if r.m.grad.embed.Len == 0 { // frozen
		return
	}
	m, n := r.m, r.sorted()
	if r.keeps() { // last, which nobody reads any more, becomes the head's input again
		r.Normalize(r.c, m.last, m.last, m.params.norm, m.lastInv, r.rows(), r.Hidden)
	}
	for from := 0; from < r.rows(); from += n {
		if from > 0 && r.keeps() {
			r.chunks(from, from+n, func(first, n int, logits gpu.Words) { r.headGradient(m.last, first, n, logits) })
		}
		r.EmbedBackward(r.c, m.grad.embed, m.dx, r.tokens(), r.order().At(from), r.first().At(from/n*(n+1)), n, r.Hidden, r.seq)
	}
}

// heads is what attention computes at once: query heads of groups that share keys, in sequences,
// and of each the queries [low, low+size).
type heads struct {
	sizes
	first, count  int // sequences
	group, groups int
	head, each    int // of each group
	low, size     int
}

// eachHeads calls f for all queries of all heads of all sequences. Those of one group come in
// order: head after head, and in each query after query.
func (s sizes) eachHeads(f func(u heads)) {
	sequences, groups, queries := s.attended()
	for first := 0; first < s.sequences; first += sequences {
		for g := 0; g < s.KVHeads; g += groups {
			u := heads{s, first, min(sequences, s.sequences-first), g, min(groups, s.KVHeads-g), 0, s.each(), 0, s.seq}
			if queries == s.seq {
				f(u)
				continue
			}
			for u.head, u.each = 0, 1; u.head < s.each(); u.head++ {
				for u.low = 0; u.low < s.seq; u.low += queries {
					u.size = min(queries, s.seq-u.low)
					f(u)
				}
			}
		}
	}
}

// keys returns the number of keys that the queries attend to.
func (u heads) keys() int { return u.low + u.size }

// scores returns the number of scores of a sequence, and square that of a head.
func (u heads) scores() int { return u.groups * u.each * u.square() }
func (u heads) square() int { return u.size * u.seq }

// rows returns the number of rows of scores.
func (u heads) rows() int { return u.count * u.groups * u.each * u.size }

// batch returns the batch of all query heads, still without places.
func (u heads) batch() kernel.Batch {
	return kernel.Batch{Count: u.count * u.groups * u.each, Heads: u.groups * u.each, Each: u.each, Low: u.low}
}

// query returns the first query in a matrix of rows of width floats that begin with queries.
func (u heads) query(x gpu.Words, width int) gpu.Words {
	return x.At((u.first*u.seq+u.low)*width + (u.group*u.sizes.each()+u.head)*u.HeadDim)
}

// key and value return the first key and value in a matrix like qkv.
func (u heads) key(qkv gpu.Words) gpu.Words {
	return qkv.At(u.first*u.seq*u.width() + u.q() + u.group*u.HeadDim)
}

func (u heads) value(qkv gpu.Words) gpu.Words { return u.key(qkv).At(u.kv()) }

// probabilities leaves attention's probabilities in p. They are computed again for the backward
// pass, to the same bits, because storing those of all layers would take memory by the square of a
// sequence.
func (r *recorder) probabilities(u heads, a *activations) {
	z := u.batch()
	z.A, z.AH, z.B, z.BH, z.C, z.CH = r.seq*r.width(), r.HeadDim, r.seq*r.width(), r.HeadDim, u.scores(), u.square()
	r.Gemm(r.c, u.size, u.keys(), r.HeadDim, kernel.Rows(u.query(a.qkv, r.width()), r.width()), kernel.Columns(u.key(a.qkv), r.width()), r.m.p, r.seq, false, kernel.LowerC, z)
	r.Softmax(r.c, r.m.p, u.scored())
}

// scored returns where the scores of the queries are.
func (u heads) scored() kernel.Scores {
	return kernel.Scores{Rows: u.rows(), Width: u.seq, Low: u.low, Each: u.size, Window: u.Window, Scale: u.scale()}
}

func (s sizes) scale() float32 { return float32(1 / math.Sqrt(float64(s.HeadDim))) }

// attentionBackward sets the gradients of queries in dqkv, and those of keys and values, or adds to
// them where queries come in parts.
func (r *recorder) attentionBackward(u heads, a *activations) {
	m, d, width := r.m, r.HeadDim, r.width()
	r.probabilities(u, a)
	z := u.batch()
	z.A, z.AH, z.B, z.BH, z.C, z.CH = r.seq*r.q(), d, r.seq*width, d, u.scores(), u.square()
	datt := u.query(m.datt, r.q())
	r.Gemm(r.c, u.size, u.keys(), d, kernel.Rows(datt, r.q()), kernel.Columns(u.value(a.qkv), width), m.dp, r.seq, false, kernel.LowerC, z)
	r.SoftmaxBackward(r.c, m.dp, m.p, u.scored())
	z.A, z.AH, z.B, z.BH, z.C, z.CH = u.scores(), u.square(), r.seq*width, d, r.seq*width, d
	r.Gemm(r.c, u.size, d, u.keys(), kernel.Rows(m.dp, r.seq), kernel.Rows(u.key(a.qkv), width), u.query(m.dqkv, width), width, false, kernel.LowerA, z)
	// dv += pᵀ·dout and dk += dpᵀ·q, one chain over the queries of all heads of a group.
	for e := range u.each {
		z := kernel.Batch{Count: u.count * u.groups, Heads: u.groups, Each: 1, A: u.scores(), AH: u.each * u.square(), BH: u.each * d, C: r.seq * width, CH: d, Low: u.low}
		add := e > 0 || u.size < r.seq
		z.B = r.seq * r.q()
		r.Gemm(r.c, u.keys(), d, u.size, kernel.Columns(m.p.At(e*u.square()), r.seq), kernel.Rows(datt.At(e*d), r.q()), u.value(m.dqkv), width, add, kernel.UpperA, z)
		z.B = r.seq * width
		r.Gemm(r.c, u.keys(), d, u.size, kernel.Columns(m.dp.At(e*u.square()), r.seq), kernel.Rows(u.query(a.qkv, width).At(e*d), width), u.key(m.dqkv), width, add, kernel.UpperA, z)
	}
}
