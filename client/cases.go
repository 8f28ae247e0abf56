package client

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A Share names what one member computed in one round.
type Share struct{ Round, Member uint32 }

// A Task is a share to be computed again.
type Task struct {
	Share
	Step       uint32
	Spans      []batch.Span
	Commitment coordinator.Commitment
}

// Case is the task as the coordinator's referee sees it.
func (t Task) Case() coordinator.Case {
	return coordinator.Case{Commitment: t.Commitment, Step: t.Step, Sequences: batch.Total(t.Spans)}
}

// file is what is known of a share that is checked or disputed. Everybody keeps one of every such share, because everybody may be called
// to judge a dispute about it, after the coordinator's state has let go of the round: what was given to whom, and the commitment.
type file struct {
	Share
	epoch, step   uint32
	share, params wire.Hash
	spans         []batch.Span // nil: not known
	signed        coordinator.Signed
	known         bool // signed is
	kept          bool // it was written down, if it is this member's own

	deadlineMs uint64 // of the ledger's time: of the check, or for the tie-breakers' votes
	check      bool   // it is checked and this member is the verifier
	dispute    coordinator.Dispute
	disputed   bool // dispute is one about it
	listed     bool // it was found in the newest state

	verify verification
	argue  argument
	asked  asking
}

// asking is a question to peers that is repeated.
type asking struct {
	at    uint64
	times uint32
}

// readCases brings the files up to date with the state's tables of checks and disputes.
func (m *Machine) readCases() {
	for _, f := range m.files {
		f.listed, f.check, f.disputed = false, false, false
	}
	for _, c := range m.state.Checks() {
		f := m.file(c)
		f.check = m.member.known && c.Verifier == m.member.index && !c.Disputed
		f.deadlineMs = c.DeadlineMs
	}
	for _, d := range m.state.Disputes() {
		f := m.file(d.Check)
		f.disputed, f.dispute, f.deadlineMs = true, d, d.DeadlineMs
		if !f.known && d.Commitment.Run == m.state.ID() {
			f.signed, f.known = coordinator.Signed{Commitment: d.Commitment}, true
		}
	}
	kept := m.files[:0]
	for _, f := range m.files {
		if f.listed {
			kept = append(kept, f)
			continue
		}
		delete(m.filed, f.Share)
		if f.verify.running {
			m.do(CancelVerify{f.Share})
		}
	}
	clear(m.files[len(kept):])
	m.files = kept
}

// file returns the file of a checked share, opened if there is none.
func (m *Machine) file(c coordinator.Check) *file {
	s := Share{c.Round, c.Member}
	f := m.filed[s]
	if f != nil && f.share != c.Share {
		*f = file{Share: s} // of a check of another time
	}
	if f == nil {
		f = &file{Share: s}
		m.files, m.filed[s] = append(m.files, f), f
	}
	f.listed = true
	f.epoch, f.step, f.share, f.params = c.Epoch, c.Step, c.Share, c.Params
	if f.spans == nil {
		if r, ok := m.state.At(c.Round); ok {
			if spans := r.Share(c.Member); batch.Hash(spans) == c.Share {
				f.spans = spans
			}
		}
	}
	return f
}

// nameCases finds the commitments of files among those that are known.
func (m *Machine) nameCases() {
	for _, f := range m.files {
		if f.known {
			continue
		}
		rs := m.find(f.Round)
		if rs == nil {
			continue
		}
		c := m.selected(rs, f.Member)
		for k := 0; c == nil && k < len(rs.known[f.Member]); k++ {
			if o := &rs.known[f.Member][k]; f.about(&o.commitment) {
				c = o
			}
		}
		if c != nil && f.about(&c.commitment) {
			f.signed, f.known = coordinator.Signed{Commitment: c.commitment, Signature: c.signature}, true
		}
	}
}

// about says whether a commitment is one to the share of the file.
func (f *file) about(c *coordinator.Commitment) bool {
	return c.Round == f.Round && c.Member == f.Member && c.Epoch == f.epoch && c.Share == f.share && c.Params == f.params
}

// claim takes a commitment from gossip or a peer for a file whose round the results no longer have.
func (m *Machine) claim(ev CommitmentReceived) {
	c := ev.Signed.Commitment
	f := m.filed[Share{c.Round, c.Member}]
	if f != nil && !f.known && f.about(&c) && c.Member < m.state.Count() && m.state.Key(c.Member) == ev.Signer {
		f.signed, f.known = ev.Signed, true
	}
}

// given takes spans from a peer for the files that lack them.
func (m *Machine) given(spans []batch.Span) {
	hash := batch.Hash(spans)
	for _, f := range m.files {
		if f.spans == nil && f.share == hash {
			f.spans = spans
		}
	}
}

// askFor asks one peer, another each time and the author first, for what a file lacks: after a restart, or for a member that came later.
func (m *Machine) askFor(f *file) {
	peers := m.holders(f)
	if len(peers) == 0 || !m.due(&f.asked.at, reAskMs) {
		return
	}
	to := peers[f.asked.times%uint32(len(peers))]
	f.asked.times++
	if f.spans == nil {
		m.do(AskSpans{Hash: f.share, To: to})
	}
	if !f.known {
		m.do(AskCommitments{Round: f.Round, Of: []uint32{f.Member}, To: to})
	}
}

// task is the file's share as something to compute; ok is false while something is missing.
func (f *file) task() (t Task, ok bool) {
	return Task{Share: f.Share, Step: f.step, Spans: f.spans, Commitment: f.signed.Commitment}, f.known && f.spans != nil
}

// concerns says whether this member is of the case in any part but that of a tie-breaker who found for the accused.
func (m *Machine) concerns(f *file) bool {
	if !m.member.known {
		return false
	}
	self := m.member.index
	if f.check || f.Member == self {
		return true
	}
	if !f.disputed {
		return false
	}
	if f.dispute.Accuser == self {
		return true
	}
	for _, t := range f.dispute.TieBreakers {
		if t.Member == self {
			return t.Vote != voteRight
		}
	}
	return false
}

// decideHold names the blobs that peers may still ask for, when they have changed: those of this member's last shares, whose checks are
// not drawn yet, the parameters that went with them, which verifiers need, and those of the cases it is in.
func (m *Machine) decideHold() {
	now := m.state.Round()
	var h Hold
	add := func(root wire.Hash) {
		for _, have := range h.Blobs {
			if have == root {
				return
			}
		}
		h.Blobs = append(h.Blobs, root)
	}
	if m.run.VerificationPercent > 0 {
		window := uint32(m.run.Overlap) + 2
		for number := now - min(now-1, window-1); number <= now && number > 0; number++ {
			if hash, ok := m.model.at(number); ok {
				add(hash)
			}
			if rs := m.find(number); rs != nil && m.member.known {
				for k := range rs.known[m.member.index] {
					add(rs.known[m.member.index][k].commitment.Prev)
				}
			}
		}
	}
	for _, f := range m.files {
		h.Shares = append(h.Shares, f.Share)
		if f.spans != nil {
			h.Given = append(h.Given, Given{f.share, f.spans})
		}
		if !m.concerns(f) {
			continue
		}
		h.Mine = append(h.Mine, f.Share)
		add(f.params)
		if f.known {
			add(f.signed.Commitment.Prev)
		}
	}
	if !m.holds || !h.equal(m.held) {
		m.held, m.holds = h, true
		m.do(h)
	}
	for _, f := range m.files {
		if task, ok := f.task(); ok && !f.kept && m.member.known && f.Member == m.member.index {
			f.kept = true
			m.do(Keep{Kept{Task: task, Signature: f.signed.Signature}})
		}
	}
}

// recall fills the files with what was kept of them before this member was started.
func (m *Machine) recall(cases []Kept) {
	for _, k := range cases {
		f := m.filed[k.Share]
		if f == nil || !f.about(&k.Commitment) || batch.Hash(k.Spans) != f.share {
			continue
		}
		f.spans, f.kept = k.Spans, true
		f.signed, f.known = coordinator.Signed{Commitment: k.Commitment, Signature: k.Signature}, true
	}
}

// holders are the peers likely to have what it takes to compute a share again: its author, whoever accuses it, and all others, who had
// at least the parameters.
func (m *Machine) holders(f *file) []key.Public {
	var out []key.Public
	first := func(i uint32) {
		if i < m.state.Count() {
			if k := m.state.Key(i); k != m.cfg.Self {
				out = append(out, k)
			}
		}
	}
	first(f.Member)
	if f.disputed {
		first(f.dispute.Accuser)
	}
	for _, k := range m.peers(f.Round) {
		if len(out) == 0 || k != out[0] && k != out[len(out)-1] {
			out = append(out, k)
		}
	}
	return out
}
