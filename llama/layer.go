package llama

// forwardLayer computes a layer from a.x and stores its output in next. If next is nil, it computes
// only what the backward pass needs.
func (m *Model) forwardLayer(a *activations, next []float32, w *layerWeights) {
	c, b := m.cfg, &m.batch
	m.norm.forward(m.h, a.x, w.norm1, a.inv1, a.x2)
	b.linear(a.qkv, m.h, w.qkv, c.Hidden, c.heads()*c.HeadDim, false)
	if c.Bias {
		m.bias.forward(a.qkv, w.bias)
	}
	if c.QKNorm {
		m.heads.forward(a.qkv, a.qk, a.invQK, w.q, w.k)
	}
	m.rope.forward(a.qkv)
	m.attention.forward(a.att, a.stats, a.qkv)
	b.linear(a.x2, a.att, w.o, c.Heads*c.HeadDim, c.Hidden, true)
	m.norm.forward(m.h, a.x2, w.norm2, a.inv2, next)
	b.linear(a.gu, m.h, w.gu, c.Hidden, 2*c.FFN, false)
	if next != nil {
		m.mlp.forward(m.f, a.gu)
		b.linear(next, m.f, w.down, c.FFN, c.Hidden, true)
	}
}

// backwardLayer adds the gradients of a layer's weights to g, and turns dx from the gradient of its
// output into the gradient of its input.
func (m *Model) backwardLayer(a *activations, w, g *layerWeights) {
	c, b := m.cfg, &m.batch
	b.gradient(m.dx, c.Hidden)
	b.linearInput(m.f, m.dx, w.down, c.FFN, c.Hidden)
	m.mlp.backward(m.f, a.gu)
	b.linearWeight(g.down, m.dx, m.f, c.FFN, c.Hidden)
	m.norm.again(m.h, a.x2, w.norm2, a.inv2)
	b.gradient(a.gu, 2*c.FFN)
	b.linearWeight(g.gu, a.gu, m.h, c.Hidden, 2*c.FFN)
	b.linearInput(m.dh, a.gu, w.gu, c.Hidden, 2*c.FFN)
	m.norm.backward(m.dx, g.norm2, m.dh, a.x2, w.norm2, a.inv2)

	b.gradient(m.dx, c.Hidden)
	b.linearWeight(g.o, m.dx, a.att, c.Heads*c.HeadDim, c.Hidden)
	b.linearInput(m.datt, m.dx, w.o, c.Heads*c.HeadDim, c.Hidden)
	m.attention.backward(m.dqkv, m.datt, a.stats, a.qkv)
	m.rope.backward(m.dqkv)
	if c.QKNorm {
		m.heads.backward(m.dqkv, a.qk, a.invQK, w.q, w.k, g.q, g.k)
	}
	if c.Bias {
		m.bias.backward(g.bias, m.dqkv)
	}
	m.norm.again(m.h, a.x, w.norm1, a.inv1)
	b.gradient(m.dqkv, c.heads()*c.HeadDim)
	b.linearWeight(g.qkv, m.dqkv, m.h, c.Hidden, c.heads()*c.HeadDim)
	b.linearInput(m.dh, m.dqkv, w.qkv, c.Hidden, c.heads()*c.HeadDim)
	m.norm.backward(m.dx, g.norm1, m.dh, a.x, w.norm1, a.inv1)
}
