package cpu

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

func sliceEngine(t *testing.T, workers, micro int) *Engine {
	t.Helper()
	return made(t, workers, micro, engine.Run{
		Model: model, Data: counted{}, HeldOut: counted{}, HeldOutSequences: 7, Sequence: sequence,
		Codec:    slice.Config{Compression: 4, Leaf: 32, Decay: 1, WeightDecay: .1, ClipNorm: 1},
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 1e-2, WarmupSteps: 2},
	})
}

// windows trains as the members of a run that exchanges by buckets do, each update applied one window late.
func windows(t *testing.T, e *Engine, members, n int) (params []float32) {
	t.Helper()
	s, ok := e.Slicer()
	if !ok {
		t.Fatal("an engine with codec slice does not seal")
	}
	params = initial()
	states := make([][]float32, members)
	var late [][]byte
	for w := uint32(1); w <= uint32(n); w++ {
		seed := wire.Sum("train-test", wire.AppendU32(nil, w))
		var reveals [][]byte
		for m := range states {
			if states[m] == nil {
				states[m] = make([]float32, e.StateLen())
			}
			r, err := e.Step(t.Context(), Floats(params), Floats(states[m]), []batch.Span{{Start: uint64(w)*100 + uint64(m)*4, Count: 4}}, w)
			if err != nil {
				t.Fatal(err)
			}
			reveal := s.Reveal(nil, r.Payload, seed)
			if root, from, err := s.Open(reveal); err != nil || root != s.Root(r.Payload) || from != seed || len(reveal) != s.RevealLen() {
				t.Fatalf("window %d, member %d: opens to %v of %v, %v", w, m, root, from, err)
			}
			s.Settle(Floats(states[m]), seed)
			reveals = append(reveals, reveal)
		}
		if w > 1 {
			before := slices.Clone(params)
			if err := e.Apply(Floats(params), late, w-1); err != nil {
				t.Fatal(err)
			}
			if err := s.PatchState(before, s.StateSlice(Floats(params), wire.Sum("train-test", wire.AppendU32(nil, w-1)))); err != nil || !slices.Equal(before, params) {
				t.Fatalf("window %d: a state slice does not carry it: %v", w, err)
			}
		}
		late = reveals
	}
	return params
}

// A run learns from slices, to the same bits for any number of workers.
func TestSlicesTrain(t *testing.T) {
	if _, ok := newEngine(t, 1, 1, counted{}).Slicer(); ok {
		t.Error("an engine with codec distro seals")
	}
	e := sliceEngine(t, 1, 3)
	params := windows(t, e, 3, 60)
	before, err := e.HeldOut(t.Context(), Floats(initial()))
	if err != nil {
		t.Fatal(err)
	}
	after, err := e.HeldOut(t.Context(), Floats(params))
	if err != nil {
		t.Fatal(err)
	}
	if after > .9*before {
		t.Errorf("held-out loss %v after 60 windows, %v before", after, before)
	}
	short := windows(t, sliceEngine(t, 1, 1), 2, 5)
	if again := windows(t, sliceEngine(t, 3, 4), 2, 5); !slices.Equal(again, short) {
		t.Error("other parameters with other workers")
	}
	root := merkle.Root(e.Leaves(Floats(short)))
	if got := hex.EncodeToString(root[:8]); got != goldenSlices {
		t.Errorf("parameters after 5 windows have hash %s, want %s", got, goldenSlices)
	}
}

// goldenSlices is the beginning of the hash of the parameters after 5 windows of 2 members.
const goldenSlices = "62adf9deee09f5cf"
