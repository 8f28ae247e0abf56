package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
)

// fraud is the proof that a member signed two commitments for one round.
type fraud struct {
	proof   coordinator.Equivocation
	member  coordinator.Member
	key     key.Public
	firstAt uint64 // when to send it: members take turns, so that not all send it
	sentAt  uint64
	sends   uint32
}

const (
	// fraudStepMs is the time that a member waits for each member that may send the proof before
	// it.
	fraudStepMs = 700
	// fraudSends bounds how often a proof that the ledger refuses is sent.
	fraudSends = 5
	// fraudsMax bounds the proofs waiting; one convicts its author.
	fraudsMax = 64
)

// prove keeps two commitments as the proof of a fraud, unless there is a proof against their
// author.
func (m *Machine) prove(a, b dispute.Signed, k key.Public) {
	if k == m.cfg.Self || len(m.frauds) >= fraudsMax {
		return
	}
	member := a.Commitment.Member
	for i := range m.frauds {
		if m.frauds[i].key == k {
			return
		}
	}
	n := max(m.state.Count(), 1)
	turn := (m.member.index + n - member%n) % n
	m.frauds = append(m.frauds, fraud{
		proof: coordinator.Equivocation{A: a, B: b}, member: member, key: k, firstAt: m.now + fraudStepMs*uint64(min(turn, 16)-min(turn, 1)),
	})
}

// decideFrauds sends the proofs until the ledger shows the conviction.
func (m *Machine) decideFrauds() {
	kept := m.frauds[:0]
	for i := range m.frauds {
		f := m.frauds[i]
		if f.sends >= fraudSends || f.member >= m.state.Count() || m.state.Key(f.member) != f.key || m.state.Status(f.member) == coordinator.StatusEjected {
			continue
		}
		if m.reached(f.firstAt) && m.due(&f.sentAt, resendMs<<f.sends) {
			f.sends++
			m.do(Submit{f.proof})
		}
		kept = append(kept, f)
	}
	m.frauds = kept
}
