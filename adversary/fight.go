package adversary

import (
	"context"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// A fabricated trace belongs to no computation: its hashes are noise from a seed, so that every node of it can be revealed when asked
// for. Only its first operation, tile and slice have an inside, which is where it first differs from any true trace. So a cheat keeps a
// dispute going through all its moves without having computed anything.
type fabricated struct {
	ops, tiles, slices []wire.Hash
}

// fabricate makes the trace of a case, the same whenever it is asked for; nil if nobody knows the program. If it is to defend a
// commitment its last operation is what was committed to.
func (m *member) fabricate(c coordinator.Case, defend bool) *fabricated {
	referee := m.o.Referee
	if referee == nil || c.Sequences == 0 {
		return nil
	}
	id := lie{commitment: c.Commitment.ID(), defends: defend}
	if t, ok := m.lies[id]; ok {
		return t
	}
	if len(m.lies) > liesMax {
		clear(m.lies)
	}
	t := &fabricated{
		ops: m.noisy(c, "operations", referee.Ops(c.Sequences)), tiles: m.noisy(c, "tiles", referee.Tiles(c, 0)),
		slices: m.noisy(c, "slices", referee.Slices(c, 0, 0)),
	}
	t.tiles[0] = bisect.Root(t.slices)
	t.ops[0] = bisect.Root(t.tiles)
	if defend {
		t.ops[len(t.ops)-1] = coordinator.Outcome(c.Commitment)
	}
	m.lies[id] = t
	return t
}

// lie names a fabricated trace.
type lie struct {
	commitment wire.Hash
	defends    bool
}

// liesMax bounds the fabricated traces that are kept; a member is in one dispute or two at a time.
const liesMax = 8

func (m *member) noisy(c coordinator.Case, of string, n uint32) []wire.Hash {
	id := c.Commitment.ID()
	leaves := make([]wire.Hash, n)
	for i := range leaves {
		leaves[i] = wire.Sum("entrain/adversary/trace", m.o.Seed[:], id[:], []byte(of), wire.AppendU32(nil, uint32(i)))
	}
	return leaves
}

func (t *fabricated) root() wire.Hash { return bisect.Root(t.ops) }

// move is what a cheat who fights says in a dispute now; nil if it is not its turn, or it is at its wits' end.
func (m *member) move(d coordinator.Dispute, self uint32) coordinator.Message {
	side, ok := sideOf(d, self)
	if !ok {
		return nil
	}
	switch d.Stage {
	case coordinator.StageDefending:
		if side != coordinator.Accused {
			return nil
		}
		if t := m.fabricate(d.Case(), true); t != nil {
			return coordinator.Defend{Dispute: d.ID, Trace: t.root(), Proof: bisect.Prove(t.ops, uint32(len(t.ops)-1))}
		}
	case coordinator.StageDescending:
		if d.Revealed[side] {
			return nil
		}
		t := m.fabricate(d.Case(), side == coordinator.Accused)
		if t != nil {
			leaves := map[coordinator.Level][]wire.Hash{coordinator.LevelOps: t.ops, coordinator.LevelTiles: t.tiles, coordinator.LevelSlices: t.slices}[d.Level]
			if nodes := bisect.Children(leaves, d.Depth, d.Index); bisect.Node(&nodes) == d.Nodes[side] {
				return coordinator.Reveal{Dispute: d.ID, Nodes: nodes}
			}
		}
	case coordinator.StageEvidence:
		if side != coordinator.Accuser {
			return nil
		}
	}
	return coordinator.Concede{Dispute: d.ID}
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

// place is where a dispute stands.
type place struct {
	dispute, index uint32
	stage          coordinator.Stage
	level          coordinator.Level
	depth          uint8
}

func placeOf(d coordinator.Dispute) place {
	return place{dispute: d.ID, index: d.Index, stage: d.Stage, level: d.Level, depth: d.Depth}
}

// fights says whether the member makes its moves in a dispute by itself: it defends a lie, or stands by a trace of its invention.
func (m *member) fights(d coordinator.Dispute) bool {
	self, known := m.index()
	if !known || m.o.Referee == nil || d.Unserved {
		return false
	}
	side, party := sideOf(d, self)
	switch {
	case !party:
		return false
	case side == coordinator.Accused:
		return m.hooks.lies
	}
	t := m.fabricate(d.Case(), false)
	return t != nil && t.root() == d.Traces[coordinator.Accuser]
}

// fight makes the moves that are due.
func (m *member) fight(ctx context.Context) {
	m.mu.Lock()
	var due []coordinator.Message
	var at []place
	for _, d := range m.state.Disputes() {
		self, _ := m.index()
		if m.moved[placeOf(d)] || !m.fights(d) {
			continue
		}
		if said := m.move(d, self); said != nil {
			m.moved[placeOf(d)] = true
			due, at = append(due, said), append(at, placeOf(d))
		}
	}
	m.mu.Unlock()
	for i, said := range due {
		m.send(ctx, said, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.moved, at[i]) // the next state says whether it is due still
		})
	}
}
