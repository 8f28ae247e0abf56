package client

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/wire"
)

// Watch asks for light states, which lack the filters of witnesses' reports, for these with
// StateChanged.Reports, or for whole ones again. It ends in StateChanged.
//
// Only a member that names the results of others needs filters: to attest, to write a checkpoint,
// to apply payloads. One that is elected makes them again, of the commitments and the reports, and
// watches whole states if it cannot: it lacks commitments, or witnesses lie. One that checks a
// result asks those who attested it. A member that follows names its own result alone, which is the
// one that it has signed if it was accepted. If lying witnesses have it in no filter, the members
// that attest let its next result begin from any state (lineage.go), so it loses nothing by taking
// its own.
type Watch struct{ Light, Reports bool }

func (Watch) action() {}

// A member makes filters again after refillMs at the earliest. In parts of the time to train: how
// long it waits for reports, and how long for commitments.
const refillMs, reportsPart, unheardPart = 100, 8, 2

// blind reports whether the state lacks the filters that confirm the results of a round.
func (m *Machine) blind(a coordinator.Round) bool {
	r, ok := m.attestedIn(a)
	return m.light && ok && r.Filter().Bits > 0 && !m.filters.Has(r.Number())
}

// lack says that the filters that confirm the results of a round are needed.
func (m *Machine) lack(rs *results) {
	if !m.seated() {
		m.wholeTo = m.state.Round() + 1 // for this round and the next
	} else if rs.blindMs == 0 {
		rs.blindMs = max(m.now, 1)
	}
}

// seated reports whether this member was elected in this round or the one before, which it attests
// or makes an update of.
func (m *Machine) seated() bool { return m.elect(m.state.Round()) || m.elect(m.state.Round()-1) }

// sole returns what selected does without filters: this member's result.
func (m *Machine) sole(rs *results, member coordinator.Member) *candidate {
	r, ok := m.state.At(rs.number)
	if !ok || !r.Final() || !r.Accepted(member) {
		return nil
	}
	if list := rs.known.Of(member); m.member.known && member == m.member.index && len(list) == 1 {
		return &list[0]
	}
	m.lack(rs)
	return nil
}

// refill makes the filters again that are needed.
func (m *Machine) refill() {
	for _, rs := range m.rounds {
		if !m.seated() {
			rs.blindMs = 0
		}
		if rs.blindMs == 0 || !m.blind(rs.number) || !m.due(&rs.refillAt, refillMs) {
			continue
		}
		r, _ := m.attestedIn(rs.number)
		k := slices.IndexFunc(m.reports, func(o change.Reports) bool { return o.Round == r.Number() })
		unheard, late := 0, m.reached(rs.blindMs+m.run.RoundTrainMs/reportsPart)
		if k >= 0 {
			unheard, late = m.unheard(rs, m.reports[k].Told), m.reached(rs.blindMs+m.run.RoundTrainMs/unheardPart)
		}
		// Those that nobody gives may lack in the filters of a few witnesses alone.
		if k >= 0 && (unheard == 0 || late || m.reached(rs.blindMs+reAskMs<<rs.refills)) {
			rs.refills++
			if f, ok := m.reports[k].Rebuild(m.state, rs.first); ok {
				m.filters = append(m.filters, f)
				m.state, m.unread, m.wakeAt, m.turns = m.filters.Into(m.state), true, m.now, m.turns+1
				continue
			}
			late = late || unheard == 0
		}
		if late {
			m.wholeTo = m.state.Round() + 1
		}
	}
}

// unheard asks for the commitments that a witness holds and this member does not know. It returns
// their number.
func (m *Machine) unheard(rs *results, held func(coordinator.Member) bool) int {
	var list []coordinator.Member
	for i := range m.state.Count() {
		if len(rs.known.Of(i)) == 0 && held(i) {
			list = append(list, i)
		}
	}
	rs.askedAt = max(rs.askedAt, 1) // the round is over: gossip brings no more
	m.askMissing(rs, func() []coordinator.Member { return list })
	return len(list)
}

// first returns the commitment of a member that came first: of an honest one the only one.
func (rs *results) first(i coordinator.Member) (id wire.Hash, ok bool) {
	for _, c := range rs.known.Of(i) {
		return c.id, true
	}
	return id, false
}

// vouched returns what selected does of a case without filters: the only known commitment, if a
// quorum of those who attested it show it. If another one were accepted, an honest one of these
// would have it, too. This member's result is the one that was signed.
func (m *Machine) vouched(rs *results, cs *openCase) *candidate {
	r, _ := m.attestedIn(cs.Round)
	list := rs.known.Of(cs.Member)
	if len(list) != 1 || cs.Member != m.member.index && !cs.vouchers.Agree(r.Quorum(), list[0].id) {
		return nil
	}
	return &list[0]
}

// askVouchers asks those who attested the share of a case for the commitment to it. If too few
// answer in time, the member watches whole states.
func (m *Machine) askVouchers(cs *openCase) {
	if cs.blindMs == 0 {
		cs.blindMs = max(m.now, 1)
	}
	if m.reached(cs.blindMs + min(m.run.RoundTrainMs, m.run.VerifyMs)/reportsPart) {
		m.wholeTo = m.state.Round() + 1
	}
	r, _ := m.attestedIn(cs.Round)
	for _, to := range cs.vouchers.Ask(m.state, r, m.cfg.Self, uint32(m.member.index)+cs.asked.times*r.Quorum()) {
		m.do(AskCommitments{Round: cs.Round, Of: []coordinator.Member{cs.Member}, To: to})
	}
}

// decideWatch asks for the states that this member needs. What it has signed before it was started
// is looked for in whole ones, until the driver has loaded.
func (m *Machine) decideWatch() {
	light := m.cfg.Light && m.model.started && !m.needsWhole()
	if w := (Watch{Light: light, Reports: light && m.seated()}); w != m.watched {
		m.watched = w
		m.do(w)
	}
}

// needsWhole reports whether light states do not suffice. A member that comes or goes waits for the
// ledger to show it, which light states do late.
func (m *Machine) needsWhole() bool {
	now, self := m.state.Round(), m.member.index
	if !m.member.known || m.slices() || m.stopping || !m.state.Status(self).Present() || now <= m.wholeTo {
		return true
	}
	if m.state.Phase() == coordinator.Cooldown && m.state.Checkpointer(self) {
		return true
	}
	r, ok := m.state.At(now)
	if !ok {
		return m.seated()
	}
	// Where nobody follows, whole states are small, and come sooner than reports.
	if a := r.Attests(); m.seated() && (a == 0 || !m.follows(m.results(a))) {
		return true
	}
	return r.Trains() && !m.follows(m.results(now))
}
