package verify

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestRunsThatNobodyCanJudgeAreRefused(t *testing.T) {
	w := newWorld(t, .5)
	text := string(w.text)
	for name, change := range map[string][2]string{
		"garbage":         {"[model]", "[model"},
		"no manifest":     {w.spec.Data.Manifest, ""},
		"too many blocks": {"block = 64", "block = 1"},
		"too many tokens": {"context = 64", "context = 100000"},
		"too large steps": {"start = 8", "start = 16000000"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		switch name {
		case "too many blocks":
			changed = strings.Replace(changed, "hidden = 72", "hidden = 1600", 1)
		case "too many tokens":
			changed = strings.Replace(changed, "sequence = 40", "sequence = 90000", 1)
		}
		if changed == text {
			t.Fatalf("%s: nothing is changed", name)
		}
		if _, err := NewReferee([]byte(changed)); err == nil {
			t.Errorf("%s: there is a referee", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

func TestTheRefereeAnswersWhateverItIsAsked(t *testing.T) {
	w := newWorld(t, .5)
	c, _ := w.step(t)
	r := w.referee
	for _, n := range []uint32{0, 1, 7, 1 << 31, 1<<32 - 1} {
		if r.Ops(n) == 0 {
			t.Errorf("a share of %d sequences has no operations", n)
		}
		c.Sequences = n
		for _, op := range []uint32{0, 100, r.Ops(n) - 1, r.Ops(n), 1<<32 - 1} {
			if r.Tiles(c, op) == 0 || r.Slices(c, op, 0) == 0 || r.Slices(c, op, 1<<32-1) == 0 {
				t.Errorf("%d sequences: operation %d has no tiles or slices", n, op)
			}
			if _, err := r.Judge(c, op, 1<<32-1, 0, wire.Hash{}, nil); err == nil {
				t.Errorf("%d sequences: a tile beyond operation %d was judged", n, op)
			}
		}
	}
}

func TestTwoRefereesJudgeTheSame(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	p := w.open(t, c, in)
	again, err := NewReferee(bytes.Clone(w.text))
	if err != nil {
		t.Fatal(err)
	}
	for op := uint32(0); op < w.referee.Ops(c.Sequences); op += 41 {
		tile := w.referee.Tiles(c, op) - 1
		slice := w.referee.Slices(c, op, tile) - 1
		evidence, err := p.trace.Evidence(t.Context(), op, tile, slice)
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.referee.Judge(c, op, tile, slice, p.Root(), evidence)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Judge(c, op, tile, slice, p.Root(), evidence); err != nil || a != b {
			t.Errorf("operation %d: %s and %s, %v", op, a, b, err)
		}
		if _, err := w.referee.Judge(c, op, tile, slice, wire.Hash{1}, evidence); err == nil && len(evidence) > 0 && evidence[0] != 0 && readsValue(w, c, op, tile, slice) {
			t.Errorf("operation %d: evidence under another root was taken", op)
		}
	}
}

// readsValue reports whether a slice reads another operation's value.
func readsValue(w *world, c dispute.Case, op, tile, slice uint32) bool {
	p, err := w.tracer.rules.program(c)
	if err != nil {
		return false
	}
	for _, r := range p.Op(op).Reads(tile, slice) {
		if r.Source == 0 {
			return true
		}
	}
	return false
}

func TestBlocksAreCountedAsTheCodecCutsThem(t *testing.T) {
	w := newWorld(t, .5)
	cfg, err := w.spec.Llama()
	if err != nil {
		t.Fatal(err)
	}
	preset, err := llama.Preset("10m")
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range []tensor.Layout{
		cfg.Layout(), preset.Layout(),
		tensor.NewLayout([]tensor.Spec{{Name: "a", Shape: []int{3, 65, 130}}, {Name: "b"}, {Name: "c", Shape: []int{7}}, {Name: "d", Shape: []int{2, 2, 1, 64}}}),
	} {
		made, err := w.spec.Optimizer.New(layout, nil)
		if err != nil {
			t.Fatal(err)
		}
		counter, ok := made.(interface{ Blocks() int })
		if !ok {
			t.Fatal("the codec has no blocks")
		}
		if got, want := w.spec.Optimizer.Kind().Disputable(w.spec.Optimizer, layout), uint64(counter.Blocks()); got != want {
			t.Errorf("%d blocks, the codec has %d", got, want)
		}
	}
}

func TestWhoIsNotAskedSaysNothing(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	p := w.open(t, c, in)
	d := dispute.Dispute{ID: 3, Accused: 5, Accuser: 6, Commitment: c.Commitment}
	d.Step, d.Sequences = c.Step, c.Sequences
	for name, v := range map[string]struct {
		self   coordinator.Member
		change func(d *dispute.Dispute)
	}{
		"a third":                  {7, func(d *dispute.Dispute) { d.Stage = dispute.StageDescending }},
		"nobody":                   {dispute.NoMember, func(d *dispute.Dispute) { d.Stage = dispute.StageDefending }},
		"the accuser first":        {6, func(d *dispute.Dispute) { d.Stage = dispute.StageDefending }},
		"the accused again":        {5, func(d *dispute.Dispute) { d.Stage, d.Defended = dispute.StageDefending, true }},
		"the accused at last":      {5, func(d *dispute.Dispute) { d.Stage = dispute.StageEvidence }},
		"while others vote":        {5, func(d *dispute.Dispute) { d.Stage = dispute.StageTieBreaking }},
		"about what is not served": {5, func(d *dispute.Dispute) { d.Stage, d.Unserved = dispute.StageDefending, true }},
		"who has revealed": {6, func(d *dispute.Dispute) {
			d.Stage, d.Revealed = dispute.StageDescending, [2]bool{false, true}
		}},
	} {
		asked := d
		v.change(&asked)
		if m, err := p.Move(t.Context(), asked, v.self); m != nil || err != nil {
			t.Errorf("%s: says %T, %v", name, m, err)
		}
	}
	d.Stage = dispute.StageDescending
	if _, err := p.Move(t.Context(), d, 5); err == nil {
		t.Error("a dispute that descends at no level was answered")
	}
}
