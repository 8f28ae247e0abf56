package node

import (
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Checks and disputes in runs of buckets, about the gradient of the sliced toy.

// slicedLeaves are the leaves of the trace of a share: values made up of its gradient, and the
// outcome, of which only the work is computed.
func slicedLeaves(c dispute.Case, gradient wire.Hash) []wire.Hash {
	made := c.Commitment
	made.Work = dispute.WorkHash(made.Run, made.Round, made.Member, gradient)
	list := make([]wire.Hash, toyOps)
	for i := range list {
		list[i] = wire.Sum("toy/op", wire.AppendU32(nil, uint32(i)), gradient[:])
	}
	list[toyOps-1] = dispute.Outcome(made)
	return list
}

// judgeSliced takes as evidence the parameters and the spans, and computes everything.
func judgeSliced(c dispute.Case, op uint32, evidence []byte) (wire.Hash, error) {
	r := wire.NewReader(evidence)
	params := r.Var(1 << 20)
	spans := batch.Parse(&r, 1<<10)
	if r.Done().OrNil() != nil || merkle.BlobRoot(params) != c.Commitment.Params || batch.Hash(spans) != c.Commitment.Share {
		return wire.Hash{}, errToyEvidence
	}
	values := make([]float32, len(params)/4)
	tensor.SetBytes(values, params)
	return slicedLeaves(c, merkle.BlobRoot(tensor.Bytes(sliced{}.gradient(values, spans))))[op], nil
}

// slicedDisputant argues with the trace of a gradient: the true one, or a slanderer's.
type slicedDisputant struct {
	sliced
	slanders bool
}

func (d slicedDisputant) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, _ engine.Vector) (Player, error) {
	g, err := d.Gradient(ctx, params, spans)
	if d.slanders {
		g.Root = wire.Sum("slander")
	}
	evidence := batch.Append(wire.AppendVar(nil, tensor.Bytes(engine.Values(params))), spans)
	return slicedPlayer{toyPlayer{leaves: slicedLeaves(c, g.Root), outcome: dispute.Outcome(c.Commitment)}, evidence}, err
}

type slicedPlayer struct {
	toyPlayer
	evidence []byte
}

func (p slicedPlayer) Move(ctx context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error) {
	if d.Stage == dispute.StageEvidence {
		return coordinator.Evidence{Dispute: d.ID, Bytes: p.evidence}, nil
	}
	return p.toyPlayer.Move(ctx, d, self)
}

// slicedSlanderer is an engine to which the first gradient of another that it computes looks wrong.
type slicedSlanderer struct {
	sliced
	of wire.Hash // the share
}

func (e *slicedSlanderer) Gradient(ctx context.Context, p engine.Vector, spans []batch.Span) (engine.Gradient, error) {
	if e.of.IsZero() {
		e.of = batch.Hash(spans)
	}
	if batch.Hash(spans) == e.of {
		return engine.Gradient{Root: wire.Sum("slander")}, nil
	}
	return e.sliced.Gradient(ctx, p, spans)
}

// newCheckedWorld is a world of buckets in which half of the results are checked.
func newCheckedWorld(t *testing.T, steps, members uint32) *world {
	t.Helper()
	return newBucketWorld(t, steps, members, func(c *coordinator.Config) {
		c.VerificationPercent, c.VerifyMs, c.DisputeMs = 50, 20_000, 60_000
	})
}

// arguing gives a miner what it argues with.
func arguing(w *world) func(*Config) {
	return func(c *Config) { c.Disputant = slicedDisputant{sliced: w.engine} }
}

func TestMinersCheckEachOther(t *testing.T) {
	w := newCheckedWorld(t, 24, 4)
	for i := range 4 {
		w.mine(i, arguing(w))
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2, 3)
	drawn, passed := w.state().ChecksDrawn()
	if drawn < 24 || passed < drawn-4 {
		t.Errorf("%d checks were drawn and %d passed, of some 48", drawn, passed)
	}
	if list := w.offences(); len(list) > 0 {
		t.Errorf("honest miners were convicted: %s", list)
	}
	for i, h := range w.hosts {
		if n := w.results(i); n < 22 || h.verdicts("passed") == 0 {
			t.Errorf("miner %d: %d results accepted of 24, %d others passed", i, n, h.verdicts("passed"))
		}
		if n := len(h.params.Held) + len(h.optim.Held); n > 8 {
			t.Errorf("miner %d holds %d versions at the end", i, n)
		}
	}
}

// TestAnHonestMinerAnswersAfterACrash has a slanderer accuse a miner, which then crashes and can
// fetch from nobody what its share began from: it has written it down.
func TestAnHonestMinerAnswersAfterACrash(t *testing.T) {
	w := newCheckedWorld(t, 60, 4)
	for i := range 3 {
		w.mine(i, arguing(w))
	}
	w.mine(3, func(c *Config) {
		c.Engine, c.Disputant = &slicedSlanderer{sliced: w.engine}, slicedDisputant{w.engine, true}
	})
	victim := w.host(w.inStage(dispute.StageTieBreaking).Accused)
	w.crash(victim)
	w.hosts[victim].store.ok = false // its state file is gone, and with it other parameters
	step := w.state().Step()
	w.until(20*time.Minute, func() bool { return w.state().Step() > step+4 })
	w.mine(victim, arguing(w))
	w.until(20*time.Minute, func() bool { return w.state().ConvictionsTotal() > 0 })
	list := w.state().Convictions()
	if list[0].Key != w.key(3).Public() || list[0].Offence != dispute.FalseAccusation {
		t.Errorf("convicted were %s, want the slanderer of a false accusation", w.offences())
	}
}
