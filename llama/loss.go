package llama

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

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

	// Arguments of subtractFromInput and subtractFromHead; see backward.
	h, dh, head, dhead        []float32
	ended                     int // row after the last of the sequence whose targets are subtracted
	targetRows, targetColumns func(i int)

	headT, headB exact8.Packed // the head in 8 bits, transposed and not
}

func newLoss(b *batch, cfg Config, rows int) *loss {
	bytes, each := logitsBytes, shareRows
	if b.eight != nil {
		// The head is quantized once for all chunks, so they may be small; that makes up for its memory.
		bytes, each = logitsBytes/2, exact8.Block
	}
	chunk := min(rows, max(each, bytes/4/cfg.Vocab/each*each))
	l := &loss{batch: b, width: cfg.Hidden, vocab: cfg.Vocab, chunk: chunk, logits: b.floats(chunk * cfg.Vocab), losses: b.floats(rows)}
	l.forwardRows, l.gradientRows = l.doForward, l.doGradient
	l.targetRows, l.targetColumns = l.subtractFromInput, l.subtractFromHead
	return l
}

// forward returns the sum of the losses of all rows of h (rows, Hidden).
func (l *loss) forward(h, head []float32, tokens []uint32) float64 {
	l.tokens = tokens
	for l.first = 0; l.first < l.rows(); {
		l.first += l.compute(h, head, l.forwardRows)
	}
	return l.sum()
}

// backward is like forward, and also computes the gradients of each token's loss times weight: it
// sets dh (rows, Hidden) and adds the head's gradient to dhead.
//
// The gradient of the logits is (softmax - onehot)·weight. In 8 bits the one large element of a row
// would leave little of the others in its block, so with Exact8 the products take softmax·weight,
// and what the targets contribute is subtracted as it is, with a rounding after the product and one
// after the difference: from each row of dh, and from dhead after the products of each sequence,
// for its rows in order.
func (l *loss) backward(dh, dhead, h, head []float32, tokens []uint32, weight float32) float64 {
	l.tokens, l.weight = tokens, weight
	l.h, l.dh, l.head, l.dhead = h, dh, head, dhead
	for l.first = 0; l.first < l.rows(); {
		n := l.compute(h, head, l.gradientRows)
		if from := l.first * l.width; l.eight == nil {
			exact.Gemm(l.pool, n, l.width, l.vocab, l.logits, l.vocab, 1, head, l.width, 1, dh[from:], l.width, false)
			l.headGradient(0, n)
		} else {
			l.eight.GemmPacked(n, l.logits, l.vocab, 1, &l.headB, dh[from:], l.width, false)
			l.pool.Run(n, l.targetRows)
			for from := 0; from < n; from += l.seq {
				l.headGradient(from, min(l.seq, n-from))
			}
		}
		l.first += n
	}
	l.h, l.dh, l.head, l.dhead = nil, nil, nil, nil
	return l.sum()
}

// pack quantizes the head for the passes that follow, with backward for backward ones too.
func (l *loss) pack(head []float32, backward bool) {
	if l.eight == nil {
		return
	}
	l.eight.Pack(&l.headT, l.vocab, l.width, head, 1, l.width)
	if backward {
		l.eight.Pack(&l.headB, l.width, l.vocab, head, l.width, 1)
	}
}

// headGradient adds the gradient of the head from n rows of the current chunk, beginning with row
// from. If these rows end a sequence, it subtracts the part of the sequence's targets.
func (l *loss) headGradient(from, n int) {
	end := l.first + from + n
	l.gemm(l.vocab, l.width, n, l.logits[from*l.vocab:], 1, l.vocab, l.h[(l.first+from)*l.width:], l.width, 1, l.dhead, l.width, true)
	if l.eight != nil && end%l.seq == 0 {
		l.ended = end
		l.pool.Run((l.width+targetColumns-1)/targetColumns, l.targetColumns)
	}
}

// targetColumns is the number of columns of the head in one piece of subtractFromHead's work.
const targetColumns = 64

// subtractFromInput subtracts weight·head[target] from row i of the chunk's dh.
func (l *loss) subtractFromInput(i int) {
	r := l.first + i
	subtractScaled(l.dh[r*l.width:(r+1)*l.width], l.head[l.target(r)*l.width:], l.weight)
}

// subtractFromHead subtracts weight·h[r] from dhead[target] for the rows r of the sequence that
// ended, in piece i of the columns.
func (l *loss) subtractFromHead(i int) {
	from, to := i*targetColumns, min((i+1)*targetColumns, l.width)
	for r := l.ended - l.seq; r < l.ended; r++ {
		at := l.target(r) * l.width
		subtractScaled(l.dhead[at+from:at+to], l.h[r*l.width+from:], l.weight)
	}
}

// subtractScaled computes y -= weight·x, with a rounding after each operation.
func subtractScaled(y, x []float32, weight float32) {
	for p := range y {
		y[p] -= float32(weight * x[p])
	}
}

// compute computes the logits of the current chunk, passes each row to f, and returns the number of
// rows.
func (l *loss) compute(h, head []float32, f func(w *exact.Worker, i int)) int {
	n := l.next()
	if from := l.first * l.width; l.eight == nil {
		exact.Gemm(l.pool, n, l.vocab, l.width, h[from:], l.width, 1, head, 1, l.width, l.logits, l.vocab, false)
	} else {
		l.eight.GemmPacked(n, h[from:], l.width, 1, &l.headT, l.logits, l.vocab, false)
	}
	l.pool.RunOn(n, f)
	return n
}

// next returns the number of rows in the chunk that begins with row first. With Exact8 a chunk is
// whole sequences, or whole blocks of rows from the beginning of one, or the end of one.
func (l *loss) next() int {
	n := min(l.chunk, l.rows()-l.first)
	if l.eight == nil {
		return n
	}
	done := l.first % l.seq
	switch left := l.seq - done; {
	case n < left:
		return n / exact8.Block * exact8.Block
	case done > 0:
		return left
	}
	return n / l.seq * l.seq
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
	row := l.logits[i*l.vocab : (i+1)*l.vocab]
	if l.eight != nil {
		l.losses[r] = w.CrossEntropyShares(row, l.target(r), l.weight)
		return
	}
	l.losses[r] = w.CrossEntropy(row, l.target(r), l.weight)
}
