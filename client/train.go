package client

import (
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// work is this member's own training.
type work struct {
	running     coordinator.Round // round being trained, 0 if none
	done        coordinator.Round // last round trained or given up
	own         dispute.Commitment
	before      dispute.Commitment // the own one before that
	step        coordinator.Step   // of the round of the own commitment, 0 if not known
	publishedAt uint64
	published   uint32 // how often, after the first time
}

// resume keeps this member from training a round again for which it signed a commitment before it
// was started.
func (m *Machine) resume(ev Loaded) {
	if c := ev.Committed.Commitment; m.hasState && c.Run == m.state.ID() {
		m.work.own = c
		m.work.done = max(m.work.done, c.Round)
		if r, ok := m.state.At(c.Round); ok {
			m.work.step = r.Step()
			m.received(CommitmentReceived{Signed: ev.Committed, Signer: m.cfg.Self, ID: c.ID()})
		}
	}
	if m.hasState && ev.InDoubt {
		m.work.done = max(m.work.done, m.state.Round())
	}
}

// recognize takes a commitment of this member that it does not know it made: one from before a loss
// of its records, or by another process with its key. It counts as the own one, because a second
// one for its round is proof of a cheat.
func (m *Machine) recognize(rs *results, s dispute.Signed, id wire.Hash) {
	c := s.Commitment
	if c.Round < m.work.own.Round || id == m.work.own.ID() {
		return
	}
	if m.work.running == c.Round {
		m.stepEnded(false)
		m.cancelTraining()
	}
	if c.Round == m.work.own.Round {
		rs.replace(c.Member) // the own one is not sent
	} else {
		m.work.before = m.work.own
	}
	m.work.own, m.work.step = c, 0
	if r, ok := m.state.At(c.Round); ok {
		m.work.step = r.Step()
	}
	m.work.done = max(m.work.done, c.Round)
	m.do(Note{fmt.Sprintf("this key has signed a result for round %d which is not in the state directory; that one counts", c.Round)})
}

// decideTraining starts this member's share of the round once the parameters are there, and
// publishes its commitment again while the round lasts.
func (m *Machine) decideTraining(r coordinator.RoundState) {
	now := r.Number()
	if note, late := m.exchange.late(m.work.running); m.work.running != 0 && late {
		if note != "" {
			m.do(Note{note})
		}
		m.stepEnded(false)
		m.cancelTraining()
		return
	}
	if m.work.own.Round == now && m.work.done == now {
		if m.exchange.wanted(&m.work.own) && m.due(&m.work.publishedAt, republishMs) {
			m.work.published++
			m.do(Republish{Round: now})
		}
		return
	}
	if _, late := m.exchange.late(now); late || m.work.running != 0 || m.work.done >= now || m.stopping || !r.Trains() {
		return
	}
	if m.model.applying || m.model.healing || !m.model.known || m.model.round != now {
		return
	}
	spans := r.Share(m.member.index)
	if len(spans) == 0 {
		return
	}
	m.work.running = now
	m.stepStarted(spans)
	prev, settle := m.exchange.prev(r.Step())
	m.do(Train{Epoch: r.Epoch(), Round: now, Step: r.Step(), Spans: spans, Params: m.model.hash, Prev: prev, Settle: settle})
}

func (m *Machine) cancelTraining() {
	m.do(CancelTraining{Round: m.work.running})
	m.work.done = max(m.work.done, m.work.running)
	m.work.running = 0
}

func (m *Machine) trained(ev Trained) {
	if ev.Round != m.work.running {
		return // given up meanwhile
	}
	m.work.running, m.work.done = 0, ev.Round
	if ev.Failed != "" {
		m.do(Note{"round skipped: " + ev.Failed})
		return
	}
	m.stepEnded(true)
	r, ok := m.state.At(ev.Round)
	if !ok || !m.member.known {
		return
	}
	params, ok := m.model.at(ev.Round)
	if !ok {
		return // healed to another round while training
	}
	m.work.before = m.work.own
	m.work.own = dispute.Commitment{
		Run: m.state.ID(), Epoch: r.Epoch(), Round: ev.Round, Member: m.member.index,
		Share:   batch.Hash(r.Share(m.member.index)),
		Payload: ev.Payload, PayloadBytes: ev.PayloadBytes,
		Prev: ev.Prev, State: ev.State, Params: params, Loss: ev.Loss,
		Work: dispute.WorkHash(m.state.ID(), ev.Round, m.member.index, ev.Gradient),
	}
	m.work.step = r.Step()
	m.work.publishedAt, m.work.published = max(m.now, 1), 0
	m.do(Commit{m.work.own})
	m.keepOwn()
}
