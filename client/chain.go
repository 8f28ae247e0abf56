package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A member's optimizer state goes from step to step, and only through results that were accepted: the result of a training step begins
// either from the fresh state, whose hash is in the run's configuration, or from the state that the same member's accepted result of the
// step before ended with. So whoever recomputes a result needs no more than that one state, and nobody can bring in a state of its own
// making. A member whose result was not accepted begins afresh. In a run that resumes another from its checkpoint, the first result of a member may also
// begin from the state that its last accepted one had ended with there; the specification has its hash.
//
// Witnesses see to it: a result that begins from anything else does not count as held. They know when they attest, because the step
// before is settled by then; a witness that was not there when it was settled gives the benefit of the doubt.

// chain is what is known of the results of the training step settled last.
type chain struct {
	step   uint32 // 0: none yet
	round  uint32
	links  []link // by member
	open   bool   // some accepted commitment is not known
	behind bool   // a commitment has come since the links were looked at
}

// link is where one member's next result may begin.
type link struct {
	standing standing
	key      key.Public // the place may be given to another member
	id       wire.Hash  // of the accepted commitment
	state    wire.Hash  // that it ended with
}

// standing is what became of a member's result.
type standing uint8

const (
	refused  standing = iota // not accepted, or there was none
	unnamed                  // accepted; which commitment it is, is not known
	accepted                 // accepted, and known
)

// fresh is the hash of the optimizer state to begin with.
func (m *Machine) fresh() wire.Hash { return m.run.StateHash }

// settle follows which results were accepted. The step settled last is enough: the next result of everybody goes on from it or afresh.
func (m *Machine) settle() {
	now := m.state.Round()
	for number := now; number > 0 && number+ringRounds > now; number-- {
		r, ok := m.state.At(number)
		if !ok || !r.Trains() || !r.Final() {
			continue
		}
		if r.Step() > m.chain.step {
			m.chain = chain{step: r.Step(), round: number, links: make([]link, m.state.Count()), open: true, behind: true}
		}
		break
	}
	if m.chain.open && m.chain.behind {
		m.chain.behind = false
		m.nameAccepted()
	}
}

// ringRounds is how many rounds the coordinator's state holds.
const ringRounds = 4

// nameAccepted finds the accepted commitments among those that are known.
func (m *Machine) nameAccepted() {
	r, ok := m.state.At(m.chain.round)
	rs := m.find(m.chain.round)
	if !ok || rs == nil {
		return
	}
	m.chain.open = false
	for i := range m.chain.links {
		l := &m.chain.links[i]
		member := uint32(i)
		if l.standing == accepted || !r.Accepted(member) {
			continue
		}
		l.standing, l.key = unnamed, m.state.Key(member)
		c := m.selected(rs, member)
		if c == nil {
			m.chain.open = true
			continue
		}
		*l = link{standing: accepted, key: l.key, id: c.id, state: c.commitment.State}
	}
}

// selected is the known commitment that is a member's accepted result, nil if none is or it is not known.
func (m *Machine) selected(rs *results, member uint32) *candidate {
	list := rs.known[member]
	ids := make([]wire.Hash, len(list))
	for k := range list {
		ids[k] = list[k].id
	}
	k, ok := m.state.Select(rs.number, member, ids)
	if !ok {
		return nil
	}
	return &list[k]
}

// link is what became of a member's result of a step; ok is false if that is not known.
func (m *Machine) link(step, member uint32) (l link, ok bool) {
	if step == 0 || m.chain.step != step {
		return link{}, false
	}
	if member >= uint32(len(m.chain.links)) {
		return link{}, true // it was not a member then
	}
	l = m.chain.links[member]
	if l.standing != refused && l.key != m.state.Key(member) {
		return link{}, true // its predecessor in the place was
	}
	return l, true
}

// continues says whether a result of a step may begin from the state it names, as far as this member can tell.
func (m *Machine) continues(step uint32, c *coordinator.Commitment) bool {
	if m.bucketed() {
		return true // nobody recomputes it
	}
	if c.Prev == m.fresh() {
		return true
	}
	if step <= 1 {
		begins, ok := m.resumes(m.state.Key(c.Member))
		return ok && c.Prev == begins
	}
	l, known := m.link(step-1, c.Member)
	if !known {
		return true
	}
	switch l.standing {
	case accepted:
		return c.Prev == l.state
	case unnamed:
		return true
	}
	return false
}

// begin is the optimizer state that this member came with.
func (m *Machine) begin() wire.Hash {
	if m.begun.IsZero() {
		return m.fresh()
	}
	return m.begun
}

// prev is the optimizer state from which the own training of a step begins. While the result of the step before is still being
// attested, it is taken to be accepted unless it did not begin rightly itself, which the run may have decided meanwhile.
func (m *Machine) prev(step uint32) wire.Hash {
	own := &m.work.own
	if m.bucketed() {
		if own.Round == 0 || own.Run != m.state.ID() || own.Member != m.member.index {
			return m.begin()
		}
		return own.State
	}
	if begins, ok := m.resumes(m.cfg.Self); step == 1 && ok && begins == m.begun {
		return begins
	}
	if m.work.step == 0 || m.work.step+1 != step || own.Member != m.member.index {
		return m.fresh()
	}
	if l, known := m.link(m.work.step, own.Member); known {
		if l.standing == accepted && l.id == own.ID() {
			return own.State
		}
		return m.fresh()
	}
	if own.Prev == m.fresh() || m.work.step == 1 {
		return own.State
	}
	if l, known := m.link(m.work.step-1, own.Member); known && l.standing == accepted && l.state == own.Prev {
		return own.State
	}
	return m.fresh()
}
