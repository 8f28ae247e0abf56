package llama

import "github.com/entrain-network/entrain/exact"

// mlp computes the gate of the feed-forward net, between its products: h = silu(gate)·up for each
// row.
type mlp struct {
	*batch
	width int // FFN
	h, gu []float32

	forwardRows, backwardRows func(w *exact.Worker, i int)
}

func newMLP(b *batch, cfg Config) *mlp {
	m := &mlp{batch: b, width: cfg.FFN}
	m.forwardRows, m.backwardRows = m.doForward, m.doBackward
	return m
}

// forward computes h (rows, FFN) from gu (rows, 2·FFN), in which each row starts with the gate's
// half.
func (m *mlp) forward(h, gu []float32) {
	m.h, m.gu = h, gu
	m.pool.RunOn(m.shares(), m.forwardRows)
}

func (m *mlp) doForward(w *exact.Worker, i int) {
	low, high := m.share(i)
	for r := low; r < high; r++ {
		row := m.gu[2*r*m.width : 2*(r+1)*m.width]
		w.SwiGLU(m.h[r*m.width:(r+1)*m.width], row[:m.width], row[m.width:])
	}
}

// backward replaces gu by its gradient, and replaces dh, the gradient of h, by h, which the next
// weight's gradient needs.
func (m *mlp) backward(dh, gu []float32) {
	m.h, m.gu = dh, gu
	m.pool.RunOn(m.shares(), m.backwardRows)
}

func (m *mlp) doBackward(w *exact.Worker, i int) {
	low, high := m.share(i)
	for r := low; r < high; r++ {
		row := m.gu[2*r*m.width : 2*(r+1)*m.width]
		w.SwiGLUBackward(m.h[r*m.width:(r+1)*m.width], row[:m.width], row[m.width:])
	}
}
