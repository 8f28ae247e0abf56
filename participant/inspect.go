package participant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Inspection says how a participant samples and scores its model as it trains.
type Inspection struct {
	Prompts []string // to continue; none: two beginnings of held-out text
	Tasks   []string // NAME=FILE
}

// inspector continues prompts and answers the questions of tasks with the model in training. It
// spends a hundredth of the time spent on training; a look that costs more than there is waits for
// a later step. The model of the last step is always looked at: nothing is left to train.
type inspector struct {
	Inspection
	trainer *trainer.Trainer
	work    []model.NamedItems

	mu     sync.Mutex // guards what follows
	Credit time.Duration
	tokenS float64 // seconds that the model takes for a token, as measured last
	said   bool    // that it cannot be done
}

const (
	// InspectShare is the fraction of training time that looks may take.
	InspectShare = 0.01
	// inspectParamsMax bounds the models that are looked at: a look copies the parameters.
	inspectParamsMax = 400_000_000
	// paramSeconds is the first guess of the seconds that a look takes for a parameter and a token.
	paramSeconds = 0.4e-9
	// PromptBytes is the approximate length of each of promptsDefault prompts from held-out text.
	PromptBytes, promptsDefault = 48, 2
	// sampleTokens and taskItems bound a sample and the items of a task: idle time is limited.
	sampleTokens, taskItems = 40, 50
)

// NewInspector reads the files of the tasks.
func NewInspector(in Inspection, t *trainer.Trainer) (*inspector, error) {
	i := &inspector{Inspection: in, trainer: t, tokenS: paramSeconds * float64(t.Model.Base().Layout().Len())}
	if len(in.Tasks) > 0 {
		var err error
		if i.work, err = model.ReadTasks(in.Tasks, taskItems); err != nil {
			return nil, fmt.Errorf("--task: %w", err)
		}
	}
	return i, nil
}

// Trained credits the seconds that a share took.
func (i *inspector) Trained(seconds float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Credit += time.Duration(InspectShare * seconds * float64(time.Second))
}

// Inspect is node.Config.Inspect.
func (i *inspector) Inspect(ctx context.Context, step coordinator.Step, root wire.Hash, params []float32) (out []event.Event) {
	if i.trainer.Model.Base().Layout().Len() > inspectParamsMax {
		return i.fault(fmt.Errorf("no samples and no tasks: a model of more than %s parameters is not copied for them", view.Thousands(inspectParamsMax)))
	}
	if len(i.Prompts) == 0 {
		if err := i.quote(); err != nil {
			return i.fault(err)
		}
	}
	if n := i.promptTokens(); i.afford(step, n) {
		out = append(out, i.spend(n, func() ([]event.Event, error) { return i.samples(ctx, step, root, params) })...)
	}
	for range len(i.work) { // the first task that can be paid, and then the next: all get their turn
		w := i.work[0]
		n := i.taskTokens(w)
		if !i.afford(step, n) {
			break
		}
		i.work = append(i.work[1:], w)
		out = append(out, i.spend(n, func() ([]event.Event, error) { return i.score(ctx, step, root, params, w) })...)
	}
	return out
}

// promptTokens returns about how many tokens the samples take.
func (i *inspector) promptTokens() (n int) {
	for _, p := range i.Prompts {
		n += sampleTokens + len(i.trainer.Tokenizer.Encode(nil, []byte(p)))
	}
	return n
}

// taskTokens returns about how many tokens a task takes.
func (i *inspector) taskTokens(w model.NamedItems) (n int) {
	for _, item := range w.Items {
		for _, c := range item.Choices {
			n += (len(item.Prompt(0)) + len(c)) / 3
		}
	}
	return n
}

// afford reports whether the credit pays for a number of tokens at a step.
func (i *inspector) afford(step coordinator.Step, tokens int) bool {
	if uint32(step) >= i.trainer.Spec.Steps {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Credit.Seconds() >= i.tokenS*float64(tokens)
}

// spend calls f, which reads or writes a number of tokens, and charges the time it takes.
func (i *inspector) spend(tokens int, f func() ([]event.Event, error)) []event.Event {
	start := time.Now()
	out, err := f()
	took := time.Since(start)
	i.mu.Lock()
	i.Credit -= took
	i.tokenS = took.Seconds() / float64(tokens)
	i.mu.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) {
		return append(out, i.fault(err)...)
	}
	return out
}

// fault reports, once, why there is nothing to report.
func (i *inspector) fault(err error) []event.Event {
	if i.said {
		return nil
	}
	i.said = true
	return []event.Event{event.Note{Text: "looking at the model: " + err.Error()}}
}

// quote takes prompts from two places of the held-out text.
func (i *inspector) quote() error {
	t := i.trainer
	n := t.Set.HeldOut().Len()
	if n == 0 {
		i.Prompts = []string{"The ", "It is "}
		return nil
	}
	ids := make([]uint32, t.Spec.Data.Sequence+1)
	for k := range uint64(promptsDefault) {
		if err := t.Set.HeldOut().Read(k*n/promptsDefault, ids); err != nil {
			return err
		}
		for j := range ids {
			ids[j] &^= data.Masked
		}
		b, err := t.Tokenizer.Decode(nil, ids)
		if err != nil {
			return err
		}
		text := strings.ToValidUTF8(strings.TrimSpace(string(b)), "")
		text = text[:min(len(text), PromptBytes)]
		if at := strings.LastIndexAny(text, " \n"); at > 0 {
			text = text[:at]
		}
		i.Prompts = append(i.Prompts, strings.ToValidUTF8(text, ""))
	}
	return nil
}

// sampleSampling and the seed are the same at all steps, so that only the model differs.
var sampleSampling = llama.Sampling{Temperature: 0.6, TopK: 40}

// whole returns the model with the parameters in training, adapters merged into theirs.
func (i *inspector) whole(params []float32) (llama.Config, []float32, error) {
	t := i.trainer
	if t.Model.LoRA == (llama.LoRA{}) {
		return t.Model, params, nil
	}
	a, err := llama.NewAdapted(t.Model, exact.NewPool(1), t.Run.Base)
	if err != nil {
		return llama.Config{}, nil, err
	}
	return t.Model.Base(), a.Merge(params), nil
}

// samples continues the prompts.
func (i *inspector) samples(ctx context.Context, step coordinator.Step, root wire.Hash, params []float32) (out []event.Event, err error) {
	g := model.Generator{Tokenizer: i.trainer.Tokenizer, Sampling: sampleSampling}
	if g.Model, g.Params, err = i.whole(params); err != nil {
		return nil, err
	}
	for _, p := range i.Prompts {
		g.Seed = wire.Sum("entrain/samples", []byte(p))
		text, err := g.Text(ctx, p, sampleTokens, nil)
		if err != nil {
			return out, err
		}
		out = append(out, event.Sample{Step: step, Params: root, Prompt: p, Text: strings.ToValidUTF8(text, "\uFFFD")})
	}
	return out, nil
}

// score answers the questions of a task.
func (i *inspector) score(ctx context.Context, step coordinator.Step, root wire.Hash, params []float32, w model.NamedItems) ([]event.Event, error) {
	config, params, err := i.whole(params)
	if err != nil {
		return nil, err
	}
	reader, err := llama.NewGenerator(config, params, exact.NewPool(1))
	if err != nil {
		return nil, err
	}
	s := eval.Scorer{Model: reader, Tokenizer: i.trainer.Tokenizer, Context: config.Context}
	r, err := s.Run(ctx, w.Name, w.Items, nil)
	if err != nil {
		return nil, err
	}
	return []event.Event{event.Scored{Step: step, Params: root, Task: r.Task, Items: r.Items, Acc: r.Acc, AccNorm: r.Norm}}, nil
}
