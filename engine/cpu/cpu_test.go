package cpu

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

var model = llama.Config{Vocab: 48, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 12, Theta: 10000, Eps: 1e-5}

const sequence = 12

// counted is a text in which each token follows from the one before, with some sequences that cannot be read.
type counted struct{ missing uint64 }

var errMissing = errors.New("shard is missing")

func (c counted) Read(i uint64, dst []uint32) error {
	if c.missing != 0 && i == c.missing {
		return errMissing
	}
	random := prng.New(wire.Sum("train-test", wire.AppendU64(nil, i)), "sequence")
	t := random.Uint64n(48)
	for k := range dst {
		dst[k] = uint32(t)
		t = (t*5 + 1) % 48
	}
	return nil
}

func newEngine(t *testing.T, workers, micro int, data engine.Source) *Engine {
	t.Helper()
	return made(t, workers, micro, engine.Run{
		Model: model, Data: data, HeldOut: data, HeldOutSequences: 7, Sequence: sequence,
		Codec:    distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1},
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3, WarmupSteps: 2},
	})
}

// made makes an engine that ends with the test.
func made(t *testing.T, workers, micro int, run engine.Run) *Engine {
	t.Helper()
	e, err := New(run, Options{Workers: workers, Micro: micro})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func initial() []float32 { return llama.Init(model, wire.Sum("train-test")) }

func TestAStepIsAFunctionOfItsArguments(t *testing.T) {
	spans := []batch.Span{{Start: 3, Count: 5}, {Start: 100, Count: 4}}
	var want engine.Result
	var state []float32
	for i, e := range []*Engine{newEngine(t, 1, 9, counted{}), newEngine(t, 1, 9, counted{}), newEngine(t, 3, 2, counted{}), newEngine(t, 2, 4, counted{})} {
		got := make([]float32, e.StateLen())
		r, err := e.Step(t.Context(), Floats(initial()), Floats(got), spans, 3)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want, state = r, got
			continue
		}
		if !bytes.Equal(r.Payload, want.Payload) || !slices.Equal(got, state) || r.Tokens != want.Tokens || r.Gradient != want.Gradient {
			t.Errorf("engine %d: another payload, state or gradient from the same arguments", i)
		}
	}
	if want.Tokens != 9*sequence {
		t.Errorf("%d tokens, want %d", want.Tokens, 9*sequence)
	}
	if err := newEngine(t, 1, 1, counted{}).Check(want.Payload); err != nil {
		t.Errorf("its own payload is refused: %v", err)
	}
}

// TestTheGradientIsTheMeanBeforeClipping compares the hash with that of a gradient which no engine made: that of the model over the
// sequences one by one, each weighed by the size of the share.
func TestTheGradientIsTheMeanBeforeClipping(t *testing.T) {
	e := newEngine(t, 2, 4, counted{})
	r, err := e.Step(t.Context(), Floats(initial()), Floats(make([]float32, e.StateLen())), []batch.Span{{Start: 7, Count: 3}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	pool := exact.NewPool(1)
	defer pool.Close()
	m, err := llama.New(model, pool, 1, sequence)
	if err != nil {
		t.Fatal(err)
	}
	grad := make([]float32, e.ParamsLen())
	for i := range uint64(3) {
		tokens := make([]uint32, sequence+1)
		if err := (counted{}).Read(7+i, tokens); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Grad(initial(), grad, tokens, 1, sequence, 3); err != nil {
			t.Fatal(err)
		}
	}
	if want := merkle.BlobRoot(tensor.Bytes(grad)); r.Gradient != want {
		t.Errorf("the gradient's root is %s, want %s", r.Gradient, want)
	}
	if r.GradNorm <= 1 {
		t.Errorf("a gradient of norm %g was not clipped: the test shows nothing", r.GradNorm)
	}
}

func TestAFailedStepLeavesTheStateAlone(t *testing.T) {
	spans := []batch.Span{{Start: 0, Count: 8}}
	fresh := func(e *Engine) []float32 {
		s := make([]float32, e.StateLen())
		for i := range s {
			s[i] = float32(i)
		}
		return s
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := initial()
	broken[len(broken)/2] = float32(inf())
	for name, try := range map[string]func(e *Engine, state []float32) error{
		"cancelled": func(e *Engine, s []float32) error {
			_, err := e.Step(cancelled, Floats(initial()), Floats(s), spans, 1)
			return err
		},
		"no sequences": func(e *Engine, s []float32) error {
			_, err := e.Step(t.Context(), Floats(initial()), Floats(s), nil, 1)
			return err
		},
		"broken weights": func(e *Engine, s []float32) error {
			_, err := e.Step(t.Context(), Floats(broken), Floats(s), spans, 1)
			return err
		},
		"data is missing": func(e *Engine, s []float32) error {
			_, err := e.Step(t.Context(), Floats(initial()), Floats(s), spans, 1)
			return err
		},
	} {
		data := counted{}
		if name == "data is missing" {
			data.missing = 5
		}
		e := newEngine(t, 1, 4, data)
		state := fresh(e)
		err := try(e, state)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "data is missing" && (!errors.Is(err, errMissing) || !strings.Contains(err.Error(), "sequence 5")) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(state, fresh(e)) {
			t.Errorf("%s: the state changed", name)
		}
	}
}

func inf() float64 {
	zero := 0.0
	return 1 / zero
}

// TestMembersLearnTogether trains a few members by their payloads alone.
func TestMembersLearnTogether(t *testing.T) {
	e := newEngine(t, 2, 4, counted{})
	params, replica := initial(), initial()
	states := [][]float32{make([]float32, e.StateLen()), make([]float32, e.StateLen()), make([]float32, e.StateLen())}
	first, err := e.HeldOut(t.Context(), Floats(params))
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1000)
	for step := uint32(1); step <= 60; step++ {
		var payloads [][]byte
		for _, s := range states {
			r, err := e.Step(t.Context(), Floats(params), Floats(s), []batch.Span{{Start: next, Count: 4}}, step)
			if err != nil {
				t.Fatal(err)
			}
			next += 4
			payloads = append(payloads, r.Payload)
		}
		for _, p := range [][]float32{params, replica} {
			if err := e.Apply(Floats(p), payloads, step); err != nil {
				t.Fatal(err)
			}
		}
	}
	last, err := e.HeldOut(t.Context(), Floats(params))
	if err != nil {
		t.Fatal(err)
	}
	if last > first/2 {
		t.Errorf("held-out loss went from %.3f to %.3f", first, last)
	}
	if a, b := e.Leaves(Floats(params)), e.Leaves(Floats(replica)); !slices.Equal(a, b) {
		t.Error("two replicas that applied the same sets differ")
	}
}

func TestLeavesAreThoseOfTheBlob(t *testing.T) {
	e := newEngine(t, 3, 1, counted{})
	for _, n := range []int{0, 1, merkle.ChunkBytes / 4, merkle.ChunkBytes/4 + 1, merkle.ChunkBytes} {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i)
		}
		if got, want := e.Leaves(Floats(values)), merkle.BlobLeaves(tensor.Bytes(values)); !slices.Equal(got, want) {
			t.Errorf("%d values: the leaves are not those of their bytes", n)
		}
	}
}

func TestHeldOutNeedsASplit(t *testing.T) {
	e := newEngine(t, 1, 4, counted{})
	e.run.HeldOutSequences = 0
	if _, err := e.HeldOut(t.Context(), Floats(initial())); err == nil {
		t.Error("a loss was measured on nothing")
	}
}
