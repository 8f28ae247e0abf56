package trace_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
)

// caseData gives the engine the sequences of a case in spans that are not in order.
type caseData struct {
	src   trace.Sources
	order []uint64
}

func (d caseData) Read(i uint64, dst []uint32) error {
	words, err := d.src.Tokens(uint32(slices.Index(d.order, i)))
	copy(dst, words)
	return err
}

// TestTheOutcomeIsThatOfTheEngine does two steps of each model by engine/cpu and by the program,
// with and without clipping. The last operation gives what a member commits to.
func TestTheOutcomeIsThatOfTheEngine(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	order := []uint64{12, 13, 5}
	spans := []batch.Span{{Start: 12, Count: 2}, {Start: 5, Count: 1}}
	for i, c := range trace.Cases(len(order)) {
		for k, clip := range []float32{0, 1e-3} {
			if i > 0 && k != i%2 {
				continue // clipping is the tail's, whatever the model
			}
			t.Run(fmt.Sprintf("%s, clip %g", c.Name, clip), func(t *testing.T) {
				src, layout := c.Sources, c.Setup.Model.Layout()
				options := distro.Config{Block: 32, TopK: 8, Decay: .95, ClipNorm: clip}
				codec, err := distro.New(layout, options, pool)
				if err != nil {
					t.Fatal(err)
				}
				schedule := optim.Schedule{Kind: optim.Linear, Base: .01, Steps: 10}
				e, err := cpu.New(engine.Run{
					Model: c.Setup.Model, Base: src.Base, Codec: options, Schedule: schedule, Data: caseData{src, order}, Sequence: c.Setup.Sequence,
				}, cpu.Options{Workers: 2, Micro: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				tails, err := trace.NewTails(codec, layout)
				if err != nil {
					t.Fatal(err)
				}
				model, err := trace.NewModel(c.Setup)
				if err != nil {
					t.Fatal(err)
				}
				src.State = make([]float32, codec.StateLen())
				after := slices.Clone(src.State)
				for step := uint32(1); step <= 2; step++ {
					got, err := e.Step(t.Context(), cpu.Floats(src.Params), cpu.Floats(after), spans, step)
					if err != nil {
						t.Fatal(err)
					}
					who := trace.Share{Run: merkle.Leaf(nil), Round: 3 + step, Member: 9}
					p, err := model.Program(uint32(len(order)), tails.Tail(schedule.LR(step), who))
					if err != nil {
						t.Fatal(err)
					}
					made, err := e.Trace(t.Context(), p, src)
					if err != nil {
						t.Fatal(err)
					}
					leaf, _ := made.Last()
					want := dispute.Outcome(dispute.Commitment{
						Payload: merkle.BlobRoot(got.Payload), PayloadBytes: uint32(len(got.Payload)), State: merkle.BlobRoot(tensor.Bytes(after)),
						Work: dispute.WorkHash(who.Run, coordinator.Round(who.Round), coordinator.Member(who.Member), got.Gradient),
					})
					if leaf != want {
						t.Fatalf("step %d: the program's outcome is %s, the engine's %s", step, leaf, want)
					}
					copy(src.State, after)
				}
			})
		}
	}
}
