package adversary

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// disputant argues for the member where it tells the truth, and in its place where it lies.
type disputant struct {
	node.Disputant
	m *member
}

// Open is part of node.Disputant.
func (d disputant) Open(ctx context.Context, c coordinator.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
	d.m.mu.Lock()
	self, known := d.m.index()
	d.m.mu.Unlock()
	own := known && c.Commitment.Member == self
	switch {
	case !d.m.hooks.lies(own):
		return d.Disputant.Open(ctx, c, spans, params, state)
	case !own:
		return d.m.fabricate(c, false), nil
	}
	honest, err := d.Disputant.Open(ctx, c, spans, params, state)
	if err != nil {
		return nil, err
	}
	return d.m.stubbornly(ctx, honest, c)
}

// A fabricated trace belongs to no computation: its hashes are noise from a seed, so that every
// node of it can be revealed when asked for. Only its first operation, tile and slice have an
// inside, which is where it first differs from any true trace. So a cheat keeps a dispute going
// through all its moves without having computed anything.
type fabricated struct {
	ops, tiles, slices []wire.Hash
	defends            bool
}

// fabricate makes the trace of a case, the same whenever it is asked for. If it is to defend a
// commitment its last operation is what was committed to.
func (m *member) fabricate(c coordinator.Case, defend bool) *fabricated {
	referee := m.o.Referee
	t := &fabricated{
		ops: m.noisy(c, "operations", referee.Ops(c.Sequences)), tiles: m.noisy(c, "tiles", referee.Tiles(c, 0)),
		slices: m.noisy(c, "slices", referee.Slices(c, 0, 0)), defends: defend,
	}
	t.tiles[0] = bisect.Root(t.slices)
	t.ops[0] = bisect.Root(t.tiles)
	if defend {
		t.ops[len(t.ops)-1] = coordinator.Outcome(c.Commitment)
	}
	return t
}

func (m *member) noisy(c coordinator.Case, of string, n uint32) []wire.Hash {
	id := c.Commitment.ID()
	leaves := make([]wire.Hash, n)
	for i := range leaves {
		leaves[i] = wire.Sum("entrain/adversary/trace", m.o.Seed[:], id[:], []byte(of), wire.AppendU32(nil, uint32(i)))
	}
	return leaves
}

// Root is part of node.Player.
func (t *fabricated) Root() wire.Hash { return bisect.Root(t.ops) }

// Agrees is part of node.Player: it says whatever is to be shown.
func (t *fabricated) Agrees() bool { return t.defends }

// Move is part of node.Player. At its wits' end, when it is to open what the noise is made of, it
// gives up.
func (t *fabricated) Move(_ context.Context, d coordinator.Dispute, self uint32) (coordinator.Message, error) {
	side, ok := sideOf(d, self)
	switch {
	case !ok:
		return nil, nil
	case d.Stage == coordinator.StageDefending && side == coordinator.Accused:
		return coordinator.Defend{Dispute: d.ID, Trace: t.Root(), Proof: bisect.Prove(t.ops, uint32(len(t.ops)-1))}, nil
	case d.Stage == coordinator.StageEvidence && side == coordinator.Accuser:
		return coordinator.Concede{Dispute: d.ID}, nil
	case d.Stage != coordinator.StageDescending || d.Revealed[side]:
		return nil, nil
	}
	leaves := t.ops
	switch d.Level {
	case coordinator.LevelTiles:
		leaves = t.tiles
	case coordinator.LevelSlices:
		leaves = t.slices
	}
	nodes := bisect.Children(leaves, d.Depth, d.Index)
	if bisect.Node(&nodes) != d.Nodes[side] {
		// the first difference is not where it was expected
		return coordinator.Concede{Dispute: d.ID}, nil
	}
	return coordinator.Reveal{Dispute: d.ID, Nodes: nodes}, nil
}

// sideOf returns which side of a dispute a member is on, if it is on any.
func sideOf(d coordinator.Dispute, self uint32) (side uint32, ok bool) {
	switch self {
	case d.Accused:
		return coordinator.Accused, true
	case d.Accuser:
		return coordinator.Accuser, true
	}
	return 0, false
}
