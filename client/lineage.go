package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Between peers, a member's optimizer state passes from step to step only through accepted results.
// The result of a training step begins from the fresh state, whose hash is in the run's
// configuration, or from the state that the same member's accepted result of the step before ended
// with. So recomputing a result takes only that one state, and a member cannot bring in a state of
// its own making. A member whose result was not accepted begins from the fresh state again. In a
// run that resumes another from its checkpoint, the first result of a member may also begin from
// the state that its last accepted one ended with there; the specification has its hash.
//
// Witnesses enforce this: a result that begins from anything else does not count as held. They know
// when they attest, because the step before is settled by then. A witness that was absent when it
// was settled gives the benefit of the doubt.

// lineage is the knowledge about results of the last settled training step.
type lineage struct {
	step      coordinator.Step // 0: none yet
	round     coordinator.Round
	ancestors []ancestor         // by member, from first, once listed
	first     coordinator.Member // 0, or this member's
	count     coordinator.Member // of the members when it was settled
	all       bool               // ancestors are of all members, not only this member's
	listed    bool
	unnamed   int                  // how many are of that standing
	open      bool                 // an accepted commitment is not known
	behind    bool                 // a commitment has arrived since ancestors was filled in
	renewed   []coordinator.Member // by whom, once listed
}

// ancestor is the result from which one member's next result may begin.
type ancestor struct {
	standing standing
	key      key.Public // the member's: its slot may be given to another
	id       wire.Hash  // of the accepted commitment
	state    wire.Hash  // that it ended with
}

// standing is the fate of a member's result.
type standing uint8

const (
	refused  standing = iota // not accepted, or there was none
	unnamed                  // accepted, by a commitment that is not known
	accepted                 // accepted, and known
)

// Ending is the optimizer state that a member's accepted result of an epoch's last step ended with.
// Its next result may begin from it, in this run or in one that resumes from the checkpoint.
type Ending struct {
	Member key.Public
	State  wire.Hash
}

// fresh returns the hash of the optimizer state to begin with.
func (m *Machine) fresh() wire.Hash { return m.run.StateHash }

// initial returns the optimizer state that this member started with.
func (m *Machine) initial() wire.Hash {
	if m.loadedState.IsZero() {
		return m.fresh()
	}
	return m.loadedState
}

// resumes returns the optimizer state from which a member's first result of the run may begin,
// besides the fresh one.
func (m *Machine) resumes(member key.Public) (state wire.Hash, ok bool) {
	state, ok = m.cfg.States[member]
	return state, ok
}

// settle follows which results were accepted. The step settled last is enough: every next result
// begins from it or from the fresh state.
func (m *Machine) settle() {
	if m.settledAt != m.turns { // time and what others send change nothing of this
		m.settledAt = m.turns
		m.lookBack()
	}
	if m.lineage.open && m.lineage.behind {
		m.lineage.behind = false
		m.nameAccepted()
	}
}

// lookBack finds the training step settled last.
func (m *Machine) lookBack() {
	now := m.state.Round()
	for number := now; number > 0 && number+ringRounds > now; number-- {
		r, ok := m.state.At(number)
		if !ok || !r.Trains() || !r.Final() {
			continue
		}
		if r.Step() > m.lineage.step {
			m.lineage = lineage{step: r.Step(), round: number, count: m.state.Count(), open: true, behind: true}
		}
		if !m.lineage.all && m.elect(now) && m.blind(number) {
			m.lack(m.results(number))
		}
		if !m.lineage.all && m.lineage.round == number && m.traces() && !m.blind(number) {
			m.lineage = lineage{step: m.lineage.step, round: number, count: m.lineage.count, all: true, open: true, behind: true}
		}
		break
	}
}

// ringRounds is the number of rounds in the coordinator's state.
const ringRounds = 4

// nameAccepted finds the accepted commitments among those that are known.
func (m *Machine) nameAccepted() {
	r, ok := m.state.At(m.lineage.round)
	rs := m.find(m.lineage.round)
	if !ok || rs == nil {
		return
	}
	l := &m.lineage
	choose := m.choose
	if l.all {
		rs.accept(r)
		choose = m.chosen
	}
	if !l.listed {
		from, to := coordinator.Member(0), l.count
		if !l.all {
			from = min(m.member.index, to)
			to = min(to, from+1)
		}
		l.listed, l.first, l.ancestors, l.renewed = true, from, make([]ancestor, to-from), nil
		for i := from; i < to; i++ {
			if r.Accepted(i) {
				l.ancestors[i-from] = ancestor{standing: unnamed, key: m.state.Key(i)}
				l.renewed = append(l.renewed, i)
			}
		}
		l.unnamed = len(l.renewed)
	}
	// Only another commitment of a member can be its accepted one. If all were looked at each time,
	// naming those of a round would take time in proportion to the square of the members.
	for _, i := range l.renewed {
		a := l.of(i)
		if a.standing != unnamed {
			continue
		}
		if k := choose(rs, i); k >= 0 {
			c := &rs.known.Of(i)[k]
			l.ancestors[i-l.first] = ancestor{accepted, a.key, c.id, c.commitment.State}
			l.unnamed--
		}
	}
	l.renewed = l.renewed[:0]
	l.open = l.unnamed > 0
}

// of returns the ancestor of a member.
func (l *lineage) of(member coordinator.Member) (a ancestor) {
	if i := member - l.first; member >= l.first && int(i) < len(l.ancestors) {
		a = l.ancestors[i]
	}
	return a
}

// learned notes that a commitment has arrived, or was made.
func (m *Machine) learned(c *dispute.Commitment) {
	if l := &m.lineage; c.Round == l.round {
		l.behind = true
		if l.listed {
			l.renewed = append(l.renewed, c.Member)
		}
	}
}

// traces reports whether this member has to know from which state each member may begin: to attest
// results or to write it into a checkpoint. Otherwise, where members follow, it knows no
// commitments but its own.
func (m *Machine) traces() bool {
	rs := m.find(m.lineage.round)
	if rs == nil || !m.follows(rs) {
		return true
	}
	return m.elect(m.state.Round()) || m.state.Phase() == coordinator.Cooldown && m.state.Checkpointer(m.member.index)
}

// selected returns the known commitment that is a member's accepted result, nil if there is none or
// it is not known.
func (m *Machine) selected(rs *results, member coordinator.Member) *candidate {
	if m.blind(rs.number) {
		return m.sole(rs, member)
	}
	list := rs.known.Of(member)
	m.ids = m.ids[:0]
	for k := range list {
		m.ids = append(m.ids, list[k].id)
	}
	k, ok := m.cfg.Common.Select(m.state, rs.number, member, m.ids)
	if !ok {
		return nil
	}
	return &list[k]
}

// ancestor returns the fate of a member's result of a step; ok is false if it is not known.
func (m *Machine) ancestor(step coordinator.Step, member coordinator.Member) (a ancestor, ok bool) {
	if step == 0 || m.lineage.step != step {
		return ancestor{}, false
	}
	if member >= m.lineage.count {
		return ancestor{}, true // it was not a member then
	}
	if !m.lineage.all && member != m.member.index {
		return ancestor{}, false
	}
	a = m.lineage.of(member)
	if a.standing != refused && a.key != m.state.Key(member) {
		return ancestor{}, true // its predecessor in the slot was
	}
	return a, true
}

func (m peerExchange) continues(step coordinator.Step, c *dispute.Commitment) bool {
	if c.Prev == m.fresh() {
		return true
	}
	if step <= 1 {
		state, ok := m.resumes(m.state.Key(c.Member))
		return ok && c.Prev == state
	}
	a, known := m.ancestor(step-1, c.Member)
	if !known {
		return true
	}
	switch a.standing {
	case accepted:
		return c.Prev == a.state
	case unnamed:
		return true
	}
	return false
}

// prev takes the result of the step before to be accepted while it is still being attested, unless
// that result itself began from a state which the run has ruled out meanwhile.
func (m peerExchange) prev(step coordinator.Step) (state, settle wire.Hash) {
	own := &m.work.own
	if state, ok := m.resumes(m.cfg.Self); step == 1 && ok && state == m.loadedState {
		return state, settle
	}
	if m.work.step == 0 || m.work.step+1 != step || own.Member != m.member.index {
		return m.fresh(), settle
	}
	if a, known := m.ancestor(m.work.step, own.Member); known {
		if a.standing == accepted && a.id == own.ID() {
			return own.State, settle
		}
		return m.fresh(), settle
	}
	if own.Prev == m.fresh() || m.work.step == 1 {
		return own.State, settle
	}
	if a, known := m.ancestor(m.work.step-1, own.Member); known && a.standing == accepted && a.state == own.Prev {
		return own.State, settle
	}
	return m.fresh(), settle
}

func (m peerExchange) endings() (list []Ending, known bool) {
	if m.lineage.step == 0 || m.lineage.step != m.state.Step() || !m.lineage.all {
		return nil, false
	}
	rs := m.find(m.lineage.round)
	var missing []coordinator.Member
	known = true
	for i := range m.lineage.count {
		a := m.lineage.of(i)
		switch {
		case a.standing == accepted && a.key == m.state.Key(i):
			list = append(list, Ending{a.key, a.state})
		case a.standing == unnamed && (rs == nil || !m.split(rs, i)):
			missing, known = append(missing, i), false
		}
	}
	if !known && rs != nil {
		m.askMissing(rs, func() []coordinator.Member { return missing })
	}
	return list, known
}

// endingsPatience is the time in milliseconds that a checkpoint waits for the endings, at most half
// of the cooldown.
const endingsPatience = 5000
