package sim

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/enginetest"
)

// TestSharedEngine has an engine that shares vectors pass the tests of every engine.
func TestSharedEngine(t *testing.T) {
	enginetest.Test(t, func(t testing.TB, r engine.Run) engine.Engine {
		e, err := cpu.New(r, cpu.Options{Workers: 1, Micro: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return sharedEngine{e, newSharing()}
	})
}

// TestEqualVectorsShareMemory measures equal vectors, and applies one update to both.
func TestEqualVectorsShareMemory(t *testing.T) {
	n, err := assemble(t.Context(), Default(1))
	if err != nil {
		t.Fatal(err)
	}
	defer n.clean()
	e := n.parts[0].engine
	f, _ := e.Follower()
	state := e.NewVector(e.StateLen())
	r, err := e.Step(t.Context(), e.Load(slices.Clone(n.initial)), state, []batch.Span{{Start: 0, Count: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	update, err := f.Update(nil, [][]byte{r.Payload})
	if err != nil {
		t.Fatal(err)
	}
	a, b := e.Load(slices.Clone(n.initial)), e.Load(slices.Clone(n.initial))
	same := func() bool { return &engine.Values(a)[0] == &engine.Values(b)[0] }
	if same() || !slices.Equal(e.Leaves(a), e.Leaves(b)) || !same() {
		t.Error("equal vectors do not share memory once they are measured")
	}
	for _, v := range []engine.Vector{a, b} {
		if err := f.Follow(v, update, 1); err != nil {
			t.Fatal(err)
		}
	}
	if !same() || slices.Equal(engine.Values(a), n.initial) {
		t.Error("one update changes nothing, or is applied twice")
	}
	before := slices.Clone(engine.Values(b))
	if err := f.Follow(a, update, 2); err != nil || same() || !slices.Equal(engine.Values(b), before) {
		t.Errorf("a change of one vector changes another, or none: %v", err)
	}
}
