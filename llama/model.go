package llama

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/tensor"
)

// ErrNotFinite reports a loss or a gradient that is NaN or infinite: the parameters are broken, or
// the learning rate is far too high. No result of such a step may be used.
var ErrNotFinite = errors.New("not a finite number")

var errAdapters = errors.New("model: adapters compute nothing by themselves: merge them (Adapted) and use their Base")

// A Model computes losses and gradients of one Config. It holds the memory for the activations, not
// the parameters. It must not be used concurrently.
type Model struct {
	cfg       Config
	layout    tensor.Layout
	most      batch // largest batch and sequence
	batch     batch // batch of the current pass, shared by the operations below
	params    weights
	grads     weights
	trained   Targets // matrices whose gradients are needed; 0: all parameters
	embed     *embed
	norm      *norm
	bias      *bias
	heads     *headNorm
	rope      *rope
	attention *attention
	mlp       *mlp
	loss      *loss

	every     int           // layers in a segment, see NewRecomputing
	starts    [][]float32   // (rows, Hidden) each: the input of each segment's first layer
	layers    []activations // activations of one segment's layers
	last      []float32     // (rows, Hidden): output of the last layer
	lastInv   []float32     // (rows)
	h, dh     []float32     // (rows, Hidden): output of a norm, and its gradient
	f         []float32     // (rows, FFN)
	dx        []float32     // (rows, Hidden): gradient of the residual stream
	dqkv      []float32     // (rows, heads·HeadDim)
	datt      []float32     // (rows, Heads·HeadDim)
	allocated bool          // whether the memory that only Grad needs exists
	checks    []int32       // each gradient piece's first element that is not finite, or -1
	checked   []float32
	check     func(w *exact.Worker, i int)
}

// New returns a Model for batches of at most maxBatch sequences of at most maxSeq tokens, computed
// on pool. It reports all faults of cfg. It allocates the memory for the forward pass of one layer;
// the first Grad allocates the rest.
func New(cfg Config, pool *exact.Pool, maxBatch, maxSeq int) (*Model, error) {
	return NewRecomputing(cfg, pool, maxBatch, maxSeq, max(cfg.Layers, 1))
}

// NewRecomputing is like New, but the Model holds the activations of only every layers at a time,
// at least one. The forward pass keeps only the input of each segment of every layers. The backward
// pass recomputes the rest, segment by segment, to the same bits (T. Chen et al., "Training Deep
// Nets with Sublinear Memory Cost", 2016). Memory for activations falls from Layers to every +
// Layers/every·Hidden/(2·Hidden + (2·Heads + 2·KVHeads)·HeadDim + 2·FFN) layers' worth, for up to a
// third more work.
func NewRecomputing(cfg Config, pool *exact.Pool, maxBatch, maxSeq, every int) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if cfg.LoRA != (LoRA{}) {
		return nil, errAdapters
	}
	if maxBatch < 1 || maxSeq < 1 || maxSeq > cfg.Context {
		return nil, fmt.Errorf("model: a batch of %d sequences of %d tokens, want at least one, of 1 to %d tokens", maxBatch, maxSeq, cfg.Context)
	}
	if every < 1 || every > cfg.Layers {
		return nil, fmt.Errorf("model: activations of %d layers at a time, want 1 to %d", every, cfg.Layers)
	}
	m := &Model{cfg: cfg, layout: cfg.Layout(), every: every, most: batch{pool: pool, batch: maxBatch, seq: maxSeq}}
	if cfg.Tied {
		maxBatch = 1 // see the package comment
	}
	m.batch = batch{pool: pool, batch: maxBatch, seq: maxSeq}
	m.batch.fillShare = m.batch.doFill
	if cfg.Numerics == Exact8 {
		m.batch.eight = &eight{Multiplier: exact8.NewMultiplier(pool)}
	}
	b, rows := &m.batch, m.batch.rows()
	m.embed, m.norm, m.rope = newEmbed(b, cfg), newNorm(b, cfg), newRope(b, cfg, maxSeq)
	m.bias, m.heads = newBias(b, cfg), newHeadNorm(b, cfg)
	m.attention, m.mlp, m.loss = newAttention(b, cfg, maxSeq), newMLP(b, cfg), newLoss(b, cfg, rows)
	m.starts = [][]float32{b.floats(rows * cfg.Hidden)}
	m.layers = []activations{m.newActivations(rows)}
	m.last, m.lastInv = b.floats(rows*cfg.Hidden), b.floats(rows)
	m.h, m.f = b.floats(rows*cfg.Hidden), b.floats(rows*cfg.FFN)
	m.check = m.checkPiece
	return m, nil
}

// Masked is the bit of a token that the model reads but does not learn to predict: it has no part
// in the loss, nor a gradient as a target.
const Masked = 1 << 31

// Learnt returns how many of the tokens that the model predicts in sequences of seq+1 tokens are
// learnt: all but those with the bit Masked.
func Learnt(tokens []uint32, seq int) (n int) {
	for i, t := range tokens {
		if i%(seq+1) > 0 && t&Masked == 0 {
			n++
		}
	}
	return n
}

// Loss returns the mean cross-entropy, in nats per learnt token, or 0 if none is learnt, of batch
// sequences of seq+1 tokens each: the model sees the first seq and predicts the last seq. params is
// laid out by the Config's Layout; Loss panics if its length differs. Tokens beyond the vocabulary,
// a batch or sequence larger than the Model was made for, and a loss that is not finite
// (ErrNotFinite) are errors.
func (m *Model) Loss(params []float32, tokens []uint32, batch, seq int) (float32, error) {
	if err := m.enter(params, tokens, batch, seq); err != nil {
		return 0, err
	}
	m.loss.begin()
	var sum float64
	for i := 0; i < batch; i += m.batch.batch {
		part := tokens[i*(seq+1) : (i+m.batch.batch)*(seq+1)]
		m.forward(part, false)
		sum += m.loss.forward(m.h, m.params.head, part)
	}
	return mean(sum, Learnt(tokens, seq))
}

// Grad adds to grad the gradient of these sequences' part of a mean loss over total sequences, all
// of seq tokens, and returns the mean loss of these sequences as Loss does. Each learnt token
// weighs 1/(total·seq), however many are masked: what a token teaches does not depend on its
// neighbours, and the shares of members add up without a count of theirs. To get the gradient of
// the mean over a batch, call Grad once with total = batch on a zero grad. When memory is short,
// call it for parts of the batch, in order, with the same total: the calls add up to the same bits.
// Tokens and errors are as in Loss; after an error the contents of grad are undefined.
func (m *Model) Grad(params, grad []float32, tokens []uint32, batch, seq, total int) (float32, error) {
	if err := m.enter(params, tokens, batch, seq); err != nil {
		return 0, err
	}
	if total < batch {
		return 0, fmt.Errorf("gradient of %d sequences as part of %d", batch, total)
	}
	m.allocate()
	m.grads.point(m.cfg, m.layout, grad)
	m.grads.freeze(m.trained)
	m.loss.begin()
	weight := 1 / (float32(total) * float32(seq))
	var sum float64
	for i := 0; i < batch; i += m.batch.batch {
		part := tokens[i*(seq+1) : (i+m.batch.batch)*(seq+1)]
		m.forward(part, true)
		sum += m.backward(part, weight)
	}
	loss, err := mean(sum, Learnt(tokens, seq))
	if err != nil {
		return loss, err
	}
	return loss, m.checkFinite(grad)
}

// enter checks the arguments of a pass and sets the current batch.
func (m *Model) enter(params []float32, tokens []uint32, batch, seq int) error {
	if batch < 1 || batch > m.most.batch || seq < 1 || seq > m.most.seq {
		return fmt.Errorf("a batch of %d sequences of %d tokens, for a model made for 1 to %d of 1 to %d", batch, seq, m.most.batch, m.most.seq)
	}
	if len(tokens) != batch*(seq+1) {
		return fmt.Errorf("%d tokens, want %d sequences of %d and one more", len(tokens), batch, seq)
	}
	for i, t := range tokens {
		if int64(t&^Masked) >= int64(m.cfg.Vocab) {
			return fmt.Errorf("token %d at position %d of sequence %d is beyond the vocabulary of %d", t, i%(seq+1), i/(seq+1), m.cfg.Vocab)
		}
	}
	m.params.point(m.cfg, m.layout, params)
	m.batch.batch, m.batch.seq = batch, seq
	if m.cfg.Tied {
		m.batch.batch = 1
	}
	return nil
}

// mean returns the mean loss of n learnt tokens.
func mean(sum float64, n int) (float32, error) {
	if n == 0 {
		return 0, nil
	}
	loss := float32(sum / float64(n))
	if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
		return loss, fmt.Errorf("the loss is %g: %w", loss, ErrNotFinite)
	}
	return loss, nil
}

// forward leaves the last norm's output in h. Unless keep is set, all layers share the memory of
// the first.
func (m *Model) forward(tokens []uint32, keep bool) {
	m.layers[0].x = m.starts[0]
	m.embed.forward(m.starts[0], m.params.embed, tokens)
	for l := range m.cfg.Layers {
		a, next := &m.layers[0], m.starts[0]
		if keep {
			a, next = m.activations(l), m.input(l+1)
		}
		if l+1 == m.cfg.Layers {
			next = m.last
		}
		m.forwardLayer(a, next, &m.params.layers[l])
	}
	m.batch.fill(m.norm.forward(m.h, m.last, m.params.norm, m.lastInv, nil))
}

// backward adds the gradients for the preceding forward pass, and returns the sum of its losses.
func (m *Model) backward(tokens []uint32, weight float32) float64 {
	c, rows := m.cfg, m.batch.rows()
	sum := m.loss.backward(m.dh, m.grads.head, m.h, m.params.head, tokens, weight)
	clear(m.dx[:rows*c.Hidden])
	m.norm.backward(m.dx, m.grads.norm, m.dh, m.last, m.params.norm, m.lastInv)
	for high := c.Layers; high > 0; {
		low := (high - 1) / m.every * m.every
		if high < c.Layers { // a later segment has since overwritten this segment's memory
			for l := low; l < high; l++ {
				next := m.input(l + 1)
				if l+1 == high {
					next = nil
				}
				m.forwardLayer(m.activations(l), next, &m.params.layers[l])
			}
		}
		for l := high - 1; l >= low; l-- {
			m.backwardLayer(m.activations(l), &m.params.layers[l], &m.grads.layers[l])
		}
		high = low
	}
	if m.grads.embed != nil {
		m.embed.backward(m.grads.embed, m.dx, tokens)
	}
	return sum
}

// checkLen is the number of gradient floats that one piece of work checks.
const checkLen = 1 << 16

// checkFinite returns an error that names the first tensor whose gradient is not finite.
func (m *Model) checkFinite(grad []float32) error {
	m.checked = grad
	m.batch.pool.RunOn(len(m.checks), m.check)
	m.checked = nil
	for i, at := range m.checks {
		if at < 0 {
			continue
		}
		n := i*checkLen + int(at)
		for _, t := range m.layout.Tensors() {
			if n < t.Offset+t.Len {
				return fmt.Errorf("element %d of the gradient of %q is %g: %w", n-t.Offset, t.Name, grad[n], ErrNotFinite)
			}
		}
	}
	return nil
}

func (m *Model) checkPiece(w *exact.Worker, i int) {
	m.checks[i] = int32(w.Finite(m.checked[i*checkLen : min((i+1)*checkLen, len(m.checked))]))
}
