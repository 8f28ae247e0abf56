package validator

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// model is which parameters the driver holds.
type model struct {
	known    bool
	round    coordinator.Round
	hash     wire.Hash
	applying bool
	healing  bool
	healedMs uint64
}

func (v *model) set(round coordinator.Round, hash wire.Hash) {
	v.known, v.round, v.hash = true, round, hash
}

// ready says that the held parameters stay as they are until the machine asks for something else.
func (v *model) ready() bool { return v.known && !v.applying && !v.healing }

// decideModel brings the model to the next window once nothing is left to evaluate with this one.
func (m *Machine) decideModel() {
	if m.model.applying || m.model.healing || m.job.running {
		return
	}
	agreed, round := m.state.Params()
	if m.model.known && m.model.hash == agreed && m.model.round < round && m.find(m.model.round) == nil {
		m.model.set(round, agreed) // initial parameters, or those of an epoch that went back to them
	}
	if !m.model.known || m.differs() {
		m.heal(round, agreed)
		return
	}
	for m.next() {
	}
}

// differs reports whether the held parameters are not those that the run agreed on for their round.
func (m *Machine) differs() bool {
	w := m.find(m.model.round)
	return w != nil && w.hasAgreed && w.agreed != m.model.hash
}

// next advances by one round, and reports whether there may be more to do at once.
func (m *Machine) next() bool {
	q := m.model.round + 1
	if q > m.state.Round() {
		return false
	}
	agreed, round := m.state.Params()
	w := m.find(m.model.round)
	if w == nil && m.model.round > 0 {
		m.heal(round, agreed) // what is due at the end of this round is not known any more
		return false
	}
	a := coordinator.Round(0)
	if w != nil {
		if !w.closed || w.trains && !w.done {
			return false
		}
		a = w.attests
	}
	due := m.find(a)
	switch {
	case a == 0:
	case due == nil:
		m.heal(round, agreed)
		return false
	case !due.final:
		return false
	case len(due.accepted()) > 0:
		m.apply(q, due)
		return false
	}
	m.model.set(q, m.model.hash)
	return !m.differs()
}

// apply asks for the parameters of round q, once what they are made of is there.
func (m *Machine) apply(q coordinator.Round, due *window) {
	for _, r := range due.accepted() {
		if r.held {
			continue
		}
		// what cannot be got from its author any more is in the parameters of those who got it in time
		if m.gathered(due) {
			agreed, round := m.state.Params()
			if w := m.find(q); w != nil && w.hasAgreed {
				agreed, round = w.agreed, q
			}
			m.heal(round, agreed)
		}
		return
	}
	action := Apply{To: q, Window: due.number, Step: due.step}
	for _, r := range due.accepted() {
		action.Members = append(action.Members, r.member)
	}
	m.model.applying = true
	m.do(action)
}

func (m *Machine) applied(ev Applied) {
	m.model.applying = false
	if !ev.OK {
		m.model.known = false
		return
	}
	if ev.To == m.model.round+1 {
		m.advance(ev.To, ev.Params)
	}
}

// advance takes the parameters of a later round.
func (m *Machine) advance(round coordinator.Round, params wire.Hash) {
	m.model.set(round, params)
	if round > keepBehind {
		m.do(Forget{Before: round - keepBehind})
	}
}

// keepBehind is the number of rounds before the model's whose reveals are kept. The reveals due
// next were made in the previous round.
const keepBehind = 2

// heal asks for the agreed parameters. Where it holds them, it waits until the run agrees on later
// ones: a validator that has just started does not know what an open window applies.
func (m *Machine) heal(round coordinator.Round, agreed wire.Hash) {
	held := m.model.known && m.model.round == round && m.model.hash == agreed
	if held || m.model.healing || !m.due(&m.model.healedMs, rehealMs) {
		return
	}
	m.model.healing = true
	a := Heal{Round: round, Params: agreed}
	if m.model.known && !m.differs() {
		a.Held = m.model.round
	}
	m.do(a)
}

func (m *Machine) healed(ev Healed) {
	m.model.healing = false
	if ev.OK {
		m.advance(ev.Round, ev.Params)
		m.model.healedMs = 0
		m.job = job{}
	}
}
