package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/wire"
)

// inspection is what a participant's looks at its model are to tell.
type inspection struct {
	prompts []string // to continue; none: two beginnings of held-out text
	tokens  int      // that a continuation has at most; 0: none are written
	tasks   []string // NAME=FILE
	items   int      // of each task at most
}

// inspector looks at the model now and then: it continues prompts and answers the questions of tasks. What that takes is paid out of a
// hundredth of the time that was spent on training; a look that costs more than there is waits for a later step.
type inspector struct {
	inspection
	trainer *trainer
	work    []taskWork

	mu     sync.Mutex // guards what follows
	credit time.Duration
	tokenS float64 // seconds that the model takes for a token, as measured last
	said   bool    // that it cannot be done
}

const (
	// inspectShare is the part of the time spent on training that looks may take.
	inspectShare = 0.01
	// inspectParamsMax bounds the models that are looked at: it takes a copy of the parameters.
	inspectParamsMax = 400_000_000
	// paramSeconds is the guess before the first look: so long for each parameter and token.
	paramSeconds = 0.4e-9
	// promptBytes is about how much of held-out text a prompt has, of which there are promptsDefault.
	promptBytes, promptsDefault = 48, 2
	// sampleTokensMost and taskItemsMost bound what can be asked for: events have a size, and idle time an end.
	sampleTokensMost, taskItemsMost = 512, 10_000
)

// newInspector reads the files of the tasks. It is nil if there is nothing to tell.
func newInspector(in inspection, t *trainer) (*inspector, error) {
	i := &inspector{inspection: in, trainer: t, tokenS: paramSeconds * float64(t.engine.ParamsLen())}
	if len(in.tasks) > 0 {
		var err error
		if i.work, err = readTasks(in.tasks, in.items); err != nil {
			return nil, fmt.Errorf("--eval: %w", err)
		}
	}
	if in.tokens == 0 && len(i.work) == 0 {
		return nil, nil
	}
	return i, nil
}

// trained adds what a share that took so long may be looked at with.
func (i *inspector) trained(seconds float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.credit += time.Duration(inspectShare * seconds * float64(time.Second))
}

// inspect is node.Config.Inspect.
func (i *inspector) inspect(ctx context.Context, step uint32, root wire.Hash, params []float32) (out []event.Event) {
	if len(params) > inspectParamsMax {
		return i.fault(fmt.Errorf("no samples and no tasks: a model of more than %s parameters is not copied for them", thousands(inspectParamsMax)))
	}
	if i.tokens > 0 && len(i.prompts) == 0 {
		if err := i.quote(); err != nil {
			return i.fault(err)
		}
	}
	if n := i.sampleTokens(); n > 0 && i.afford(n) {
		out = append(out, i.spend(n, func() ([]event.Event, error) { return i.samples(ctx, step, root, params) })...)
	}
	for range len(i.work) { // the first task that can be paid, and then the next: all get their turn
		w := i.work[0]
		n := i.taskTokens(w)
		if !i.afford(n) {
			break
		}
		i.work = append(i.work[1:], w)
		out = append(out, i.spend(n, func() ([]event.Event, error) { return i.score(ctx, step, root, params, w) })...)
	}
	return out
}

// sampleTokens is about how many tokens the samples take.
func (i *inspector) sampleTokens() (n int) {
	if i.tokens == 0 {
		return 0
	}
	for _, p := range i.prompts {
		n += i.tokens + len(i.trainer.tokenizer.Encode(nil, []byte(p)))
	}
	return n
}

// taskTokens is about how many tokens a task takes.
func (i *inspector) taskTokens(w taskWork) (n int) {
	for _, item := range w.items {
		for _, c := range item.Choices {
			n += (len(item.Context) + len(c)) / 3
		}
	}
	return n
}

// afford tells whether so many tokens are paid for.
func (i *inspector) afford(tokens int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.credit.Seconds() >= i.tokenS*float64(tokens)
}

// spend does something of so many tokens, and takes what it costs off the credit.
func (i *inspector) spend(tokens int, f func() ([]event.Event, error)) []event.Event {
	start := time.Now()
	out, err := f()
	took := time.Since(start)
	i.mu.Lock()
	i.credit -= took
	i.tokenS = took.Seconds() / float64(tokens)
	i.mu.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) {
		return append(out, i.fault(err)...)
	}
	return out
}

// fault tells once why there is nothing to tell.
func (i *inspector) fault(err error) []event.Event {
	if i.said {
		return nil
	}
	i.said = true
	return []event.Event{event.Note{Text: "looking at the model: " + err.Error()}}
}

// quote makes prompts of how held-out text goes on, at two places.
func (i *inspector) quote() error {
	t := i.trainer
	n := t.set.HeldOut().Len()
	if n == 0 {
		i.prompts = []string{"The ", "It is "}
		return nil
	}
	ids := make([]uint32, t.spec.Data.Sequence+1)
	for k := range uint64(promptsDefault) {
		if err := t.set.HeldOut().Read(k*n/promptsDefault, ids); err != nil {
			return err
		}
		b, err := t.tokenizer.Decode(nil, ids)
		if err != nil {
			return err
		}
		text := strings.ToValidUTF8(strings.TrimSpace(string(b)), "")
		text = text[:min(len(text), promptBytes)]
		if at := strings.LastIndexAny(text, " \n"); at > 0 {
			text = text[:at]
		}
		i.prompts = append(i.prompts, strings.ToValidUTF8(text, ""))
	}
	return nil
}

// sampleSampling and the seed are the same at all steps, so that what differs is the model.
var sampleSampling = llama.Sampling{Temperature: 0.6, TopK: 40}

// samples continues the prompts.
func (i *inspector) samples(ctx context.Context, step uint32, root wire.Hash, params []float32) (out []event.Event, err error) {
	g := model.Generator{Model: i.trainer.model, Tokenizer: i.trainer.tokenizer, Params: params, Sampling: sampleSampling}
	for _, p := range i.prompts {
		g.Seed = wire.Sum("entrain/samples", []byte(p))
		text, err := g.Text(ctx, p, i.tokens, nil)
		if err != nil {
			return out, err
		}
		out = append(out, event.Sample{Step: step, Params: root, Prompt: p, Text: strings.ToValidUTF8(text, "\uFFFD")})
	}
	return out, nil
}

// score answers the questions of a task.
func (i *inspector) score(ctx context.Context, step uint32, root wire.Hash, params []float32, w taskWork) ([]event.Event, error) {
	reader, err := llama.NewGenerator(i.trainer.model, params)
	if err != nil {
		return nil, err
	}
	s := eval.Scorer{Model: reader, Tokenizer: i.trainer.tokenizer, Context: i.trainer.model.Context}
	r, err := s.Run(ctx, w.name, w.items, nil)
	if err != nil {
		return nil, err
	}
	return []event.Event{event.Scored{Step: step, Params: root, Task: r.Task, Items: r.Items, Acc: r.Acc, AccNorm: r.Norm}}, nil
}

// peakTries is how often the peak is measured, for some milliseconds each: the best one counts, since something else may run meanwhile.
const (
	peakTries  = 8
	peakRounds = 1 << 17
)

// stepCost is what the share of the machine's peak is made of.
type stepCost struct {
	perToken float64 // floating-point operations of the products of a step
	peak     float64 // of the pool, a second
}

// newStepCost measures the peak of multiply-adds of the pool, as entrain bench does.
func newStepCost(t *trainer) stepCost {
	c := stepCost{perToken: bench.StepOperations(t.model, t.spec.Data.Sequence)}
	operations := make([]int, t.pool.Workers())
	for range peakTries {
		start := time.Now()
		t.pool.RunOn(t.pool.Workers(), func(w *exact.Worker, k int) { operations[k] = w.Peak(peakRounds) })
		took := time.Since(start).Seconds()
		sum := 0
		for _, n := range operations {
			sum += n
		}
		c.peak = math.Max(c.peak, float64(sum)/took)
	}
	return c
}

// share is what part of the peak the training of so many tokens was.
func (c stepCost) share(tokens uint64, seconds float64) float64 {
	if !(seconds > 0 && c.peak > 0) {
		return 0
	}
	return float64(tokens) * c.perToken / seconds / c.peak
}
