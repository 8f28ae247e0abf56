package llama

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// logitsBytes bounds the memory of logits and so the number of rows for which the head is computed
// at once. In 8 bits it bounds that of the gradient of logits, and logits exist for eightRows rows
// at a time. The results depend on neither.
const (
	logitsBytes = 128 << 20
	eightRows   = 96
)

// loss computes the head and the cross-entropy of its logits with the next tokens.
type loss struct {
	*batch
	width, vocab int
	tokens       []uint32
	weight       float32   // weight of one token's loss
	logits       []float32 // (chunk, Vocab)
	chunk        int       // rows of logits at a time
	span         int       // rows of the gradient of logits at a time, in 8 bits
	first        int       // first row of the current chunk
	losses       []float32 // loss of each row, in nats

	forwardRows, gradientRows func(w *exact.Worker, i int)

	// Arguments of backwardSpan and what it calls.
	h, dh, head, dhead        []float32
	ended                     int // row after the last of the sequence whose targets are subtracted
	targetRows, targetColumns func(i int)

	headT, headB exact8.Packed // the head in 8 bits, transposed and not
	shares       exact8.Left   // softmax·weight in 8 bits, transposed
}

func newLoss(b *batch, cfg Config, rows int) *loss {
	chunk := min(rows, max(shareRows, logitsBytes/4/cfg.Vocab/shareRows*shareRows))
	if b.eight != nil {
		chunk = min(rows, eightRows)
	}
	l := &loss{batch: b, width: cfg.Hidden, vocab: cfg.Vocab, chunk: chunk, logits: b.floats(chunk * cfg.Vocab), losses: b.floats(rows)}
	l.span = max(eightRows, logitsBytes/2/cfg.Vocab/exact8.Block*exact8.Block)
	l.forwardRows, l.gradientRows = l.doForward, l.doGradient
	l.targetRows, l.targetColumns = l.subtractFromInput, l.subtractFromHead
	return l
}

// forward returns the sum of the losses of the learnt rows of h (rows, Hidden).
func (l *loss) forward(h, head []float32, tokens []uint32) float64 {
	l.tokens = tokens
	for l.first = 0; l.first < l.rows(); {
		l.first += l.compute(h, head, l.rows(), l.forwardRows)
	}
	return l.sum()
}

// backward is like forward, and also computes the gradients of each token's loss times weight: it
// sets dh (rows, Hidden) and adds the head's gradient to dhead, unless that is nil. A row whose
// target is masked has no loss, and its gradient of the logits is +0.
//
// The gradient of the logits is (softmax - onehot)·weight. In 8 bits the one large element of a row
// would leave little of the others in its block, so with Exact8 the products take softmax·weight,
// and what the targets contribute is subtracted as it is, with a rounding after the product and one
// after the difference: from each row of dh, and from dhead after the products of each sequence,
// for its rows in order.
func (l *loss) backward(dh, dhead, h, head []float32, tokens []uint32, weight float32) float64 {
	l.tokens, l.weight = tokens, weight
	if l.eight != nil {
		l.h, l.dh, l.head, l.dhead = h, dh, head, dhead
		for first := 0; first < l.rows(); {
			n := l.next(first, l.span, l.rows())
			l.backwardSpan(first, first+n)
			first += n
		}
		l.h, l.dh, l.head, l.dhead = nil, nil, nil, nil
		return l.sum()
	}
	for l.first = 0; l.first < l.rows(); {
		n, from := l.compute(h, head, l.rows(), l.gradientRows), l.first*l.width
		exact.Gemm(l.pool, n, l.width, l.vocab, l.logits, l.vocab, 1, head, l.width, 1, dh[from:], l.width, false)
		if dhead != nil {
			exact.Gemm(l.pool, l.vocab, l.width, n, l.logits, 1, l.vocab, h[from:], l.width, 1, dhead, l.width, true)
		}
		l.first += n
	}
	return l.sum()
}

// backwardSpan is backward in 8 bits for rows [first, end): logits for a chunk of rows after the
// other, of which their gradient remains in 8 bits, and then the gradient of the head.
func (l *loss) backwardSpan(first, end int) {
	e, each := l.eight, min(end-first, l.seq)
	l.shares.Reserve(l.vocab, exact8.Blocks(end-first, each))
	for l.first = first; l.first < end; {
		n := l.compute(l.h, l.head, end, l.gradientRows)
		e.PackBoth(&e.dy, &l.shares, exact8.Blocks(l.first-first, each), n, l.vocab, min(n, each), l.logits)
		e.Multiply(&e.dy, &l.headB, 0, exact8.Blocks(l.vocab, l.vocab), l.dh[l.first*l.width:], l.width, false)
		l.pool.Run(n, l.targetRows)
		l.first += n
	}
	if l.dhead == nil {
		return
	}
	e.Pack(&e.right, l.width, end-first, each, l.h[first*l.width:], l.width, 1)
	for from := first; from < end; from += each {
		to := min(from+each, end)
		e.Multiply(&l.shares, &e.right, exact8.Blocks(from-first, each), exact8.Blocks(to-first, each), l.dhead, l.width, true)
		if to%l.seq == 0 {
			l.ended = to
			l.pool.Run((l.width+targetColumns-1)/targetColumns, l.targetColumns)
		}
	}
}

// pack quantizes the head for the passes that follow, with backward for backward ones too.
func (l *loss) pack(head []float32, backward bool) {
	if l.eight == nil {
		return
	}
	l.eight.Pack(&l.headT, l.vocab, l.width, l.width, head, 1, l.width)
	if backward {
		l.eight.Pack(&l.headB, l.width, l.vocab, l.vocab, head, l.width, 1)
	}
}

// targetColumns is the number of columns of the head in one piece of subtractFromHead's work.
const targetColumns = 64

// subtractFromInput subtracts weight·head[target] from row i of the chunk's dh, if it is learnt.
func (l *loss) subtractFromInput(i int) {
	r := l.first + i
	if l.masked(r) {
		return
	}
	subtractScaled(l.dh[r*l.width:(r+1)*l.width], l.head[l.target(r)*l.width:], l.weight)
}

// subtractFromHead subtracts weight·h[r] from dhead[target] for the learnt rows r of the sequence
// that ended, in piece i of the columns.
func (l *loss) subtractFromHead(i int) {
	from, to := i*targetColumns, min((i+1)*targetColumns, l.width)
	for r := l.ended - l.seq; r < l.ended; r++ {
		if l.masked(r) {
			continue
		}
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

// compute computes the logits of the chunk that begins with the current row and ends at end or
// before, passes each row to f, and returns the number of rows.
func (l *loss) compute(h, head []float32, end int, f func(w *exact.Worker, i int)) int {
	n, from := l.next(l.first, l.chunk, end), l.first*l.width
	if l.eight == nil {
		exact.Gemm(l.pool, n, l.vocab, l.width, h[from:], l.width, 1, head, 1, l.width, l.logits, l.vocab, false)
	} else {
		l.eight.GemmPacked(n, h[from:], l.width, 1, &l.headT, l.logits, l.vocab, false)
	}
	l.pool.RunOn(n, f)
	return n
}

// next returns how many of the rows [first, end) come next, at most limit. With Exact8 they are
// whole sequences, or whole blocks of rows from the beginning of one, or the end of one.
func (l *loss) next(first, limit, end int) int {
	n := min(limit, end-first)
	if l.eight == nil {
		return n
	}
	done := first % l.seq
	switch left := l.seq - done; {
	case n < left && first+n < end:
		return n / exact8.Block * exact8.Block
	case n < left:
		return n
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

// target returns the token that follows row r, and masked whether it is only read.
func (l *loss) target(r int) int  { return int(l.tokens[r+r/l.seq+1] &^ Masked) }
func (l *loss) masked(r int) bool { return l.tokens[r+r/l.seq+1]&Masked != 0 }

func (l *loss) doForward(w *exact.Worker, i int) {
	r := l.first + i
	if l.masked(r) {
		l.losses[r] = 0
		return
	}
	l.losses[r] = w.CrossEntropyLoss(l.logits[i*l.vocab:(i+1)*l.vocab], l.target(r))
}

func (l *loss) doGradient(w *exact.Worker, i int) {
	r := l.first + i
	row := l.logits[i*l.vocab : (i+1)*l.vocab]
	if l.masked(r) {
		clear(row)
		l.losses[r] = 0
		return
	}
	if l.eight != nil {
		l.losses[r] = w.CrossEntropyShares(row, l.target(r), l.weight)
		return
	}
	l.losses[r] = w.CrossEntropy(row, l.target(r), l.weight)
}
