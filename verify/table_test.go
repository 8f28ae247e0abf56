package verify

import (
	"bytes"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	judge "github.com/entrain-network/entrain/trace/referee"
	"github.com/entrain-network/entrain/wire"
)

// TestARefereeByRulesJudgesTheSame compares the referee of other chains with the one that reads
// specifications, by real evidence of every kind.
func TestARefereeByRulesJudgesTheSame(t *testing.T) {
	w := newSealedWorld(t, .5)
	c, in := w.step(t)
	p := w.open(t, c, in)
	rules, err := Rules(w.text)
	if err != nil {
		t.Fatal(err)
	}
	kernels := exact.Kernels()
	r := judge.New(rules, exact.NewWorker(kernels[len(kernels)-1]), nil)
	if got, want := r.Ops(c.Sequences), w.referee.Ops(c.Sequences); got != want {
		t.Fatalf("%d operations, want %d", got, want)
	}
	for op := uint32(0); op < w.referee.Ops(c.Sequences); op++ {
		tile := w.referee.Tiles(c, op) - 1
		slice := w.referee.Slices(c, op, tile) - 1
		if r.Tiles(c, op) != tile+1 || r.Slices(c, op, tile) != slice+1 {
			t.Fatalf("operation %d has another shape", op)
		}
		if op%41 != 0 && readsValue(w, c, op, tile, slice) {
			continue // all that read external inputs, and some others
		}
		evidence, err := p.trace.Evidence(t.Context(), op, tile, slice)
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.referee.Judge(c, op, tile, slice, p.Root(), evidence)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := r.Judge(c, op, tile, slice, p.Root(), evidence); err != nil || a != b {
			t.Errorf("operation %d: %s and %s, %v", op, a, b, err)
		}
		if len(evidence) == 0 {
			continue
		}
		for _, at := range []int{0, len(evidence) / 2, len(evidence) - 1} {
			bad := bytes.Clone(evidence)
			bad[at] ^= 1
			if b, err := r.Judge(c, op, tile, slice, p.Root(), bad); err == nil && b != a {
				t.Errorf("operation %d: evidence with byte %d changed gives another judgement", op, at)
			}
		}
		for _, short := range [][]byte{nil, evidence[:len(evidence)-1], append(bytes.Clone(evidence), 0)} {
			if _, err := r.Judge(c, op, tile, slice, p.Root(), short); err == nil {
				t.Errorf("operation %d: %d of %d bytes of evidence were taken", op, len(short), len(evidence))
			}
		}
	}
	// Whatever it is asked, it answers.
	for _, n := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
		c.Sequences = n
		for _, op := range []uint32{0, r.Ops(n) - 1, r.Ops(n), 1<<32 - 1} {
			if r.Tiles(c, op) == 0 || r.Slices(c, op, 0) == 0 || r.Slices(c, op, 1<<32-1) == 0 {
				t.Errorf("%d sequences: operation %d has no tiles or slices", n, op)
			}
			if _, err := r.Judge(c, op, 1<<32-1, 0, wire.Hash{}, nil); err == nil {
				t.Errorf("%d sequences: a tile beyond operation %d was judged", n, op)
			}
		}
	}
}

func TestRulesAreRefusedWithTheReason(t *testing.T) {
	if _, err := Rules(newWorld(t, .5).text); err == nil || !strings.Contains(err.Error(), `exchange.kind = "bucket"`) {
		t.Errorf("a run between peers: %v", err)
	}
	if _, err := Rules([]byte("garbage")); err == nil {
		t.Error("garbage has rules")
	}
}
