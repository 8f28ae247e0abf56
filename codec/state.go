package codec

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// stateSegment is the number of elements of a state that one task checks.
const stateSegment = 1 << 14

// A StateCheck refuses private states that no Encode has produced, without allocating: states with
// a NaN, an infinity, or elements so large that sums could overflow. One goroutine at a time may
// use it.
type StateCheck struct {
	pool  *exact.Pool
	loop  vec.Kernel
	state []float32            // the argument of Check
	most  []float32            // greatest magnitude of each segment
	lanes [][vec.Lanes]float32 // by worker
	look  func(w *exact.Worker, segment int)
}

// NewStateCheck returns a StateCheck that works on a pool.
func NewStateCheck(pool *exact.Pool) *StateCheck {
	c := &StateCheck{pool: pool, loop: vec.For(pool.Kernel()), lanes: make([][vec.Lanes]float32, pool.Workers())}
	c.look = func(w *exact.Worker, i int) {
		c.most[i] = c.loop.Most(c.state[i*stateSegment:min((i+1)*stateSegment, len(c.state))], &c.lanes[w.Index()])
	}
	return c
}

// Check returns an error if an element of state has a magnitude above max, which must be finite and
// not negative. The error wraps ErrNotFinite or ErrTooLarge.
func (c *StateCheck) Check(state []float32, max float32) error {
	segments := (len(state) + stateSegment - 1) / stateSegment
	if cap(c.most) < segments {
		c.most = make([]float32, segments)
	}
	c.state, c.most = state, c.most[:segments]
	c.pool.RunOn(segments, c.look)
	c.state = nil // releases the caller's memory
	limit := math.Float32bits(max)
	for segment, most := range c.most {
		if math.Float32bits(most) <= limit {
			continue
		}
		for i, x := range state[segment*stateSegment:] {
			if math.Float32bits(x)&vec.Abs <= limit {
				continue
			}
			at := segment*stateSegment + i
			if v := float64(x); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("state at element %d: %w", at, ErrNotFinite)
			}
			return fmt.Errorf("state at element %d is %g, beyond %g: %w", at, x, max, ErrTooLarge)
		}
	}
	return nil
}
