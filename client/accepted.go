package client

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// accepting is how much of the accepted set of a round is there.
type accepting struct {
	chosen  []choice             // by member
	lacking []coordinator.Member // whose result is not known or not held
	renewed []coordinator.Member // of which a commitment has come since these were looked through
}

// choice is the index of a member's accepted result among the known ones, or one of these values.
type choice int8

const (
	nothing  choice = -1 // not accepted, or split
	notNamed choice = -2 // none of the known ones
	untested choice = -3 // some of the known ones have not been looked at
)

// accepted returns the payloads of the accepted set of round a in canonical order, which is by
// member. complete is false while a commitment or payload is missing; both are then being asked
// for.
func (m *Machine) accepted(a coordinator.Round) (payloads []wire.Hash, complete bool) {
	rs := m.results(a)
	if r, ok := m.state.At(a); ok {
		rs.accept(r)
	} else if rs.accepting == nil {
		return nil, false
	}
	set := rs.accepting
	there := func(i coordinator.Member) bool {
		k := m.chosen(rs, i)
		if k >= 0 && !rs.known.Of(i)[k].held {
			if !m.follows(rs) || !m.fetchesFull(rs, true) { // else a few are missing
				m.fetch(rs, &rs.known.Of(i)[k])
			}
			return false
		}
		return k != notNamed
	}
	for _, i := range set.renewed {
		there(i)
	}
	set.renewed = set.renewed[:0]
	if m.reconsiders {
		set.lacking = slices.DeleteFunc(set.lacking, there)
		if slices.ContainsFunc(set.lacking, func(i coordinator.Member) bool { return set.chosen[i] == notNamed }) {
			m.askMissing(rs, set.missing)
		}
	}
	// At other events as far as the first that lacks: all together, each is looked at once.
	for len(set.lacking) > 0 && there(set.lacking[0]) {
		set.lacking = set.lacking[1:]
	}
	if len(set.lacking) > 0 {
		return nil, false
	}
	for i, k := range set.chosen {
		if k >= 0 {
			payloads = append(payloads, rs.known.Of(coordinator.Member(i))[k].commitment.Payload)
		}
	}
	return payloads, true
}

// missing returns the members of whose accepted results no commitment is known.
func (a *accepting) missing() (list []coordinator.Member) {
	for i, k := range a.chosen {
		if k == notNamed {
			list = append(list, coordinator.Member(i))
		}
	}
	return list
}

// accept begins to look for the accepted set of a round, which is final, if nothing has yet.
func (rs *results) accept(r coordinator.RoundState) {
	if rs.accepting != nil {
		return
	}
	rs.accepting = &accepting{chosen: make([]choice, rs.members)}
	for i := range rs.accepting.chosen {
		rs.accepting.chosen[i] = nothing
		if r.Accepted(coordinator.Member(i)) {
			rs.accepting.chosen[i] = untested
			rs.accepting.lacking = append(rs.accepting.lacking, coordinator.Member(i))
		}
	}
}

// chosen returns which of the known results of a member is its accepted one. The accepted set is
// being looked for.
func (m *Machine) chosen(rs *results, member coordinator.Member) choice {
	k := &rs.accepting.chosen[member]
	if *k == untested && m.blind(rs.number) {
		m.lack(rs)
		return notNamed
	}
	if *k == untested {
		*k = m.choose(rs, member)
	}
	return *k
}

func (m *Machine) choose(rs *results, member coordinator.Member) choice {
	if c := m.selected(rs, member); c != nil {
		return choice(slices.IndexFunc(rs.known.Of(member), func(o candidate) bool { return o.id == c.id }))
	}
	if m.split(rs, member) {
		return nothing
	}
	return notNamed
}

// split reports whether no commitment of this member can have a quorum, known or not, so that no
// member applies any. Either the member gave different witnesses different commitments, or a
// witness says that it holds a result and names none. An unknown commitment may be in the reports
// that name none of the known ones, and in those that name several, which only liars send: fewer
// than a third of the elected. Light states lack how many hold a result; filters that were made
// again confirm all accepted ones.
func (m *Machine) split(rs *results, member coordinator.Member) bool {
	a, known := rs.number, rs.known.Of(member)
	r, ok := m.state.At(a + coordinator.Round(m.run.Overlap))
	if !ok || r.Attests() != a || r.Filter().Bits == 0 || m.light {
		return false
	}
	attested, ok := m.state.At(a)
	if !ok {
		return false
	}
	explained := uint32(0)
	if len(known) > 0 {
		for _, rep := range r.Reports() {
			salt := m.state.Key(rep.Member)
			if slices.ContainsFunc(known, func(c candidate) bool { return rep.Commitments.Has(r.Filter(), salt[:], c.id) }) {
				explained++
			}
		}
	}
	elected := uint32(len(r.Witnesses()))
	return attested.Holders(member)-min(attested.Holders(member), explained)+(elected-1)/3 < r.Quorum()
}
