package client

import (
	"cmp"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A member that is drawn as a verifier, or as a tie-breaker of a dispute, computes the share again
// and reports the outcome. Its own training comes first while the deadline is not near. It sends
// the verdict until the ledger takes it, and not at all if the ledger shows it already.

// Verdict is the outcome of computing a share again.
type Verdict uint8

// The verdicts.
const (
	Unable    Verdict = iota // nothing: the computation failed or was cancelled
	Same                     // what was committed to
	Different                // something else, twice
	Missing                  // no member served what it begins from
)

// verification is this member's progress with computing a share again.
type verification struct {
	running bool
	triedAt uint64
	tries   uint32
	verdict Verdict // Unable: none yet
	result  Verified

	sending bool
	sentAt  uint64
	sends   uint32
	sent    bool   // the ledger has taken the verdict on the check
	in      uint32 // the dispute for which this member was asked to vote last
	voted   uint32 // the dispute in which the ledger has taken the vote
}

// Verify computes a share again, as Train does, from what its commitment names. The driver fetches
// what it does not hold until UntilMs of the machine's time, and then gives the verdict Missing.
// Urgent puts the computation before other work. Trace asks for the trace's root even if the result
// is the same. It ends in Verified.
type Verify struct {
	Kept
	From    []key.Public
	UntilMs uint64
	Urgent  bool
	Trace   bool
}

// CancelVerify stops the Verify action of a share whose check or dispute is over.
type CancelVerify struct{ Share }

// Verified ends a Verify action. Different means that two computations agreed with each other and
// not with the commitment; Trace is then the root of the driver's own trace of the step, from which
// it can argue. Gradient is set for Same, and so is Trace if it was asked for.
type Verified struct {
	Share
	Verdict         Verdict
	Gradient, Trace wire.Hash
	Text            string // why, if Unable
}

func (Verified) event()      {}
func (Verify) action()       {}
func (CancelVerify) action() {}

const (
	voteRight    = dispute.VoteRight
	voteWrong    = dispute.VoteWrong
	voteUnserved = dispute.VoteUnserved
)

// verifyTries bounds how often a computation that fails is started.
const verifyTries = 3

// decideCases does this member's part in the open checks and disputes.
func (m *Machine) decideCases() {
	if !m.member.known {
		return
	}
	for _, cs := range m.duties {
		cs.verify.decide(m, cs)
		cs.argue.decide(m, cs)
	}
}

// vote reports whether this member is a tie-breaker of the case's dispute that has not voted.
func (m *Machine) vote(cs *openCase) bool {
	if !cs.disputed || cs.dispute.Stage != dispute.StageTieBreaking || cs.verify.voted == cs.dispute.ID {
		return false
	}
	for _, t := range cs.dispute.TieBreakers {
		if t.Member == m.member.index {
			return t.Vote == 0
		}
	}
	return false
}

func (v *verification) decide(m *Machine, cs *openCase) {
	voting := m.vote(cs)
	if !voting && !(cs.check && !v.sent) {
		return
	}
	if voting && v.in != cs.dispute.ID {
		v.in, v.tries, v.sends, cs.asked.untilMs = cs.dispute.ID, 0, 0, 0
		if v.result.Trace.IsZero() && !v.running {
			v.verdict = Unable // too little to vote with; others may serve now what was missing
		}
	}
	switch {
	case v.verdict != Unable:
		v.say(m, cs, voting)
	case !v.running && v.tries < verifyTries && !cs.late(m):
		v.begin(m, cs)
	}
}

// late reports whether the deadline has passed.
func (cs *openCase) late(m *Machine) bool { return m.ledgerMs() >= cs.deadlineMs }

func (v *verification) begin(m *Machine, cs *openCase) {
	left, half := cs.deadlineMs-m.ledgerMs(), m.run.VerifyMs/2
	if left >= half {
		m.reached(m.now + max(1, left-half)) // then it is urgent
	}
	task, ok := cs.task()
	if !ok {
		m.askFor(cs)
		cs.asked.untilMs = cmp.Or(cs.asked.untilMs, m.now+left/2) // it may have been away
		if m.reached(cs.asked.untilMs) && !cs.known {
			// The author does not even serve its commitment.
			v.verdict, v.result, m.wakeAt = Missing, Verified{Share: cs.Share, Verdict: Missing}, m.now
		}
		return
	}
	urgent := left < half
	if !urgent && m.training() || !m.due(&v.triedAt, reVerifyMs) {
		return
	}
	v.running = true
	v.tries++
	trace := cs.disputed && !cs.dispute.Unserved
	m.do(Verify{Kept: Kept{task, cs.signed.Signature}, From: m.holders(cs), UntilMs: m.now + left/2, Urgent: urgent, Trace: trace})
}

// training reports whether this member's share of the round is still to be computed.
func (m *Machine) training() bool {
	switch m.state.Phase() {
	case coordinator.RoundTrain, coordinator.RoundWitness:
	default:
		return false
	}
	now := m.state.Round()
	r, ok := m.state.At(now)
	return ok && r.Trains() && r.Expected(m.member.index) && m.work.done < now && !m.stopping
}

// say sends the verdict or the vote.
func (v *verification) say(m *Machine, cs *openCase, voting bool) {
	if v.sending || cs.late(m) || !m.due(&v.sentAt, resendMs<<min(v.sends, 4)) {
		return
	}
	msg := v.message(m.cfg.Self, cs, voting)
	if msg == nil {
		return
	}
	v.sending = true
	v.sends++
	m.do(Submit{msg})
}

func (v *verification) message(self key.Public, cs *openCase, voting bool) coordinator.Message {
	r := v.result
	trace := dispute.Blind(self, r.Trace)
	if voting {
		t := coordinator.TieBreak{Dispute: cs.dispute.ID, Trace: trace}
		switch v.verdict {
		case Same:
			t.Vote = voteRight
		case Different:
			t.Vote = voteWrong
		case Missing:
			t.Vote = voteUnserved
		}
		return t
	}
	switch v.verdict {
	case Same:
		return coordinator.Pass{Round: cs.Round, Member: cs.Member, Commitment: *cs.signed, Gradient: r.Gradient}
	case Different:
		return coordinator.Accuse{Round: cs.Round, Member: cs.Member, Commitment: *cs.signed, Trace: trace}
	case Missing:
		return coordinator.Unserved{Round: cs.Round, Member: cs.Member}
	}
	return nil
}

// verified takes the outcome of computing a share again.
func (m *Machine) verified(ev Verified) {
	cs := m.caseOf[ev.Share]
	if cs == nil || !cs.verify.running {
		return
	}
	v := &cs.verify
	v.running = false
	if ev.Verdict == Unable {
		m.do(Note{"a share could not be computed again: " + ev.Text})
		return
	}
	v.verdict, v.result = ev.Verdict, ev
	if cs.disputed && !cs.dispute.Unserved && ev.Verdict == Same && ev.Trace.IsZero() {
		v.verdict = Unable // it was started for a check that has become a dispute since
	}
}

// verdictSubmitted notes the fate of a verdict or a vote.
func (m *Machine) verdictSubmitted(ev Submitted) {
	var cs *openCase
	switch msg := ev.Message.(type) {
	case coordinator.Pass:
		cs = m.caseOf[Share{Round: msg.Round, Member: msg.Member}]
	case coordinator.Accuse:
		cs = m.caseOf[Share{Round: msg.Round, Member: msg.Member}]
	case coordinator.Unserved:
		cs = m.caseOf[Share{Round: msg.Round, Member: msg.Member}]
	case coordinator.TieBreak:
		if cs = m.inDispute(msg.Dispute); cs != nil && ev.Err == nil {
			cs.verify.voted = msg.Dispute
		}
		if cs != nil {
			cs.verify.sending = false
		}
		return
	}
	if cs != nil {
		cs.verify.sending = false
		cs.verify.sent = cs.verify.sent || ev.Err == nil
		m.duties = slices.DeleteFunc(m.duties, func(o *openCase) bool { return o == cs && o.verify.sent && !o.disputed })
	}
}

// inDispute returns the case of a dispute.
func (m *Machine) inDispute(id uint32) *openCase {
	for _, cs := range m.cases {
		if cs.disputed && cs.dispute.ID == id {
			return cs
		}
	}
	return nil
}

// answers reports whether checks of the last own results are still to be drawn, or this member is
// in a check or dispute.
func (m *Machine) answers() bool {
	if m.run.VerificationPercent == 0 {
		return false
	}
	for _, cs := range m.cases {
		if m.concerns(cs) {
			return true
		}
	}
	switch m.state.Phase() {
	case coordinator.RoundTrain, coordinator.RoundWitness:
		return m.work.own.Run == m.state.ID() && m.state.Round() <= m.work.own.Round+1
	}
	return false
}
