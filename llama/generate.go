package llama

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/tensor"
)

// A Generator reads tokens and predicts the next. It caches the keys and values of the tokens it
// has read, so each token costs one pass over the parameters, of which it holds a copy in a
// suitable layout. Its logits have the same bits as in training, however many tokens it reads at
// once, and with how many other Generators, in the Config's Numerics. A Generator must not be used
// concurrently.
type Generator struct {
	*generatorWeights
	read   []uint32         // the tokens in the cache
	layers []generatorCache // of each layer
	rows   *generatorRows
	logits []float32 // (Vocab)
}

// generatorWeights are the parameters, which Generators may share.
type generatorWeights struct {
	cfg    Config
	embed  []float32
	layers []generatorLayer
	norm   []float32
	head   matrix
	rope   *rope
}

// A matrix is a weight in the layout of the kernels for binary32, or for 8 bits.
type matrix struct {
	exact exact.Packed
	eight exact8.Packed
}

type generatorLayer struct {
	norm1, norm2     []float32
	bias, q, k       []float32 // as in layerWeights
	qkv, o, gu, down matrix
}

// generatorCache holds the keys and values of a layer, (tokens, KVHeads·HeadDim) each.
type generatorCache struct{ keys, values []float32 }

// readRows is the most tokens that a Generator reads at once.
const readRows = 32

// generatorRows is the scratch memory for some tokens, one row each.
type generatorRows struct {
	worker                *exact.Worker
	eight                 *exact8.Multiplier // of one worker; nil if products are in binary32
	x, h, qkv, att, gu, f []float32
	qk, invQK             []float32 // with QKNorm
	scores                []float32 // (Context), of one row
}

// NewGenerator returns a Generator that has read nothing. params is laid out by cfg's Layout; the
// Generator does not retain it.
func NewGenerator(cfg Config, params []float32) (*Generator, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if cfg.LoRA != (LoRA{}) {
		return nil, errAdapters
	}
	layout := cfg.Layout()
	if len(params) != layout.Len() {
		return nil, fmt.Errorf("got %d parameters for a model of %d", len(params), layout.Len())
	}
	if i := exact.Finite(params); i >= 0 {
		return nil, fmt.Errorf("parameter %d is %g: %w", i, params[i], ErrNotFinite)
	}
	w := &generatorWeights{cfg: cfg, layers: make([]generatorLayer, cfg.Layers), rope: newRope(new(batch), cfg, cfg.Context)}
	g := w.generator()
	g.pack(layout, params)
	return g, nil
}

// generator returns a Generator that has read nothing.
func (w *generatorWeights) generator() *Generator {
	c, n := w.cfg, min(readRows, w.cfg.Context)
	r := &generatorRows{
		worker: exact.NewWorker(exact.Kernels()[0]), x: make([]float32, n*c.Hidden), h: make([]float32, n*c.Hidden),
		qkv: make([]float32, n*c.heads()*c.HeadDim), att: make([]float32, n*c.Heads*c.HeadDim), gu: make([]float32, n*2*c.FFN),
		f: make([]float32, n*c.FFN), scores: make([]float32, c.Context),
	}
	if c.Numerics == Exact8 {
		r.eight = exact8.NewMultiplier(exact.NewPool(1)) // of one worker, which is no goroutine
	}
	if c.QKNorm {
		r.qk, r.invQK = make([]float32, c.turned()*c.HeadDim), make([]float32, c.turned())
	}
	return &Generator{generatorWeights: w, layers: make([]generatorCache, c.Layers), rows: r, logits: make([]float32, c.Vocab)}
}

// Fork returns another Generator of the same parameters, which it shares, that has read nothing.
// The two may be used at the same time.
func (g *Generator) Fork() *Generator { return g.generator() }

// pack copies the parameters.
func (g *Generator) pack(layout tensor.Layout, params []float32) {
	var w weights
	w.point(g.cfg, layout, params)
	d := g.cfg.Hidden
	matrix := func(m *matrix, x []float32, in int) {
		if e := g.rows.eight; e != nil {
			e.Pack(&m.eight, len(x)/in, in, in, x, 1, in)
			return
		}
		g.rows.worker.Pack(&m.exact, in, len(x)/in, x, 1, in)
	}
	g.embed, g.norm = slices.Clone(w.embed), slices.Clone(w.norm)
	matrix(&g.head, w.head, d)
	for l := range g.layers {
		to, from := &g.generatorWeights.layers[l], &w.layers[l]
		to.norm1, to.norm2 = slices.Clone(from.norm1), slices.Clone(from.norm2)
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
	last := 0
	for len(tokens) > 0 {
		if len(g.read) == g.cfg.Context {
			g.forget()
		}
		n := min(len(tokens), readRows, g.cfg.Context-len(g.read))
		last = n - 1
		g.step(tokens[:n])
		tokens = tokens[n:]
	}
	r, d := g.rows, g.cfg.Hidden
	r.worker.RMSNorm(r.h[:d], r.x[last*d:(last+1)*d], g.norm, g.cfg.Eps)
	r.multiply(1, g.cfg.Vocab, d, r.h, &g.head, g.logits, false)
	if i := exact.Finite(g.logits); i >= 0 {
		return nil, fmt.Errorf("the logit of token %d is %g: %w", i, g.logits[i], ErrNotFinite)
	}
	return g.logits, nil
}

// Reset forgets all tokens.
func (g *Generator) Reset() { g.Keep(nil) }

// Keep forgets all tokens but those that a text begins with, and returns how many those are, less
// than the text's. Read then takes the rest of the text.
func (g *Generator) Keep(text []uint32) int {
	n := 0
	for n+1 < len(text) && n < len(g.read) && g.read[n] == text[n] {
		n++
	}
	g.read = g.read[:n]
	for l := range g.layers {
		c, kv := &g.layers[l], g.cfg.KVHeads*g.cfg.HeadDim
		c.keys, c.values = c.keys[:n*kv], c.values[:n*kv]
	}
	return n
}

// forget drops the older half of a full context and reads the newer half again.
func (g *Generator) forget() {
	young := slices.Clone(g.read[len(g.read)-g.cfg.Context/2:])
	g.Reset()
	for part := range slices.Chunk(young, readRows) {
		g.step(part)
	}
}

// step reads tokens that fit into the context, and leaves the last layer's outputs in x.
func (g *Generator) step(tokens []uint32) {
	c, r, w, rows := g.cfg, g.rows, g.rows.worker, len(tokens)
	d, q, width := c.Hidden, c.Heads*c.HeadDim, c.heads()*c.HeadDim
	for i, t := range tokens {
		copy(r.x[i*d:(i+1)*d], g.embed[int(t)*d:])
	}
	norm := func(gains []float32) {
		for i := range rows {
			w.RMSNorm(r.h[i*d:(i+1)*d], r.x[i*d:(i+1)*d], gains, c.Eps)
		}
	}
	for l := range g.layers {
		layer := &g.generatorWeights.layers[l]
		norm(layer.norm1)
		r.multiply(rows, width, d, r.h, &layer.qkv, r.qkv, false)
		for i := range rows {
			g.attend(layer, &g.layers[l], i)
		}
		r.multiply(rows, d, q, r.att, &layer.o, r.x, true)
		norm(layer.norm2)
		r.multiply(rows, 2*c.FFN, d, r.h, &layer.gu, r.gu, false)
		for i := range rows {
			gu := r.gu[2*i*c.FFN : 2*(i+1)*c.FFN]
			w.SwiGLU(r.f[i*c.FFN:(i+1)*c.FFN], gu[:c.FFN], gu[c.FFN:])
		}
		r.multiply(rows, d, c.FFN, r.f, &layer.down, r.x, true)
	}
	g.read = append(g.read, tokens...)
}

// multiply computes y (rows, out) = x·mᵀ, or y += x·mᵀ if acc is set: x is (rows, in).
func (r *generatorRows) multiply(rows, out, in int, x []float32, m *matrix, y []float32, acc bool) {
	if r.eight != nil {
		r.eight.GemmPacked(rows, x, in, 1, &m.eight, y, out, acc)
		return
	}
	r.worker.GemmPacked(rows, out, in, x, in, 1, &m.exact, y, out, acc)
}

// attend computes row i of att from that of qkv, and adds its keys and values to the cache.
func (g *Generator) attend(layer *generatorLayer, cache *generatorCache, i int) {
	c, r, w := g.cfg, g.rows, g.rows.worker
	position, d, kv := len(g.read)+i, c.HeadDim, c.KVHeads*c.HeadDim
	qkv := r.qkv[i*c.heads()*d : (i+1)*c.heads()*d]
	if c.Bias {
		w.Add(qkv, layer.bias)
	}
	if c.QKNorm {
		normHeads(w, c, qkv, r.qk, r.invQK, layer.q, layer.k)
	}
	turnRow(c, qkv, 0, g.rope.cos, g.rope.sin, position, w, false)
	cache.keys = append(cache.keys, qkv[c.Heads*d:(c.Heads+c.KVHeads)*d]...)
	cache.values = append(cache.values, qkv[(c.Heads+c.KVHeads)*d:]...)
	n := position + 1
	for h := range c.Heads {
		at := h * c.KVHeads / c.Heads * d
		w.Gemm(1, n, d, qkv[h*d:], d, 1, cache.keys[at:], 1, kv, r.scores, n, false)
		before(r.scores[:c.first(position)])
		w.Softmax(r.scores[:n], c.scale())
		w.Gemm(1, d, n, r.scores, n, 1, cache.values[at:], kv, 1, r.att[(i*c.Heads+h)*d:], d, false)
	}
}
