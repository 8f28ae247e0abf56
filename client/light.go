package client

import "github.com/entrain-network/entrain/coordinator"

// Watch asks for light states, which lack the filters of witnesses' reports, or for whole ones
// again. It ends in StateChanged.
//
// A member that names the results of others needs the filters: to attest, to check, to write a
// checkpoint, to apply payloads. A member that follows names its own alone, which is the one that
// it has signed if it was accepted. If lying witnesses have it in no filter, the members that
// attest let its next result begin from any state (lineage.go), so it loses nothing by taking its
// own.
type Watch struct{ Light bool }

func (Watch) action() {}

// blind reports whether the state lacks the filters that confirm the results of a round.
func (m *Machine) blind(a coordinator.Round) bool {
	r, ok := m.attestedIn(a)
	return m.light && ok && r.Filter().Bits > 0
}

// sole returns what selected does without filters: the own result. If another one is wanted, it has
// whole states come, for this round and the next.
func (m *Machine) sole(rs *results, member coordinator.Member) *candidate {
	r, ok := m.state.At(rs.number)
	if !ok || !r.Final() || !r.Accepted(member) {
		return nil
	}
	if list := rs.known.Of(member); m.member.known && member == m.member.index && len(list) == 1 {
		return &list[0]
	}
	m.wholeTo = m.state.Round() + 1
	return nil
}

// decideWatch asks for the states that this member needs.
func (m *Machine) decideWatch() {
	if light := m.cfg.Light && !m.needsWhole(); light != m.watched {
		m.watched = light
		m.do(Watch{Light: light})
	}
}

// needsWhole reports whether light states do not suffice. A member that comes or goes waits for the
// ledger to show it, which light states do late.
func (m *Machine) needsWhole() bool {
	now, self := m.state.Round(), m.member.index
	if !m.member.known || m.slices() || m.stopping || !m.state.Status(self).Present() || now <= m.wholeTo {
		return true
	}
	if m.elect(now) || m.elect(now-1) || m.state.Phase() == coordinator.Cooldown && m.state.Checkpointer(self) {
		return true
	}
	for _, cs := range m.duties {
		if !cs.known && m.concerns(cs) {
			return true
		}
	}
	r, ok := m.state.At(now)
	return ok && r.Trains() && !m.follows(m.results(now))
}
