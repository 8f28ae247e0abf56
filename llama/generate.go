package llama

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// A Generator reads tokens one by one and predicts the next. It caches the keys and values of the
// tokens it has read, so each token costs one pass over the parameters, of which it holds a copy in
// a suitable layout. Its logits have the same bits as in training. A Generator must not be used
// concurrently.
type Generator struct {
	cfg    Config
	worker *exact.Worker
	embed  []float32
	layers []generatorLayer
	norm   []float32
	head   exact.Packed
	read   []uint32 // the tokens in the cache
	rope   *rope

	x, h, qkv, att, gu, f []float32 // one row each
	qk, invQK             []float32 // one row each, with QKNorm
	scores                []float32 // (Context)
	logits                []float32 // (Vocab)
}

type generatorLayer struct {
	norm1, norm2     []float32
	bias, q, k       []float32 // as in layerWeights
	qkv, o, gu, down exact.Packed
	keys, values     []float32 // (Context, KVHeads·HeadDim)
}

// NewGenerator returns a Generator that has read nothing. params is laid out by cfg's Layout; the
// Generator does not retain it.
func NewGenerator(cfg Config, params []float32) (*Generator, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	layout := cfg.Layout()
	if len(params) != layout.Len() {
		return nil, fmt.Errorf("got %d parameters for a model of %d", len(params), layout.Len())
	}
	if i := exact.Finite(params); i >= 0 {
		return nil, fmt.Errorf("parameter %d is %g: %w", i, params[i], ErrNotFinite)
	}
	d, q, kv := cfg.Hidden, cfg.Heads*cfg.HeadDim, cfg.KVHeads*cfg.HeadDim
	g := &Generator{
		cfg: cfg, worker: exact.NewWorker(exact.Kernels()[0]), layers: make([]generatorLayer, cfg.Layers), rope: newRope(new(batch), cfg, cfg.Context),
		x: make([]float32, d), h: make([]float32, d), qkv: make([]float32, q+2*kv), att: make([]float32, q), gu: make([]float32, 2*cfg.FFN),
		f: make([]float32, cfg.FFN), scores: make([]float32, cfg.Context), logits: make([]float32, cfg.Vocab),
	}
	if cfg.QKNorm {
		g.qk, g.invQK = make([]float32, cfg.turned()*cfg.HeadDim), make([]float32, cfg.turned())
	}
	g.pack(layout, params)
	for l := range g.layers {
		g.layers[l].keys, g.layers[l].values = make([]float32, cfg.Context*kv), make([]float32, cfg.Context*kv)
	}
	return g, nil
}

// pack copies the parameters.
func (g *Generator) pack(layout tensor.Layout, params []float32) {
	var w weights
	w.point(g.cfg, layout, params)
	d := g.cfg.Hidden
	matrix := func(p *exact.Packed, x []float32, in int) { g.worker.Pack(p, in, len(x)/in, x, 1, in) }
	g.embed, g.norm = append([]float32(nil), w.embed...), append([]float32(nil), w.norm...)
	matrix(&g.head, w.head, d)
	for l := range g.layers {
		to, from := &g.layers[l], &w.layers[l]
		to.norm1, to.norm2 = append([]float32(nil), from.norm1...), append([]float32(nil), from.norm2...)
		to.bias, to.q, to.k = slices.Clone(from.bias), slices.Clone(from.q), slices.Clone(from.k)
		matrix(&to.qkv, from.qkv, d)
		matrix(&to.o, from.o, g.cfg.Heads*g.cfg.HeadDim)
		matrix(&to.gu, from.gu, d)
		matrix(&to.down, from.down, g.cfg.FFN)
	}
}

// Read appends tokens, at least one, to the text and returns the logits of the next token, which
// are valid until the next call. When the context is full, the Generator forgets the older half of
// it and reads the newer half again from position 0. If a token is beyond the vocabulary, Read
// returns an error and reads nothing.
func (g *Generator) Read(tokens ...uint32) ([]float32, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no tokens to read")
	}
	for i, t := range tokens {
		if int64(t) >= int64(g.cfg.Vocab) {
			return nil, fmt.Errorf("token %d at position %d is beyond the vocabulary of %d", t, i, g.cfg.Vocab)
		}
	}
	for _, t := range tokens {
		if len(g.read) == g.cfg.Context {
			g.forget()
		}
		g.step(t)
	}
	w, d := g.worker, g.cfg.Hidden
	w.RMSNorm(g.h, g.x, g.norm, g.cfg.Eps)
	w.GemmPacked(1, g.cfg.Vocab, d, g.h, d, 1, &g.head, g.logits, g.cfg.Vocab, false)
	if i := exact.Finite(g.logits); i >= 0 {
		return nil, fmt.Errorf("the logit of token %d is %g: %w", i, g.logits[i], ErrNotFinite)
	}
	return g.logits, nil
}

// Reset forgets all tokens.
func (g *Generator) Reset() { g.read = g.read[:0] }

// forget drops the older half of a full context and reads the newer half again.
func (g *Generator) forget() {
	young := append([]uint32(nil), g.read[len(g.read)-g.cfg.Context/2:]...)
	g.Reset()
	for _, t := range young {
		g.step(t)
	}
}

// step reads one token, and leaves the last layer's output in x.
func (g *Generator) step(token uint32) {
	c, w := g.cfg, g.worker
	d, q := c.Hidden, c.Heads*c.HeadDim
	copy(g.x, g.embed[int(token)*d:])
	for l := range g.layers {
		layer := &g.layers[l]
		w.RMSNorm(g.h, g.x, layer.norm1, c.Eps)
		w.GemmPacked(1, len(g.qkv), d, g.h, d, 1, &layer.qkv, g.qkv, len(g.qkv), false)
		g.attend(layer)
		w.GemmPacked(1, d, q, g.att, q, 1, &layer.o, g.x, d, true)
		w.RMSNorm(g.h, g.x, layer.norm2, c.Eps)
		w.GemmPacked(1, 2*c.FFN, d, g.h, d, 1, &layer.gu, g.gu, 2*c.FFN, false)
		w.SwiGLU(g.f, g.gu[:c.FFN], g.gu[c.FFN:])
		w.GemmPacked(1, d, c.FFN, g.f, c.FFN, 1, &layer.down, g.x, d, true)
	}
	g.read = append(g.read, token)
}

// attend computes att from qkv, and adds its keys and values to the cache.
func (g *Generator) attend(layer *generatorLayer) {
	c, w := g.cfg, g.worker
	position, d, kv := len(g.read), c.HeadDim, c.KVHeads*c.HeadDim
	if c.Bias {
		w.Add(g.qkv, layer.bias)
	}
	if c.QKNorm {
		normHeads(w, c, g.qkv, g.qk, g.invQK, layer.q, layer.k)
	}
	turnRow(c, g.qkv, 0, g.rope.cos, g.rope.sin, position, w, false)
	copy(layer.keys[position*kv:], g.qkv[c.Heads*d:(c.Heads+c.KVHeads)*d])
	copy(layer.values[position*kv:], g.qkv[(c.Heads+c.KVHeads)*d:])
	n := position + 1
	for h := range c.Heads {
		at := h * c.KVHeads / c.Heads * d
		w.Gemm(1, n, d, g.qkv[h*d:], d, 1, layer.keys[at:], 1, kv, g.scores, n, false)
		before(g.scores[:c.first(position)])
		w.Softmax(g.scores[:n], c.scale())
		w.Gemm(1, d, n, g.scores, n, 1, layer.values[at:], kv, 1, g.att[h*d:], d, false)
	}
}
