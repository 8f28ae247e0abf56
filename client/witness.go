package client

import (
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
)

// reports holds this member's reports as a witness.
type reports struct {
	round  coordinator.Round // last round reported on
	done   coordinator.Round // last round whose report was accepted
	sentAt uint64
	waits  bool // something is missing, and nothing but time has passed since that was found
}

// decideWitness reports, if this member was elected, as soon as it holds everything; in
// RoundWitness it reports what it holds.
func (m *Machine) decideWitness(r coordinator.RoundState) {
	now := r.Number()
	if m.witness.waits || m.witness.done >= now || !r.Elected(m.member.index) || r.Reported(m.member.index) {
		return
	}
	params, ok := m.model.at(now)
	prev, had := m.model.at(now - 1)
	if !ok || !had || m.model.round != now {
		return // without the parameters of this round there is nothing sure to say
	}
	msg := coordinator.Witness{Round: now, Complete: true, Params: params, Prev: prev}
	if attested, ok := m.state.At(r.Attests()); ok {
		filter := bloom.New(r.Filter())
		msg.Held, msg.Complete = m.gather(attested, r.Filter(), filter)
		msg.Commitments = filter
	}
	if r.Trains() && !m.exchange.complete(r) {
		msg.Complete = false
	}
	if !msg.Complete && m.state.Phase() != coordinator.RoundWitness {
		m.witness.waits = true
		return
	}
	if m.witness.round == now && !m.due(&m.witness.sentAt, reReportMs) {
		return
	}
	m.witness.round, m.witness.sentAt = now, max(m.now, 1)
	m.do(Submit{msg})
}

// gather returns the set of members whose results of the attested round are held, fills in the
// filter of their commitments, and reports whether no result is missing that may still come.
func (m *Machine) gather(attested coordinator.RoundState, p bloom.Params, filter bloom.Filter) (held []byte, complete bool) {
	rs := m.results(attested.Number())
	complete = true
	for i := range rs.expected {
		if !rs.expected[i] {
			continue
		}
		c := m.best(rs, coordinator.Member(i), true)
		if c == nil {
			complete = complete && !m.exchange.awaited(attested, coordinator.Member(i))
			continue
		}
		held = coordinator.SetHeld(held, coordinator.Member(i))
		if p.Bits == 0 {
			continue // the ledger has the commitments
		}
		filter.Add(p, m.cfg.Self[:], c.id)
	}
	return held, complete
}

// takesPart reports whether a member is still active in the epoch. One that left or was dropped is
// not waited for.
func (m *Machine) takesPart(i coordinator.Member) bool {
	return m.state.Status(i) == coordinator.StatusActive
}

// allCommitted reports whether the commitment of each member with a share in the round is known.
func (m *Machine) allCommitted(round coordinator.Round) bool {
	rs := m.results(round)
	for i := range rs.expected {
		if rs.expected[i] && m.takesPart(coordinator.Member(i)) && m.best(rs, coordinator.Member(i), false) == nil {
			return false
		}
	}
	return true
}
