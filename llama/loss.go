package llama

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// The results depend on none of these.
const (
	// logitsBytes bounds the memory of logits, and so the number of rows for which the head is
	// computed at once. In 8 bits eightRows bounds it too, and keptRows with a head that is kept.
	logitsBytes = 128 << 20
	eightRows   = 512
	keptRows    = 256
	// strip is the number of rows of the head that are in 8 bits at a time, so that those, and what
	// they are multiplied by, stay in caches. Heads of at most keptLen elements stay in 8 bits for a
	// pass; they are quantized for each chunk otherwise, because holding them takes more memory than
	// binary32 does.
	strip   = 2048
	keptLen = 6 << 20
)

// loss computes the head and the cross-entropy of its logits with the next tokens.
type loss struct {
	*batch
	width, vocab int
	tokens       []uint32
	weight       float32   // weight of one token's loss
	logits       []float32 // (chunk, Vocab), rows stride floats apart
	stride       int
	chunk        int       // rows of logits at a time
	first        int       // first row of the current chunk
	losses       []float32 // loss of each row, in nats

	forwardRows, gradientRows func(w *exact.Worker, i int)

	// Arguments of backwardEight and what it calls.
	h, dh, head, dhead        []float32
	low, high                 int // rows of the head whose gradient is computed
	ended                     int // row after the last of the sequence whose targets are subtracted
	targetRows, targetColumns func(w *exact.Worker, i int)
	scaled                    [][]float32 // (Hidden) for each worker

	kept [2]keptHead // forward and backward
}

// keptHead is the head in 8 bits.
type keptHead struct {
	strips []exact8.Packed // empty if it is too large
	valid  bool            // in this pass
}

func newLoss(b *batch, cfg Config, rows int) *loss {
	chunk, kept := max(shareRows, logitsBytes/4/cfg.Vocab/shareRows*shareRows), cfg.Vocab*cfg.Hidden <= keptLen
	switch {
	case b.eight != nil && kept:
		chunk = min(chunk, keptRows)
	case b.eight != nil:
		chunk = max(exact8.Block, min(chunk, eightRows)/exact8.Block*exact8.Block)
	}
	chunk = min(chunk, rows)
	// Rows that are an odd number of cache lines apart do not map to the same cache sets.
	stride := ((cfg.Vocab+15)/16 | 1) * 16
	l := &loss{batch: b, width: cfg.Hidden, vocab: cfg.Vocab, chunk: chunk, stride: stride, logits: b.floats(chunk * stride), losses: b.floats(rows)}
	l.forwardRows, l.gradientRows = l.doForward, l.doGradient
	l.targetRows, l.targetColumns = l.subtractFromInput, l.subtractFromHead
	for i := 0; i < b.pool.Workers() && b.eight != nil; i++ {
		l.scaled = append(l.scaled, b.floats(cfg.Hidden))
	}
	if kept {
		for i := range l.kept {
			l.kept[i].strips = make([]exact8.Packed, (cfg.Vocab+strip-1)/strip)
		}
	}
	return l
}

// forward returns the sum of the losses of the learnt rows of h (rows, Hidden).
func (l *loss) forward(h, head []float32, tokens []uint32) float64 {
	l.tokens = tokens
	for l.first = 0; l.first < l.rows(); {
		l.first += l.compute(h, head, l.forwardRows)
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
	for l.first = 0; l.first < l.rows(); {
		n, from := l.compute(h, head, l.gradientRows), l.first*l.width
		switch {
		case l.eight != nil:
			l.h, l.dh, l.head, l.dhead = h, dh, head, dhead
			l.backwardEight(n)
			l.h, l.dh, l.head, l.dhead = nil, nil, nil, nil
		default:
			exact.Gemm(l.pool, n, l.width, l.vocab, l.logits, l.stride, 1, head, l.width, 1, dh[from:], l.width, false)
			if dhead != nil {
				exact.Gemm(l.pool, l.vocab, l.width, n, l.logits, 1, l.stride, h[from:], l.width, 1, dhead, l.width, true)
			}
		}
		l.first += n
	}
	return l.sum()
}

// backwardEight is backward in 8 bits for the chunk's n rows, of which it has softmax·weight: a
// strip of the vocabulary after the other.
func (l *loss) backwardEight(n int) {
	e, g, each, from := l.eight, &l.inner, min(n, l.seq), l.first*l.width
	if l.dhead != nil {
		e.Quantize(n, each, nil, exact8.Sink{X: l.h[from:], Cols: l.width, Stride: l.width, Right: &e.input})
	}
	for l.low = 0; l.low < l.vocab; l.low = l.high {
		l.high = min(l.low+strip, l.vocab)
		wide, at := l.high-l.low, l.low*l.width
		e.Quantize(n, each, nil, exact8.Sink{X: l.logits[l.low:], Cols: wide, Stride: l.stride, Rows: &g.rows, Columns: &g.columns})
		e.Multiply(&g.rows, l.inEight(1, l.head, l.low, l.high), 0, exact8.Blocks(wide, wide), l.dh[from:], l.width, l.low > 0)
		for row := 0; row < n && l.dhead != nil; row += each {
			e.Multiply(&g.columns, &e.input, exact8.Blocks(row, each), exact8.Blocks(row+each, each), l.dhead[at:], l.width, true)
			if l.ended = l.first + row + each; l.ended%l.seq == 0 {
				l.pool.RunOn((l.width+targetColumns-1)/targetColumns, l.targetColumns)
			}
		}
	}
	l.kept[1].valid = true
	l.pool.RunOn(n, l.targetRows)
}

// inEight returns rows [low, high) of the head in 8 bits: for logits, or, with back 1, for the
// gradient of h.
func (l *loss) inEight(back int, head []float32, low, high int) *exact8.Packed {
	p, kept := &l.eight.weight, &l.kept[back]
	if len(kept.strips) > 0 {
		if p = &kept.strips[low/strip]; kept.valid {
			return p
		}
	}
	if n := high - low; back == 1 {
		l.eight.Pack(p, l.width, n, n, head[low*l.width:], l.width, 1)
	} else {
		l.eight.Pack(p, n, l.width, l.width, head[low*l.width:], 1, l.width)
	}
	return p
}

// begin begins a pass, with a head that may have changed.
func (l *loss) begin() { l.kept[0].valid, l.kept[1].valid = false, false }

// targetColumns is the number of columns of the head in one piece of subtractFromHead's work.
const targetColumns = 64

// subtractFromInput subtracts weight·head[target] from row i of the chunk's dh, if it is learnt.
func (l *loss) subtractFromInput(w *exact.Worker, i int) {
	r := l.first + i
	if l.masked(r) {
		return
	}
	l.subtract(w, l.dh[r*l.width:(r+1)*l.width], l.head[l.target(r)*l.width:])
}

// subtractFromHead subtracts weight·h[r] from dhead[target], if that is in the strip, for the
// learnt rows r of the sequence that ended, in piece i of the columns.
func (l *loss) subtractFromHead(w *exact.Worker, i int) {
	from, to := i*targetColumns, min((i+1)*targetColumns, l.width)
	for r := l.ended - l.seq; r < l.ended; r++ {
		target := l.target(r)
		if target < l.low || target >= l.high || l.masked(r) {
			continue
		}
		l.subtract(w, l.dhead[target*l.width+from:target*l.width+to], l.h[r*l.width+from:])
	}
}

// subtract computes y -= weight·x, with a rounding after each operation, as y += -weight·x.
func (l *loss) subtract(w *exact.Worker, y, x []float32) {
	scaled := l.scaled[w.Index()][:len(y)]
	copy(scaled, x)
	w.Scale(scaled, -l.weight)
	w.Add(y, scaled)
}

// compute computes the logits of the chunk that begins with the current row, passes each row to f,
// and returns the number of rows.
func (l *loss) compute(h, head []float32, f func(w *exact.Worker, i int)) int {
	n, from := l.next(), l.first*l.width
	if e := l.eight; e != nil {
		left := &l.inner.rows
		e.Quantize(n, n, nil, exact8.Sink{X: h[from:], Cols: l.width, Stride: l.width, Rows: left})
		for low := 0; low < l.vocab; low += strip {
			weight := l.inEight(0, head, low, min(low+strip, l.vocab))
			e.Multiply(left, weight, 0, exact8.Blocks(l.width, l.width), l.logits[low:], l.stride, false)
		}
		l.kept[0].valid = true
	} else {
		exact.Gemm(l.pool, n, l.vocab, l.width, h[from:], l.width, 1, head, 1, l.width, l.logits, l.stride, false)
	}
	l.pool.RunOn(n, f)
	return n
}

// next returns how many rows come next. With Exact8 they are whole sequences, or whole blocks of
// rows from the beginning of one, or the end of one.
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

// target returns the token that follows row r, and masked whether it is only read.
func (l *loss) target(r int) int  { return int(l.tokens[r+r/l.seq+1] &^ Masked) }
func (l *loss) masked(r int) bool { return l.tokens[r+r/l.seq+1]&Masked != 0 }

// row returns the logits of row i of the chunk.
func (l *loss) row(i int) []float32 { return l.logits[i*l.stride : i*l.stride+l.vocab] }

func (l *loss) doForward(w *exact.Worker, i int) {
	r := l.first + i
	if l.masked(r) {
		l.losses[r] = 0
		return
	}
	l.losses[r] = w.CrossEntropyLoss(l.row(i), l.target(r))
}

func (l *loss) doGradient(w *exact.Worker, i int) {
	r, row := l.first+i, l.row(i)
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
