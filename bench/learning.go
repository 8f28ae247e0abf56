package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/train"
	"github.com/entrain-network/entrain/wire"
)

// LearningOptions are what a comparison of ways to train together may be told. Zero values stand for the comparison that the documentation shows.
type LearningOptions struct {
	Text      string // file to train on
	Members   []int  // numbers of them
	Steps     int    // of Batch sequences each, that a run trains on
	Batch     int    // sequences of a step, of all members together
	Inner     int    // steps between two rounds, of methods that have such
	Threads   int
	HeldOut   uint64 // sequences that the loss is measured on
	RatesEach int    // learning rates tried of each run, a factor of two apart; the best counts
	Progress  func(what string)
}

// The methods that are compared.
const (
	MethodAdamW      = "adamw"      // all gradients whole, averaged: what one machine with all the data would do
	MethodDistro     = "distro"     // codec/distro
	MethodSparseLoCo = "sparseloco" // codec/sparseloco
)

// LearningRun is what came of one run, at the best of the learning rates tried.
type LearningRun struct {
	Method   string    `json:"method"`
	Members  int       `json:"members"`
	Rate     float64   `json:"learning_rate"`
	Rounds   int       `json:"rounds"`
	Losses   []float64 `json:"heldout_loss"`  // after each quarter of the tokens, nats a token
	Relative float64   `json:"relative_loss"` // the last, to that of adamw
	Bytes    int       `json:"bytes"`         // a member uploads in a round
	Bits     float64   `json:"bits"`          // of them, a parameter
	Total    uint64    `json:"total_bytes"`   // a member uploads in the run
}

// Learning is a comparison.
type Learning struct {
	Model  string        `json:"model"`
	Params int           `json:"params"`
	Tokens uint64        `json:"tokens"` // trained on by each run
	Start  float64       `json:"loss_at_start"`
	Runs   []LearningRun `json:"runs"`
}

func (o *LearningOptions) fill() {
	o.Steps, o.Batch, o.Inner = orDefault(o.Steps, 300), orDefault(o.Batch, 16), orDefault(o.Inner, 5)
	o.Threads, o.HeldOut, o.RatesEach = orDefault(o.Threads, 1), orDefault(o.HeldOut, 64), orDefault(o.RatesEach, 3)
	if o.Members == nil {
		o.Members = []int{1, 4, 8, 16}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// The middle of the rates tried.
const (
	adamwRate      = 4e-3
	distroRate     = 2e-3
	sparselocoRate = 4e-3
)

// learning is the ground that all runs of a comparison share.
type learning struct {
	o     LearningOptions
	model llama.Config
	set   *data.Set
	pool  *exact.Pool
	start []float32
}

// MeasureLearning trains one model by each method and number of members, always for the same number of tokens in the same order. Same options, same losses,
// on every machine.
func MeasureLearning(ctx context.Context, o LearningOptions) (all Learning, err error) {
	o.fill()
	dir, err := os.MkdirTemp("", "entrain-bench-")
	if err != nil {
		return all, err
	}
	defer os.RemoveAll(dir)
	m, err := data.Prepare(ctx, dir, []string{o.Text}, data.PrepareOptions{Name: "bench", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 50})
	if err != nil {
		return all, err
	}
	l := learning{o: o}
	if l.set, err = data.Open(ctx, dir, m.Hash(), data.Options{SequenceTokens: sliceSequence, Seed: spec.Default().DataSeed()}); err != nil {
		return all, err
	}
	defer l.set.Close()
	if l.model, err = llama.Preset(sliceModel); err != nil {
		return all, err
	}
	l.pool = exact.NewPool(o.Threads)
	defer l.pool.Close()
	l.start = llama.Init(l.model, wire.Sum("entrain/model-seed", []byte(spec.Default().Model.Seed)))
	all = Learning{Model: sliceModel, Params: len(l.start), Tokens: uint64(o.Steps) * uint64(o.Batch) * sliceSequence}
	for _, w := range l.ways() {
		best, start, err := w.best(ctx)
		if err != nil {
			return all, err
		}
		all.Start, all.Runs = start, append(all.Runs, best)
		last := func(r LearningRun) float64 { return r.Losses[len(r.Losses)-1] }
		all.Runs[len(all.Runs)-1].Relative = last(best) / last(all.Runs[0])
	}
	return all, nil
}

// way is a method with a number of members.
type way struct {
	*learning
	method  string
	members int
	inner   int // steps of a round
	middle  float64
}

func (l *learning) ways() []way {
	ways := []way{{l, MethodAdamW, 1, 1, adamwRate}}
	for _, n := range l.o.Members {
		ways = append(ways, way{l, MethodDistro, n, 1, distroRate})
	}
	for _, n := range l.o.Members {
		ways = append(ways, way{l, MethodSparseLoCo, n, l.o.Inner, sparselocoRate})
	}
	return ways
}

// best tries the learning rates.
func (w way) best(ctx context.Context) (best LearningRun, start float64, err error) {
	for i := range w.o.RatesEach {
		rate := w.middle * math.Exp2(float64(i-w.o.RatesEach/2))
		w.o.Progress(fmt.Sprintf("%s, %d members, rate %g", w.method, w.members, rate))
		run, before, err := w.train(ctx, rate)
		if err != nil {
			return best, 0, fmt.Errorf("%s with %d members: %w", w.method, w.members, err)
		}
		if start = before; best.Losses == nil || run.Losses[len(run.Losses)-1] < best.Losses[len(best.Losses)-1] {
			best = run
		}
	}
	return best, start, nil
}

// weightDecay of all methods.
const weightDecay = .1

func (w way) codec() (codec.Codec, *optim.Inner, error) {
	layout := w.model.Layout()
	switch w.method {
	case MethodDistro:
		c, err := distro.New(layout, distro.Config{Chunk: 64, TopK: 32, Decay: .95, WeightDecay: weightDecay, ClipNorm: 1}, w.pool)
		return c, nil, err
	case MethodSparseLoCo:
		adamw := optim.DefaultAdamW()
		c, err := sparseloco.New(layout, sparseloco.Config{Chunk: 4096, TopK: 64, Decay: .95, OuterRate: 1}, w.pool)
		return c, &optim.Inner{Steps: w.inner, AdamW: adamw, ClipNorm: 1}, err
	}
	c, err := dense.New(layout, dense.Config{ClipNorm: 1}, w.pool)
	return c, nil, err
}

// train trains one model.
func (w way) train(ctx context.Context, rate float64) (LearningRun, float64, error) {
	c, inner, err := w.codec()
	if err != nil {
		return LearningRun{}, 0, err
	}
	rounds := w.o.Steps / w.inner
	rates := optim.Schedule{Kind: optim.Cosine, Base: rate, WarmupSteps: uint32(rounds / 15), Steps: uint32(rounds), Final: rate / 10}
	if err := rates.Check(); err != nil {
		return LearningRun{}, 0, err
	}
	heldOut := w.set.HeldOut()
	engine, err := train.New(train.Config{
		Model: w.model, Codec: c, Schedule: rates, Inner: inner, Pool: w.pool, Data: w.set, HeldOut: heldOut,
		HeldOutSequences: min(w.o.HeldOut, heldOut.Len()), Sequence: sliceSequence, Micro: 8,
	})
	if err != nil {
		return LearningRun{}, 0, err
	}
	apply := engine.Apply
	if w.method == MethodAdamW {
		if apply, err = w.adamw(rates); err != nil {
			return LearningRun{}, 0, err
		}
	}
	run := LearningRun{Method: w.method, Members: w.members, Rate: rate, Rounds: rounds, Bytes: c.PayloadMax(),
		Bits: 8 * float64(c.PayloadMax()) / float64(len(w.start)), Total: uint64(rounds) * uint64(c.PayloadMax())}
	params := append([]float32(nil), w.start...)
	before, err := engine.HeldOut(ctx, params)
	if err != nil {
		return run, 0, err
	}
	states := make([][]float32, w.members)
	for i := range states {
		states[i] = make([]float32, engine.StateLen())
	}
	for r := range rounds {
		payloads, err := w.round(ctx, engine, params, states, r)
		if err != nil {
			return run, 0, err
		}
		if err := apply(params, payloads, uint32(r+1)); err != nil {
			return run, 0, err
		}
		if quarter := len(run.Losses) + 1; r+1 == rounds*quarter/4 {
			loss, err := engine.HeldOut(ctx, params)
			if err != nil {
				return run, 0, err
			}
			run.Losses = append(run.Losses, float64(loss))
		}
	}
	return run, float64(before), nil
}

// round has each member train its share on the same parameters.
func (w way) round(ctx context.Context, engine *train.Engine, params []float32, states [][]float32, r int) (payloads [][]byte, err error) {
	total := uint32(w.o.Batch * w.inner)
	for i, state := range states {
		from, n := batch.Split(total, uint32(w.members), uint32((i+r)%w.members))
		if n == 0 {
			continue
		}
		result, err := engine.Step(ctx, params, state, []batch.Span{{Start: uint64(r)*uint64(total) + uint64(from), Count: n}}, uint32(r+1))
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, result.Payload)
	}
	return payloads, nil
}

// adamw applies whole gradients by one optimizer for all.
func (w way) adamw(rates optim.Schedule) (func(params []float32, payloads [][]byte, step uint32) error, error) {
	a, err := optim.NewAdamW(len(w.start), optim.DefaultAdamW(), w.pool)
	grad := make([]float32, len(w.start))
	return func(params []float32, payloads [][]byte, step uint32) error {
		for i := range grad {
			var sum float32
			for _, p := range payloads {
				sum += math.Float32frombits(binary.LittleEndian.Uint32(p[codec.HeaderLen+4*i:]))
			}
			grad[i] = sum / float32(len(payloads))
		}
		a.Step(params, grad, rates.LR(step))
		return nil
	}, err
}
