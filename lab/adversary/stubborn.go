package adversary

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// A stubborn liar has computed its share and argues by its true trace, except at two places: the
// outcome, which is the committed one, and one slice of one operation, drawn at random, from which
// it pretends that the outcome came. The dispute descends to that slice, and the referee has to
// compute it.
type stubborn struct {
	honest          node.Player
	of              dispute.Case
	ops             uint32
	op, tile, slice uint32
	tiles, slices   uint32 // numbers of tiles of the operation, and of slices of the tile
	lie             wire.Hash
	root            wire.Hash
}

// stubbornly makes a liar's player from an honest one.
func (m *member) stubbornly(ctx context.Context, honest node.Player, c dispute.Case) (*stubborn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.o.Referee
	s := &stubborn{honest: honest, of: c, ops: r.Ops(c.Sequences), lie: m.noise()}
	draw := func(n uint32) uint32 { return uint32(m.random.Uint64n(uint64(n))) }
	s.op = draw(s.ops)
	s.tiles = r.Tiles(c, s.op)
	s.tile = draw(s.tiles)
	s.slices = r.Slices(c, s.op, s.tile)
	s.slice = draw(s.slices)
	var err error
	s.root, err = s.node(ctx, dispute.LevelOps, bisect.Depth(s.ops), 0)
	return s, err
}

// Root implements node.Player.
func (s *stubborn) Root() wire.Hash { return s.root }

// Agrees implements node.Player.
func (s *stubborn) Agrees() bool { return true }

// Move implements node.Player.
func (s *stubborn) Move(ctx context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error) {
	switch {
	case self != d.Accused || d.Unserved:
		return nil, nil
	case d.Stage == dispute.StageDefending:
		proof, err := s.proof(ctx)
		return coordinator.Defend{Dispute: d.ID, Trace: s.root, Proof: proof}, err
	case d.Stage == dispute.StageDescending && !d.Revealed[dispute.Accused]:
		if d.Level > dispute.LevelOps && d.Op != s.op || d.Level == dispute.LevelSlices && d.Tile != s.tile {
			return coordinator.Concede{Dispute: d.ID}, nil // the other side lies about what comes before
		}
		nodes, err := s.children(ctx, d.Level, d.Depth, d.Index)
		if err == nil && bisect.Node(&nodes) != d.Nodes[dispute.Accused] {
			return coordinator.Concede{Dispute: d.ID}, nil
		}
		return coordinator.Reveal{Dispute: d.ID, Nodes: nodes}, err
	}
	return nil, nil
}

// places holds the false leaves of a level's tree.
func (s *stubborn) places(level dispute.Level) []uint32 {
	switch level {
	case dispute.LevelOps:
		if last := s.ops - 1; s.op != last {
			return []uint32{s.op, last}
		}
		return []uint32{s.op}
	case dispute.LevelTiles:
		return []uint32{s.tile}
	}
	return []uint32{s.slice}
}

// node is a node on the path to a false leaf.
func (s *stubborn) node(ctx context.Context, level dispute.Level, depth uint8, index uint32) (wire.Hash, error) {
	switch {
	case depth > 0:
		nodes, err := s.children(ctx, level, depth, index)
		return bisect.Node(&nodes), err
	case level == dispute.LevelOps && index == s.ops-1:
		return dispute.Outcome(s.of.Commitment), nil
	case level == dispute.LevelOps:
		return s.node(ctx, dispute.LevelTiles, bisect.Depth(s.tiles), 0)
	case level == dispute.LevelTiles:
		return s.node(ctx, dispute.LevelSlices, bisect.Depth(s.slices), 0)
	}
	return s.lie, nil
}

// children returns the children of a node: true except on the path to a false leaf.
func (s *stubborn) children(ctx context.Context, level dispute.Level, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
	nodes, err := s.truth(ctx, level, depth, index)
	if err != nil {
		return nodes, err
	}
	for _, leaf := range s.places(level) {
		if leaf>>(4*depth) != index {
			continue
		}
		child := leaf >> (4 * (depth - 1))
		if nodes[child%bisect.Fan], err = s.node(ctx, level, depth-1, child); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// truth asks the honest player for the children of a node, as if a dispute were there.
func (s *stubborn) truth(ctx context.Context, level dispute.Level, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
	const self, other = 0, 1
	m, err := s.honest.Move(ctx, dispute.Dispute{
		Accused: self, Accuser: other, Commitment: s.of.Commitment, Stage: dispute.StageDescending,
		Level: level, Op: s.op, Tile: s.tile, Depth: depth, Index: index,
	}, self)
	if err != nil {
		return [bisect.Fan]wire.Hash{}, err
	}
	r, ok := m.(coordinator.Reveal)
	if !ok {
		return [bisect.Fan]wire.Hash{}, fmt.Errorf("adversary: an honest player says %T", m)
	}
	return r.Nodes, nil
}

// proof returns the proof that the last operation is the outcome: four siblings for each level, the
// lowest first.
func (s *stubborn) proof(ctx context.Context) ([]wire.Hash, error) {
	var proof []wire.Hash
	last := s.ops - 1
	for depth := uint8(1); depth <= bisect.Depth(s.ops); depth++ {
		nodes, err := s.children(ctx, dispute.LevelOps, depth, last>>(4*depth))
		if err != nil {
			return nil, err
		}
		place := (last >> (4 * (depth - 1))) % bisect.Fan
		for row := nodes[:]; len(row) > 1; row = halve(row) {
			proof = append(proof, row[place^1])
			place >>= 1
		}
	}
	return proof, nil
}

// halve computes the next level of a binary tree; see package bisect.
func halve(row []wire.Hash) []wire.Hash {
	up := make([]wire.Hash, len(row)/2)
	for i := range up {
		up[i] = wire.Sum("entrain/bisect", row[2*i][:], row[2*i+1][:])
	}
	return up
}
