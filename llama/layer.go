package llama

// forwardLayer computes a layer from a.x and stores its output in next. If next is nil, it computes
// only what the backward pass needs.
func (m *Model) forwardLayer(a *activations, next []float32, w *layerWeights) {
	c, b := m.cfg, &m.batch
	b.linear(a.qkv, m.h, w.qkv, c.Hidden, c.heads()*c.HeadDim, false, m.norm.forward(m.h, a.x, w.norm1, a.inv1, a.x2), nil)
	if c.Bias {
		m.bias.forward(a.qkv, w.bias)
	}
	if c.QKNorm {
		m.heads.forward(a.qkv, a.qk, a.invQK, w.q, w.k)
	}
	m.rope.forward(a.qkv)
	m.attention.forward(a.att, a.stats, a.qkv)
	b.linear(a.x2, a.att, w.o, c.Heads*c.HeadDim, c.Hidden, true, nil, &a.att8)
	b.linear(a.gu, m.h, w.gu, c.Hidden, 2*c.FFN, false, m.norm.forward(m.h, a.x2, w.norm2, a.inv2, next), nil)
	if next != nil {
		b.linear(next, m.f, w.down, c.FFN, c.Hidden, true, m.mlp.forward(m.f, a.gu), nil)
	}
}

// backwardLayer adds the gradients of a layer's weights to g, and turns dx from the gradient of its
// output into the gradient of its input.
func (m *Model) backwardLayer(a *activations, w, g *layerWeights) {
	c, b := m.cfg, &m.batch
	b.take(&b.outer, m.dx, c.Hidden, nil, 0, nil)
	b.linearInput(m.f, &b.outer, w.down, c.FFN)
	b.take(&b.inner, a.gu, 2*c.FFN, m.f, c.FFN, m.mlp.backward(m.f, a.gu))
	b.linearWeight(g.down, &b.outer, m.f, c.FFN, nil)
	b.again(m.h, c.Hidden, m.norm.again(m.h, a.x2, w.norm2, a.inv2))
	b.linearWeight(g.gu, &b.inner, m.h, c.Hidden, nil)
	b.linearInput(m.dh, &b.inner, w.gu, c.Hidden)
	m.norm.backward(m.dx, g.norm2, m.dh, a.x2, w.norm2, a.inv2)

	b.take(&b.outer, m.dx, c.Hidden, nil, 0, nil)
	b.linearWeight(g.o, &b.outer, a.att, c.Heads*c.HeadDim, &a.att8)
	b.linearInput(m.datt, &b.outer, w.o, c.Heads*c.HeadDim)
	m.attention.backward(m.dqkv, m.datt, a.stats, a.qkv)
	m.rope.backward(m.dqkv)
	if c.QKNorm {
		m.heads.backward(m.dqkv, a.qk, a.invQK, w.q, w.k, g.q, g.k)
	}
	if c.Bias {
		m.bias.backward(g.bias, m.dqkv)
	}
	b.take(&b.inner, m.dqkv, c.heads()*c.HeadDim, m.h, c.Hidden, m.norm.again(m.h, a.x, w.norm1, a.inv1))
	b.linearWeight(g.qkv, &b.inner, m.h, c.Hidden, nil)
	b.linearInput(m.dh, &b.inner, w.qkv, c.Hidden)
	m.norm.backward(m.dx, g.norm1, m.dh, a.x, w.norm1, a.inv1)
}
