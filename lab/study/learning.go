package study

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// LearningOptions configure a comparison of codecs. Zero values give the comparison in the
// documentation.
type LearningOptions struct {
	Text    string       // file to train on; "" for Newton's Opticks
	Model   llama.Config // without a shape, that of the documentation, in its Numerics
	Seed    string       // of the first parameters
	Steps   int          // training steps of Batch sequences each
	Batch   int          // sequences of a step, over all members
	Threads int
	HeldOut uint64        // sequences on which the loss is measured
	Rows    []LearningRow // the first, usually AdamW, is the baseline
	// file of results, if not empty; runs found there are not repeated, and interrupted ones continue
	Results  string
	Partial  bool // take what Results holds, of interrupted runs too, and train nothing
	Progress func(what string)

	every time.Duration // between states that are kept; 0 for saveEvery
}

// errNotBegun reports a run of which nothing is kept.
var errNotBegun = errors.New("the run has not begun")

// LearningRun is the result of a row, with the best of the tried learning rates.
type LearningRun struct {
	LearningRow
	Rounds   int       `json:"rounds"`
	Tried    int       `json:"rates_tried"`
	Losses   []float64 `json:"heldout_loss"`  // after each eighth of the tokens, nats a token
	Relative float64   `json:"relative_loss"` // last loss relative to the first row's
	Bytes    int       `json:"bytes"`         // uploaded by a member in a round
	Bits     float64   `json:"bits"`          // bits per parameter and step
	Total    uint64    `json:"total_bytes"`   // uploaded by a member in the run
}

// last returns the loss after all tokens.
func (r LearningRun) last() float64 { return r.Losses[len(r.Losses)-1] }

// Learning is the result of a comparison.
type Learning struct {
	Model    string        `json:"model"`
	Numerics string        `json:"numerics"`
	Params   int           `json:"params"`
	Sequence int           `json:"sequence"`
	Steps    int           `json:"steps"`
	Batch    int           `json:"batch"`
	Tokens   uint64        `json:"tokens"` // tokens trained on by each run
	Start    float64       `json:"loss_at_start"`
	HeldOut  uint64        `json:"heldout_tokens"`
	Runs     []LearningRun `json:"runs"`
}

// learningPoints is the number of times that a run's loss is measured.
const learningPoints = 8

func (o *LearningOptions) fill() {
	o.Steps, o.Batch = cmp.Or(o.Steps, learningSteps), cmp.Or(o.Batch, learningBatch)
	o.Threads, o.HeldOut = cmp.Or(o.Threads, 1), cmp.Or(o.HeldOut, 1<<20)
	if n := o.Model.Numerics; o.Model == (llama.Config{Numerics: n}) {
		o.Model = learningModel
		o.Model.Numerics = n
	}
	if o.Rows == nil {
		o.Rows = LearningRows([]int{1, 4, 8, 16}, false)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	o.every = cmp.Or(o.every, saveEvery)
}

// learning is a comparison in progress.
type learning struct {
	*ground
	o    LearningOptions
	kept *keeper // losses of each run: initially, and after each eighth
}

// MeasureLearning trains one model with each method and number of members, always on the same
// tokens in the same order. Equal options give equal losses on every machine.
func MeasureLearning(ctx context.Context, o LearningOptions) (all Learning, err error) {
	o.fill()
	if err := o.Model.Check(); err != nil {
		return all, err
	}
	l := learning{o: o}
	if l.ground, err = newGround(ctx, o.Text, o.Model, o.Model.Context, o.HeldOut, o.Threads, o.Seed); err != nil {
		return all, err
	}
	defer l.close()
	if l.kept, err = openKeeper(o.Results); err != nil {
		return all, err
	}
	defer l.kept.file.Close()
	all = Learning{
		Model: fmt.Sprintf("%d layers of %d", o.Model.Layers, o.Model.Hidden), Numerics: o.Model.Numerics.String(), Params: len(l.start), Sequence: l.sequence,
		Steps: o.Steps, Batch: o.Batch, Tokens: uint64(o.Steps) * uint64(o.Batch) * uint64(l.sequence), HeldOut: l.heldOut * uint64(l.sequence),
	}
	rows := slices.Clone(o.Rows)
	for i := range rows {
		rows[i].Steps = cmp.Or(rows[i].Steps, o.Steps)
		if err := o.check(rows[i]); err != nil {
			return all, fmt.Errorf("%s with %d members: %w", rows[i].Method, rows[i].Members, err)
		}
	}
	for _, row := range rows {
		run, start, err := l.best(ctx, row)
		if err != nil {
			return all, fmt.Errorf("%s with %d members: %w", row.Method, row.Members, err)
		}
		all.Start, all.Runs = start, append(all.Runs, run)
		all.Runs[len(all.Runs)-1].Relative = run.last() / all.Runs[0].last()
	}
	return all, nil
}

// check returns an error if a row's runs would train on fewer tokens than others, or on shares of
// unequal weight.
func (o *LearningOptions) check(row LearningRow) error {
	if row.Members < 1 || o.Batch < 1 || o.Batch%row.Members != 0 {
		return fmt.Errorf("%d members do not divide a batch of %d sequences", row.Members, o.Batch)
	}
	if inner := max(row.Inner, 1); row.Steps < learningPoints*inner || row.Steps%inner != 0 {
		return fmt.Errorf("%d steps are not a whole number of rounds of %d steps each, and %d or more of them", row.Steps, inner, learningPoints)
	}
	if row.Method == MethodSparseLoCo {
		return row.sparseLoCo().Check()
	}
	return nil
}

// best returns the result of a row with the best of its rates.
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

// rateFactors is the most times that a learning rate is doubled or halved.
const rateFactors = 5

// bestRate tries a learning rate, then higher ones while they are better, and if none is, lower
// ones.
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

// run returns the result of a row at its rate, looked up or trained.
func (l *learning) run(ctx context.Context, row LearningRow) (run LearningRun, start float64, err error) {
	w := &way{learning: l, row: row, steps: max(row.Inner, 1)}
	if err := w.make(); err != nil {
		return run, 0, err
	}
	defer w.engine.Close()
	bytes := w.engine.PayloadMax()
	run = LearningRun{LearningRow: row, Rounds: w.rounds, Bytes: bytes, Total: uint64(w.rounds) * uint64(bytes)}
	run.Bits = 8 * float64(run.Total) / float64(row.Steps) / float64(len(l.start))
	id := l.id(row)
	losses, ok := l.kept.done[id]
	switch {
	case ok:
	case l.o.Partial:
		t, err := w.begin()
		if err != nil {
			return run, 0, err
		}
		if len(t.losses) < 2 {
			return run, 0, errNotBegun
		}
		run.Losses = t.losses[1:]
		return run, t.losses[0], nil
	default:
		l.o.Progress(w.name())
		if losses, err = w.train(ctx); err != nil {
			return run, 0, err
		}
		if err := l.kept.file.Add(kept{id, w.name(), losses}); err != nil {
			return run, 0, err
		}
		if err := l.kept.dropPart(id); err != nil {
			return run, 0, err
		}
	}
	if len(losses) != learningPoints+1 {
		return run, 0, fmt.Errorf("%s has %d losses of a run, want %d: remove it", l.o.Results, len(losses), learningPoints+1)
	}
	run.Losses = losses[1:]
	return run, losses[0], nil
}

// id returns the hash of everything that determines a run's losses, except the program.
func (l *learning) id(row LearningRow) wire.Hash {
	b, err := json.Marshal([]any{row, l.o.Batch, l.heldOut, l.manifest, l.model, l.sequence, l.o.Seed})
	if err != nil {
		panic("study: a row has no JSON: " + err.Error())
	}
	return wire.Sum("entrain/bench/learning", b)
}
