package llama

import "github.com/entrain-network/entrain/exact"

// logitsBytes bounds the memory of logits and so the number of rows for which the head is computed
// at once. The results do not depend on it.
const logitsBytes = 128 << 20

// loss computes the head and the cross-entropy of its logits with the next tokens.
type loss struct {
	*batch
	width, vocab int
	tokens       []uint32
	weight       float32   // weight of one token's loss
	logits       []float32 // (chunk, Vocab)
	chunk        int       // rows at a time
	first        int       // first row of the current chunk
	losses       []float32 // loss of each row, in nats

	forwardRows, gradientRows func(w *exact.Worker, i int)
}

func newLoss(b *batch, cfg Config, rows int) *loss {
	chunk := min(rows, max(shareRows, logitsBytes/4/cfg.Vocab/shareRows*shareRows))
	l := &loss{batch: b, width: cfg.Hidden, vocab: cfg.Vocab, chunk: chunk, logits: b.floats(chunk * cfg.Vocab), losses: b.floats(rows)}
	l.forwardRows, l.gradientRows = l.doForward, l.doGradient
	return l
}

// forward returns the sum of the losses of all rows of h (rows, Hidden).
func (l *loss) forward(h, head []float32, tokens []uint32) float64 {
	l.tokens = tokens
	for l.first = 0; l.first < l.rows(); l.first += l.chunk {
		l.compute(h, head, l.forwardRows)
	}
	return l.sum()
}

// backward is like forward, and also computes the gradients of each token's loss times weight: it
// sets dh (rows, Hidden) and adds the head's gradient to dhead.
func (l *loss) backward(dh, dhead, h, head []float32, tokens []uint32, weight float32) float64 {
	l.tokens, l.weight = tokens, weight
	for l.first = 0; l.first < l.rows(); l.first += l.chunk {
		n := l.compute(h, head, l.gradientRows)
		from := l.first * l.width
		exact.Gemm(l.pool, n, l.width, l.vocab, l.logits, l.vocab, 1, head, l.width, 1, dh[from:], l.width, false)
		exact.Gemm(l.pool, l.vocab, l.width, n, l.logits, 1, l.vocab, h[from:], l.width, 1, dhead, l.width, true)
	}
	return l.sum()
}

// compute computes the logits of the current chunk, passes each row to f, and returns the number of
// rows.
func (l *loss) compute(h, head []float32, f func(w *exact.Worker, i int)) int {
	n := min(l.chunk, l.rows()-l.first)
	exact.Gemm(l.pool, n, l.vocab, l.width, h[l.first*l.width:], l.width, 1, head, 1, l.width, l.logits, l.vocab, false)
	l.pool.RunOn(n, f)
	return n
}

// sum returns the sum of the rows in order, in binary64.
func (l *loss) sum() float64 {
	var sum float64
	for _, x := range l.losses[:l.rows()] {
		sum += float64(x)
	}
	return sum
}

// target returns the token that follows row r.
func (l *loss) target(r int) int { return int(l.tokens[r+r/l.seq+1]) }

func (l *loss) doForward(w *exact.Worker, i int) {
	r := l.first + i
	l.losses[r] = w.CrossEntropyLoss(l.logits[i*l.vocab:(i+1)*l.vocab], l.target(r))
}

func (l *loss) doGradient(w *exact.Worker, i int) {
	r := l.first + i
	l.losses[r] = w.CrossEntropy(l.logits[i*l.vocab:(i+1)*l.vocab], l.target(r), l.weight)
}
