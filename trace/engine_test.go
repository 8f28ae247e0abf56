package trace

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/train"
)

// caseData gives the engine the sequences of a case in spans that are not in order.
type caseData struct {
	src   Sources
	order []uint64
}

func (d caseData) Read(i uint64, dst []uint32) error {
	words, err := d.src.Tokens(uint32(slices.Index(d.order, i)))
	copy(dst, words)
	return err
}

// TestTheOutcomeIsThatOfTheEngine does two steps of each model by package train and by the program, with and without clipping: what a member commits
// to is what the last operation gives.
func TestTheOutcomeIsThatOfTheEngine(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	order := []uint64{12, 13, 5}
	spans := []batch.Span{{Start: 12, Count: 2}, {Start: 5, Count: 1}}
	for _, c := range modelCases() {
		for _, clip := range []float32{0, 1e-3} {
			t.Run(fmt.Sprintf("%s, clip %g", c.name, clip), func(t *testing.T) {
				c.sequences = len(order)
				src := c.sources()
				codec, err := distro.New(c.cfg.Layout(), distro.Config{Chunk: 32, TopK: 8, Decay: .95, ClipNorm: clip}, pool)
				if err != nil {
					t.Fatal(err)
				}
				schedule := optim.Schedule{Kind: optim.Linear, Base: .01, Steps: 10}
				engine, err := train.New(train.Config{
					Model: c.cfg, Codec: codec, Schedule: schedule, Pool: pool, Data: caseData{src, order}, Sequence: c.sequence, Micro: 2,
				})
				if err != nil {
					t.Fatal(err)
				}
				tails, err := NewDistroTails(codec, c.cfg.Layout())
				if err != nil {
					t.Fatal(err)
				}
				src.State = make([]float32, codec.StateLen())
				after := slices.Clone(src.State)
				for step := uint32(1); step <= 2; step++ {
					got, err := engine.Step(context.Background(), src.Params, after, spans, step)
					if err != nil {
						t.Fatal(err)
					}
					who := Share{Run: merkle.Leaf(nil), Round: 3 + step, Member: 9}
					p, err := newProgram(c.setup(), uint32(len(order)), tails.Tail(schedule.LR(step), who))
					if err != nil {
						t.Fatal(err)
					}
					made, err := Run(context.Background(), pool, p, src)
					if err != nil {
						t.Fatal(err)
					}
					leaf, _ := made.Last()
					want := coordinator.Outcome(coordinator.Commitment{
						Payload: merkle.BlobRoot(got.Payload), PayloadBytes: uint32(len(got.Payload)), State: merkle.BlobRoot(tensor.Bytes(after)),
						Work: coordinator.WorkHash(who.Run, who.Round, who.Member, got.Gradient),
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
