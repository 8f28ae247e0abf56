package llama

import "github.com/entrain-network/entrain/exact"

// bias is what is added to queries, keys and values.
type bias struct {
	*batch
	width   int
	partial []float32 // (blocks, width): gradient, block by block

	// Arguments of the current pass.
	x, bias []float32

	forwardRows, backwardBlock, sumColumns func(w *exact.Worker, i int)
}

func newBias(b *batch, cfg Config) *bias {
	s := &bias{batch: b, width: cfg.heads() * cfg.HeadDim}
	s.forwardRows, s.backwardBlock, s.sumColumns = s.doForward, s.doBackward, s.doSum
	return s
}

// forward adds the bias (heads·HeadDim) to each row of x.
func (s *bias) forward(x, bias []float32) {
	s.x, s.bias = x, bias
	s.pool.RunOn(s.shares(), s.forwardRows)
}

func (s *bias) doForward(w *exact.Worker, i int) {
	low, high := s.share(i)
	for r := low; r < high; r++ {
		w.Add(s.x[r*s.width:(r+1)*s.width], s.bias)
	}
}

// backward adds the gradient of the bias to dbias: dx summed over blocks of tokens, each from +0,
// and the sums in order.
func (s *bias) backward(dbias, dx []float32) {
	s.x, s.bias = dx, dbias
	if len(s.partial) < s.blocks()*s.width {
		s.partial = s.floats(s.blocks() * s.width)
	}
	s.pool.RunOn(s.blocks(), s.backwardBlock)
	s.pool.RunOn((s.width+gainWidth-1)/gainWidth, s.sumColumns)
}

func (s *bias) doBackward(w *exact.Worker, i int) {
	low, high := s.block(i)
	partial := s.partial[i*s.width : (i+1)*s.width]
	clear(partial)
	for r := low; r < high; r++ {
		w.Add(partial, s.x[r*s.width:(r+1)*s.width])
	}
}

func (s *bias) doSum(w *exact.Worker, i int) {
	a, b := i*gainWidth, min((i+1)*gainWidth, s.width)
	for block := range s.blocks() {
		w.Add(s.bias[a:b], s.partial[block*s.width+a:block*s.width+b])
	}
}
