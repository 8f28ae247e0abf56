package llama

import (
	"math"

	"github.com/entrain-network/entrain/exact"
)

// rope rotates the queries and keys of each row by angles that grow with the position (J. Su et
// al., "RoFormer", 2021), in the rotate-half layout: floats i and i+HeadDim/2 of a head form a
// pair, rotated by position·Theta^(-2i/HeadDim).
type rope struct {
	*batch
	cfg      Config
	cos, sin []float32 // (positions, HeadDim/2)
	qkv      []float32 // argument of the current pass

	forwardRows, backwardRows func(w *exact.Worker, i int)
}

func newRope(b *batch, cfg Config, positions int) *rope {
	r := &rope{batch: b, cfg: cfg}
	r.cos, r.sin = Angles(cfg, positions)
	b.bytes += 4 * (len(r.cos) + len(r.sin))
	r.forwardRows, r.backwardRows = r.doForward, r.doBackward
	return r
}

// Angles returns the cosines and sines by which rotary embedding turns, for each position and pair
// of a head: (positions, HeadDim/2). It rounds frequencies and angles to binary32 where
// transformers does, so that a model trained here sees the same angles there.
func Angles(cfg Config, positions int) (cos, sin []float32) {
	half := cfg.HeadDim / 2
	cos, sin = make([]float32, positions*half), make([]float32, positions*half)
	for i := range half {
		frequency := cfg.Frequency(i)
		for p := range positions {
			angle := float32(float32(p) * frequency)
			cos[p*half+i], sin[p*half+i] = exact.Cos(angle), exact.Sin(angle)
		}
	}
	return cos, sin
}

// Frequency returns the angle by which pair i of a head turns from one position to the next, in
// radians: Theta^(-2i/HeadDim), stretched by Rope.
func (c Config) Frequency(i int) float32 {
	plain := float32(exact.Pow(c.Theta, -float64(2*i)/float64(c.HeadDim)))
	if c.Rope == (Rope{}) {
		return plain
	}
	// Each step is rounded to binary32, as in transformers.
	r, factor, original := c.Rope, float32(c.Rope.Factor), float32(c.Rope.Original)
	length := float32(2*math.Pi) / plain // positions in a turn
	switch {
	case length < float32(float64(r.Original)/r.High):
		return plain
	case length > float32(float64(r.Original)/r.Low):
		return plain / factor
	}
	smooth := float32(original/length-float32(r.Low)) / float32(r.High-r.Low)
	return float32(float32((1-smooth)*plain)/factor) + float32(smooth*plain)
}

// forward rotates the queries and keys in qkv, (rows, heads·HeadDim).
func (r *rope) forward(qkv []float32) {
	r.qkv = qkv
	r.pool.RunOn(r.shares(), r.forwardRows)
}

func (r *rope) doForward(w *exact.Worker, i int) {
	low, high := r.share(i)
	for row := low; row < high; row++ {
		turnRow(r.cfg, r.qkv, row, r.cos, r.sin, row%r.seq, w, false)
	}
}

// backward rotates the gradient of queries and keys back.
func (r *rope) backward(dqkv []float32) {
	r.qkv = dqkv
	r.pool.RunOn(r.shares(), r.backwardRows)
}

func (r *rope) doBackward(w *exact.Worker, i int) {
	low, high := r.share(i)
	for row := low; row < high; row++ {
		turnRow(r.cfg, r.qkv, row, r.cos, r.sin, row%r.seq, w, true)
	}
}

// turnRow rotates the query and key heads of one row by the angles of a position, or back.
func turnRow(cfg Config, qkv []float32, row int, cos, sin []float32, position int, w *exact.Worker, back bool) {
	half := cfg.HeadDim / 2
	cos, sin = cos[position*half:(position+1)*half], sin[position*half:(position+1)*half]
	x := qkv[row*cfg.heads()*cfg.HeadDim:]
	for h := range cfg.Heads + cfg.KVHeads {
		head := x[h*cfg.HeadDim : (h+1)*cfg.HeadDim]
		if back {
			w.RotateBack(head, cos, sin)
		} else {
			w.Rotate(head, cos, sin)
		}
	}
}
