package vulkan

import (
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/llama"
)

// weights is where a model's parameters, or their gradient, are on a device. Each part has memory
// of its own, because drivers limit what one allocation can hold.
type weights struct {
	parts      parts
	embed      gpu.Words
	layers     []layerWeights
	norm, head gpu.Words
}

// A part is elements [from, from+at.Len) of the flat parameters.
type part struct {
	from int
	at   gpu.Words
}

// parts are parts one behind the other.
type parts []part

// layerWeights is one layer's, in the shapes of package llama.
// Biases, and the gains of heads, are only in models that have them.
type layerWeights struct{ norm1, qkv, bias, heads, o, norm2, gu, down gpu.Words }

// activations is what the backward pass needs of a layer's forward pass.
type activations struct{ x, inv1, qkv, qk, invQK, att, x2, inv2, gu gpu.Words }

// memory is what a model has on a device.
type memory struct {
	params, grad weights
	texts        []gpu.Words // keys and values of a token, token by token, layer by layer

	own, ownGrad parts // what is trained, and its gradient: params and grad, or adapters and theirs
	adapters     adapters

	mean, square parts     // AdamW's moments, of inner steps
	begun        parts     // what inner steps begin with, for a codec on the device
	squares      gpu.Words // of the gradient: see kernel.SquaresLen; or none

	slot         // of the pass that is computed
	slots []slot // of all passes that are under way

	last, out, lastInv, h, dh, f, dx, dqkv, datt, logits, partial, cosine, sine gpu.Words

	p, dp gpu.Words // attention's probabilities for some heads, and their gradient

	left, right, headOut, headIn gpu.Words // factors in 8 bits: of any product, and the head's

	coder *coder // nil: the codec runs on the processors
}

// A slot is what a pass leaves for a later part of it.
type slot struct {
	tokens  gpu.Words // of each sequence: see words
	results gpu.Words // of each row: two numbers that make its loss
	layers  []activations
}

// sizes are the sizes that a model's memory follows from.
type sizes struct {
	llama.Config              // of the whole model
	trained      llama.Config // with adapters, if they are trained
	seq          int          // tokens of a sequence
	sequences    int          // computed at once
	inner        bool         // a share is inner steps
	codec        codec.Codec  // nil: the codec runs on the processors

	// A device of several has layers [first, end), and the outer one also the embedding, the last
	// norm and the head. slots is the number of passes under way at once.
	first, end, slots int
	outer             bool

	// A model that only reads texts reads up to few tokens at once, of texts texts whose keys and
	// values it keeps. It has no gradient. 0: it trains.
	few, texts int
}

// whole reports whether the device has the whole model.
func (s sizes) whole() bool { return s.outer && s.end-s.first == s.Layers }

// newSizes returns the sizes for at most most sequences at once, with inner also of what inner
// steps take, and of what c takes if the device runs that codec.
func newSizes(cfg llama.Config, seq, most int, inner bool, c codec.Codec) sizes {
	if cfg.Tied { // the logits of all are kept
		most = min(most, max(1, rowsTied/seq))
	}
	if !coding(c, inner) {
		c = nil
	}
	return sizes{Config: cfg.Base(), trained: cfg, seq: seq, sequences: most, inner: inner, codec: c, end: cfg.Layers, slots: 1, outer: true}
}

// block is the number of rows in a block of the shapes of products.
const block = 64

// Bounds of memory that does not grow with the model. Tests make them small.
var (
	logitsFloats = 64 << 20 // of the head's output at a time
	rowsTied     = 8 << 10  // tokens that a tied model computes at once, or one sequence
	scoresFloats = 64 << 20 // of attention's scores at a time, or those of 64 queries
)

// loops returns the most iterations of an invocation's loops: over the rows of one token for the
// embedding's gradient, or three times over a sixteenth of the vocabulary for the loss.
func (s sizes) loops() int { return max(s.rows(), 3*((s.Vocab+15)/16)) }

func (s sizes) rows() int {
	if s.few > 0 {
		return s.few
	}
	return s.sequences * s.seq
}
func (s sizes) q() int      { return s.Heads * s.HeadDim }
func (s sizes) kv() int     { return s.KVHeads * s.HeadDim }
func (s sizes) width() int  { return s.q() + 2*s.kv() }
func (s sizes) turned() int { return s.Heads + s.KVHeads }
func (s sizes) each() int   { return s.Heads / s.KVHeads }

// keeps reports whether the logits of all rows stay until the embedding's gradient is computed.
// With a tied head the gradients of head and embedding are one chain, sequence after sequence:
// see package llama.
func (s sizes) keeps() bool { return s.Tied && s.sequences > 1 && s.few == 0 && !s.frozen() }

// chunk returns the number of rows of which the head is computed at once.
func (s sizes) chunk() int {
	if s.keeps() {
		return s.rows()
	}
	n := logitsFloats / s.Vocab
	if s.Numerics == llama.Exact8 { // whole blocks of one sequence
		return min(s.seq, max(n/exact8.Block*exact8.Block, exact8.Block))
	}
	if n >= 128 {
		n = n / 128 * 128
	}
	return min(s.rows(), max(n, 1))
}

// attended returns how many sequences, and groups of heads that share keys, attention computes at
// once, and how many queries of each: all, or of one head at a time as many as there is room for.
func (s sizes) attended() (sequences, groups, queries int) {
	group := s.each() * s.seq * s.seq
	if n := scoresFloats / (group * s.KVHeads); n > 0 {
		return min(n, s.sequences), s.KVHeads, s.seq
	}
	if n := scoresFloats / group; n > 0 {
		return 1, min(n, s.KVHeads), s.seq
	}
	return 1, 1, min(max(scoresFloats/s.seq/block*block, block), s.seq)
}

// allocate makes a model's memory with alloc, which returns n numbers.
func (s sizes) allocate(alloc func(n int) gpu.Words) *memory {
	rows, d := s.rows(), s.Hidden
	m := &memory{params: s.weights(alloc, false)}
	m.own = m.params.parts
	if s.few == 0 {
		m.grad = s.weights(alloc, s.frozen())
		m.ownGrad = m.grad.parts
	}
	if s.frozen() {
		m.own, m.ownGrad = s.own(alloc), s.own(alloc)
		s.adapt(m, alloc)
	}
	if s.inner {
		m.mean, m.square = s.own(alloc), s.own(alloc)
	}
	if s.whole() && (s.inner || s.codec != nil) {
		m.squares = alloc(kernel.SquaresLen(s.trained.Layout().Len()))
	}
	if s.codec != nil {
		if s.inner {
			m.begun = s.own(alloc)
		}
		m.coder = newCoder(s.codec, m.own, m.ownGrad, slices.Concat(m.mean, m.square), alloc)
	}
	for range s.slots {
		m.slots = append(m.slots, s.slot(alloc))
	}
	m.slot = m.slots[0]
	sums := d // numbers in a row of partial
	if s.Bias {
		sums = max(d, s.width())
	}
	if s.QKNorm {
		sums = max(d, s.turned()*s.HeadDim)
	}
	for range s.texts {
		m.texts = append(m.texts, alloc(s.seq*2*s.kv()*s.Layers))
	}
	m.last, m.lastInv, m.h, m.dh = alloc(rows*d), alloc(rows), alloc(rows*d), alloc(rows*d)
	m.out = m.last
	if s.outer && !s.whole() {
		m.out = alloc(rows * d)
	}
	m.f, m.dx = alloc(rows*s.FFN), alloc(rows*d)
	if s.few == 0 {
		m.dqkv, m.datt = alloc(rows*s.width()), alloc(rows*s.q())
	}
	if s.outer {
		m.logits = alloc(s.chunk() * s.Vocab)
	}
	m.partial = alloc(s.sequences * ((s.seq + 63) / 64) * sums)
	m.cosine, m.sine = alloc(s.seq*s.HeadDim/2), alloc(s.seq*s.HeadDim/2)
	if s.few > 0 {
		m.p = alloc(s.Heads * min(s.few, block) * s.seq)
	} else {
		scores := 0
		s.eachHeads(func(u heads) { scores = max(scores, u.count*u.scores()) })
		m.p, m.dp = alloc(scores), alloc(scores)
	}
	if s.Numerics == llama.Exact8 {
		left, right := s.factors()
		m.left, m.right = alloc(left), alloc(right)
	}
	if s.Numerics == llama.Exact8 && s.outer {
		m.headOut, m.headIn = alloc(packed(s.Vocab, d, d)), alloc(packed(d, s.Vocab, s.Vocab))
	}
	return m
}

// slot makes the memory of a pass.
func (s sizes) slot(alloc func(n int) gpu.Words) (x slot) {
	rows, d := s.rows(), s.Hidden
	if s.outer {
		x.tokens, x.results = alloc(s.words()), alloc(2*rows)
	}
	for l := range s.end - s.first {
		if s.few > 0 && l > 0 { // a layer's output may replace its input
			x.layers = append(x.layers, x.layers[0])
			continue
		}
		var qk, invQK gpu.Words
		if s.QKNorm {
			qk, invQK = alloc(rows*s.turned()*s.HeadDim), alloc(rows*s.turned())
		}
		x.layers = append(x.layers, activations{
			qk: qk, invQK: invQK,
			x: alloc(rows * d), inv1: alloc(rows), qkv: alloc(rows * s.width()), att: alloc(rows * s.q()),
			x2: alloc(rows * d), inv2: alloc(rows), gu: alloc(rows * 2 * s.FFN),
		})
	}
	return x
}

// packed returns the number of words that (rows, depth) takes in 8 bits.
func packed(rows, depth, each int) int {
	return kernel.PackedLen(rows, exact8.Blocks(depth, each))
}

// factors returns the lengths of the largest factors in 8 bits of all products.
func (s sizes) factors() (left, right int) {
	rows, d := s.rows(), s.Hidden
	for _, w := range [][2]int{{d, s.width()}, {s.q(), d}, {d, 2 * s.FFN}, {s.FFN, d}} {
		in, out := w[0], w[1]
		left = max(left, packed(rows, in, in), packed(rows, out, out), packed(out, rows, s.seq))
		right = max(right, packed(out, in, in), packed(in, out, out), packed(in, rows, s.seq))
	}
	n := s.chunk()
	left = max(left, packed(n, d, d), packed(n, s.Vocab, s.Vocab), packed(s.Vocab, n, n))
	return left, max(right, packed(d, n, n))
}

// words returns the length of what a pass takes from the host: tokens, rows sorted by token,
// where each token's rows begin, and the weight of a token's loss. Rows are sorted in parts of
// sorted rows.
func (s sizes) words() int { return s.sequences*(s.seq+1) + s.rows() + s.firsts() + 1 }

// sorted returns the number of rows that are sorted by token together: all, or with a tied head
// those of a sequence. firsts is the number of places of all parts' groups, and of their ends.
func (s sizes) sorted() int {
	if s.Tied {
		return s.seq
	}
	return s.rows()
}

func (s sizes) firsts() int { return s.rows() / s.sorted() * (s.sorted() + 1) }

// weights makes memory for parameters, or with frozen for what is needed of the gradient of a
// model that only its adapters' targets need. Nothing of it adds to what has no memory.
func (s sizes) weights(alloc func(n int) gpu.Words, frozen bool) (w weights) {
	t := s.Layout().Tensors()
	at := func(from, to int) func(i int) gpu.Words { // tensors [from, to)
		first := t[from].Offset
		p := part{first, alloc(t[to-1].Offset + t[to-1].Len - first)}
		w.parts = append(w.parts, p)
		return func(i int) gpu.Words { return p.at.At(t[i].Offset - first) }
	}
	if s.outer && !frozen {
		w.embed = at(0, 1)(0)
	}
	each := 9 // tensors in a layer
	if s.Bias {
		each += 3
	}
	if s.QKNorm {
		each += 2
	}
	for l := s.first; l < s.end; l++ {
		i := 1 + each*l
		f := at(i, i+each)
		x := layerWeights{norm1: f(i), qkv: f(i + 1)}
		i += 4
		if s.Bias {
			x.bias = f(i)
			i += 3
		}
		if s.QKNorm {
			x.heads = f(i)
			i += 2
		}
		x.o, x.norm2, x.gu, x.down = f(i), f(i+1), f(i+2), f(i+4)
		if frozen {
			x.freeze(s.trained.LoRA.Targets)
		}
		w.layers = append(w.layers, x)
	}
	if !s.outer {
		return w
	}
	last := 1 + each*s.Layers
	w.norm, w.head = at(last, last+1)(last), w.embed
	if !s.Tied && !frozen {
		w.head = at(last+1, last+2)(last + 1)
	}
	return w
}

// freeze leaves out of a layer's gradient what no adapter of t needs, as package llama does.
func (w *layerWeights) freeze(t llama.Targets) {
	for _, m := range []struct {
		of      *gpu.Words
		targets llama.Targets
	}{{&w.qkv, 1<<0 | 1<<1 | 1<<2}, {&w.o, 1 << 3}, {&w.gu, 1<<4 | 1<<5}, {&w.down, 1 << 6}} {
		if t&m.targets == 0 {
			*m.of = gpu.Words{}
		}
	}
}

// bytes returns how much memory a model takes on a device.
func (s sizes) bytes() (n uint64) {
	s.allocate(func(k int) gpu.Words {
		n += 4 * uint64(k)
		return gpu.Words{Len: k}
	})
	return n
}
