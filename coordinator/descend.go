package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/wire"
)

// The descent of a dispute, from the roots of two traces to the one slice at which they differ.

// defend takes the accused's trace.
func (s State) defend(env Env, m Defend) Error {
	d, i, e := s.party(env, m.Dispute, StageDefending)
	switch {
	case e != OK:
		return e
	case i != d.accused():
		return ErrParty
	case env.Referee == nil:
		return ErrReferee
	}
	ops := max(1, env.Referee.Ops(d.b.Check().Sequences()))
	if !bisect.Check(m.Trace, Outcome(d.commitment()), ops-1, ops, m.Proof) {
		return ErrProof
	}
	d.b.SetDefended(true)
	d.b.SetTrace(Accused, m.Trace)
	if m.Trace == d.b.Trace(Accuser) {
		d.convictAccuser(env, FalseAccusation, m, true) // it accuses a result that its own trace ends with
	} else {
		d.descend(env)
	}
	return OK
}

// descend begins the descent at the roots of the two traces, which differ.
func (d dispute) descend(env Env) {
	d.b.SetOp(0)
	d.b.SetTile(0)
	d.b.SetSlice(0)
	d.putNodes(d.b.Trace(Accused), d.b.Trace(Accuser))
	d.climbDown(env, LevelOps)
}

func (d dispute) putNodes(accused, accuser wire.Hash) {
	for side, node := range [2]wire.Hash{accused, accuser} {
		d.b.SetNode(uint32(side), node)
		d.b.SetRevealed(uint32(side), false)
	}
	d.putChildren([bisect.Fan]wire.Hash{})
}

// leaves returns how many leaves the tree has that the dispute is in.
func (d dispute) leaves(env Env) uint32 {
	c := Case{Commitment: d.commitment(), Step: d.b.Check().Step(), Sequences: d.b.Check().Sequences()}
	n := uint32(0)
	switch d.level() {
	case LevelOps:
		n = env.Referee.Ops(c.Sequences)
	case LevelTiles:
		n = env.Referee.Tiles(c, d.b.Op())
	case LevelSlices:
		n = env.Referee.Slices(c, d.b.Op(), d.b.Tile())
	}
	return max(1, n)
}

// climbDown enters the tree of a level at its root, and those below whose root is their only leaf.
func (d dispute) climbDown(env Env, level Level) {
	for ; level <= LevelSlices; level++ {
		d.b.SetLevel(uint8(level))
		d.b.SetIndex(0)
		depth := bisect.Depth(d.leaves(env))
		d.b.SetDepth(depth)
		if depth > 0 {
			d.enter(env, StageDescending)
			return
		}
	}
	d.b.SetLevel(uint8(LevelSlices))
	d.enter(env, StageEvidence)
}

// reveal takes the children of a node from one side. When both have shown theirs it goes on with the first that differs.
func (s State) reveal(env Env, m Reveal) Error {
	d, i, e := s.party(env, m.Dispute, StageDescending)
	if e != OK {
		return e
	}
	side := uint32(Accused)
	if i != d.accused() {
		side = Accuser
		if i != d.b.Accuser() {
			return ErrParty
		}
	}
	switch {
	case env.Referee == nil:
		return ErrReferee
	case d.b.Revealed(side):
		return ErrDuplicate
	case bisect.Node(&m.Nodes) != d.b.Node(side):
		return ErrNodes
	}
	if !d.b.Revealed(1 - side) {
		d.b.SetRevealed(side, true)
		d.putChildren(m.Nodes)
		return OK
	}
	shown := d.children()
	c := 0
	for c < bisect.Fan-1 && shown[c] == m.Nodes[c] {
		c++
	}
	if side == Accused {
		d.putNodes(m.Nodes[c], shown[c])
	} else {
		d.putNodes(shown[c], m.Nodes[c])
	}
	d.b.SetIndex(d.b.Index()*bisect.Fan + uint32(c))
	depth := d.b.Depth() - 1
	d.b.SetDepth(depth)
	if depth > 0 {
		d.enter(env, StageDescending)
		return OK
	}
	d.arrive(env, m)
	return OK
}

// arrive goes from a leaf to the tree below it.
func (d dispute) arrive(env Env, m Reveal) {
	index, level := d.b.Index(), d.level()
	if index >= d.leaves(env) {
		// Padding, which is zero: who says otherwise made its tree up.
		if d.b.Node(Accused).IsZero() {
			d.convictAccuser(env, FalseAccusation, m, true)
		} else {
			d.convictAccused(env, WrongResult, m, true)
		}
		return
	}
	switch level {
	case LevelOps:
		d.b.SetOp(index)
	case LevelTiles:
		d.b.SetTile(index)
	default:
		d.b.SetSlice(index)
	}
	d.climbDown(env, level+1)
}

// evidence lets the referee judge the slice at which the two differ.
func (s State) evidence(env Env, m Evidence) Error {
	d, i, e := s.party(env, m.Dispute, StageEvidence)
	switch {
	case e != OK:
		return e
	case i != d.b.Accuser():
		return ErrParty
	case env.Referee == nil:
		return ErrReferee
	}
	c := d.copy()
	truth, err := env.Referee.Judge(c.Case(), c.Op, c.Tile, c.Slice, c.Traces[Accuser], m.Bytes)
	if err != nil {
		return ErrEvidence
	}
	switch truth {
	case c.Nodes[Accused]:
		d.convictAccuser(env, FalseAccusation, m, true)
	case c.Nodes[Accuser]:
		d.convictAccused(env, WrongResult, m, true)
	default:
		d.convictBoth(env, m)
	}
	return OK
}

// convictBoth ends a dispute in which neither is right: nobody is rewarded.
func (d dispute) convictBoth(env Env, m Evidence) {
	s, c := d.s, d.copy()
	d.close()
	s.payVotes(c, VoteWrong, true)
	s.convict(env, charge{member: c.Accused, offence: WrongResult, round: c.Round, by: NoMember, proof: m})
	s.convict(env, charge{member: c.Accuser, offence: FalseAccusation, round: c.Round, by: NoMember, proof: m})
}

// concede gives a dispute up.
func (s State) concede(env Env, m Concede) Error {
	d, ok := s.disputeOf(m.Dispute)
	if !ok {
		return ErrDispute
	}
	stage := d.stage()
	if stage == StageTieBreaking {
		return ErrStage
	}
	d, i, e := s.party(env, m.Dispute, stage)
	switch {
	case e != OK:
		return e
	case i == d.accused():
		d.convictAccused(env, WrongResult, m, false)
	case i == d.b.Accuser():
		d.convictAccuser(env, FalseAccusation, m, false)
	default:
		return ErrParty
	}
	return OK
}
