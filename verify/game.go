package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// Side is who argues in a dispute: a Player does.
type Side interface {
	Root() wire.Hash
	Move(ctx context.Context, d coordinator.Dispute, self uint32) (coordinator.Message, error)
}

// Game is how a dispute went.
type Game struct {
	Convicted       int    // coordinator.Accused or coordinator.Accuser
	Reason          string // in words
	Op, Tile, Slice uint32 // where the two differ, if they came that far
	Messages        int    // of both
	Bytes           int    // of all messages
	EvidenceBytes   int
	Referee         time.Duration // that judging took
}

// The members' numbers in a game.
const accused, accuser = 0, 1

// Argue plays a dispute about a case as the coordinator conducts it, without a ledger and its
// deadlines: for measurements, and for who wants to know how a dispute would end. An error is one
// of ctx or of a side that could not move.
func Argue(ctx context.Context, referee coordinator.Referee, c coordinator.Case, sides [2]Side) (Game, error) {
	g := game{referee: referee, c: c, sides: sides}
	g.d = coordinator.Dispute{
		ID: 1, Check: coordinator.Check{Step: c.Step, Sequences: c.Sequences}, Accused: accused, Accuser: accuser, Commitment: c.Commitment,
		Stage: coordinator.StageDefending, Traces: [2]wire.Hash{accuser: sides[accuser].Root()},
	}
	for !g.over {
		if err := ctx.Err(); err != nil {
			return Game{}, err
		}
		if err := g.step(ctx); err != nil {
			return Game{}, err
		}
	}
	return g.Game, nil
}

// game is a Game that is going on.
type game struct {
	Game
	referee coordinator.Referee
	c       coordinator.Case
	sides   [2]Side
	d       coordinator.Dispute
	over    bool
}

// convict ends the game.
func (g *game) convict(side int, reason string) {
	g.Convicted, g.Reason, g.over = side, reason, true
	g.Op, g.Tile, g.Slice = g.d.Op, g.d.Tile, g.d.Slice
}

// move asks a side for its message and counts it; nil if it has none, and is convicted.
func (g *game) move(ctx context.Context, side int) (coordinator.Message, error) {
	m, err := g.sides[side].Move(ctx, g.d, uint32(side))
	if err != nil {
		return nil, err
	}
	if _, concedes := m.(coordinator.Concede); m == nil || concedes {
		g.convict(side, "it has nothing to say")
		return nil, nil
	}
	g.Messages++
	g.Bytes += len(coordinator.Append(nil, m))
	return m, nil
}

func (g *game) step(ctx context.Context) error {
	switch g.d.Stage {
	case coordinator.StageDefending:
		return g.defend(ctx)
	case coordinator.StageDescending:
		return g.descend(ctx)
	}
	return g.judge(ctx)
}

func (g *game) defend(ctx context.Context) error {
	m, err := g.move(ctx, accused)
	if m == nil {
		return err
	}
	defence, ok := m.(coordinator.Defend)
	n := g.referee.Ops(g.c.Sequences)
	if !ok || !bisect.Check(defence.Trace, coordinator.Outcome(g.c.Commitment), n-1, n, defence.Proof) {
		g.convict(accused, "its trace does not end in what it committed to")
		return nil
	}
	g.d.Defended, g.d.Traces[accused] = true, defence.Trace
	if defence.Trace == g.d.Traces[accuser] {
		g.convict(accuser, "both have the same trace")
		return nil
	}
	g.d.Stage, g.d.Nodes = coordinator.StageDescending, g.d.Traces
	g.enter(coordinator.LevelOps)
	return nil
}

// enter begins a level's tree at its root, or goes on to the next level if that is a leaf.
func (g *game) enter(level coordinator.Level) {
	d := &g.d
	for ; ; level++ {
		switch level {
		case coordinator.LevelOps:
		case coordinator.LevelTiles:
			d.Op = d.Index
		case coordinator.LevelSlices:
			d.Tile = d.Index
		default:
			d.Slice, d.Stage = d.Index, coordinator.StageEvidence
			return
		}
		d.Level, d.Index, d.Depth = level, 0, bisect.Depth(g.leaves(level))
		if d.Depth > 0 {
			return
		}
	}
}

// descend takes both sides' children of their nodes and goes on at the first that differ.
func (g *game) descend(ctx context.Context) error {
	var nodes [2][bisect.Fan]wire.Hash
	for side := range g.sides {
		m, err := g.move(ctx, side)
		if m == nil {
			return err
		}
		reveal, ok := m.(coordinator.Reveal)
		if !ok || bisect.Node(&reveal.Nodes) != g.d.Nodes[side] {
			g.convict(side, "what it reveals is not under its node")
			return nil
		}
		nodes[side] = reveal.Nodes
	}
	for i := range nodes[accused] {
		if nodes[accused][i] == nodes[accuser][i] {
			continue
		}
		g.d.Index = g.d.Index*bisect.Fan + uint32(i)
		g.d.Nodes = [2]wire.Hash{nodes[accused][i], nodes[accuser][i]}
		if g.d.Depth--; g.d.Depth == 0 {
			g.arrive()
		}
		return nil
	}
	return fmt.Errorf("verify: nodes of two hashes have the same children")
}

// arrive goes from a leaf to the tree below it. What a tree is filled up with is zero: who says
// otherwise made its tree up.
func (g *game) arrive() {
	if d := g.d; d.Index < g.leaves(d.Level) {
		g.enter(d.Level + 1)
	} else if d.Nodes[accused].IsZero() {
		g.convict(accuser, "its trace has more leaves than the program")
	} else {
		g.convict(accused, "its trace has more leaves than the program")
	}
}

// leaves is the number of leaves of the tree of a level that the game is in.
func (g *game) leaves(level coordinator.Level) uint32 {
	switch level {
	case coordinator.LevelOps:
		return g.referee.Ops(g.c.Sequences)
	case coordinator.LevelTiles:
		return g.referee.Tiles(g.c, g.d.Op)
	}
	return g.referee.Slices(g.c, g.d.Op, g.d.Tile)
}

// judge lets the referee decide.
func (g *game) judge(ctx context.Context) error {
	m, err := g.move(ctx, accuser)
	if m == nil {
		return err
	}
	evidence, ok := m.(coordinator.Evidence)
	if !ok {
		g.convict(accuser, "it shows no evidence")
		return nil
	}
	g.EvidenceBytes = len(evidence.Bytes)
	from := time.Now()
	truth, err := g.referee.Judge(g.c, g.d.Op, g.d.Tile, g.d.Slice, g.d.Traces[accuser], evidence.Bytes)
	g.Referee = time.Since(from)
	switch {
	case err != nil:
		g.convict(accuser, "its evidence proves nothing: "+err.Error())
	case truth == g.d.Nodes[accused]:
		g.convict(accuser, "the accused's slice is right")
	default:
		g.convict(accused, "its slice is wrong")
	}
	return nil
}
