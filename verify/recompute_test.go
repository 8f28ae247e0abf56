package verify

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

func TestRecomputingSaysWhatIsDifferent(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	for name, v := range map[string]struct {
		change func(c *dispute.Commitment)
		want   string // in the difference; empty if there is none
	}{
		"nothing":           {func(*dispute.Commitment) {}, ""},
		"loss":              {func(c *dispute.Commitment) { c.Loss = 1 }, ""},
		"work":              {func(c *dispute.Commitment) { c.Work[3] ^= 1 }, "gradient"},
		"payload":           {func(c *dispute.Commitment) { c.Payload[3] ^= 1 }, "update"},
		"length of payload": {func(c *dispute.Commitment) { c.PayloadBytes-- }, "update"},
		"state":             {func(c *dispute.Commitment) { c.State[3] ^= 1 }, "optimizer state"},
		"another's work":    {func(c *dispute.Commitment) { c.Member++ }, "gradient"},
	} {
		changed := c
		v.change(&changed.Commitment)
		before := slices.Clone(engine.Values(in.State))
		got, err := Recompute(t.Context(), w.engine, changed, in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Same != (v.want == "") || !strings.Contains(got.Difference, v.want) || got.Same != (got.Difference == "") {
			t.Errorf("%s changed: same %v, difference %q", name, got.Same, got.Difference)
		}
		if merkle.BlobRoot(tensor.Bytes(engine.Values(got.State))) != c.Commitment.State || got.Result.Gradient.IsZero() {
			t.Errorf("%s changed: the result is not that of the step", name)
		}
		if !slices.Equal(engine.Values(in.State), before) {
			t.Fatalf("%s changed: the state given was changed", name)
		}
	}
}

func TestRecomputingWantsWhatTheCommitmentNames(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	other := slices.Clone(w.params)
	other[7]++
	for name, try := range map[string]struct {
		c  dispute.Case
		in Inputs
	}{
		"params":    {c, Inputs{in.Spans, cpu.Floats(other), in.State}},
		"state":     {c, Inputs{in.Spans, in.Params, cpu.Floats(other)}},
		"spans":     {c, Inputs{in.Spans[1:], in.Params, in.State}},
		"sequences": {dispute.Case{Commitment: c.Commitment, Step: c.Step, Sequences: c.Sequences + 1}, in},
	} {
		if _, err := Recompute(t.Context(), w.engine, try.c, try.in); err == nil {
			t.Errorf("other %s: a verdict was given", name)
		}
		if _, err := w.tracer.Open(t.Context(), try.c, try.in.Spans, try.in.Params, try.in.State); err == nil {
			t.Errorf("other %s: a trace was made", name)
		}
	}
}

// TestAStepWithoutAResultIsNoReasonToBeSilent breaks the parameters, so that nothing comes out of a
// step: whoever commits to something is convicted all the same.
func TestAStepWithoutAResultIsNoReasonToBeSilent(t *testing.T) {
	for name, v := range map[string]struct {
		breaks func(w *world)
		want   error
	}{
		"parameters": {func(w *world) { w.params[len(w.params)/3] = float32(math.NaN()) }, llama.ErrNotFinite},
		"state":      {func(w *world) { w.state[5] = float32(math.Inf(-1)) }, codec.ErrNotFinite},
		"large":      {func(w *world) { w.state[len(w.state)-1] = -1e31 }, codec.ErrTooLarge},
	} {
		w := newWorld(t, .5)
		c, _ := w.step(t)
		v.breaks(w)
		c.Commitment.Params, c.Commitment.Prev = merkle.BlobRoot(tensor.Bytes(w.params)), merkle.BlobRoot(tensor.Bytes(w.state))
		in := Inputs{w.spans, cpu.Floats(w.params), cpu.Floats(w.state)}
		got, err := Recompute(t.Context(), w.engine, c, in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Same || !errors.Is(got.Failed, v.want) {
			t.Errorf("%s: same %v, failed with %v", name, got.Same, got.Failed)
		}
		p, err := w.tracer.rules.program(c)
		if err != nil {
			t.Fatal(err)
		}
		honest := w.open(t, c, in)
		outcome := dispute.Outcome(c.Commitment)
		cheat, err := w.tracer.open(t.Context(), newLying(p, lie{p.Len() - 1, 0, 0, func(words []uint32) { setHash(words, outcome) }}), c, in)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := argue(t.Context(), w.referee, c, [2]Side{cheat, honest}); err != nil || g.Convicted != dispute.Accused {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// setHash makes words a hash.
func setHash(words []uint32, h wire.Hash) {
	for i := range words {
		words[i] = uint32(h[4*i]) | uint32(h[4*i+1])<<8 | uint32(h[4*i+2])<<16 | uint32(h[4*i+3])<<24
	}
}

func TestAFreshStateNeedsNotBeGiven(t *testing.T) {
	w := newWorld(t, .5)
	w.state = make([]float32, len(w.state))
	c, in := w.step(t)
	p, err := w.tracer.Open(t.Context(), c, in.Spans, in.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Agrees() {
		t.Error("a step from a fresh state comes out differently")
	}
}

func TestErrorsOfTheEngineAreNoVerdict(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	in.Spans = []batch.Span{{Start: 1, Count: 3}}
	c.Commitment.Share = batch.Hash(in.Spans)
	ctx := cancelled(t)
	if _, err := Recompute(ctx, w.engine, c, in); err == nil {
		t.Error("a verdict without an engine that finished")
	}
	if _, err := w.tracer.Open(ctx, c, in.Spans, in.Params, in.State); err == nil {
		t.Error("a trace though the context had ended")
	}
}
