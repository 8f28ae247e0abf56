package cpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

var fourSteps = optim.Inner{Steps: 4, AdamW: optim.DefaultAdamW(), ClipNorm: 1}

func innerEngine(t *testing.T, workers, micro int, data engine.Source, in optim.Inner, c codec.Options) *Engine {
	t.Helper()
	return made(t, workers, micro, engine.Run{Model: model, Codec: c, Data: data, Sequence: sequence, Inner: &in,
		HeldOut: data, HeldOutSequences: 7, Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}})
}

var (
	sparse = sparseloco.Options{Chunk: 256, TopK: 16, Decay: .95, OuterRate: 1, InnerSteps: 4}
	plain  = dense.Config{}
)

// With a codec that compresses nothing and a rate of one, one member's rounds are AdamW: the same parameters as those of steps done by hand.
func TestRoundsOfOneMemberAreStepsOfAdamW(t *testing.T) {
	a, err := optim.NewAdamW(len(initial()), fourSteps.AdamW, nil)
	if err != nil {
		t.Fatal(err)
	}
	testRoundsOfOneMember(t, fourSteps, a)
}

func TestRoundsOfOneMemberAreStepsOfMuon(t *testing.T) {
	a, err := optim.NewMuon(len(initial()), model.Matrices(), fourSteps.AdamW, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := fourSteps
	in.Muon = true
	testRoundsOfOneMember(t, in, a)
}

func testRoundsOfOneMember(t *testing.T, in optim.Inner, a interface {
	Step(params, grad []float32, lr float32)
	Moments() (m, v []float32, step uint32)
}) {
	e := innerEngine(t, 2, 3, counted{}, in, plain)
	params, state := initial(), make([]float32, e.StateLen())
	const rate = 3e-3
	pool := exact.NewPool(1)
	defer pool.Close()
	m, err := llama.New(model, pool, 3, sequence)
	if err != nil {
		t.Fatal(err)
	}
	for round := range uint64(3) {
		start := slices.Clone(params)
		if _, err := e.Step(t.Context(), Floats(params), Floats(state), []batch.Span{{Start: 100 * round, Count: 9}}, uint32(round+1)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(start, params) {
			t.Fatal("the step moved the parameters of the round's start")
		}
		own := slices.Clone(params)
		from := 100 * round
		for _, count := range []int{3, 2, 2, 2} { // 9 in 4 parts
			grad := make([]float32, len(params))
			tokens := make([]uint32, count*(sequence+1))
			for i := range count {
				if err := (counted{}).Read(from+uint64(i), tokens[i*(sequence+1):][:sequence+1]); err != nil {
					t.Fatal(err)
				}
			}
			from += uint64(count)
			if _, err := m.Grad(own, grad, tokens, count, sequence, count); err != nil {
				t.Fatal(err)
			}
			scale, err := codec.Clip(pool, grad, fourSteps.ClipNorm)
			if err != nil {
				t.Fatal(err)
			}
			for i := range grad {
				grad[i] *= scale
			}
			a.Step(own, grad, rate)
		}
		for i := range e.grad {
			if want := params[i] - own[i]; e.grad[i] != want {
				t.Fatalf("round %d: element %d of the pseudo-gradient is %g, want %g", round, i, e.grad[i], want)
			}
		}
		mean, squares, steps := a.Moments()
		n := len(params)
		if !slices.Equal(state[:n], mean) || !slices.Equal(state[n:2*n], squares) || state[2*n] != float32(steps) {
			t.Fatalf("round %d: the state is not the optimizer's after %d steps", round, steps)
		}
		copy(params, own)
	}
}

func TestInnerStepsAreAFunctionOfTheirArguments(t *testing.T) {
	const golden = "ca85ad06b4eac7b5050065b9f6150113fb86c7515b7ab74ba0f8cb3a3729727f"
	for _, e := range []*Engine{innerEngine(t, 1, 9, counted{}, fourSteps, sparse), innerEngine(t, 3, 2, counted{}, fourSteps, sparse)} {
		params, states := initial(), [2][]float32{make([]float32, e.StateLen()), make([]float32, e.StateLen())}
		for step := uint32(1); step <= 4; step++ {
			var payloads [][]byte
			for i, state := range states {
				r, err := e.Step(t.Context(), Floats(params), Floats(state), []batch.Span{{Start: uint64(100*step + 10*uint32(i)), Count: 7}}, step)
				if err != nil {
					t.Fatal(err)
				}
				payloads = append(payloads, r.Payload)
			}
			if err := e.Apply(Floats(params), payloads, step); err != nil {
				t.Fatal(err)
			}
		}
		var sum wire.Hash
		for _, l := range append(e.Leaves(Floats(params)), append(e.Leaves(Floats(states[0])), e.Leaves(Floats(states[1]))...)...) {
			sum = wire.Sum("test", sum[:], l[:])
		}
		if sum.String() != golden {
			t.Errorf("parameters and states have the hash %s, want %s", sum, golden)
		}
	}
}

func TestInnerStepsTeach(t *testing.T) {
	e := innerEngine(t, 2, 4, counted{}, optim.Inner{Steps: 4, AdamW: optim.DefaultAdamW(), ClipNorm: 1}, sparse)
	params, states := initial(), [2][]float32{make([]float32, e.StateLen()), make([]float32, e.StateLen())}
	before, err := e.HeldOut(t.Context(), Floats(params))
	if err != nil {
		t.Fatal(err)
	}
	for step := uint32(1); step <= 30; step++ {
		var payloads [][]byte
		for i, state := range states {
			r, err := e.Step(t.Context(), Floats(params), Floats(state), []batch.Span{{Start: uint64(1000*step + 100*uint32(i)), Count: 16}}, step)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, r.Payload)
		}
		if err := e.Apply(Floats(params), payloads, step); err != nil {
			t.Fatal(err)
		}
	}
	after, err := e.HeldOut(t.Context(), Floats(params))
	if err != nil || after > before-1 {
		t.Errorf("the held-out loss went from %.3f to %.3f, %v", before, after, err)
	}
}

func TestInnerStepsThatFailLeaveTheStateAlone(t *testing.T) {
	spans := []batch.Span{{Start: 3, Count: 7}}
	for name, v := range map[string]struct {
		data counted
		bend func(state []float32, n int)
		want error
	}{
		"a missing sequence":     {counted{missing: 8}, func([]float32, int) {}, errMissing},
		"half a step done":       {counted{}, func(s []float32, n int) { s[len(s)-1] = .5 }, errSteps},
		"steps without end":      {counted{}, func(s []float32, n int) { s[len(s)-1] = stepsMax }, errSteps},
		"a negative mean square": {counted{}, func(s []float32, n int) { s[len(s)-2] = -1e9 }, codec.ErrNotFinite},
	} {
		e := innerEngine(t, 1, 4, v.data, fourSteps, sparse)
		state := make([]float32, e.StateLen())
		v.bend(state, e.ParamsLen())
		before := e.Leaves(Floats(state))
		_, err := e.Step(t.Context(), Floats(initial()), Floats(state), spans, 2)
		if err == nil || !errors.Is(err, v.want) && !errors.Is(err, llama.ErrNotFinite) {
			t.Errorf("%s: %v, want %v", name, err, v.want)
		}
		if !slices.Equal(e.Leaves(Floats(state)), before) {
			t.Errorf("%s: the state has changed", name)
		}
	}
	e := innerEngine(t, 1, 4, counted{}, fourSteps, sparse)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Step(ctx, Floats(initial()), Floats(make([]float32, e.StateLen())), spans, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled step: %v", err)
	}
}

func TestAShareOfFewSequencesHasAsManySteps(t *testing.T) {
	e := innerEngine(t, 1, 4, counted{}, fourSteps, sparse)
	state := make([]float32, e.StateLen())
	if _, err := e.Step(t.Context(), Floats(initial()), Floats(state), []batch.Span{{Start: 1, Count: 3}}, 1); err != nil || state[len(state)-1] != 3 {
		t.Errorf("%v steps, %v, want 3", state[len(state)-1], err)
	}
	if _, err := New(engine.Run{Model: model, Codec: sparse, Sequence: sequence, Inner: &optim.Inner{AdamW: optim.DefaultAdamW()}}, Options{Workers: 1, Micro: 1}); err == nil {
		t.Error("no inner steps are taken")
	}
}

// A rate at which weight decay would turn weights around is an error of the run's specification, and ends no program.
func TestInnerStepsRefuseRates(t *testing.T) {
	e := innerEngine(t, 1, 3, counted{}, fourSteps, sparse)
	e.run.Schedule.Base = 11
	params, state := initial(), make([]float32, e.StateLen())
	before := slices.Clone(state)
	_, err := e.Step(t.Context(), Floats(params), Floats(state), []batch.Span{{Count: 4}}, 1)
	if err == nil || !strings.Contains(err.Error(), "weight decay") || !slices.Equal(state, before) {
		t.Errorf("error %v", err)
	}
}
