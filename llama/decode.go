package llama

import (
	"errors"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// A Decoder reads tokens of several Texts at once: they share one pass over the parameters, of
// which it holds a copy in a suitable layout. The logits have the same bits as in training, however
// many tokens and texts are read at once, in the Config's Numerics. A Decoder must not be used
// concurrently; its Forks may.
type Decoder struct {
	*decoderWeights
	away    *away // nil: the pool computes
	pool    *exact.Pool
	rows    int
	worker  *exact.Worker      // for what is too small to share
	eight   *exact8.Multiplier // nil if products are in binary32
	scratch []decoderScratch   // of each worker of pool

	x, h, qkv, att, gu, f []float32 // of each row
	logits                []float32
	positions             []int // of each row's token in its text
	parts                 []Part

	// Arguments of the current product.
	product
	pieces                                    func(w *exact.Worker, i int)
	layer                                     int
	prepareRow, attendPart, swiglu, normalize func(w *exact.Worker, i int)
	gains                                     []float32
}

// decoderWeights are the parameters, which Decoders may share.
type decoderWeights struct {
	cfg    Config
	embed  []float32
	layers []decoderLayer
	norm   []float32
	head   matrix
	rope   *rope
}

// A matrix is a weight in the layout of the kernels for binary32, or for 8 bits.
type matrix struct {
	exact exact.Packed
	eight exact8.Packed
}

type decoderLayer struct {
	norm1, norm2     []float32
	bias, q, k       []float32 // as in layerWeights
	qkv, o, gu, down matrix
}

// A Text is what a Decoder has read of one text: its tokens, and their keys and values. The zero
// value is empty.
type Text struct {
	read   []uint32
	layers []textLayer
	most   int // tokens that there may be memory for; 0: the model's context
}

// textLayer holds the keys (HeadDim, tokens) and the values (tokens, HeadDim) of each key and value
// head.
type textLayer struct{ keys, values []exact.Packed }

// A Part of a Step is what it reads of one Text.
type Part struct {
	Text   *Text
	Tokens []uint32 // at least one; with those read before at most a context's
	// Want is the number of tokens, the last of Tokens, after each of which the logits of the next
	// are asked for.
	Want int
	// Logits is set by Step: (Want, Vocab), valid until the next Step.
	Logits []float32
	// Err is set by Step to ErrNotFinite, wrapped, if a logit is not finite.
	Err error
}

// decoderScratch is one worker's scratch memory.
type decoderScratch struct {
	scores    []float32
	qk, invQK []float32 // with QKNorm
}

// NewDecoder returns a Decoder that reads up to rows tokens at once and works on pool. params is
// laid out by cfg's Layout; the Decoder does not retain it.
func NewDecoder(cfg Config, params []float32, pool *exact.Pool, rows int) (*Decoder, error) {
	if err := cfg.checkParams(params); err != nil {
		return nil, err
	}
	d := newDecoderWeights(cfg).decoder(pool, rows)
	d.pack(params)
	return d, nil
}

// checkParams returns an error unless params are those of a model that a Decoder takes.
func (c Config) checkParams(params []float32) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if c.LoRA != (LoRA{}) {
		return errAdapters
	}
	if n := c.Layout().Len(); len(params) != n {
		return fmt.Errorf("got %d parameters for a model of %d", len(params), n)
	}
	if i := exact.Finite(params); i >= 0 {
		return fmt.Errorf("parameter %d is %g: %w", i, params[i], ErrNotFinite)
	}
	return nil
}

// Fork returns another Decoder of the same parameters, which it shares, for up to rows tokens at
// once. The two may be used at the same time, and take turns on the pool.
func (d *Decoder) Fork(rows int) *Decoder {
	f := d.decoder(d.pool, rows)
	f.away = d.away
	return f
}

// Generator returns a Generator that has read nothing, with a Fork.
func (d *Decoder) Generator() *Generator {
	rows := readRows
	if d.away != nil {
		rows = d.away.rows
	}
	return &Generator{cfg: d.cfg, decoder: d.Fork(rows)}
}

// Rows returns the most tokens that a Step reads.
func (d *Decoder) Rows() int { return d.rows }

// TextBytes returns the most bytes of the keys and values of a Text with memory for that many
// tokens.
func (c Config) TextBytes(tokens int) int64 {
	const line = exact.PackedLine // to a multiple of which packing fills up; and a bit between panels
	lines, dim := int64(tokens+line-1)/line, int64(c.HeadDim+line-1)/line*line
	return 4 * 2 * int64(c.Layers*c.KVHeads) * (lines*line + 1) * (dim + 1)
}

func newDecoderWeights(cfg Config) *decoderWeights {
	return &decoderWeights{cfg: cfg, layers: make([]decoderLayer, cfg.Layers), rope: newRope(new(batch), cfg, cfg.Context)}
}

func (w *decoderWeights) decoder(pool *exact.Pool, rows int) *Decoder {
	c := w.cfg
	floats := func(width int) []float32 { return make([]float32, rows*width) }
	d := &Decoder{
		decoderWeights: w, pool: pool, rows: rows, worker: exact.NewWorker(pool.Kernel()), scratch: make([]decoderScratch, pool.Workers()),
		x: floats(c.Hidden), h: floats(c.Hidden), qkv: floats(c.heads() * c.HeadDim), att: floats(c.Heads * c.HeadDim),
		gu: floats(2 * c.FFN), f: floats(c.FFN), positions: make([]int, 0, rows),
	}
	if c.Numerics == Exact8 {
		d.eight = exact8.NewMultiplier(pool)
	}
	for i := range d.scratch {
		if c.QKNorm {
			d.scratch[i].qk, d.scratch[i].invQK = make([]float32, c.turned()*c.HeadDim), make([]float32, c.turned())
		}
	}
	d.pieces, d.prepareRow, d.attendPart, d.swiglu, d.normalize = d.doPiece, d.doPrepare, d.doAttend, d.doSwiGLU, d.doNormalize
	return d
}

// pack copies the parameters.
func (d *Decoder) pack(params []float32) {
	var w weights
	w.point(d.cfg, d.cfg.Layout(), params)
	var matrices []func(w *exact.Worker)
	matrix := func(m *matrix, x []float32, in int) {
		if d.eight != nil {
			d.eight.Pack(&m.eight, len(x)/in, in, in, x, 1, in)
			return
		}
		matrices = append(matrices, func(w *exact.Worker) { w.Pack(&m.exact, in, len(x)/in, x, 1, in) })
	}
	d.embed, d.norm = slices.Clone(w.embed), slices.Clone(w.norm)
	matrix(&d.head, w.head, d.cfg.Hidden)
	for l := range d.layers {
		to, from := &d.layers[l], &w.layers[l]
		to.norm1, to.norm2 = slices.Clone(from.norm1), slices.Clone(from.norm2)
		to.bias, to.q, to.k = slices.Clone(from.bias), slices.Clone(from.q), slices.Clone(from.k)
		matrix(&to.qkv, from.qkv, d.cfg.Hidden)
		matrix(&to.o, from.o, d.cfg.Heads*d.cfg.HeadDim)
		matrix(&to.gu, from.gu, d.cfg.Hidden)
		matrix(&to.down, from.down, d.cfg.FFN)
	}
	d.pool.RunOn(len(matrices), func(w *exact.Worker, i int) { matrices[i](w) })
}

// Len returns the number of tokens read.
func (t *Text) Len() int { return len(t.read) }

// Keep forgets all tokens but those that a text begins with, and returns how many those are, less
// than the text's. A Step then takes the rest of the text. There will be memory for most tokens at
// most, or for the model's context if most is 0.
func (t *Text) Keep(text []uint32, most int) int {
	t.most = most
	t.read = t.read[:t.Shared(text)]
	return len(t.read)
}

// Memory returns the bytes that the keys and values have allocated.
func (t *Text) Memory() (bytes int64) {
	for _, l := range t.layers {
		for i := range l.keys {
			bytes += int64(l.keys[i].Memory() + l.values[i].Memory())
		}
	}
	return bytes
}

// Shared returns how many tokens Keep would keep.
func (t *Text) Shared(text []uint32) (n int) {
	for n+1 < len(text) && n < len(t.read) && t.read[n] == text[n] {
		n++
	}
	return n
}

// Free forgets all tokens and lets go of their memory.
func (t *Text) Free() { *t = Text{} }

// Step reads tokens of several texts, at most Rows in all, no text twice. If an argument is wrong,
// it returns an error and reads nothing.
func (d *Decoder) Step(parts []Part) error {
	if err := d.check(parts); err != nil {
		return err
	}
	if !d.away.step(d, parts) {
		for _, p := range parts {
			if p.Text.layers == nil { // computed elsewhere so far, or empty
				_ = p.Text.again(d.rows, func(p Part) error { d.compute([]Part{p}); return nil })
			}
		}
		d.compute(parts)
	}
	for i := range parts {
		p := &parts[i]
		p.Text.read, p.Err = append(p.Text.read, p.Tokens...), nil
		if i := d.worker.Finite(p.Logits); i >= 0 {
			p.Err = fmt.Errorf("the logit of token %d is %g: %w", i%d.cfg.Vocab, p.Logits[i], ErrNotFinite)
		}
	}
	return nil
}

// again calls read with the tokens of t from the first on, at most rows at once, each time as if it
// were the first time that they are read.
func (t *Text) again(rows int, read func(p Part) error) error {
	all := t.read
	defer func() { t.read = all }()
	for at := 0; at < len(all); at += rows {
		t.read = all[:at]
		if err := read(Part{Text: t, Tokens: all[at:min(at+rows, len(all))]}); err != nil {
			return err
		}
	}
	return nil
}

// compute computes a Step's logits, and keys and values of what it reads.
func (d *Decoder) compute(parts []Part) {
	c, width := d.cfg, d.cfg.Hidden
	d.parts = parts
	for _, p := range parts {
		if p.Text.layers == nil {
			p.Text.layers = make([]textLayer, c.Layers)
			for l := range p.Text.layers {
				p.Text.layers[l] = textLayer{make([]exact.Packed, c.KVHeads), make([]exact.Packed, c.KVHeads)}
			}
		}
		for i, token := range p.Tokens {
			copy(d.x[len(d.positions)*width:], d.embed[int(token)*width:][:width])
			d.positions = append(d.positions, len(p.Text.read)+i)
		}
	}
	rows := len(d.positions)
	for l := range d.layers {
		layer := &d.layers[l]
		d.layer = l
		d.norms(rows, layer.norm1)
		d.multiply(rows, c.heads()*c.HeadDim, width, d.h, &layer.qkv, d.qkv, false)
		d.each(rows, d.prepareRow)
		d.pool.RunOn(len(parts)*c.KVHeads, d.attendPart)
		d.multiply(rows, width, c.Heads*c.HeadDim, d.att, &layer.o, d.x, true)
		d.norms(rows, layer.norm2)
		d.multiply(rows, 2*c.FFN, width, d.h, &layer.gu, d.gu, false)
		d.each(rows, d.swiglu)
		d.multiply(rows, width, c.FFN, d.f, &layer.down, d.x, true)
	}
	d.predict()
	d.parts, d.positions = nil, d.positions[:0]
}

// check returns the first fault of a Step.
func (d *Decoder) check(parts []Part) error {
	rows := 0
	for i, p := range parts {
		rows += len(p.Tokens)
		switch {
		case p.Want < 0 || p.Want > len(p.Tokens):
			return fmt.Errorf("logits of %d of %d tokens", p.Want, len(p.Tokens))
		case len(p.Text.read)+len(p.Tokens) > p.Text.room(d.cfg):
			return fmt.Errorf("%d tokens after %d, where there is room for %d", len(p.Tokens), len(p.Text.read), p.Text.room(d.cfg))
		case slices.ContainsFunc(parts[:i], func(q Part) bool { return q.Text == p.Text }):
			return errors.New("a text that is read twice at once")
		}
		if err := d.cfg.known(p.Tokens); err != nil {
			return err
		}
	}
	if rows > d.rows {
		return fmt.Errorf("%d tokens at once, more than %d", rows, d.rows)
	}
	return nil
}

// known returns an error unless there are tokens, all of the vocabulary.
func (c Config) known(tokens []uint32) error {
	if len(tokens) == 0 {
		return errors.New("no tokens to read")
	}
	for i, t := range tokens {
		if int64(t) >= int64(c.Vocab) {
			return fmt.Errorf("token %d at position %d is beyond the vocabulary of %d", t, i, c.Vocab)
		}
	}
	return nil
}

// room returns the number of tokens that t may have.
func (t *Text) room(c Config) int {
	if t.most == 0 {
		return c.Context
	}
	return min(t.most, c.Context)
}

// predict computes the logits that the parts ask for.
func (d *Decoder) predict() {
	c, n, row := d.cfg, 0, 0
	for _, p := range d.parts {
		row += len(p.Tokens)
		for i := row - p.Want; i < row; i++ {
			d.worker.RMSNorm(d.h[n*c.Hidden:(n+1)*c.Hidden], d.x[i*c.Hidden:(i+1)*c.Hidden], d.norm, c.Eps)
			n++
		}
	}
	if len(d.logits) < n*c.Vocab {
		d.logits = make([]float32, n*c.Vocab)
	}
	if n > 0 {
		d.multiply(n, c.Vocab, c.Hidden, d.h, &d.head, d.logits, false)
	}
	at := 0
	for i := range d.parts {
		p := &d.parts[i]
		p.Logits = d.logits[at : at+p.Want*c.Vocab]
		at += p.Want * c.Vocab
	}
}

// fewRows is the most rows whose work between products is done by one worker, because waking
// another takes longer.
const fewRows = 4

// each calls f for each row.
func (d *Decoder) each(rows int, f func(w *exact.Worker, i int)) {
	if rows > fewRows {
		d.pool.RunOn(rows, f)
		return
	}
	for i := range rows {
		f(d.worker, i)
	}
}

// norms computes h from x.
func (d *Decoder) norms(rows int, gains []float32) {
	d.gains = gains
	d.each(rows, d.normalize)
}

func (d *Decoder) doNormalize(w *exact.Worker, i int) {
	n := d.cfg.Hidden
	w.RMSNorm(d.h[i*n:(i+1)*n], d.x[i*n:(i+1)*n], d.gains, d.cfg.Eps)
}

func (d *Decoder) doSwiGLU(w *exact.Worker, i int) {
	n := d.cfg.FFN
	gu := d.gu[2*i*n : 2*(i+1)*n]
	w.SwiGLU(d.f[i*n:(i+1)*n], gu[:n], gu[n:])
}

// product is y (rows, out) = x·mᵀ, or y += x·mᵀ if acc is set; x is (rows, in). Pieces of it are
// each columns of y.
type product struct {
	of        int // rows
	out, in   int
	from      []float32
	by        *matrix
	to        []float32
	acc       bool
	eachPiece int // columns
}

// multiply computes a product.
func (d *Decoder) multiply(rows, out, in int, x []float32, m *matrix, y []float32, acc bool) {
	if d.eight != nil {
		d.eight.GemmPacked(rows, x, in, 1, &m.eight, y, out, acc)
		return
	}
	lines := (out + exact.PackedLine - 1) / exact.PackedLine
	each := max(1, lines/(piecesPerWorker*d.pool.Workers())) * exact.PackedLine
	d.product = product{rows, out, in, x, m, y, acc, each}
	d.pool.RunOn((out+each-1)/each, d.pieces)
}

// piecesPerWorker is the number of pieces of a product for each worker, so that one that others
// interrupt has less to do than the rest.
const piecesPerWorker = 4

func (d *Decoder) doPiece(w *exact.Worker, i int) {
	p := &d.product
	from, to := i*p.eachPiece, min((i+1)*p.eachPiece, p.out)
	columns := p.by.exact.Columns(from, to)
	w.GemmPacked(p.of, to-from, p.in, p.from, p.in, 1, &columns, p.to[from:], p.out, p.acc)
}

// doPrepare makes queries, keys and values of the products in row i of qkv.
func (d *Decoder) doPrepare(w *exact.Worker, i int) {
	c, layer, s := d.cfg, &d.layers[d.layer], &d.scratch[w.Index()]
	width := c.heads() * c.HeadDim
	qkv := d.qkv[i*width : (i+1)*width]
	if c.Bias {
		w.Add(qkv, layer.bias)
	}
	if c.QKNorm {
		normHeads(w, c, qkv, s.qk, s.invQK, layer.q, layer.k)
	}
	turnRow(c, qkv, 0, d.rope.cos, d.rope.sin, d.positions[i], w, false)
}

// doAttend adds the keys and values of one head in one part to its text, and computes the rows of
// att for the queries that attend to it.
func (d *Decoder) doAttend(w *exact.Worker, i int) {
	c, s := d.cfg, &d.scratch[w.Index()]
	part, kv := i/c.KVHeads, i%c.KVHeads
	p, row := d.parts[part], 0
	for _, before := range d.parts[:part] {
		row += len(before.Tokens)
	}
	layer := &p.Text.layers[d.layer]
	keys, values := &layer.keys[kv], &layer.values[kv]
	dim, width, first, rows := c.HeadDim, c.heads()*c.HeadDim, len(p.Text.read), len(p.Tokens)
	for r := range rows {
		qkv := d.qkv[(row+r)*width:]
		w.PackColumn(keys, first+r, p.Text.room(c), qkv[(c.Heads+kv)*dim:][:dim])
		w.PackRow(values, first+r, p.Text.room(c), qkv[(c.Heads+c.KVHeads+kv)*dim:][:dim])
	}
	each, n := c.Heads/c.KVHeads, first+rows
	stride := (n+31)/32*32 + 16 // as in attention
	if each > rows {            // the heads of a row lie one after another
		for r := range rows {
			d.attend(w, s, each, n-rows+r+1, 0, stride, d.qkv[(row+r)*width+kv*each*dim:], dim, keys, values, d.att[((row+r)*c.Heads+kv*each)*dim:], dim)
		}
		return
	}
	for h := kv * each; h < (kv+1)*each; h++ {
		d.attend(w, s, rows, n, 1, stride, d.qkv[row*width+h*dim:], width, keys, values, d.att[(row*c.Heads+h)*dim:], c.Heads*dim)
	}
}

// attend computes rows of att from as many queries, the last of which attends to n keys, and each
// to later keys by later, 0 or 1, than the one before.
func (d *Decoder) attend(w *exact.Worker, s *decoderScratch, rows, n, later, stride int, q []float32, qs int, keys, values *exact.Packed, out []float32, outs int) {
	c := d.cfg
	if len(s.scores) < rows*stride {
		s.scores = make([]float32, rows*(stride+stride/2))
	}
	w.GemmPacked(rows, n, c.HeadDim, q, qs, 1, keys, s.scores, stride, false)
	for r := range rows {
		row := s.scores[r*stride : (r+1)*stride]
		seen := n - later*(rows-1-r)
		before(row[:c.first(seen-1)])
		w.Softmax(nothingBehind(row, seen), c.scale())
		clear(row[seen:n])
	}
	w.GemmPacked(rows, c.HeadDim, n, s.scores, stride, 1, values, out, outs, false)
}
