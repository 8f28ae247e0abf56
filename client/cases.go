package client

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client/docket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A Share names the computation of one member in one round.
type Share = docket.Share

// A Task is a share to be computed again.
type Task struct {
	Share
	Step       coordinator.Step
	Spans      []batch.Span
	Commitment dispute.Commitment
}

// Case returns the task as the coordinator's referee sees it.
func (t Task) Case() dispute.Case {
	return dispute.Case{Commitment: t.Commitment, Step: t.Step, Sequences: batch.Total(t.Spans)}
}

// openCase is what is known of a share that is checked or disputed: the commitment, and the
// sequences that were given. Every member keeps one of every such share, because it may be drawn to
// judge a dispute after the coordinator's state has dropped the round. Where members follow, those
// who read the round's commitments do that, and others ask them.
type openCase struct {
	Share
	epoch         coordinator.Epoch
	step          coordinator.Step
	share, params wire.Hash
	spans         []batch.Span // nil: not known
	signed        *dispute.Signed
	known         bool // signed is
	kept          bool // it was written down, if it is this member's own

	deadlineMs uint64 // of the ledger's time: of the check, or for the tie-breakers' votes
	check      bool   // it is checked and this member is the verifier
	dispute    *dispute.Dispute
	disputed   bool // dispute is one about it
	listed     bool // it was found in the newest state

	verify verification
	argue  argument
	asked  asking

	vouchers docket.Vouchers
	blindMs  uint64 // when filters were found to lack
}

// asking is a question to peers that is repeated, and given up at a time.
type asking struct {
	at, untilMs uint64
	times       uint32
}

// readCases brings the cases up to date with the state's tables of checks and disputes.
func (m *Machine) readCases() {
	for _, cs := range m.cases {
		cs.listed, cs.check, cs.disputed = false, false, false
	}
	open := m.cfg.Common.Docket(m.state)
	m.heeded(open, func(c dispute.Check) {
		cs := m.openCase(c)
		cs.check = m.member.known && c.Verifier == m.member.index && !c.Disputed
		cs.deadlineMs = c.DeadlineMs
	})
	for k := range open.Disputes {
		d := &open.Disputes[k]
		if m.cfg.Update != 0 && m.caseOf[Share{Round: d.Round, Member: d.Member}] == nil && !m.parts(d) && !m.keeps(d.Round) {
			continue
		}
		cs := m.openCase(d.Check)
		cs.disputed, cs.dispute, cs.deadlineMs = true, d, d.DeadlineMs
		if !cs.known && d.Commitment.Run == m.state.ID() {
			cs.signed, cs.known = &dispute.Signed{Commitment: d.Commitment}, true
		}
	}
	kept := m.cases[:0]
	for _, cs := range m.cases {
		if cs.listed {
			kept = append(kept, cs)
			continue
		}
		delete(m.caseOf, cs.Share)
		if cs.verify.running {
			m.do(CancelVerify{cs.Share})
		}
	}
	clear(m.cases[len(kept):])
	m.cases, m.duties = kept, m.duties[:0]
	for _, cs := range m.cases {
		if cs.check && !cs.verify.sent || cs.disputed {
			m.duties = append(m.duties, cs)
		}
	}
}

// heeded passes on the checks of which this member keeps a case.
func (m *Machine) heeded(d *Docket, use func(dispute.Check)) {
	if m.cfg.Update == 0 {
		for _, c := range d.Checks {
			use(c)
		}
		return
	}
	for _, r := range d.Rounds {
		if m.keeps(r.Round) {
			for _, i := range r.Places {
				use(d.Checks[i])
			}
		}
	}
	if m.member.known {
		for _, i := range d.Of[m.member.index] {
			use(d.Checks[i])
		}
	}
	for k := range m.cases { // use may append others
		if i, open := d.At[m.cases[k].Share]; open {
			use(d.Checks[i])
		}
	}
}

// keeps reports whether this member keeps a case of every check of a round's results.
func (m *Machine) keeps(round coordinator.Round) bool {
	rs := m.find(round)
	return rs != nil && (!m.follows(rs) || m.reads(rs))
}

// parts reports whether this member has a part in a dispute.
func (m *Machine) parts(d *dispute.Dispute) bool {
	self := m.member.index
	return m.member.known && (d.Accused == self || d.Accuser == self ||
		slices.ContainsFunc(d.TieBreakers, func(t dispute.TieVote) bool { return t.Member == self }))
}

// openCase returns the case of a checked share, which it opens if there is none.
func (m *Machine) openCase(c dispute.Check) *openCase {
	s := Share{Round: c.Round, Member: c.Member}
	cs := m.caseOf[s]
	if cs != nil && cs.share != c.Share {
		*cs = openCase{Share: s} // of a check of another time
	}
	if cs == nil {
		cs = &openCase{Share: s}
		m.cases, m.caseOf[s] = append(m.cases, cs), cs
	}
	cs.listed = true
	cs.epoch, cs.step, cs.share, cs.params = c.Epoch, c.Step, c.Share, c.Params
	if cs.spans == nil {
		if r, ok := m.state.At(c.Round); ok {
			if spans := m.share(r, c.Member); batch.Hash(spans) == c.Share {
				cs.spans = spans
			}
		}
	}
	return cs
}

// nameCases looks for the commitments of the cases among those that are known.
func (m *Machine) nameCases() {
	for _, cs := range m.cases {
		rs, blind := m.find(cs.Round), m.blind(cs.Round)
		if cs.known || rs == nil || blind && !m.concerns(cs) {
			continue
		}
		var c *candidate
		if blind {
			c = m.vouched(rs, cs)
		} else {
			c = m.selected(rs, cs.Member)
		}
		for k := 0; c == nil && !m.tells(rs) && k < len(rs.known.Of(cs.Member)); k++ {
			if o := &rs.known.Of(cs.Member)[k]; cs.about(o.commitment) {
				c = o
			}
		}
		if c != nil && cs.about(c.commitment) {
			cs.signed, cs.known = c.signed, true
			m.unretained = true
		}
	}
}

// tells reports whether members follow and the state still tells which commitments to a round are
// accepted. Then a verifier, who did not hear the author's before, takes no other one: it may be
// made for the check.
func (m *Machine) tells(rs *results) bool {
	if rs == nil || !m.follows(rs) {
		return false
	}
	_, attested := m.state.At(rs.number)
	_, ok := m.attestedIn(rs.number)
	return ok && attested
}

// about reports whether a commitment is one to the share of the case.
func (cs *openCase) about(c *dispute.Commitment) bool {
	return c.Round == cs.Round && c.Member == cs.Member && c.Epoch == cs.epoch && c.Share == cs.share && c.Params == cs.params
}

// claim takes a commitment from gossip or a peer for a case whose round the results no longer have.
func (m *Machine) claim(ev CommitmentReceived) {
	c := &ev.Signed.Commitment
	cs := m.caseOf[Share{Round: c.Round, Member: c.Member}]
	if cs == nil {
		return
	}
	if r, ok := m.attestedIn(c.Round); ok && cs.vouchers.Add(m.state, r, ev.From, ev.ID) {
		m.unread = true
	}
	if !cs.known && !m.tells(m.find(c.Round)) && cs.about(c) && c.Member < m.state.Count() && m.state.Key(c.Member) == ev.Signer {
		cs.signed, cs.known = ev.Signed, true
		m.unretained = true
	}
}

// assigned takes spans from a peer for the cases that lack them.
func (m *Machine) assigned(spans []batch.Span) {
	hash := batch.Hash(spans)
	for _, cs := range m.cases {
		if cs.spans == nil && cs.share == hash {
			cs.spans = spans
		}
	}
}

// askFor asks one peer for what a case lacks, as after a restart or in a member that joined later.
// It asks the author every second time, which may have been away too, and the others in turn.
func (m *Machine) askFor(cs *openCase) {
	if !m.due(&cs.asked.at, reAskMs) {
		return
	}
	peers := m.holders(cs)
	if len(peers) == 0 {
		return
	}
	to := peers[cs.asked.times%2*(cs.asked.times/2+1)%uint32(len(peers))]
	cs.asked.times++
	if cs.spans == nil {
		m.do(AskSpans{Hash: cs.share, To: to})
	}
	switch {
	case cs.known:
	case m.blind(cs.Round):
		m.askVouchers(cs)
	default:
		m.do(AskCommitments{Round: cs.Round, Of: []coordinator.Member{cs.Member}, To: to})
	}
}

// task returns the case's share as something to compute; ok is false while something is missing.
func (cs *openCase) task() (t Task, ok bool) {
	if !cs.known || cs.spans == nil {
		return Task{}, false
	}
	return Task{Share: cs.Share, Step: cs.step, Spans: cs.spans, Commitment: cs.signed.Commitment}, true
}

// concerns reports whether this member has a part in the case. A tie-breaker that found for the
// accused has none any more.
func (m *Machine) concerns(cs *openCase) bool {
	if !m.member.known {
		return false
	}
	self := m.member.index
	if cs.check || cs.Member == self {
		return true
	}
	if !cs.disputed {
		return false
	}
	if cs.dispute.Accuser == self {
		return true
	}
	for _, t := range cs.dispute.TieBreakers {
		if t.Member == self {
			return t.Vote != voteRight
		}
	}
	return false
}

// decideRetain names the blobs that peers may still ask for, when they have changed: those of this
// member's last shares, whose checks are not drawn yet, the parameters these began from, which
// verifiers need, and those of the cases it is in. When nobody trains any more, that includes the
// last share of all, for those who audit it. In a run of buckets nobody serves blobs: it names the
// parameters of all cases, to one of which this member may still be called, and no states.
func (m *Machine) decideRetain() {
	if !m.unretained && !m.model.changed {
		return
	}
	m.unretained, m.model.changed = false, false
	now := m.state.Round()
	var h Retain
	add := func(root wire.Hash) {
		if !slices.Contains(h.Blobs, root) {
			h.Blobs = append(h.Blobs, root)
		}
	}
	alone := m.run.Exchange == coordinator.Buckets
	if m.run.VerificationPercent > 0 {
		window := coordinator.Round(m.run.Overlap) + 2
		first := now - min(now-1, window-1)
		for r, ok := m.state.At(first); ok && !r.Trains(); r, ok = m.state.At(first) {
			first--
		}
		for number := first; number <= now && number > 0; number++ {
			if hash, ok := m.model.at(number); ok {
				add(hash)
			}
			if rs := m.find(number); rs != nil && m.member.known && !alone {
				for k := range rs.known.Of(m.member.index) {
					add(rs.known.Of(m.member.index)[k].commitment.Prev)
				}
			}
		}
	}
	for _, cs := range m.cases {
		h.Shares = append(h.Shares, cs.Share)
		if cs.spans != nil {
			h.Assignments = append(h.Assignments, Assignment{cs.share, cs.spans})
		}
		if alone {
			add(cs.params)
		}
		if !m.concerns(cs) {
			continue
		}
		h.Mine = append(h.Mine, cs.Share)
		add(cs.params)
		if cs.known && !alone {
			add(cs.signed.Commitment.Prev)
		}
	}
	if !m.retains || !h.equal(m.retained) {
		m.retained, m.retains = h, true
		m.do(h)
	}
	for _, cs := range m.cases {
		if task, ok := cs.task(); ok && !cs.kept && m.member.known && cs.Member == m.member.index {
			cs.kept = true
			m.do(Keep{Kept{Task: task, Signature: cs.signed.Signature}})
		}
	}
}

// recall completes the cases with what was kept of them before this member was started.
func (m *Machine) recall(kept []Kept) {
	for _, k := range kept {
		cs := m.caseOf[k.Share]
		if cs == nil || !cs.about(&k.Commitment) || batch.Hash(k.Spans) != cs.share {
			continue
		}
		cs.spans, cs.kept = k.Spans, true
		cs.signed, cs.known = &dispute.Signed{Commitment: k.Commitment, Signature: k.Signature}, true
	}
}

// holdersMax bounds the peers that are named because all had the parameters.
const holdersMax = 64

// holders returns the peers likely to have what a share begins from: its author, its accuser, where
// members follow those who attested it, and others, which had the parameters at least.
func (m *Machine) holders(cs *openCase) []key.Public {
	var out []key.Public
	first := func(i coordinator.Member) {
		if i < m.state.Count() {
			if k := m.state.Key(i); k != m.cfg.Self {
				out = append(out, k)
			}
		}
	}
	first(cs.Member)
	if cs.disputed {
		first(cs.dispute.Accuser)
	}
	if rs := m.find(cs.Round); rs != nil && m.follows(rs) {
		out = append(out, m.elected(rs)...)
	}
	for _, k := range m.peers(cs.Round, holdersMax) {
		if len(out) == 0 || k != out[0] && k != out[len(out)-1] {
			out = append(out, k)
		}
	}
	return out
}
