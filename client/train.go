package client

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// work is this member's own training.
type work struct {
	running     coordinator.Round // round being trained, 0 if none
	done        coordinator.Round // last round trained or given up
	own         dispute.Commitment
	before      dispute.Commitment // this member's before that
	step        coordinator.Step   // of the round of this member's commitment, 0 if not known
	publishedAt uint64
	published   uint32 // how often, after the first time
	handed      uint32 // how often this member's commitment was given to those who attest it
	handedAt    uint64
	ahead       bool // the user was told that the chain went back
}

// resume keeps this member from training a round again for which it signed a commitment before it
// was started.
func (m *Machine) resume(ev Loaded) {
	for i := range ev.Committed {
		c := ev.Committed[i].Commitment
		if !m.hasState || c.Run != m.state.ID() {
			continue
		}
		m.work.before, m.work.own, m.work.step, m.work.done = m.work.own, c, 0, max(m.work.done, c.Round)
		own := CommitmentReceived{Signed: &ev.Committed[i], Signer: m.cfg.Self, ID: c.ID()}
		if r, ok := m.state.At(c.Round); ok {
			m.work.step = r.Step()
			m.received(own)
		}
		m.claim(own) // the state may have dropped the round since
	}
	if m.hasState && ev.InDoubt {
		m.work.done = max(m.work.done, m.state.Round())
	}
}

// recognize takes a commitment of this member that it does not know it made: one from before a loss
// of its records, or by another process with its key. It counts as this member's, because a second
// one for its round is proof of a cheat.
func (m *Machine) recognize(rs *results, s *dispute.Signed, id wire.Hash) {
	c := s.Commitment
	if c.Round < m.work.own.Round || id == m.work.own.ID() {
		return
	}
	if m.work.running == c.Round {
		m.stepEnded(false)
		m.cancelTraining()
	}
	if c.Round == m.work.own.Round {
		m.replace(rs, c.Member) // this member's is not sent
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
	m.handOver(r)
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
			m.do(Republish{Round: now, To: m.readers(now)})
		}
		return
	}
	if own := m.work.own.Round; own > now && !m.work.ahead {
		m.work.ahead = true
		m.do(Note{fmt.Sprintf("the chain is at round %d, but this key signed for round %d: an earlier copy of the chain was restored; this member trains again from round %d, since a second result for a round costs its stake; ask the owner to host a new run from the last checkpoint instead (entrain host --from)", now, own, own+1)})
	}
	if _, late := m.exchange.late(now); late || m.work.running != 0 || m.work.done >= now || m.stopping || !r.Trains() {
		return
	}
	if m.model.applying || m.model.healing || !m.model.known || m.model.round != now {
		return
	}
	spans := m.share(r, m.member.index)
	if len(spans) == 0 {
		return
	}
	m.work.running = now
	m.pace.Begin(m.now, uint64(batch.Total(spans))*uint64(m.run.SequenceTokens))
	prev, settle := m.exchange.prev(r.Step())
	m.do(Train{Epoch: r.Epoch(), Round: now, Step: r.Step(), Spans: spans, Params: m.model.hash, Prev: prev, Settle: settle})
}

func (m *Machine) cancelTraining() {
	m.do(CancelTraining{Round: m.work.running})
	m.work.done = max(m.work.done, m.work.running)
	m.work.running, m.wakeAt = 0, m.now // at once: what waited for its end comes first
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
		Share:   batch.Hash(m.share(r, m.member.index)),
		Payload: ev.Payload, PayloadBytes: ev.PayloadBytes,
		Prev: ev.Prev, State: ev.State, Params: params, Loss: ev.Loss,
		Work: dispute.WorkHash(m.state.ID(), ev.Round, m.member.index, ev.Gradient),
	}
	m.work.step = r.Step()
	m.work.publishedAt, m.work.published, m.work.handed = max(m.now, 1), 0, 0
	m.do(Commit{m.work.own, m.readers(ev.Round)})
	m.keepOwn()
}

// readers returns the members that this member's commitment to a round is sent to: where members
// follow, those elected in the round and those who attest it. Others ask these. nil means all
// members: a few, drawn as witnesses, let all hear their losses.
func (m *Machine) readers(round coordinator.Round) []key.Public {
	rs := m.results(round)
	r, ok := m.state.At(round)
	if !m.follows(rs) || ok && slices.Contains(r.Witnesses()[:min(heardMax, rs.witnesses)], m.member.index) {
		return nil
	}
	return m.elected(rs)
}

// heardMax is the number of members that let all hear their losses where members follow.
const heardMax = 8

// elected returns the other members that know the commitments to a round best.
func (m *Machine) elected(rs *results) []key.Public {
	list := []key.Public{}
	add := func(r coordinator.RoundState) {
		for _, i := range r.Witnesses() {
			if k := m.state.Key(i); k != m.cfg.Self {
				list = append(list, k)
			}
		}
	}
	if r, ok := m.attestedIn(rs.number); ok {
		add(r)
	}
	if r, ok := m.state.At(rs.number); ok && m.run.Overlap > 0 {
		add(r)
	}
	return list
}

// handOver sends this member's commitment of the round before to those who attest it, who were
// elected since it was made.
func (m *Machine) handOver(r coordinator.RoundState) {
	own, a := &m.work.own, r.Attests()
	if a == 0 || a == r.Number() || own.Round != a || m.work.handed > 0 && !m.reached(m.work.handedAt+republishMs<<min(m.work.handed-1, 4)) {
		return
	}
	if rs := m.results(a); m.follows(rs) {
		m.work.handed, m.work.handedAt = m.work.handed+1, m.now
		m.reached(m.now + republishMs<<min(m.work.handed-1, 4))
		m.do(Republish{Round: a, To: m.elected(rs)})
	}
}
