package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// Side is one side of a dispute. Player implements it.
type Side interface {
	Root() wire.Hash
	Move(ctx context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error)
}

// Game is the outcome of a dispute.
type Game struct {
	Convicted       int    // dispute.Accused or dispute.Accuser
	Reason          string // the reason, for people
	Op, Tile, Slice uint32 // the first difference, if the dispute got that far
	Messages        int    // from both sides
	Bytes           int    // total size of the messages
	EvidenceBytes   int
	Referee         time.Duration // time spent judging
}

// The members' numbers in a game.
const accused, accuser = 0, 1

// argue plays a dispute about a case as the coordinator conducts it, but without a ledger and its
// deadlines. Use it to measure disputes or to predict an outcome. It returns an error only if ctx
// ends or a side fails to move.
func argue(ctx context.Context, referee dispute.Referee, c dispute.Case, sides [2]Side) (Game, error) {
	g := game{referee: referee, c: c, sides: sides}
	g.d = dispute.Dispute{
		ID: 1, Check: dispute.Check{Step: c.Step, Sequences: c.Sequences}, Accused: accused, Accuser: accuser, Commitment: c.Commitment,
		Stage: dispute.StageDefending, Traces: [2]wire.Hash{accuser: sides[accuser].Root()},
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

// game is a Game in progress.
type game struct {
	Game
	referee dispute.Referee
	c       dispute.Case
	sides   [2]Side
	d       dispute.Dispute
	over    bool
}

// convict ends the game.
func (g *game) convict(side int, reason string) {
	g.Convicted, g.Reason, g.over = side, reason, true
	g.Op, g.Tile, g.Slice = g.d.Op, g.d.Tile, g.d.Slice
}

// move asks a side for its message and counts it. A side that returns nil is convicted.
func (g *game) move(ctx context.Context, side int) (coordinator.Message, error) {
	m, err := g.sides[side].Move(ctx, g.d, coordinator.Member(side))
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
	case dispute.StageDefending:
		return g.defend(ctx)
	case dispute.StageDescending:
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
	if !ok || !bisect.Check(defence.Trace, dispute.Outcome(g.c.Commitment), n-1, n, defence.Proof) {
		g.convict(accused, "its trace does not end in what it committed to")
		return nil
	}
	g.d.Defended, g.d.Traces[accused] = true, defence.Trace
	if defence.Trace == g.d.Traces[accuser] {
		g.convict(accuser, "both have the same trace")
		return nil
	}
	g.d.Stage, g.d.Nodes = dispute.StageDescending, g.d.Traces
	g.enter(dispute.LevelOps)
	return nil
}

// enter starts a level at the root of its tree, or moves to the next level if the root is a leaf.
func (g *game) enter(level dispute.Level) {
	d := &g.d
	for ; ; level++ {
		switch level {
		case dispute.LevelOps:
		case dispute.LevelTiles:
			d.Op = d.Index
		case dispute.LevelSlices:
			d.Tile = d.Index
		default:
			d.Slice, d.Stage = d.Index, dispute.StageEvidence
			return
		}
		d.Level, d.Index, d.Depth = level, 0, bisect.Depth(g.leaves(level))
		if d.Depth > 0 {
			return
		}
	}
}

// descend takes the children of both sides' nodes and continues at the first that differ.
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
	return fmt.Errorf("verify: two different nodes have the same children")
}

// arrive moves from a leaf to the tree below it. Padding leaves are zero; a nonzero one proves that
// the tree is fabricated.
func (g *game) arrive() {
	if d := g.d; d.Index < g.leaves(d.Level) {
		g.enter(d.Level + 1)
	} else if d.Nodes[accused].IsZero() {
		g.convict(accuser, "its trace has more leaves than the program")
	} else {
		g.convict(accused, "its trace has more leaves than the program")
	}
}

// leaves returns the number of leaves of the current level's tree.
func (g *game) leaves(level dispute.Level) uint32 {
	switch level {
	case dispute.LevelOps:
		return g.referee.Ops(g.c.Sequences)
	case dispute.LevelTiles:
		return g.referee.Tiles(g.c, g.d.Op)
	}
	return g.referee.Slices(g.c, g.d.Op, g.d.Tile)
}

// judge asks the referee for the verdict.
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
