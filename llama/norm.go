package llama

import "github.com/entrain-network/entrain/exact"

// norm computes RMSNorm of each row.
type norm struct {
	*batch
	width   int
	eps     float32
	partial []float32 // (blocks, width): gradient of the gains, block by block

	// Arguments of the current pass.
	y, x, g, inv, copied []float32
	dx, dg, dy           []float32

	forwardRows, againRows     source
	backwardBlock, gainColumns func(w *exact.Worker, i int)
}

// newNorm returns a norm for batches up to b's current size.
func newNorm(b *batch, cfg Config) *norm {
	n := &norm{batch: b, width: cfg.Hidden, eps: cfg.Eps, partial: b.floats(b.blocks() * cfg.Hidden)}
	n.forwardRows, n.againRows, n.backwardBlock, n.gainColumns = n.doForward, n.doAgain, n.doBackward, n.doGain
	return n
}

// forward returns what computes y = norm(x)·g and keeps 1/rms of each row in inv. Unless copied is
// nil, it also copies x to copied, for the residual sum.
func (n *norm) forward(y, x, g, inv, copied []float32) source {
	n.y, n.x, n.g, n.inv, n.copied = y, x, g, inv, copied
	return n.forwardRows
}

func (n *norm) doForward(w *exact.Worker, low, high int) {
	for r := low; r < high; r++ {
		a, b := r*n.width, (r+1)*n.width
		n.inv[r] = w.RMSNorm(n.y[a:b], n.x[a:b], n.g, n.eps)
		if n.copied != nil {
			copy(n.copied[a:b], n.x[a:b])
		}
	}
}

// again returns what computes y again from inv, as forward did.
func (n *norm) again(y, x, g, inv []float32) source {
	n.y, n.x, n.g, n.inv = y, x, g, inv
	return n.againRows
}

func (n *norm) doAgain(w *exact.Worker, low, high int) {
	for r := low; r < high; r++ {
		a, b := r*n.width, (r+1)*n.width
		w.Normalize(n.y[a:b], n.x[a:b], n.g, n.inv[r])
	}
}

// backward adds the gradients of x and g to dx and dg, given dy.
func (n *norm) backward(dx, dg, dy, x, g, inv []float32) {
	n.dx, n.dg, n.dy, n.x, n.g, n.inv = dx, dg, dy, x, g, inv
	n.pool.RunOn(n.blocks(), n.backwardBlock)
	n.pool.RunOn((n.width+gainWidth-1)/gainWidth, n.gainColumns)
}

func (n *norm) doBackward(w *exact.Worker, i int) {
	low, high := n.block(i)
	partial := n.partial[i*n.width : (i+1)*n.width]
	clear(partial)
	for r := low; r < high; r++ {
		a, b := r*n.width, (r+1)*n.width
		w.RMSNormBackward(n.dx[a:b], partial, n.dy[a:b], n.x[a:b], n.g, n.inv[r])
	}
}

// gainWidth is the number of gains that one piece of work sums.
const gainWidth = 256

func (n *norm) doGain(w *exact.Worker, i int) {
	a, b := i*gainWidth, min((i+1)*gainWidth, n.width)
	for block := range n.blocks() {
		w.Add(n.dg[a:b], n.partial[block*n.width+a:block*n.width+b])
	}
}
