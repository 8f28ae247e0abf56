package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/train"
	"github.com/entrain-network/entrain/wire"
)

// LearningOptions are what a comparison of ways to train together may be told. Zero values stand for the comparison that the documentation shows.
type LearningOptions struct {
	Text     string // file to train on
	Steps    int    // of Batch sequences each, that a run trains on
	Batch    int    // sequences of a step, of all members together
	Threads  int
	HeldOut  uint64        // sequences that the loss is measured on
	Rows     []LearningRow // the first is what others are compared with
	Results  string        // file that keeps what came of each run, if not empty; runs found there are not done again
	Progress func(what string)
}

// A Method is a way to train together.
type Method string

// The methods that are compared.
const (
	MethodAdamW      Method = "adamw"      // all gradients whole, averaged: what one machine with all the data would do
	MethodDistro     Method = "distro"     // codec/distro
	MethodSparseLoCo Method = "sparseloco" // codec/sparseloco
)

// LearningRow is a run that is compared.
type LearningRow struct {
	Method  Method  `json:"method"`
	Members int     `json:"members"`
	Steps   int     `json:"steps"`           // 0: those of the options
	Inner   int     `json:"inner,omitempty"` // steps of a member on its own between two rounds
	Chunk   int     `json:"chunk,omitempty"`
	TopK    int     `json:"top_k,omitempty"`
	Decay   float32 `json:"decay,omitempty"`
	Outer   float32 `json:"outer_rate,omitempty"`
	// Rate is the learning rate. Others, by factors of two above or below, are tried as long as they are better, unless Fixed.
	Rate  float64 `json:"learning_rate"`
	Fixed bool    `json:"-"`
}

// LearningRun is what came of a row, at the best of the learning rates tried.
type LearningRun struct {
	LearningRow
	Rounds   int       `json:"rounds"`
	Tried    int       `json:"rates_tried"`
	Losses   []float64 `json:"heldout_loss"`  // after each eighth of the tokens, nats a token
	Relative float64   `json:"relative_loss"` // the last, to that of the first row
	Bytes    int       `json:"bytes"`         // a member uploads in a round
	Bits     float64   `json:"bits"`          // of them, a parameter and step
	Total    uint64    `json:"total_bytes"`   // a member uploads in the run
}

// last is the loss after all tokens.
func (r LearningRun) last() float64 { return r.Losses[len(r.Losses)-1] }

// Learning is a comparison.
type Learning struct {
	Model    string        `json:"model"`
	Params   int           `json:"params"`
	Sequence int           `json:"sequence"`
	Steps    int           `json:"steps"`
	Batch    int           `json:"batch"`
	Tokens   uint64        `json:"tokens"` // trained on by each run
	Start    float64       `json:"loss_at_start"`
	HeldOut  uint64        `json:"heldout_tokens"`
	Runs     []LearningRun `json:"runs"`
}

// learningPoints is how often a run's loss is measured.
const learningPoints = 8

// The model that is trained, and how long its sequences are: small, so that a run has many steps.
var learningModel = llama.Config{
	Vocab: 256, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Context: 64, Theta: 10000, Eps: 1e-5, Tied: true,
}

const learningSequence = 64

// LearningRows are the runs of the documentation.
func LearningRows(members []int) []LearningRow {
	var rows []LearningRow
	for _, m := range []Method{MethodAdamW, MethodDistro, MethodSparseLoCo} {
		for _, n := range members {
			rows = append(rows, learningRow(m, n))
		}
	}
	return rows
}

// learningRow is a method with its settings.
func learningRow(m Method, members int) LearningRow {
	switch m {
	case MethodDistro:
		return LearningRow{Method: m, Members: members, Chunk: 64, TopK: 32, Decay: .95, Rate: 2e-3}
	case MethodSparseLoCo:
		return LearningRow{Method: m, Members: members, Inner: learningInner, Chunk: 4096, TopK: 64, Decay: .95, Outer: 1, Rate: 4e-3}
	}
	return LearningRow{Method: m, Members: members, Rate: 8e-3}
}

// learningInner is how many steps a member of sparseloco takes between two rounds.
const learningInner = 5

// LearningVariations are runs with other settings.
func LearningVariations() []LearningRow {
	rows := []LearningRow{learningRow(MethodAdamW, 8)}
	vary := func(m Method, change func(r *LearningRow)) {
		r := learningRow(m, 8)
		change(&r)
		rows = append(rows, r)
	}
	vary(MethodDistro, func(*LearningRow) {})
	vary(MethodSparseLoCo, func(*LearningRow) {})
	return rows
}

// Block is how many values TopK is of; 0 if all are sent.
func (r LearningRow) Block() int {
	if r.Method == MethodDistro {
		return r.Chunk * r.Chunk
	}
	return r.Chunk
}

func (o *LearningOptions) fill() {
	o.Steps, o.Batch = orDefault(o.Steps, 600), orDefault(o.Batch, 32)
	o.Threads, o.HeldOut = orDefault(o.Threads, 1), orDefault(o.HeldOut, 1<<20)
	if o.Rows == nil {
		o.Rows = LearningRows([]int{1, 4, 8, 16})
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// learning is a comparison in the making.
type learning struct {
	*ground
	o    LearningOptions
	kept *keeper[[]float64] // losses by run: before, and after each eighth
}

// MeasureLearning trains one model by each method and number of members, always for the same number of tokens in the same order. Same options, same losses,
// on every machine.
func MeasureLearning(ctx context.Context, o LearningOptions) (all Learning, err error) {
	o.fill()
	l := learning{o: o}
	if l.ground, err = newGround(ctx, o.Text, learningModel, learningSequence, o.HeldOut, o.Threads); err != nil {
		return all, err
	}
	defer l.close()
	if l.kept, err = openKeeper[[]float64](o.Results); err != nil {
		return all, err
	}
	defer l.kept.close()
	all = Learning{
		Model: fmt.Sprintf("%d layers of %d", learningModel.Layers, learningModel.Hidden), Params: len(l.start), Sequence: learningSequence,
		Steps: o.Steps, Batch: o.Batch, Tokens: uint64(o.Steps) * uint64(o.Batch) * learningSequence, HeldOut: l.heldOut * learningSequence,
	}
	for _, row := range o.Rows {
		row.Steps = orDefault(row.Steps, o.Steps)
		if err := o.check(row); err != nil {
			return all, err
		}
		if row.Method == MethodAdamW && len(all.Runs) > 0 && all.Runs[0].Method == MethodAdamW {
			row.Rate, row.Fixed = all.Runs[0].Rate, true // the mean of all gradients is the same, whoever made them
		}
		run, start, err := l.best(ctx, row)
		if err != nil {
			return all, fmt.Errorf("%s with %d members: %w", row.Method, row.Members, err)
		}
		all.Start, all.Runs = start, append(all.Runs, run)
		all.Runs[len(all.Runs)-1].Relative = run.last() / all.Runs[0].last()
	}
	return all, nil
}

// check refuses rows whose runs would train on fewer tokens than others, or on shares that do not weigh the same.
func (o *LearningOptions) check(row LearningRow) error {
	if row.Members < 1 || row.Members > o.Batch || o.Batch%row.Members != 0 {
		return fmt.Errorf("%d members do not divide a batch of %d sequences", row.Members, o.Batch)
	}
	if inner := max(row.Inner, 1); row.Steps < learningPoints*inner || row.Steps%inner != 0 {
		return fmt.Errorf("%d steps are not a whole number of rounds of %d steps each, and %d or more of them", row.Steps, inner, learningPoints)
	}
	return nil
}

// best is what comes of a row at the best of its rates.
func (l *learning) best(ctx context.Context, row LearningRow) (best LearningRun, start float64, err error) {
	runs := map[float64]LearningRun{}
	try := func(rate float64) (float64, error) {
		row.Rate = rate
		run, before, err := l.run(ctx, row)
		if err != nil {
			return 0, err
		}
		runs[rate], start = run, before
		return run.last(), nil
	}
	rate, tried := row.Rate, 1
	if row.Fixed {
		_, err = try(rate)
	} else {
		rate, tried, err = bestRate(rate, try)
	}
	best = runs[rate]
	best.Tried = tried
	return best, start, err
}

// rateFactors is how often a learning rate is doubled or halved at most.
const rateFactors = 5

// bestRate tries a learning rate, then higher ones as long as they are better, and if none is, lower ones.
func bestRate(middle float64, try func(rate float64) (loss float64, err error)) (best float64, tried int, err error) {
	least, err := try(middle)
	if best, tried = middle, 1; err != nil {
		return best, tried, err
	}
	for _, factor := range []float64{2, .5} {
		for range rateFactors {
			loss, err := try(best * factor)
			if tried++; err != nil {
				return best, tried, err
			}
			if loss >= least {
				break
			}
			best, least = best*factor, loss
		}
		if best > middle {
			break
		}
	}
	return best, tried, nil
}

// run is what comes of a row at its rate: it is looked up, or trained.
func (l *learning) run(ctx context.Context, row LearningRow) (run LearningRun, start float64, err error) {
	w := &way{learning: l, row: row, steps: max(row.Inner, 1)}
	if err := w.make(); err != nil {
		return run, 0, err
	}
	run = LearningRun{LearningRow: row, Rounds: w.rounds, Bytes: w.codec.PayloadMax(), Total: uint64(w.rounds) * uint64(w.codec.PayloadMax())}
	run.Bits = 8 * float64(run.Total) / float64(row.Steps) / float64(len(l.start))
	id := l.id(row)
	losses, ok := l.kept.get(id)
	if !ok {
		l.o.Progress(w.name())
		if losses, err = w.train(ctx); err != nil {
			return run, 0, err
		}
		if err := l.kept.put(id, w.name(), losses); err != nil {
			return run, 0, err
		}
	}
	if len(losses) != learningPoints+1 {
		return run, 0, fmt.Errorf("%s has %d losses of a run, want %d: remove it", l.o.Results, len(losses), learningPoints+1)
	}
	run.Losses = losses[1:]
	return run, losses[0], nil
}

// id is the hash of all that a run's losses follow from, but for the program.
func (l *learning) id(row LearningRow) wire.Hash {
	b, err := json.Marshal([]any{row, l.o.Batch, l.heldOut, l.manifest, l.model, l.sequence})
	if err != nil {
		panic("bench: a row has no JSON: " + err.Error())
	}
	return wire.Sum("entrain/bench/learning", b)
}

// way is one run in the making.
type way struct {
	*learning
	row    LearningRow
	steps  int // of a round
	rounds int

	codec  codec.Codec
	engine *train.Engine
	rates  optim.Schedule
	apply  func(params []float32, payloads [][]byte, step uint32) error
}

func (w *way) name() string {
	r := w.row
	s := fmt.Sprintf("%s, %d members, %d steps, rate %g", r.Method, r.Members, r.Steps, r.Rate)
	if r.TopK > 0 {
		s += fmt.Sprintf(", %d of %d, decay %g", r.TopK, r.Chunk, r.Decay)
	}
	if r.Inner > 0 {
		s += fmt.Sprintf(", %d steps a round, outer rate %g", r.Inner, r.Outer)
	}
	return s
}

// weightDecay and clipNorm of all methods.
const (
	weightDecay = .1
	clipNorm    = 1
)

// make makes the codec and the engine.
func (w *way) make() (err error) {
	layout, r := w.model.Layout(), w.row
	var inner *optim.Inner
	switch r.Method {
	case MethodAdamW:
		w.codec, err = dense.New(layout, dense.Config{}, w.pool) // the mean is clipped
	case MethodDistro:
		w.codec, err = distro.New(layout, distro.Config{Chunk: r.Chunk, TopK: r.TopK, Decay: r.Decay, WeightDecay: weightDecay, ClipNorm: clipNorm}, w.pool)
	case MethodSparseLoCo:
		inner = &optim.Inner{Steps: r.Inner, AdamW: learningAdamW(), ClipNorm: clipNorm}
		w.codec, err = sparseloco.New(layout, sparseloco.Config{Chunk: r.Chunk, TopK: r.TopK, Decay: r.Decay, OuterRate: r.Outer}, w.pool)
	default:
		err = fmt.Errorf("bench: no such method: %q", r.Method)
	}
	if err != nil {
		return err
	}
	w.rounds = r.Steps / w.steps
	w.rates = optim.Schedule{Kind: optim.Cosine, Base: r.Rate, WarmupSteps: uint32(w.rounds / 15), Steps: uint32(w.rounds), Final: r.Rate / 10}
	if w.engine, err = w.ground.engine(w.codec, w.rates, inner); err != nil {
		return err
	}
	w.apply = w.engine.Apply
	if r.Method == MethodAdamW {
		w.apply, err = w.adamw()
	}
	return err
}

func learningAdamW() optim.AdamWConfig {
	a := optim.DefaultAdamW()
	a.WeightDecay = weightDecay
	return a
}

// diverged stands for losses that are no numbers, and for all that follow.
const diverged = math.MaxFloat32

// train trains one model, and returns its losses: before, and after each eighth of the tokens.
func (w *way) train(ctx context.Context) (losses []float64, err error) {
	losses, err = w.learn(ctx, w.fresh())
	if errors.Is(err, codec.ErrNotFinite) || errors.Is(err, codec.ErrTooLarge) || errors.Is(err, llama.ErrNotFinite) {
		for err = nil; len(losses) <= learningPoints; {
			losses = append(losses, diverged)
		}
	}
	return losses, err
}

// learn is train but for what diverges.
func (w *way) learn(ctx context.Context, params []float32) (losses []float64, err error) {
	measure := func() error {
		loss, err := w.engine.HeldOut(ctx, params)
		if err != nil {
			return err
		}
		if x := float64(loss); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("loss %g: %w", x, codec.ErrNotFinite)
		}
		losses = append(losses, float64(loss))
		return nil
	}
	if err := measure(); err != nil {
		return losses, err
	}
	states := make([][]float32, w.row.Members)
	for i := range states {
		states[i] = make([]float32, w.engine.StateLen())
	}
	for r := range w.rounds {
		payloads, err := w.round(ctx, params, states, r)
		if err != nil {
			return losses, err
		}
		if err := w.apply(params, payloads, uint32(r+1)); err != nil {
			return losses, err
		}
		if r+1 == w.rounds*len(losses)/learningPoints {
			if err := measure(); err != nil {
				return losses, err
			}
		}
	}
	return losses, nil
}

// round has each member train its share on the same parameters.
func (w *way) round(ctx context.Context, params []float32, states [][]float32, r int) (payloads [][]byte, err error) {
	total := uint32(w.o.Batch * w.steps)
	for i, state := range states {
		from, n := batch.Split(total, uint32(w.row.Members), uint32((i+r)%w.row.Members))
		if n == 0 {
			continue
		}
		result, err := w.engine.Step(ctx, params, state, []batch.Span{{Start: uint64(r)*uint64(total) + uint64(from), Count: n}}, uint32(r+1))
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, result.Payload)
	}
	return payloads, nil
}

// adamw applies whole gradients by one optimizer for all.
func (w *way) adamw() (func(params []float32, payloads [][]byte, step uint32) error, error) {
	a, err := optim.NewAdamW(len(w.start), learningAdamW(), w.pool)
	grad := make([]float32, len(w.start))
	return func(params []float32, payloads [][]byte, step uint32) error {
		for i := range grad {
			var sum float32
			for _, p := range payloads {
				sum += math.Float32frombits(binary.LittleEndian.Uint32(p[codec.HeaderLen+4*i:]))
			}
			grad[i] = sum / float32(len(payloads))
		}
		scale, err := codec.Clip(w.pool, grad, clipNorm)
		if err != nil {
			return err
		}
		for i := range grad {
			grad[i] *= scale
		}
		a.Step(params, grad, w.rates.LR(step))
		return nil
	}, err
}
