package verify

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// Tracer makes the players of a run's disputes. It is safe for concurrent use.
type Tracer struct {
	rules  *rules
	data   Data
	engine engine.Engine
}

// NewTracer returns a run's tracer, or an error that explains why its steps cannot be disputed.
func NewTracer(s spec.Spec, data Data, e engine.Engine) (*Tracer, error) {
	if err := provable(data); err != nil {
		return nil, err
	}
	r, err := newRules(s)
	if err != nil {
		return nil, err
	}
	return &Tracer{r, data, e}, nil
}

// Player plays one side of a dispute, accused or accuser, from its own trace of the step.
type Player struct {
	c     dispute.Case
	trace *trace.Trace
}

// Open traces a step, which takes several times as long as computing it, and returns a player that
// argues from the trace. A nil state is a fresh one, all zeros; in a run of buckets it is not read.
// The spans, params and state must be those that the commitment names, and must not change while
// the player is in use.
func (t *Tracer) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (*Player, error) {
	p, err := t.rules.program(c)
	if err != nil {
		return nil, err
	}
	switch {
	case t.rules.gradient:
		state = nil
	case state == nil:
		state = t.engine.NewVector(t.rules.params)
	}
	in := Inputs{Spans: spans, Params: params, State: state}
	if err := in.check(t.engine, c); err != nil {
		return nil, err
	}
	return t.open(ctx, p, c, in)
}

// open is Open for any program.
func (t *Tracer) open(ctx context.Context, p trace.Program, c dispute.Case, in Inputs) (*Player, error) {
	if n := t.rules.params; in.Params.Len() != n || in.State != nil && in.State.Len() != n {
		return nil, fmt.Errorf("verify: got %d parameters and a state of %d floats for a model of %d parameters", in.Params.Len(), in.State.Len(), n)
	}
	prover := prover{t.engine, in.Params, in.State, in.Spans, t.data}
	made, err := t.engine.Trace(ctx, p, trace.Sources{
		Params: engine.Values(in.Params), State: engine.Values(in.State), Base: t.engine.Base(), Tokens: prover.tokens(t.rules.setup.Sequence), Prove: prover.prove,
	})
	if err != nil {
		return nil, err
	}
	return &Player{c, made}, nil
}

// Root returns the root of the player's trace, which Accuse and TieBreak contain.
func (p *Player) Root() wire.Hash { return p.trace.Root() }

// Agrees reports whether the result of the player's trace is the one committed to. A player that
// agrees has no reason to accuse; an accused player that does not agree has lost.
func (p *Player) Agrees() bool {
	leaf, _ := p.trace.Last()
	return leaf == dispute.Outcome(p.c.Commitment)
}

// Move returns member self's next message in a dispute, or nil if it has none to send now.
func (p *Player) Move(ctx context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error) {
	side := dispute.Accuser
	switch {
	case d.Unserved:
		return nil, nil
	case self == d.Accused:
		side = dispute.Accused
	case self != d.Accuser:
		return nil, nil
	}
	switch d.Stage {
	case dispute.StageDefending:
		if side != dispute.Accused || d.Defended {
			return nil, nil
		}
		if !p.Agrees() {
			return coordinator.Concede{Dispute: d.ID}, nil
		}
		_, proof := p.trace.Last()
		return coordinator.Defend{Dispute: d.ID, Trace: p.Root(), Proof: proof}, nil
	case dispute.StageDescending:
		if d.Revealed[side] {
			return nil, nil
		}
		return p.reveal(ctx, d)
	case dispute.StageEvidence:
		if side != dispute.Accuser {
			return nil, nil
		}
		b, err := p.trace.Evidence(ctx, d.Op, d.Tile, d.Slice)
		if err != nil {
			return nil, err
		}
		return coordinator.Evidence{Dispute: d.ID, Bytes: b}, nil
	}
	return nil, nil
}

// reveal returns the children of the node at which the two sides differ.
func (p *Player) reveal(ctx context.Context, d dispute.Dispute) (coordinator.Message, error) {
	m := coordinator.Reveal{Dispute: d.ID}
	var err error
	switch d.Level {
	case dispute.LevelOps:
		m.Nodes = p.trace.OpChildren(d.Depth, d.Index)
	case dispute.LevelTiles:
		m.Nodes, err = p.trace.TileChildren(ctx, d.Op, d.Depth, d.Index)
	case dispute.LevelSlices:
		m.Nodes, err = p.trace.SliceChildren(ctx, d.Op, d.Tile, d.Depth, d.Index)
	default:
		return nil, fmt.Errorf("verify: dispute %d is not descending", d.ID)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}
