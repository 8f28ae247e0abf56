package study

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
)

// way is one run in progress.
type way struct {
	*learning
	row    LearningRow
	steps  int // of a round
	rounds int

	codec  codec.Options
	engine *cpu.Engine
	rates  optim.Schedule
	apply  func(params []float32, payloads [][]byte, step uint32) error
	whole  wholeOptimizer // of MethodAdamW and MethodMuon, else nil
}

// wholeOptimizer is one optimizer for all.
type wholeOptimizer interface {
	Step(params, grad []float32, lr float32)
	Moments() (m, v []float32, step uint32)
	Restore(m, v []float32, step uint32)
}

func (w *way) name() string {
	r := w.row
	s := fmt.Sprintf("%s, %d members, %d steps, rate %.4g", r.Method, r.Members, r.Steps, r.Rate)
	if r.TopK > 0 {
		s += fmt.Sprintf(", %d of %d, decay %g", r.TopK, r.Chunk, r.Decay)
	}
	if r.Inner > 0 {
		s += fmt.Sprintf(", %d steps a round, outer rate %g", r.Inner, r.Outer)
		if r.Clip > 0 {
			s += fmt.Sprintf(", %d chunks clipped together", r.Clip)
		}
		if r.Muon {
			s += ", muon"
		}
	}
	return s
}

// weightDecay and clipNorm are those of all methods.
const (
	weightDecay = .1
	clipNorm    = 1
)

// make creates the codec and the engine.
func (w *way) make() (err error) {
	r := w.row
	var inner *optim.Inner
	switch r.Method {
	case MethodAdamW, MethodMuon:
		w.codec = dense.Config{} // only the mean is clipped
	case MethodDistro:
		w.codec = distro.Config{Block: r.Chunk, TopK: r.TopK, Decay: r.Decay, WeightDecay: weightDecay, ClipNorm: clipNorm}
	case MethodLocal:
		inner = r.inner()
		w.codec = dense.Config{}
	case MethodSparseLoCo:
		inner = r.inner()
		w.codec = r.sparseLoCo()
	default:
		return fmt.Errorf("study: no such method: %q", r.Method)
	}
	w.rounds = r.Steps / w.steps
	w.rates = optim.Schedule{Kind: optim.Cosine, Base: r.Rate, WarmupSteps: uint32(w.rounds / 15), Steps: uint32(w.rounds), Final: r.Rate / 10}
	if w.engine, err = w.ground.engine(w.codec, w.rates, inner); err != nil {
		return err
	}
	w.apply = func(params []float32, payloads [][]byte, step uint32) error {
		return w.engine.Apply(cpu.Floats(params), payloads, step)
	}
	switch r.Method {
	case MethodAdamW:
		if w.whole, err = optim.NewAdamW(len(w.start), learningAdamW(), w.pool); err != nil {
			return err
		}
		w.apply = w.together()
	case MethodMuon:
		if w.whole, err = optim.NewMuon(len(w.start), w.model.Matrices(), learningAdamW(), w.pool); err != nil {
			return err
		}
		w.apply = w.together()
	case MethodLocal:
		w.apply = w.local
	}
	return err
}

// sparseLoCo returns the settings of the codec.
func (r LearningRow) sparseLoCo() sparseloco.Options {
	return sparseloco.Options{Chunk: r.Chunk, TopK: r.TopK, Decay: r.Decay, OuterRate: r.Outer, ClipChunks: r.Clip, InnerSteps: r.Inner}
}

// inner returns the local steps.
func (r LearningRow) inner() *optim.Inner {
	return &optim.Inner{Steps: r.Inner, AdamW: learningAdamW(), Muon: r.Muon, ClipNorm: clipNorm}
}

func learningAdamW() optim.AdamWConfig {
	a := optim.DefaultAdamW()
	a.WeightDecay = weightDecay
	return a
}

// diverged replaces losses that are not finite, and all later ones.
const diverged = math.MaxFloat32

// train trains one model and returns its losses: initially, and after each eighth of the tokens.
func (w *way) train(ctx context.Context) (losses []float64, err error) {
	losses, err = w.learn(ctx)
	if errors.Is(err, codec.ErrNotFinite) || errors.Is(err, codec.ErrTooLarge) || errors.Is(err, llama.ErrNotFinite) {
		for err = nil; len(losses) <= learningPoints; {
			losses = append(losses, diverged)
		}
	}
	return losses, err
}

// learn is train without the handling of divergence.
func (w *way) learn(ctx context.Context) (losses []float64, err error) {
	t, err := w.begin()
	if err != nil {
		return nil, err
	}
	defer func() { losses = t.losses }()
	clock := newStopwatch(t.rounds)
	for {
		measured := t.rounds == w.rounds*len(t.losses)/learningPoints
		if measured {
			if err := w.measure(ctx, t); err != nil {
				return nil, err
			}
		}
		if t.rounds == w.rounds {
			return nil, nil
		}
		if measured || clock.due(w.o.every) {
			if err := w.save(t); err != nil {
				return nil, err
			}
			w.o.Progress(w.name() + ": " + clock.progress(t, w.rounds, w.tokens()))
		}
		payloads, err := w.round(ctx, t.Params, t.states, t.rounds)
		if err != nil {
			return nil, err
		}
		t.rounds++
		if err := w.apply(t.Params, payloads, uint32(t.rounds)); err != nil {
			return nil, err
		}
	}
}

// measure appends the held-out loss.
func (w *way) measure(ctx context.Context, t *training) error {
	loss, err := w.engine.HeldOut(ctx, cpu.Floats(t.Params))
	if err != nil {
		return err
	}
	if x := float64(loss); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("loss %g: %w", x, codec.ErrNotFinite)
	}
	t.losses = append(t.losses, float64(loss))
	return nil
}

// tokens returns how many tokens a round trains on.
func (w *way) tokens() int { return w.o.Batch * w.steps * w.sequence }

// round trains each member's share on the same parameters.
func (w *way) round(ctx context.Context, params []float32, states [][]float32, r int) (payloads [][]byte, err error) {
	total := uint32(w.o.Batch * w.steps)
	for i, state := range states {
		from, n := batch.Split(total, uint32(w.row.Members), uint32((i+r)%w.row.Members))
		if n == 0 {
			continue
		}
		result, err := w.engine.Step(ctx, cpu.Floats(params), cpu.Floats(state), []batch.Span{{Start: uint64(r)*uint64(total) + uint64(from), Count: n}}, uint32(r+1))
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, result.Payload)
	}
	return payloads, nil
}

// mean sets grad to the mean of whole payloads.
func mean(grad []float32, payloads [][]byte) {
	for i := range grad {
		var sum float32
		for _, p := range payloads {
			sum += math.Float32frombits(binary.LittleEndian.Uint32(p[codec.HeaderLen+4*i:]))
		}
		grad[i] = sum / float32(len(payloads))
	}
}

// local applies whole changes.
func (w *way) local(params []float32, payloads [][]byte, _ uint32) error {
	change := make([]float32, len(params))
	mean(change, payloads)
	for i, x := range change {
		params[i] -= w.row.Outer * x
	}
	return nil
}

// together applies whole gradients by one optimizer for all.
func (w *way) together() func(params []float32, payloads [][]byte, step uint32) error {
	grad := make([]float32, len(w.start))
	return func(params []float32, payloads [][]byte, step uint32) error {
		mean(grad, payloads)
		scale, err := codec.Clip(w.pool, grad, clipNorm)
		if err != nil {
			return err
		}
		for i := range grad {
			grad[i] *= scale
		}
		w.whole.Step(params, grad, w.rates.LR(step))
		return nil
	}
}
