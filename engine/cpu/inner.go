package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
)

// stepsMax bounds the inner steps of a member: a binary32 holds every count up to it.
const stepsMax = 1 << 24

// errSteps reports a state that no training has left behind.
var errSteps = errors.New("the optimizer state holds no valid count of inner steps")

// inner is the work space of inner steps.
type inner struct {
	optim.Inner
	adamw *optim.AdamW
	muon  *optim.Muon // of adamw; nil: all steps are AdamW's
	rate  float32     // learning rate of the share
	local []float32   // parameters
	done  uint32      // steps of all rounds
	// held says that the model that took the last steps has the moments that adamw has.
	held bool
}

func newInner(cfg *optim.Inner, m llama.Config, pool *exact.Pool) (*inner, error) {
	if cfg == nil {
		return nil, nil
	}
	if cfg.Steps < 1 {
		return nil, fmt.Errorf("engine: %d inner steps: want at least 1", cfg.Steps)
	}
	if err := codec.CheckRange("clip norm", cfg.ClipNorm, codec.NormMax); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	n := m.Layout().Len()
	in := &inner{Inner: *cfg, local: exact.Make[float32](n)}
	var err error
	if cfg.Muon {
		if in.muon, err = optim.NewMuon(n, m.Matrices(), cfg.AdamW, pool); err == nil {
			in.adamw = in.muon.AdamW
		}
	} else {
		in.adamw, err = optim.NewAdamW(n, cfg.AdamW, pool)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return in, nil
}

// step takes a step by grad times clip, and returns the parameters that it reaches. Those of the
// round's start stay as they are.
func (in *inner) step(pool *exact.Pool, params, grad []float32, clip float32, s exact.AdamWStep) (local []float32) {
	if local = in.local; &local[0] != &params[0] { // the first step
		copy(local, params)
	}
	if clip != 1 {
		n := len(grad)
		pool.Run((n+piece-1)/piece, func(i int) {
			for k := i * piece; k < min((i+1)*piece, n); k++ {
				grad[k] *= clip
			}
		})
	}
	if in.muon != nil {
		in.muon.Take(local, grad, s, in.rate)
	} else {
		in.adamw.Take(local, grad, s)
	}
	return local
}

// part returns the codec's part of state: all but what belongs to the inner steps.
func (in *inner) part(state []float32, n int) []float32 {
	if in == nil {
		return state
	}
	return state[:len(state)-in.StateLen(n)]
}

// walk trains on the share and encodes the pseudo-gradient.
func (e *Engine) walk(
	ctx context.Context, start, state *vector, spans []batch.Span, lr float32,
) (all losses, c coded, err error) {
	in, n, params := e.inner, e.length, start.Floats
	if err := codec.CheckLR(lr, in.AdamW.WeightDecay); err != nil {
		return all, c, fmt.Errorf("engine: %w", err)
	}
	own := state.Floats[state.Len()-in.StateLen(n):]
	done := own[2*n]
	// Written so that NaN fails.
	if !(done >= 0 && done < stepsMax && done == float32(math.Floor(float64(done)))) {
		return all, c, fmt.Errorf("engine: %w: %w", errSteps, codec.ErrTooLarge)
	}
	total := batch.Total(spans)
	steps := uint32(min(uint64(in.Steps), uint64(total)))
	in.done, in.rate = uint32(done)+steps, lr
	e.ahead(spans)
	err = e.compute(start, e.grad, func(m Model) error {
		all, c = losses{}, coded{}
		held := in.held && e.holds(own[:2*n])
		in.held = false
		if !held {
			if err := m.Moments(own[:n], own[n:2*n]); err != nil {
				return err
			}
		}
		for i := range steps {
			from, count := batch.Split(uint32(total), steps, i)
			l, err := e.add(ctx, m, batch.Cut(spans, from, count), int(count))
			if err != nil {
				return err
			}
			all.add(l)
			norm, err := m.Norm()
			if err != nil {
				return err
			}
			clip, err := codec.Factor(norm, in.ClipNorm)
			if err != nil {
				return err
			}
			if err := m.Update(clip, in.AdamW.At(uint32(done)+i+1, lr)); err != nil {
				return err
			}
		}
		var err error
		c, err = e.arrive(m, state, lr)
		return err
	})
	if err != nil || c.version != 0 {
		return all, c, err
	}
	e.pool.Run((n+piece-1)/piece, func(i int) {
		for k := i * piece; k < min((i+1)*piece, n); k++ {
			e.grad[k] = params[k] - in.local[k]
		}
	})
	c, err = e.encodeHere(state, lr)
	return all, c, err
}

// arrive ends inner steps of m: it takes the moments, and the parameters too, unless m encodes what
// has changed.
func (e *Engine) arrive(m Model, state *vector, lr float32) (c coded, err error) {
	local := e.inner.local
	if w := e.coding(m); w != nil {
		if err := w.watch(e.coder.Change()); err != nil {
			return c, err
		}
		if c, err = e.encode(m, state, lr); err != nil {
			return c, err
		}
		local = nil
	}
	mean, square, _ := e.inner.adamw.Moments()
	err = m.Updated(local, mean, square)
	e.inner.held = err == nil
	return c, err
}

// piece is the number of parameters that a worker takes at a time. It does not affect the result.
const piece = 1 << 14

// holds reports whether moments have the bits of adamw's. To compare them takes less time than to
// send them to a device.
func (e *Engine) holds(moments []float32) bool {
	mean, square, _ := e.inner.adamw.Moments()
	var other atomic.Bool
	e.pool.Run((e.length+piece-1)/piece, func(i int) {
		from, to := i*piece, min((i+1)*piece, e.length)
		if !bytes.Equal(tensor.Bytes(mean[from:to]), tensor.Bytes(moments[from:to])) ||
			!bytes.Equal(tensor.Bytes(square[from:to]), tensor.Bytes(moments[e.length+from:e.length+to])) {
			other.Store(true)
		}
	})
	return !other.Load()
}

// keep writes the optimizer of the inner steps to state.
func (in *inner) keep(state []float32, n int) {
	if in == nil {
		return
	}
	own := state[len(state)-in.StateLen(n):]
	m, v, _ := in.adamw.Moments()
	copy(own, m)
	copy(own[n:], v)
	own[2*n] = float32(in.done)
}
