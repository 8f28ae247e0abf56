package dispute

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// The descent of a dispute, from the roots of two traces to the first slice at which they differ.

// Defend takes the accused's trace.
func (s Cases) Defend(env Env, id uint32, trace wire.Hash, proof []wire.Hash) record.Error {
	d, i, e := s.party(env, id, StageDefending)
	switch {
	case e != record.OK:
		return e
	case i != d.accused():
		return record.ErrParty
	case env.Referee == nil:
		return record.ErrReferee
	}
	ops := max(1, env.Referee.Ops(d.b.Check().Sequences()))
	if !bisect.Check(trace, Outcome(d.commitment()), ops-1, ops, proof) {
		return record.ErrProof
	}
	d.b.SetDefended(true)
	d.b.SetTrace(Accused, trace)
	if d.s.blind(d.b.Accuser(), trace) == d.b.Trace(Accuser) {
		d.b.SetTrace(Accuser, trace)
		d.convictAccuser(env, FalseAccusation, env.Proof, true) // it accuses the result of its own trace
	} else {
		d.descend(env)
	}
	return record.OK
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

// leaves returns the number of leaves of the tree that is descended.
func (d dispute) leaves(env Env) uint32 {
	c := d.subject()
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

// climbDown enters the tree of a level at its root, and the trees below while a root is the only
// leaf.
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

// Reveal takes the children of a node from one side. Once both sides have revealed, the descent
// continues at the first child that differs.
func (s Cases) Reveal(env Env, id uint32, nodes [bisect.Fan]wire.Hash) record.Error {
	d, i, e := s.party(env, id, StageDescending)
	if e != record.OK {
		return e
	}
	side := uint32(Accused)
	if i != d.accused() {
		side = Accuser
		if i != d.b.Accuser() {
			return record.ErrParty
		}
	}
	switch {
	case env.Referee == nil:
		return record.ErrReferee
	case d.b.Revealed(side):
		return record.ErrDuplicate
	}
	node := bisect.Node(&nodes)
	if side == Accuser && !d.copy().opened() && d.s.blind(i, node) == d.b.Node(side) {
		d.b.SetTrace(side, node)
		d.b.SetNode(side, node)
	}
	if node != d.b.Node(side) {
		return record.ErrNodes
	}
	if !d.b.Revealed(1 - side) {
		d.b.SetRevealed(side, true)
		d.putChildren(nodes)
		return record.OK
	}
	shown := d.children()
	c := 0
	for c < bisect.Fan-1 && shown[c] == nodes[c] {
		c++
	}
	if side == Accused {
		d.putNodes(nodes[c], shown[c])
	} else {
		d.putNodes(shown[c], nodes[c])
	}
	d.b.SetIndex(d.b.Index()*bisect.Fan + uint32(c))
	depth := d.b.Depth() - 1
	d.b.SetDepth(depth)
	if depth > 0 {
		d.enter(env, StageDescending)
		return record.OK
	}
	d.arrive(env)
	return record.OK
}

// arrive goes from a leaf to the tree below it.
func (d dispute) arrive(env Env) {
	index, level := d.b.Index(), d.level()
	if index >= d.leaves(env) {
		// Padding leaves are zero; a nonzero one proves that the tree is fabricated.
		if d.b.Node(Accused).IsZero() {
			d.convictAccuser(env, FalseAccusation, env.Proof, true)
		} else {
			d.convictAccused(env, WrongResult, env.Proof, true)
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

// Evidence lets the referee judge the slice at which the traces differ.
func (s Cases) Evidence(env Env, id uint32, evidence []byte) record.Error {
	d, i, e := s.party(env, id, StageEvidence)
	switch {
	case e != record.OK:
		return e
	case i != d.b.Accuser():
		return record.ErrParty
	case env.Referee == nil:
		return record.ErrReferee
	}
	truth, err := d.judge(env, evidence)
	if err != nil {
		return record.ErrEvidence
	}
	accuser := d.b.Node(Accuser)
	if !d.copy().opened() && d.s.blind(i, truth) == accuser {
		accuser = truth // the whole trace is one slice
	}
	switch truth {
	case d.b.Node(Accused):
		d.convictAccuser(env, FalseAccusation, env.Proof, true)
	case accuser:
		d.convictAccused(env, WrongResult, env.Proof, true)
	default:
		d.convictBoth(env)
	}
	return record.OK
}

// judge lets the referee judge. It is a function of its own because hosts have small frames.
//
//go:noinline
func (d dispute) judge(env Env, evidence []byte) (wire.Hash, error) {
	return env.Referee.Judge(d.subject(), d.b.Op(), d.b.Tile(), d.b.Slice(), d.b.Trace(Accuser), evidence)
}

// convictBoth ends a dispute in which neither side is right. There is no reward.
func (d dispute) convictBoth(env Env) {
	s, c := d.s, d.copy()
	d.close()
	s.payVotes(c, VoteWrong, true)
	s.Convict(env, Charge{Member: c.Accused, Offence: WrongResult, Round: c.Round, By: NoMember, Proof: env.Proof})
	s.Convict(env, Charge{Member: c.Accuser, Offence: FalseAccusation, Round: c.Round, By: NoMember, Proof: env.Proof})
}

// Concede gives up a dispute.
func (s Cases) Concede(env Env, id uint32) record.Error {
	d, ok := s.disputeOf(id)
	if !ok {
		return record.ErrDispute
	}
	stage := d.stage()
	if stage == StageTieBreaking {
		return record.ErrStage
	}
	d, i, e := s.party(env, id, stage)
	switch {
	case e != record.OK:
		return e
	case i == d.accused():
		d.convictAccused(env, WrongResult, env.Proof, false)
	case i == d.b.Accuser():
		d.convictAccuser(env, FalseAccusation, env.Proof, false)
	default:
		return record.ErrParty
	}
	return record.OK
}
