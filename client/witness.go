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
	if m.witness.done >= now || m.witness.waits || !m.elect(now) || r.Reported(m.member.index) || !m.vouches() {
		return
	}
	if m.blind(m.lineage.round) {
		m.lack(m.results(m.lineage.round))
		return
	}
	if m.witness.round == now && !m.reached(m.witness.sentAt+reReportMs) {
		return
	}
	params, ok := m.model.at(now)
	prev, had := m.model.at(now - 1)
	if !ok || !had || m.model.round != now {
		return // without the parameters of this round there is nothing sure to say
	}
	msg := coordinator.Witness{Round: now, Params: params, Prev: prev}
	attested, attests := m.state.At(r.Attests())
	msg.Complete = (!attests || attested.Severed() || !m.unheld(attested)) && (!r.Trains() || m.exchange.complete(r))
	if !msg.Complete && m.state.Phase() != coordinator.RoundWitness {
		m.witness.waits = true
		return
	}
	if attests {
		filter := bloom.New(r.Filter())
		msg.Held = m.gather(attested, r.Filter(), filter)
		msg.Commitments = filter
	}
	m.witness.round, m.witness.sentAt = now, max(m.now, 1)
	m.reached(m.witness.sentAt + reReportMs)
	m.do(Submit{msg})
}

// unheld reports whether a result of the attested round is not held that may still come.
func (m *Machine) unheld(attested coordinator.RoundState) bool {
	rs := m.results(attested.Number())
	return m.lacks(rs, true, &rs.unheld, func(i coordinator.Member) bool { return m.exchange.awaited(attested, i) })
}

// gather returns the set of members whose results of the attested round are held, and adds their
// commitments to the filter.
func (m *Machine) gather(attested coordinator.RoundState, p bloom.Params, filter bloom.Filter) (held []byte) {
	rs := m.results(attested.Number())
	for i := range rs.members {
		if !rs.expects(i) {
			continue
		}
		c := m.best(rs, i, true)
		if c == nil {
			continue
		}
		held = coordinator.SetHeld(held, i)
		if p.Bits == 0 {
			continue // the ledger has the commitments
		}
		filter.Add(p, m.cfg.Self[:], c.id)
	}
	return held
}

// takesPart reports whether a member is still active in the epoch. One that left or was dropped is
// not waited for.
func (m *Machine) takesPart(i coordinator.Member) bool {
	return m.state.Status(i) == coordinator.StatusActive
}
