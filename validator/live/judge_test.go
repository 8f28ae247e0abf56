package live_test

import (
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/wire"
)

var model = llama.Config{Vocab: 48, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 12, Theta: 10000, Eps: 1e-5}

type counted struct{}

func (counted) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("judge-test", wire.AppendU64(nil, i)), "sequence")
	t := random.Uint64n(48)
	for k := range dst {
		dst[k] = uint32(t)
		t = (t*5 + 1) % 48
	}
	return nil
}

// newEngine returns the engine of a run by buckets.
func newEngine(t *testing.T) *cpu.Engine {
	t.Helper()
	e, err := cpu.New(engine.Run{
		Model: model, Codec: slice.Config{Compression: 4, Leaf: 16, Decay: 1, ClipNorm: 1}, Data: counted{}, Sequence: 12,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3},
	}, cpu.Options{Workers: 1, Micro: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestCopiesOfTheSameWindow has a thief commit to what another member has just committed to, and show what that shows: the root opens, and only
// the work does not, whatever the thief writes there.
func TestCopiesOfTheSameWindow(t *testing.T) {
	engine := newEngine(t)
	codec, _ := engine.Slicer()
	run, seed := wire.Sum("run"), wire.Sum("slice")
	params := llama.Init(model, wire.Sum("judge-test"))
	shares := [][]batch.Span{{{Start: 0, Count: 6}}, {{Start: 6, Count: 6}}}
	const victim, thief, window = 0, 1, 9
	made, err := engine.Step(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, engine.StateLen())), shares[victim], 1)
	if err != nil {
		t.Fatal(err)
	}
	reveal := codec.Reveal(nil, made.Payload, seed)
	honest := dispute.Commitment{
		Run: run, Round: window, Member: victim, Payload: codec.Root(made.Payload), Work: dispute.WorkHash(run, window, victim, made.Gradient),
	}
	j := live.Judge{Run: run, Engine: engine, Slicer: codec, Tensors: len(model.Layout().Tensors())}
	judge := func(member coordinator.Member, work wire.Hash, inexact bool) (float64, score.Verdict, score.Evidence) {
		t.Helper()
		c := honest
		c.Member, c.Work = member, work
		j.Inexact = inexact
		e, _, err := j.Evidence(t.Context(), validator.Evaluate{Window: window, Step: 1, Member: member, Spans: shares[member]}, cpu.Floats(params), live.Result{Commitment: c, Reveal: reveal})
		if err != nil {
			t.Fatal(err)
		}
		s, v := score.Default().Score(e)
		return s, v, e
	}
	fair, v, _ := judge(victim, honest.Work, false)
	if v != score.Fair || fair < 0.2 {
		t.Fatalf("the victim's own result is worth %v, %v", fair, v)
	}
	for name, work := range map[string]wire.Hash{
		"the victim's work": honest.Work, "the victim's gradient as its own": dispute.WorkHash(run, window, thief, made.Gradient),
		"something": wire.Sum("something"), "nothing": {},
	} {
		if s, v, _ := judge(thief, work, false); s != -1 || v != score.WrongWork {
			t.Errorf("a copy with %s is worth %v, %v", name, s, v)
		}
	}
	if s, v, e := judge(thief, honest.Work, true); v != score.Fair || s >= fair {
		t.Errorf("where works say nothing a copy is worth %v (%v), the original %v: %+v", s, v, fair, e)
	}
	if root, of, err := codec.Open(reveal); err != nil || root != honest.Payload || of != seed {
		t.Error("the copy does not open: the test shows nothing")
	}
}
