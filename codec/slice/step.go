package slice

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

const (
	unit      = 1.0 / 16 // what a value of 1 stands for
	valueMax  = 127
	meanDecay = 0.95     // of the mean square, a window
	squareMin = 0x1p-100 // a sum of squares below this is of no gradient worth following
	stateMax  = 0x1p100  // magnitudes of a state that Encode leaves behind are far below
	span      = 1 << 14  // elements of a task; the results do not depend on it
)

// value is what is sent for a, rounded to the nearest, ties to even.
func value(a float32) int8 {
	return int8(max(-valueMax, min(math.RoundToEven(float64(a)/unit), valueMax)))
}

// Encode adds the gradient to state and appends the sealed update. See codec.Codec.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != c.StateLen() || len(grad) != c.n {
		panic(fmt.Sprintf("slice: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	scale, err := codec.Clip(c.pool, grad, c.cfg.ClipNorm)
	if err != nil {
		return dst, fmt.Errorf("slice: %w", err)
	}
	for i, x := range state {
		if !(x > -stateMax && x < stateMax) {
			return dst, fmt.Errorf("slice: state at element %d is %g: %w", i, x, codec.ErrTooLarge)
		}
	}
	start := len(dst)
	dst = append(append(dst, c.sealed[:]...), make([]byte, c.n)...)
	values := dst[start+codec.HeaderLen:]
	unsent, squares := state[:c.n], state[c.n:]
	c.pool.Run((c.n+span-1)/span, func(task int) {
		for i := task * span; i < min((task+1)*span, c.n); i++ {
			g := float32(grad[i] * scale)
			squares[i] = float32(meanDecay*squares[i]) + float32(g*g)
			a := float32(c.cfg.Decay * unsent[i])
			if squares[i] >= squareMin {
				a += g / exact.Sqrt(squares[i])
			}
			unsent[i] = a
			values[i] = byte(value(a))
		}
	})
	return dst, nil
}

// Settle takes out of state what the slice that the seed draws has sent. It is called before the next Encode, once for each reveal. It panics if state
// has the wrong length.
func (c *Codec) Settle(state []float32, seed wire.Hash) {
	if len(state) != c.StateLen() {
		panic(fmt.Sprintf("slice: state of %d elements for a layout of %d", len(state), c.n))
	}
	for _, r := range c.Ranges(seed) {
		for i, a := range state[r.From:r.To] {
			state[r.From+i] = a - float32(value(a))*unit
		}
	}
}

// Values fills dst, of the length of the slice, with the update that a reveal sends, in the order of Ranges, in units of the learning rate and pointing
// uphill as the gradient does. The reveal must have passed Check.
func (c *Codec) Values(dst []float32, reveal []byte) []float32 {
	n := c.sliceLen(seedOf(reveal))
	for _, v := range reveal[headLen : headLen+n] {
		dst = append(dst, float32(int8(v))*unit)
	}
	return dst
}

func (c *Codec) sliceLen(seed wire.Hash) (n int) {
	for _, r := range c.Ranges(seed) {
		n += r.Len()
	}
	return n
}

// Apply moves the parameters on the slice. See codec.Codec. All reveals must be of the same seed.
func (c *Codec) Apply(params []float32, reveals [][]byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("slice: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckSet(c.Check, reveals, lr, c.cfg.WeightDecay); err != nil {
		return fmt.Errorf("slice: %w", err)
	}
	if len(reveals) == 0 {
		return nil
	}
	seed := seedOf(reveals[0])
	for i, r := range reveals {
		if seedOf(r) != seed {
			return fmt.Errorf("slice: payload %d of %d is of seed %v, the first of %v", i, len(reveals), seedOf(r), seed)
		}
	}
	step, at := float32(lr*unit)/float32(len(reveals)), headLen
	for i, r := range c.Ranges(seed) {
		keep := max(0, 1-float32(float32(lr*c.cfg.WeightDecay)*float32(c.plan.groups[i].leaves)))
		for k := r.From; k < r.To; k, at = k+1, at+1 {
			var sum int32
			for _, p := range reveals {
				sum += int32(int8(p[at]))
			}
			params[k] = float32(params[k]*keep) - float32(step*float32(sum))
		}
	}
	return nil
}

// StateSlice returns the parameters where the seed draws, for who has those of one window before.
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

// PatchState puts the values of a state slice into params. The caller checks the seed and compares the hash of the whole with the agreed one. After
// an error params is as before.
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
		if v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("slice: value %d of a state slice is %v", i/4, v)
		}
	}
	for _, r := range c.Ranges(seed) {
		for k := r.From; k < r.To; k++ {
			params[k] = math.Float32frombits(binary.LittleEndian.Uint32(b))
			b = b[4:]
		}
	}
	return nil
}
