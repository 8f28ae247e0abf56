package client

import (
	"github.com/entrain-network/entrain/client/holders"
	"github.com/entrain-network/entrain/coordinator"
)

// reShowMs is how often an aggregator shows what it holds, if that has changed.
const reShowMs = 300

// A witness asks for what aggregators hold after longer and longer pauses, in the end once in each
// part of the time to train: an author that serves too few of them makes it ask again. While it
// lacks ranges itself, it could not attest all results, so it asks only once in earlyParts parts,
// up to the last lateParts.
const (
	heldAskPart = 16
	earlyParts  = 3
	lateParts   = 4
)

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
			tags[i] = holders.Tag(best.id, m.cfg.Self)
		}
	}
	m.do(ShowHeld{Round: rs.number, Tags: tags})
}

// askHeld has a witness ask the aggregators of other slices what they hold.
func (m *Machine) askHeld(rs *results) {
	sh, now, part := rs.sharing, m.state.Round(), m.run.RoundTrainMs/heldAskPart
	if !m.elect(now) || m.witness.done >= now || now != rs.number+coordinator.Round(m.run.Overlap) ||
		!m.due(&sh.lookedAt, min(reAskMs<<min(sh.asks, 8), max(reAskMs, part))) {
		return
	}
	if sh.begunAt == 0 {
		sh.begunAt, sh.askedAt = m.now, m.now
	}
	authors, complete := m.spreading(rs)
	early := !complete && m.now < sh.begunAt+(heldAskPart-lateParts)*part
	if len(authors) == 0 || early && !m.reached(sh.askedAt+earlyParts*part) {
		return
	}
	sh.asks, sh.askedAt = sh.asks+1, sh.lookedAt
	ask := AskHeld{Round: rs.number}
	for _, i := range m.held(rs).Ask(authors) {
		if m.takesPart(i) {
			ask.To, ask.Shown = append(ask.To, m.state.Key(i)), append(ask.Shown, m.held(rs).Shown(i))
		}
	}
	if len(ask.To) > 0 {
		m.do(ask)
	}
}

// spreading returns the authors of the results of which this member holds its range and does not
// know that others hold theirs. For results that do not come, aggregators would be asked all round
// long. complete is whether it holds its range of all results that may come.
func (m *Machine) spreading(rs *results) (authors []coordinator.Member, complete bool) {
	complete = true
	for i := range m.state.Count() {
		held := false
		for k := range rs.known.Of(i) {
			c := &rs.known.Of(i)[k]
			if !c.held || !c.spread && !m.valid(rs, c) {
				continue
			}
			if held = true; !m.there(rs, c) {
				authors = append(authors, i)
			}
		}
		complete = complete && (held || !rs.expects(i) || !m.takesPart(i))
	}
	return authors, complete
}

func (m *Machine) heldShown(ev HeldShown) {
	rs := m.find(ev.Round)
	if rs == nil || rs.sharing == nil {
		return
	}
	if i, ok := m.aggregator(rs, ev.By); ok {
		m.held(rs).Show(i, ev.Tags)
	}
}

// there reports whether the payload of a candidate can be had by all: in a run of slices, each
// range of it from members of the range's group. Of its own group a witness holds the range itself.
func (m *Machine) there(rs *results, c *candidate) bool {
	if !c.held || !m.slices() || c.spread {
		return c.held
	}
	c.spread = m.shared(rs) != nil && m.held(rs).Held(c.commitment.Member, c.id)
	return c.spread
}

// held returns what aggregators show.
func (m *Machine) held(rs *results) *holders.Table {
	sh := rs.sharing
	if sh.held == nil {
		sh.held = holders.New(sh.groups, sh.own, int(rs.members), len(sh.slice), m.state.Key)
	}
	return sh.held
}
