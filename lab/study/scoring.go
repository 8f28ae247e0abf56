package study

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/wire"
)

// ScoringOptions configure a measurement of a validator's work.
type ScoringOptions struct {
	Model    llama.Config
	Share    uint32 // sequences of a miner in a window
	Sequence int    // tokens of one
	Losses   uint32 // sequences on which losses are compared
	Threads  int
	Rounds   int // measurements of both, in turn
}

// Scoring is the cost of scoring a result beside the cost of making it.
type Scoring struct {
	Params   int
	Share    uint32
	Sequence int
	Threads  int
	Step     float64 // a miner's step: gradient, update, root
	// a validator's evaluation: gradient, comparison, losses
	Evaluation float64
	Relative   float64 // evaluation relative to step
}

// senseless is random text, different in each sequence.
type senseless struct{ vocab uint64 }

// Read implements engine.Source.
func (r senseless) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("entrain/bench-scoring", wire.AppendU64(nil, i)), "tokens")
	for k := range dst {
		dst[k] = uint32(random.Uint64n(r.vocab))
	}
	return nil
}

// scoringRate is the learning rate, which does not affect speed.
const scoringRate = 1e-3

// The default settings of the slice codec.
var scoringSlice = slice.Config{Compression: 100, Leaf: 64, Decay: 1, WeightDecay: 0.1, ClipNorm: 1}

// MeasureScoring measures a miner's step and a validator's evaluation of it in turn.
func MeasureScoring(ctx context.Context, o ScoringOptions) (Scoring, error) {
	e, err := cpu.New(engine.Run{
		Model: o.Model, Codec: scoringSlice, Data: senseless{uint64(o.Model.Vocab)}, Sequence: o.Sequence,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: scoringRate},
	}, cpu.Options{Workers: o.Threads, Micro: int(min(o.Share, 8))})
	if err != nil {
		return Scoring{}, err
	}
	defer e.Close()
	sealer, _ := e.Slicer()
	params, state := cpu.Floats(llama.Init(o.Model, wire.Sum("entrain/bench"))), make(cpu.Floats, e.StateLen())
	spans := []batch.Span{{Start: 0, Count: o.Share}}
	var made engine.Result
	step := &bench.Trial{Run: func() error {
		r, err := e.Step(ctx, params, state, spans, 1)
		if err == nil {
			sealer.Root(r.Payload)
			made = r
		}
		return err
	}}
	if err := step.Run(); err != nil {
		return Scoring{}, err
	}
	run, seed := wire.Sum("entrain/bench-run"), wire.Sum("entrain/bench-slice")
	judge := live.Judge{Run: run, Engine: e, Slicer: sealer, Tensors: len(o.Model.Layout().Tensors())}
	ask := validator.Evaluate{Window: 1, Step: 1, Member: 0, Spans: spans}
	if n := min(o.Losses, o.Share); n > 0 {
		ask.Assigned, ask.Random = batch.Cut(spans, 0, n), []batch.Span{{Start: 1 << 32, Count: n}}
	}
	evaluation := &bench.Trial{Run: func() error {
		reveal := sealer.Reveal(nil, made.Payload, seed)
		work := dispute.WorkHash(run, 1, 0, made.Gradient)
		_, _, err := judge.Evidence(ctx, ask, params, live.Result{Commitment: dispute.Commitment{Work: work}, Reveal: reveal})
		return err
	}}
	if err := bench.Alternate(ctx, o.Rounds, time.Millisecond, []*bench.Trial{step, evaluation}); err != nil {
		return Scoring{}, err
	}
	s := Scoring{
		Params: len(params), Share: o.Share, Sequence: o.Sequence, Threads: o.Threads,
		Step: bench.Median(step.Seconds), Evaluation: bench.Median(evaluation.Seconds),
	}
	s.Relative = s.Evaluation / s.Step
	return s, nil
}
