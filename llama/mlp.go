package llama

import "github.com/entrain-network/entrain/exact"

// mlp computes the gate of the feed-forward net, between its products: h = silu(gate)·up for each
// row.
type mlp struct {
	*batch
	width int // FFN
	h, gu []float32

	forwardRows, backwardRows source
}

func newMLP(b *batch, cfg Config) *mlp {
	m := &mlp{batch: b, width: cfg.FFN}
	m.forwardRows, m.backwardRows = m.doForward, m.doBackward
	return m
}

// forward returns what computes h (rows, FFN) from gu (rows, 2·FFN), in which each row starts with
// the gate's half.
func (m *mlp) forward(h, gu []float32) source {
	m.h, m.gu = h, gu
	return m.forwardRows
}

func (m *mlp) doForward(w *exact.Worker, low, high int) {
	for r := low; r < high; r++ {
		row := m.gu[2*r*m.width : 2*(r+1)*m.width]
		w.SwiGLU(m.h[r*m.width:(r+1)*m.width], row[:m.width], row[m.width:])
	}
}

// backward returns what replaces gu by its gradient, and dh, the gradient of h, by h, which the
// next weight's gradient needs.
func (m *mlp) backward(dh, gu []float32) source {
	m.h, m.gu = dh, gu
	return m.backwardRows
}

func (m *mlp) doBackward(w *exact.Worker, low, high int) {
	for r := low; r < high; r++ {
		row := m.gu[2*r*m.width : 2*(r+1)*m.width]
		w.SwiGLUBackward(m.h[r*m.width:(r+1)*m.width], row[:m.width], row[m.width:])
	}
}
