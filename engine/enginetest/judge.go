package enginetest

import (
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// testBeside calls what may run beside a step while one runs.
func testBeside(t *testing.T, e engine.Engine, r engine.Run) {
	params, state := e.Load(initial(r)), e.NewVector(e.StateLen())
	root := merkle.Root(e.Leaves(params))
	done := make(chan error, 1)
	go func() {
		_, err := e.Step(t.Context(), params, state, share(0), 1)
		done <- err
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if running = false; err != nil {
				t.Error(err)
			}
		default:
		}
		if merkle.Root(e.Leaves(params)) != root || e.Check([]byte("rubbish")) == nil || len(params.Host(0, 5)) != 5 {
			t.Fatal("another answer beside a step")
		}
		e.Copy(e.NewVector(params.Len()), params)
	}
}

// testJudges compares what judges recompute with what the step said.
func testJudges(t *testing.T, e engine.Engine, r engine.Run) {
	params := e.Load(initial(r))
	made, err := e.Step(t.Context(), params, e.NewVector(e.StateLen()), share(40), 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(7 * r.Sequence); made.Tokens != want {
		t.Errorf("%d tokens, want %d", made.Tokens, want)
	}
	g, err := e.Gradient(t.Context(), params, share(40))
	if err != nil {
		t.Fatal(err)
	}
	values := slices.Clone(engine.Values(g.Values))
	if merkle.BlobRoot(tensor.Bytes(values)) != g.Root {
		t.Error("the root is not that of the gradient")
	}
	if r.Inner == nil && (g.Root != made.Gradient || g.Loss != made.Loss || codec.Norm(nil, values) != made.GradNorm) {
		t.Errorf("the step says %+v, a judge %v and %v", made, g.Root, g.Loss)
	}
	if _, err := e.Gradient(t.Context(), params, nil); err == nil {
		t.Error("there is a gradient of no sequences")
	}
	loss, err := e.Loss(t.Context(), params, share(40))
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, s := range share(40) {
		for i := s.Start; i < s.End(); i++ {
			one, err := e.Loss(t.Context(), params, []batch.Span{{Start: i, Count: 1}})
			if err != nil {
				t.Fatal(err)
			}
			sum += one
		}
	}
	if !(math.Abs(loss-sum/7) <= 1e-6) || r.Inner == nil && !(math.Abs(loss-float64(g.Loss)) <= 1e-6) {
		t.Errorf("loss %v, mean of its sequences %v, the gradient's %v", loss, sum/7, g.Loss)
	}
	if _, err := e.Loss(t.Context(), params, nil); err == nil {
		t.Error("there is a loss on no sequences")
	}
	held, err := e.HeldOut(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := e.Loss(t.Context(), params, []batch.Span{{Count: uint32(r.HeldOutSequences)}}); err != nil ||
		!(math.Abs(float64(held)-want) <= 1e-6) {
		t.Errorf("held-out loss %v, want %v, %v", held, want, err)
	}
}

// testTrace compares the outcome of a step's trace with what the step commits to.
func testTrace(t *testing.T, e engine.Engine, r engine.Run) {
	layout := r.Model.Layout()
	made, err := r.Codec.New(layout, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := made.(codec.Disputable)
	if !ok {
		t.Skip("steps with this codec cannot be disputed")
	}
	tails, err := trace.NewTails(d, layout)
	if err != nil {
		t.Fatal(err)
	}
	m, err := trace.NewModel(trace.Setup{Model: r.Model, Sequence: r.Sequence})
	if err != nil {
		t.Fatal(err)
	}
	who := trace.Share{Run: wire.Sum("enginetest"), Round: 3, Member: 9}
	p, err := m.Program(3, tails.Tail(r.Schedule.LR(1), who))
	if err != nil {
		t.Fatal(err)
	}
	params, state := e.Load(initial(r)), e.NewVector(e.StateLen())
	before := slices.Clone(engine.Values(state))
	got, err := e.Step(t.Context(), params, state, []batch.Span{{Start: 5, Count: 3}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	traced, err := e.Trace(t.Context(), p, trace.Sources{
		Params: engine.Values(params), State: before, Base: r.Base, Tokens: func(i uint32) ([]uint32, error) {
			dst := make([]uint32, r.Sequence+1)
			return dst, r.Data.Read(uint64(5+i), dst)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := traced.Last()
	want := dispute.Outcome(dispute.Commitment{
		Payload: merkle.BlobRoot(got.Payload), PayloadBytes: uint32(len(got.Payload)),
		State: merkle.Root(e.Leaves(state)), Work: dispute.WorkHash(who.Run, coordinator.Round(who.Round), coordinator.Member(who.Member), got.Gradient),
	})
	if leaf != want {
		t.Errorf("the trace ends in %s, the step in %s", leaf, want)
	}
}
