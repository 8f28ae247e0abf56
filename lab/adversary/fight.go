package adversary

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// disputant argues for the member: honestly where it tells the truth, and with a fabricated trace
// where it lies.
type disputant struct {
	node.Disputant
	m *member
}

// Open implements node.Disputant.
func (d disputant) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
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

// A fabricated trace belongs to no computation. Its hashes are noise from a seed, so that every
// node of it can be revealed on request. Only its first operation, tile and slice, where it first
// differs from any true trace, have children. A cheat thus survives all moves of a dispute without
// having computed anything.
type fabricated struct {
	ops, tiles, slices []wire.Hash
	defends            bool
}

// fabricate makes the trace of a case, always the same one. If it defends a commitment, its last
// operation is the committed outcome.
func (m *member) fabricate(c dispute.Case, defend bool) *fabricated {
	referee := m.o.Referee
	t := &fabricated{
		ops: m.noisy(c, "operations", referee.Ops(c.Sequences)), tiles: m.noisy(c, "tiles", referee.Tiles(c, 0)),
		slices: m.noisy(c, "slices", referee.Slices(c, 0, 0)), defends: defend,
	}
	t.tiles[0] = bisect.Root(t.slices)
	t.ops[0] = bisect.Root(t.tiles)
	if defend {
		t.ops[len(t.ops)-1] = dispute.Outcome(c.Commitment)
	}
	return t
}

func (m *member) noisy(c dispute.Case, of string, n uint32) []wire.Hash {
	id := c.Commitment.ID()
	leaves := make([]wire.Hash, n)
	for i := range leaves {
		leaves[i] = wire.Sum("entrain/adversary/trace", m.o.Seed[:], id[:], []byte(of), wire.AppendU32(nil, uint32(i)))
	}
	return leaves
}

// Root implements node.Player.
func (t *fabricated) Root() wire.Hash { return bisect.Root(t.ops) }

// Agrees implements node.Player. It agrees with whatever comes.
func (t *fabricated) Agrees() bool { return t.defends }

// Move implements node.Player. It gives up when asked to open noise.
func (t *fabricated) Move(_ context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error) {
	side, ok := sideOf(d, self)
	switch {
	case !ok:
		return nil, nil
	case d.Stage == dispute.StageDefending && side == dispute.Accused:
		return coordinator.Defend{Dispute: d.ID, Trace: t.Root(), Proof: bisect.Prove(t.ops, uint32(len(t.ops)-1))}, nil
	case d.Stage == dispute.StageEvidence && side == dispute.Accuser:
		return coordinator.Concede{Dispute: d.ID}, nil
	case d.Stage != dispute.StageDescending || d.Revealed[side]:
		return nil, nil
	}
	leaves := t.ops
	switch d.Level {
	case dispute.LevelTiles:
		leaves = t.tiles
	case dispute.LevelSlices:
		leaves = t.slices
	}
	nodes := bisect.Children(leaves, d.Depth, d.Index)
	if bisect.Node(&nodes) != d.Nodes[side] {
		// the first difference is not where it was expected
		return coordinator.Concede{Dispute: d.ID}, nil
	}
	return coordinator.Reveal{Dispute: d.ID, Nodes: nodes}, nil
}

// sideOf returns the side of a dispute that a member is on, if any.
func sideOf(d dispute.Dispute, self coordinator.Member) (side uint32, ok bool) {
	switch self {
	case d.Accused:
		return dispute.Accused, true
	case d.Accuser:
		return dispute.Accuser, true
	}
	return 0, false
}
