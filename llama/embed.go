package llama

import "github.com/entrain-network/entrain/exact"

// embed is the table of token vectors.
type embed struct {
	*batch
	width  int
	tokens []uint32 // (batch, seq+1): the last token of a sequence is only a target
	x      []float32
	table  []float32

	forwardRows, backwardColumns func(w *exact.Worker, i int)
}

func newEmbed(b *batch, cfg Config) *embed {
	e := &embed{batch: b, width: cfg.Hidden}
	e.forwardRows, e.backwardColumns = e.doForward, e.doBackward
	return e
}

// token returns the token of row r.
func (e *embed) token(r int) int { return int(e.tokens[r+r/e.seq] &^ Masked) }

// forward copies each row's vector from the table (Vocab, Hidden) to x (rows, Hidden).
func (e *embed) forward(x, table []float32, tokens []uint32) {
	e.x, e.table, e.tokens = x, table, tokens
	e.pool.RunOn(e.shares(), e.forwardRows)
}

func (e *embed) doForward(_ *exact.Worker, i int) {
	low, high := e.share(i)
	for r := low; r < high; r++ {
		copy(e.x[r*e.width:(r+1)*e.width], e.table[e.token(r)*e.width:])
	}
}

// embedWidth is the number of columns of the table in one piece of work. A piece adds all rows, in
// order, so no two pieces add to the same float.
const embedWidth = 64

// backward adds the gradient dx of each row to its token's in dtable.
func (e *embed) backward(dtable, dx []float32, tokens []uint32) {
	e.x, e.table, e.tokens = dx, dtable, tokens
	e.pool.RunOn((e.width+embedWidth-1)/embedWidth, e.backwardColumns)
}

func (e *embed) doBackward(w *exact.Worker, i int) {
	a, b := i*embedWidth, min((i+1)*embedWidth, e.width)
	for r := range e.rows() {
		t := e.token(r) * e.width
		w.Add(e.table[t+a:t+b], e.x[r*e.width+a:r*e.width+b])
	}
}
