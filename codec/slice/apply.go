package slice

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// Values appends to dst the values q/16 of a reveal, in the order of Ranges. They point uphill, as
// the gradient does. The reveal must have passed Check.
func (c *Codec) Values(dst []float32, reveal []byte) []float32 {
	for _, v := range reveal[headLen : headLen+c.sliceLen(seedOf(reveal))] {
		dst = append(dst, float32(int8(v))*unit)
	}
	return dst
}

// sliceLen returns the number of values that a seed draws.
func (c *Codec) sliceLen(seed wire.Hash) (n int) {
	d := newDraw(seed)
	for i := range c.plan.groups {
		g := &c.plan.groups[i]
		n += c.plan.leafRange(g, d.next(g)).Len()
	}
	return n
}

// Apply updates the parameters on the slice. All reveals must have the same seed. See codec.Codec
// and the package comment.
func (c *Codec) Apply(params []float32, reveals [][]byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("slice: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckSet(c.check, reveals, lr, c.cfg.WeightDecay); err != nil {
		return fmt.Errorf("slice: %w", err)
	}
	if len(reveals) == 0 {
		return nil
	}
	seed := seedOf(reveals[0])
	for i, r := range reveals {
		if s := seedOf(r); s != seed {
			return fmt.Errorf("slice: payload %d of %d has seed %v, the first has %v", i, len(reveals), s, seed)
		}
	}
	j := c.get()
	defer c.put(j)
	j.params, j.reveals = params, reveals
	j.locate(newDraw(seed))
	j.weigh()
	j.step, j.decay = float32(lr*exact.Sqrt(unit/float32(len(reveals))))/rootWhole, float32(lr*c.cfg.WeightDecay)
	c.pool.RunOn(len(j.places), j.apply)
	return nil
}

const (
	whole     = 256 // a weight w of 1
	rootWhole = 16
	normMost  = 2 // multiple of the median norm up to which w is 1
)

// weigh computes the weight of each reveal in each tensor.
func (j *job) weigh() {
	n := len(j.reveals)
	j.squares = slices.Grow(j.squares[:0], n*len(j.c.plan.tensors))[:n*len(j.c.plan.tensors)]
	j.weights = slices.Grow(j.weights[:0], len(j.squares))[:len(j.squares)]
	j.c.pool.RunOn(len(j.squares), j.square)
	for t := range j.c.plan.tensors {
		squares, weights := j.squares[t*n:(t+1)*n], j.weights[t*n:(t+1)*n]
		j.sorted = append(j.sorted[:0], squares...)
		slices.Sort(j.sorted)
		median := j.sorted[n/2]
		for i, sq := range squares {
			weights[i] = weight(sq, median)
		}
	}
}

// weight returns the weight of a reveal whose values have squares of sum sq, for the given median
// of these sums. Division and root are correctly rounded in binary64, so it is the same on every
// machine.
func weight(sq, median uint64) int32 {
	if sq <= normMost*normMost*median {
		return whole
	}
	return int32(normMost * whole * math.Sqrt(float64(median)/float64(sq)))
}

// squareReveal sums the squares of one reveal's values in one tensor.
func (j *job) squareReveal(_ *exact.Worker, task int) {
	n := len(j.reveals)
	t := j.c.plan.tensors[task/n]
	places := j.places[t.from:t.to]
	last := places[len(places)-1]
	var sum uint64
	for _, v := range j.reveals[task%n][places[0].value : last.value+last.positions.Len()] {
		sum += uint64(int32(int8(v)) * int32(int8(v)))
	}
	j.squares[task] = sum
}

// applyGroup updates the leaf drawn of one group. The sums are integers of at most
// codec.PayloadsMax*valueMax*whole, which fit into int32, so their order does not matter.
func (j *job) applyGroup(w *exact.Worker, i int) {
	g, p := &j.c.plan.groups[i], &j.places[i]
	weights := j.weights[g.ordinal*len(j.reveals):]
	keep := max(0, 1-float32(j.decay*float32(g.leaves)))
	x := j.params[p.positions.From:p.positions.To]
	sums := j.scratch[w.Index()].sums[:len(x)]
	clear(sums)
	for m, r := range j.reveals {
		weight := weights[m]
		for k, v := range r[p.value : p.value+len(x)] {
			sums[k] += weight * int32(int8(v))
		}
	}
	for k, sum := range sums {
		x[k] = float32(x[k]*keep) - float32(j.step*root(float32(sum)))
	}
}

// root returns sign(x)*sqrt(|x|).
func root(x float32) float32 {
	if x < 0 {
		return -exact.Sqrt(-x)
	}
	return exact.Sqrt(x)
}

// StateSlice returns the parameters on the ranges that the seed draws, for members that hold the
// parameters of the window before.
func (c *Codec) StateSlice(params []float32, seed wire.Hash) []byte {
	if len(params) != c.n {
		panic(fmt.Sprintf("slice: %d parameters for a layout of %d", len(params), c.n))
	}
	b := append(append(make([]byte, 0, c.StateSliceLen()), c.agreed[:]...), seed[:]...)
	for _, r := range c.Ranges(seed) {
		for _, x := range params[r.From:r.To] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// PatchState copies the values of a state slice into params. The caller checks the seed, or
// compares the hash of the result with the agreed one. If PatchState fails, params is unchanged.
func (c *Codec) PatchState(params []float32, stateSlice []byte) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("slice: %d parameters for a layout of %d", len(params), c.n))
	}
	if len(stateSlice) < headLen {
		return fmt.Errorf("slice: a state slice of %d bytes has no header", len(stateSlice))
	}
	seed := seedOf(stateSlice)
	if err := c.agreed.Check(stateSlice, headLen+4*c.sliceLen(seed)); err != nil {
		return fmt.Errorf("slice: state slice: %w", err)
	}
	b := stateSlice[headLen:]
	for i := 0; i < len(b); i += 4 {
		if v := float64(bitsAt(b, i)); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("slice: value %d of a state slice is %v", i/4, v)
		}
	}
	for _, r := range c.Ranges(seed) {
		for k := r.From; k < r.To; k++ {
			params[k] = bitsAt(b, 0)
			b = b[4:]
		}
	}
	return nil
}

// bitsAt returns the float32 at offset i of b.
func bitsAt(b []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[i:])) }
