package llama

import "github.com/entrain-network/entrain/exact"

// headNorm computes RMSNorm of each head of queries and of keys, before rope.
type headNorm struct {
	*batch
	cfg     Config
	partial []float32   // (blocks, Heads + KVHeads, HeadDim): gradient of the gains
	dy      [][]float32 // (HeadDim) for each worker

	// Arguments of the current pass.
	qkv, x, inv, q, k []float32
	dq, dk            []float32

	forwardRows, backwardBlock func(w *exact.Worker, i int)
}

func newHeadNorm(b *batch, cfg Config) *headNorm {
	n := &headNorm{batch: b, cfg: cfg}
	n.forwardRows, n.backwardBlock = n.doForward, n.doBackward
	return n
}

// turned returns the number of heads that are rotated, and may be normalized, in a row.
func (c Config) turned() int { return c.Heads + c.KVHeads }

// gains returns the gains of a head, those of queries or of keys.
func (n *headNorm) gains(head int) []float32 {
	if head < n.cfg.Heads {
		return n.q
	}
	return n.k
}

// forward normalizes the queries and keys in qkv (rows, heads·HeadDim) with the gains q and k. It
// keeps what they were in x (rows, turned·HeadDim), and 1/rms of each head in inv (rows, turned).
func (n *headNorm) forward(qkv, x, inv, q, k []float32) {
	n.qkv, n.x, n.inv, n.q, n.k = qkv, x, inv, q, k
	n.pool.RunOn(n.shares(), n.forwardRows)
}

func (n *headNorm) doForward(w *exact.Worker, i int) {
	low, high := n.share(i)
	width, kept := n.cfg.heads()*n.cfg.HeadDim, n.cfg.turned()*n.cfg.HeadDim
	for r := low; r < high; r++ {
		normHeads(w, n.cfg, n.qkv[r*width:], n.x[r*kept:(r+1)*kept], n.inv[r*n.cfg.turned():], n.q, n.k)
	}
}

// normHeads normalizes the queries and keys of one row, of which x becomes a copy.
func normHeads(w *exact.Worker, c Config, row, x, inv, q, k []float32) {
	copy(x, row)
	for h := range c.turned() {
		gains := q
		if h >= c.Heads {
			gains = k
		}
		a, b := h*c.HeadDim, (h+1)*c.HeadDim
		inv[h] = w.RMSNorm(row[a:b], x[a:b], gains, c.Eps)
	}
}

// backward replaces dqkv, the gradient of what forward made, by that of its input, and adds the
// gradients of the gains to dq and dk: block by block, in a block head by head, each summed
// from +0.
func (n *headNorm) backward(dqkv, x, inv, q, k, dq, dk []float32) {
	n.qkv, n.x, n.inv, n.q, n.k, n.dq, n.dk = dqkv, x, inv, q, k, dq, dk
	if size := n.blocks() * n.cfg.turned() * n.cfg.HeadDim; len(n.partial) < size {
		n.partial = n.floats(size)
		n.dy = make([][]float32, n.pool.Workers())
		for i := range n.dy {
			n.dy[i] = n.floats(n.cfg.HeadDim)
		}
	}
	n.pool.RunOn(n.blocks(), n.backwardBlock)
	d := n.cfg.HeadDim
	for i := range n.blocks() * n.cfg.turned() {
		to := n.dq
		if i%n.cfg.turned() >= n.cfg.Heads {
			to = n.dk
		}
		for j, v := range n.partial[i*d : (i+1)*d] {
			to[j] += v
		}
	}
}

func (n *headNorm) doBackward(w *exact.Worker, i int) {
	low, high := n.block(i)
	d, turned := n.cfg.HeadDim, n.cfg.turned()
	width, dy := n.cfg.heads()*d, n.dy[w.Index()]
	for h := range turned {
		partial := n.partial[(i*turned+h)*d:][:d]
		clear(partial)
		for r := low; r < high; r++ {
			dx := n.qkv[r*width+h*d:][:d]
			copy(dy, dx)
			clear(dx)
			w.RMSNormBackward(dx, partial, dy, n.x[(r*turned+h)*d:][:d], n.gains(h), n.inv[r*turned+h])
		}
	}
}
