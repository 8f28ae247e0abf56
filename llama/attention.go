package llama

import (
	"math"

	"github.com/entrain-network/entrain/exact"
)

// attention is causal attention with grouped queries (J. Ainslie et al., "GQA", 2023): for each
// query head h and position i
//
//	p = softmax(q_i·k_j/√HeadDim over j ≤ i)        out_i = Σ_j p_j·v_j
//
// with the keys and values of head h·KVHeads/Heads. With a Window, j > i - Window. Scores exist for
// blockRows queries at a time. For each row the forward pass keeps only two numbers, from which the
// backward pass recomputes the same probabilities.
type attention struct {
	*batch
	cfg     Config
	stride  int // floats between consecutive rows of the scores
	scratch []attentionScratch

	// Arguments of the current pass.
	qkv, out, stats, dqkv, dout []float32

	forwardGroup, backwardGroup func(w *exact.Worker, i int)
}

// attentionScratch is one worker's scratch memory.
type attentionScratch struct {
	p, dp        []float32 // (blockRows, stride): probabilities and their gradient
	kt, vt, k, v exact.Packed
}

func newAttention(b *batch, cfg Config, positions int) *attention {
	// Rows that are an odd number of cache lines apart do not map to the same cache sets.
	a := &attention{batch: b, cfg: cfg, stride: (positions+31)/32*32 + 16, scratch: make([]attentionScratch, b.pool.Workers())}
	for i := range a.scratch {
		a.scratch[i].p = b.floats(blockRows * a.stride)
		a.scratch[i].dp = b.floats(blockRows * a.stride)
	}
	a.forwardGroup, a.backwardGroup = a.doForward, a.doBackward
	return a
}

// packed returns the size of the packed matrices in bytes.
func (a *attention) packed() (bytes int) {
	for i := range a.scratch {
		s := &a.scratch[i]
		for _, p := range []*exact.Packed{&s.kt, &s.vt, &s.k, &s.v} {
			bytes += p.Memory()
		}
	}
	return bytes
}

// forward computes out (rows, Heads·HeadDim) from qkv (rows, heads·HeadDim), and stats, two floats
// for each row and query head.
func (a *attention) forward(out, stats, qkv []float32) {
	a.out, a.stats, a.qkv = out, stats, qkv
	a.pool.RunOn(a.batch.batch*a.cfg.KVHeads, a.forwardGroup)
}

// backward computes dqkv from dout, qkv and stats.
func (a *attention) backward(dqkv, dout, stats, qkv []float32) {
	a.dqkv, a.dout, a.stats, a.qkv = dqkv, dout, stats, qkv
	a.pool.RunOn(a.batch.batch*a.cfg.KVHeads, a.backwardGroup)
}

// A group is one key and value head in one sequence, with the query heads that attend to it.
type group struct {
	sequence, kv int
	width        int // floats in a row of qkv
	outWidth     int // floats in a row of out
}

func (a *attention) group(i int) group {
	return group{i / a.cfg.KVHeads, i % a.cfg.KVHeads, a.cfg.heads() * a.cfg.HeadDim, a.cfg.Heads * a.cfg.HeadDim}
}

// head returns the offset of head h of the sequence's first row in a matrix like qkv.
func (a *attention) head(g group, h int) int { return g.sequence*a.seq*g.width + h*a.cfg.HeadDim }

func (a *attention) doForward(w *exact.Worker, i int) {
	g, d, s := a.group(i), a.cfg.HeadDim, &a.scratch[w.Index()]
	w.Pack(&s.kt, d, a.seq, a.qkv[a.head(g, a.cfg.Heads+g.kv):], 1, g.width)
	w.Pack(&s.v, a.seq, d, a.qkv[a.head(g, a.cfg.Heads+a.cfg.KVHeads+g.kv):], g.width, 1)
	each := a.cfg.Heads / a.cfg.KVHeads
	for h := g.kv * each; h < (g.kv+1)*each; h++ {
		for low := 0; low < a.seq; low += blockRows {
			rows := min(blockRows, a.seq-low)
			keys := low + rows
			w.GemmPacked(rows, keys, d, a.qkv[a.head(g, h)+low*g.width:], g.width, 1, &s.kt, s.p, a.stride, false)
			stats := a.rowStats(g, h, low)
			for r := range rows {
				row := s.p[r*a.stride : (r+1)*a.stride]
				n := low + r + 1
				before(row[:a.cfg.first(low+r)])
				stats[2*r], stats[2*r+1] = w.Softmax(nothingBehind(row, n), a.cfg.scale())
				clear(row[n:keys])
			}
			out := a.out[(g.sequence*a.seq+low)*g.outWidth+h*d:]
			w.GemmPacked(rows, d, keys, s.p, a.stride, 1, &s.v, out, g.outWidth, false)
		}
	}
}

// first returns the first position that the token at position i attends to.
func (c Config) first(i int) int {
	if c.Window == 0 {
		return 0
	}
	return max(0, i+1-c.Window)
}

// before sets the scores of the positions before a window to -Inf. Their probabilities are +0.
func before(scores []float32) {
	for i := range scores {
		scores[i] = float32(math.Inf(-1))
	}
}

// nothingBehind returns the first n scores of a row, padded with -Inf to a multiple of 16. The
// padding's probabilities are +0, which change no sum, and it leaves no partial vector, whose
// exponentials would be computed one by one.
func nothingBehind(row []float32, n int) []float32 {
	whole := row[:(n+15)/16*16]
	for i := range whole[n:] {
		whole[n+i] = float32(math.Inf(-1))
	}
	return whole
}

// rowStats returns the stats of a query head, starting at row low of the sequence.
func (a *attention) rowStats(g group, h, low int) []float32 {
	return a.stats[2*((g.sequence*a.cfg.Heads+h)*a.seq+low):]
}

func (a *attention) doBackward(w *exact.Worker, i int) {
	g, d, s := a.group(i), a.cfg.HeadDim, &a.scratch[w.Index()]
	k, v := a.head(g, a.cfg.Heads+g.kv), a.head(g, a.cfg.Heads+a.cfg.KVHeads+g.kv)
	w.Pack(&s.kt, d, a.seq, a.qkv[k:], 1, g.width)
	w.Pack(&s.vt, d, a.seq, a.qkv[v:], 1, g.width)
	w.Pack(&s.k, a.seq, d, a.qkv[k:], g.width, 1)
	dk, dv := a.dqkv[k:], a.dqkv[v:]
	for r := range a.seq {
		clear(dk[r*g.width : r*g.width+d])
		clear(dv[r*g.width : r*g.width+d])
	}
	each := a.cfg.Heads / a.cfg.KVHeads
	for h := g.kv * each; h < (g.kv+1)*each; h++ {
		for low := 0; low < a.seq; low += blockRows {
			rows := min(blockRows, a.seq-low)
			keys := low + rows
			q := a.qkv[a.head(g, h)+low*g.width:]
			dout := a.dout[(g.sequence*a.seq+low)*g.outWidth+h*d:]
			w.GemmPacked(rows, keys, d, q, g.width, 1, &s.kt, s.p, a.stride, false)
			w.GemmPacked(rows, keys, d, dout, g.outWidth, 1, &s.vt, s.dp, a.stride, false)
			stats := a.rowStats(g, h, low)
			for r := range rows {
				p, dp := s.p[r*a.stride:(r+1)*a.stride], s.dp[r*a.stride:(r+1)*a.stride]
				n, first := low+r+1, a.cfg.first(low+r)
				before(p[:first])
				scores := nothingBehind(p, n)
				w.SoftmaxAgain(scores, a.cfg.scale(), stats[2*r], stats[2*r+1])
				clear(dp[:first])
				clear(dp[n:len(scores)])
				w.SoftmaxBackward(dp[:len(scores)], scores, a.cfg.scale())
				clear(dp[:first])
				clear(p[n:keys])
				clear(dp[n:keys])
			}
			w.GemmPacked(rows, d, keys, s.dp, a.stride, 1, &s.k, a.dqkv[a.head(g, h)+low*g.width:], g.width, false)
			// dv += pᵀ·dout and dk += dpᵀ·q, one chain over the queries of all blocks and of all
			// heads of the group.
			w.Gemm(keys, d, rows, s.p, 1, a.stride, dout, g.outWidth, 1, dv, g.width, true)
			w.Gemm(keys, d, rows, s.dp, 1, a.stride, q, g.width, 1, dk, g.width, true)
		}
	}
}
