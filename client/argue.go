package client

import (
	"github.com/entrain-network/entrain/client/docket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// The accused and the accuser of a dispute answer one question after the other, each of which
// follows from the dispute as the ledger shows it. The driver, which holds the trace, computes the
// answers. The machine asks for one when it is this member's turn, and sends it until the ledger
// shows that the dispute has moved on.

// Argue makes this member's next move in a dispute about a share. It ends in Argued.
type Argue struct {
	Task
	Dispute dispute.Dispute
	From    []key.Public // that may have what the share begins from
}

// Prepare gets ready to argue about this member's own accused share, because the moves come due
// soon and take a while to compute. No event ends it: Argue does the rest.
type Prepare struct {
	Task
	From []key.Public
}

// Argued ends an Argue action. Message is the move, nil if Failed says why there is none.
type Argued struct {
	Share
	At      Position
	Message coordinator.Message
	Failed  string
}

func (Argued) event()   {}
func (Argue) action()   {}
func (Prepare) action() {}

// argument is this member's progress with its moves in a dispute.
type argument struct {
	prepared uint32 // the dispute that was prepared for
	running  bool
	triedAt  uint64
	at       Position // message is for it
	message  coordinator.Message
	hash     wire.Hash // of message
	sending  bool
	sent     bool // the ledger has taken it
	sentAt   uint64
	sends    uint32
}

// turn reports whether the next move in the case's dispute is this member's.
func (m *Machine) turn(cs *openCase) bool {
	if !cs.disputed || cs.dispute.Unserved {
		return false
	}
	d := cs.dispute
	accused, accuser := d.Accused == m.member.index, d.Accuser == m.member.index
	switch d.Stage {
	case dispute.StageDefending:
		return accused
	case dispute.StageDescending:
		return accused && !d.Revealed[dispute.Accused] || accuser && !d.Revealed[dispute.Accuser]
	case dispute.StageEvidence:
		return accuser
	}
	return false
}

func (a *argument) decide(m *Machine, cs *openCase) {
	if d := cs.dispute; cs.disputed && d.Stage == dispute.StageTieBreaking && !d.Unserved && d.Accused == m.member.index && a.prepared != d.ID {
		if task, ok := cs.task(); ok {
			a.prepared = d.ID
			m.do(Prepare{Task: task, From: m.holders(cs)})
		} else {
			m.askFor(cs)
		}
	}
	if !m.turn(cs) || a.running {
		return
	}
	at := docket.PositionOf(cs.dispute)
	if a.at != at {
		*a = argument{at: at, prepared: a.prepared}
	}
	switch {
	case a.sent || a.sending:
	case a.message != nil:
		if m.due(&a.sentAt, resendMs<<min(a.sends, 3)) {
			a.sending = true
			a.sends++
			m.do(Submit{a.message})
		}
	default:
		task, ok := cs.task()
		if !ok {
			m.askFor(cs)
			return
		}
		if !m.due(&a.triedAt, reVerifyMs) {
			return
		}
		a.running = true
		m.do(Argue{Task: task, Dispute: *cs.dispute, From: m.holders(cs)})
	}
}

// argued takes a move from the driver.
func (m *Machine) argued(ev Argued) {
	cs := m.caseOf[ev.Share]
	if cs == nil || !cs.argue.running {
		return
	}
	a := &cs.argue
	a.running = false
	if ev.Failed != "" {
		m.do(Note{"no move in a dispute: " + ev.Failed})
	}
	if a.at == ev.At && ev.Message != nil {
		a.message, a.hash = ev.Message, coordinator.MessageHash(ev.Message)
	}
}

// moveSubmitted notes the fate of a move.
func (m *Machine) moveSubmitted(ev Submitted) {
	var id uint32
	switch msg := ev.Message.(type) {
	case coordinator.Defend:
		id = msg.Dispute
	case coordinator.Reveal:
		id = msg.Dispute
	case coordinator.Evidence:
		id = msg.Dispute
	case coordinator.Concede:
		id = msg.Dispute
	default:
		return
	}
	if cs := m.inDispute(id); cs != nil && cs.argue.sending && cs.argue.hash == coordinator.MessageHash(ev.Message) {
		cs.argue.sending, cs.argue.sent = false, ev.Err == nil
	}
}
