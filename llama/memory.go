package llama

import "github.com/entrain-network/entrain/exact8"

// activations holds what the backward pass needs from a layer's forward pass. The outputs of norms
// and gates are not kept: they are cheap to recompute.
type activations struct {
	x     []float32     // (rows, Hidden): the layer's input
	inv1  []float32     // (rows)
	qkv   []float32     // (rows, heads·HeadDim)
	qk    []float32     // (rows, (Heads + KVHeads)·HeadDim): before their norms; nil without QKNorm
	invQK []float32     // (rows, Heads + KVHeads)
	stats []float32     // (batch, Heads, seq, 2)
	att   []float32     // (rows, Heads·HeadDim); in 8 bits all layers share it
	att8  exact8.Packed // att in 8 bits
	x2    []float32     // (rows, Hidden): x plus the output of attention
	inv2  []float32     // (rows)
	gu    []float32     // (rows, 2·FFN)
}

// input returns the memory that holds layer l's input.
func (m *Model) input(l int) []float32 {
	switch {
	case l == m.cfg.Layers:
		return m.last
	case l%m.every == 0:
		return m.starts[l/m.every]
	}
	return m.layers[l%m.every].x
}

// activations returns the memory of layer l, which it shares with a layer in each other segment.
func (m *Model) activations(l int) *activations {
	a := &m.layers[l%m.every]
	a.x = m.input(l)
	return a
}

// newActivations allocates everything but x, which is in starts for the first layer of a segment.
func (m *Model) newActivations(rows int) activations {
	c, b := m.cfg, &m.batch
	d, q := c.Hidden, c.Heads*c.HeadDim
	var qk, invQK []float32
	if c.QKNorm {
		qk, invQK = b.floats(rows*c.turned()*c.HeadDim), b.floats(rows*c.turned())
	}
	var att []float32
	if b.eight == nil || len(m.layers) == 0 {
		att = b.floats(rows * q)
	} else {
		att = m.layers[0].att
	}
	return activations{
		qk: qk, invQK: invQK,
		inv1: b.floats(rows), qkv: b.floats(rows * c.heads() * c.HeadDim), stats: b.floats(rows * c.Heads * 2), att: att,
		x2: b.floats(rows * d), inv2: b.floats(rows), gu: b.floats(rows * 2 * c.FFN),
	}
}

// allocate allocates the memory that only Grad needs.
func (m *Model) allocate() {
	if m.allocated {
		return
	}
	m.allocated = true
	b, rows := &m.batch, len(m.lastInv)
	for len(m.layers) < m.every {
		a := m.newActivations(rows)
		a.x = b.floats(rows * m.cfg.Hidden)
		m.layers = append(m.layers, a)
	}
	for len(m.starts)*m.every < m.cfg.Layers {
		m.starts = append(m.starts, b.floats(rows*m.cfg.Hidden))
	}
	if e := b.eight; e == nil {
		m.datt = b.floats(rows * m.cfg.Heads * m.cfg.HeadDim)
	} else {
		m.datt = m.layers[0].att // which nothing needs after the forward pass of its layer
		wide := max(2*m.cfg.FFN, m.cfg.heads()*m.cfg.HeadDim, min(m.cfg.Vocab, strip))
		b.inner.rows.Reserve(rows, wide, false)
		b.inner.columns.Reserve(wide, rows, true)
		e.weight.Reserve(wide, m.cfg.Hidden)
		e.weight.Reserve(m.cfg.Hidden, wide)
	}
	m.dh = b.floats(rows * m.cfg.Hidden)
	m.dx = b.floats(rows * m.cfg.Hidden)
	m.dqkv = b.floats(rows * m.cfg.heads() * m.cfg.HeadDim)
	m.checks = make([]int32, (m.layout.Len()+checkLen-1)/checkLen)
	b.bytes += 4 * len(m.checks)
}

// Memory returns the number of bytes that the Model has allocated for activations, logits and
// scratch. Once Grad has run, that is all a step needs besides the parameters, the gradient and the
// pool's own memory (exact.Pool.Memory).
func (m *Model) Memory() int {
	bytes := m.batch.bytes + m.attention.packed()
	if e := m.batch.eight; e != nil {
		bytes += e.Memory() + e.weight.Memory() + e.input.Memory()
		for _, g := range []*gradient{&m.batch.outer, &m.batch.inner} {
			bytes += g.rows.Memory() + g.columns.Memory()
		}
		for i := range m.layers {
			bytes += m.layers[i].att8.Memory()
		}
		for i := range m.loss.kept {
			for j := range m.loss.kept[i].strips {
				bytes += m.loss.kept[i].strips[j].Memory()
			}
		}
	}
	return bytes
}
