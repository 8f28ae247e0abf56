package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// reShowMs is how often an aggregator shows what it holds, if that has changed.
const reShowMs = 300

// After heldAsks questions a witness asks for what aggregators hold once in each part of the time
// to train: an author that serves too few of them would have it ask all of them every reAskMs.
const (
	heldAsks    = 4
	heldAskPart = 16
)

// tag is the part of a commitment's ID that an aggregator shows: another for each aggregator, so
// that an author cannot find two commitments that look the same to many. It is not 0.
func tag(id wire.Hash, at byte) byte { return max(1, id[at]) }

// tagByte returns the byte of IDs that a member shows.
func tagByte(by key.Public) byte { return by[0] % byte(len(wire.Hash{})) }

// showHeld shows which ranges this member holds.
func (m *Machine) showHeld(rs *results) {
	sh := rs.sharing
	if sh.own < 0 || !sh.changed || !m.due(&sh.shownAt, reShowMs) {
		return
	}
	sh.changed = false
	tags := make([]byte, m.state.Count())
	for i := range tags {
		var best *candidate
		for k := range rs.known.Of(coordinator.Member(i)) {
			c := &rs.known.Of(coordinator.Member(i))[k]
			if c.held && m.valid(rs, c) && (best == nil || c.id.Compare(best.id) < 0) {
				best = c
			}
		}
		if best != nil {
			tags[i] = tag(best.id, tagByte(m.cfg.Self))
		}
	}
	m.do(ShowHeld{Round: rs.number, Tags: tags})
}

// askHeld has a witness ask the aggregators of other slices what they hold.
func (m *Machine) askHeld(rs *results) {
	sh, now := rs.sharing, m.state.Round()
	wait := uint64(reAskMs)
	if sh.asks >= heldAsks {
		wait = max(wait, m.run.RoundTrainMs/heldAskPart)
	}
	if !m.elect(now) || m.witness.done >= now || now != rs.number+coordinator.Round(m.run.Overlap) ||
		!m.due(&sh.askedAt, wait) || !m.spreading(rs) {
		return
	}
	sh.asks++
	var to []key.Public
	for slice, group := range sh.groups {
		if slice == sh.own {
			continue
		}
		for _, i := range group {
			if !sh.full[i] && m.takesPart(i) {
				to = append(to, m.state.Key(i))
			}
		}
	}
	if len(to) > 0 {
		m.do(AskHeld{Round: rs.number, To: to})
	}
}

// spreading reports whether this member holds its range of a result of which it does not know that
// others hold theirs. For results that do not come, aggregators would be asked all round long.
func (m *Machine) spreading(rs *results) bool {
	for i := range m.state.Count() {
		for k := range rs.known.Of(i) {
			if c := &rs.known.Of(i)[k]; c.held && !c.spread && m.valid(rs, c) && !m.there(rs, c) {
				return true
			}
		}
	}
	return false
}

func (m *Machine) heldShown(ev HeldShown) {
	rs := m.find(ev.Round)
	if rs == nil || rs.sharing == nil || len(ev.Tags) > int(rs.members) {
		return
	}
	i, ok := m.aggregator(rs, ev.By)
	if !ok {
		return
	}
	sh := rs.sharing
	if sh.holders == nil {
		m.countHolders(rs)
	}
	sh.count(i, ^uint16(0))
	sh.tags[i] = ev.Tags
	sh.count(i, 1)
	sh.full[i] = true
	for k := range m.state.Count() {
		if (int(k) >= len(ev.Tags) || ev.Tags[k] == 0) && rs.expects(k) && m.takesPart(k) {
			sh.full[i] = false
			return
		}
	}
}

// there reports whether the payload of a candidate can be had by all: in a run of slices, each
// range of it from members of the range's group. Of its own group a witness holds the range itself.
func (m *Machine) there(rs *results, c *candidate) bool {
	if !c.held || !m.slices() || c.spread {
		return c.held
	}
	sh := m.shared(rs)
	if sh == nil {
		return false
	}
	author := int(c.commitment.Member)
	if sh.holders == nil || sh.counted[author] != c.id {
		m.countHoldersOf(rs, author, c.id)
	}
	for slice, group := range sh.groups {
		if slice != sh.own && int(sh.holders[slice][author]) < HeldQuorum(len(group)) {
			return false
		}
	}
	c.spread = true
	return true
}

// countHolders begins to count who shows the commitments that this member vouches for.
func (m *Machine) countHolders(rs *results) {
	sh := rs.sharing
	sh.holders, sh.counted = make([][]uint16, len(sh.groups)), make([]wire.Hash, rs.members)
	for slice := range sh.holders {
		sh.holders[slice] = make([]uint16, rs.members)
	}
	for author := range rs.members {
		if c := m.best(rs, author, false); c != nil {
			m.countHoldersOf(rs, int(author), c.id)
		}
	}
}

// countHoldersOf counts who shows a commitment, in place of another one of its author.
func (m *Machine) countHoldersOf(rs *results, author int, id wire.Hash) {
	sh := rs.sharing
	if sh.holders == nil {
		m.countHolders(rs)
	}
	sh.counted[author] = id
	for slice, group := range sh.groups {
		sh.holders[slice][author] = 0
		for _, i := range group {
			if tags := sh.tags[i]; author < len(tags) && tags[author] == tag(id, sh.bytes[i]) {
				sh.holders[slice][author]++
			}
		}
	}
}

// count adds what a member shows to the holders, or takes it from them. To look for each result
// through all of them takes far longer.
func (s *sharing) count(i coordinator.Member, by uint16) {
	holders, at := s.holders[s.slice[i]], s.bytes[i]
	for author, t := range s.tags[i] {
		if t != 0 && t == tag(s.counted[author], at) {
			holders[author] += by
		}
	}
}
