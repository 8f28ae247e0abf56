package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// How many milliseconds the machine waits before it asks for the same thing again. A refused or
// lost message is then retried against the state of that time. The delays affect nothing but
// traffic.
const (
	rejoinMs    = 2000
	reReadyMs   = 1500
	reReportMs  = 1500
	reHealMs    = 1000
	reFetchMs   = 700
	reFollowMs  = 300
	reAskMs     = 600
	republishMs = 2000
	reRevealMs  = 300
	reVerifyMs  = 2000
	resendMs    = 800
)

// membership is this participant's standing in the run.
type membership struct {
	index    coordinator.Member
	known    bool // the run has a slot for us at index
	askedAt  uint64
	readyAt  uint64
	readyFor coordinator.Epoch // epoch for which Ready was accepted
	was      bool              // it was present since this participant began
	replaced bool              // its slot was given to another since
}

func (m *Machine) decideMembership() {
	phase := m.state.Phase()
	if phase == coordinator.Finished || phase == coordinator.Uninitialized {
		return
	}
	gone := !m.member.known
	if m.member.known {
		status := m.state.Member(m.member.index).Status
		gone = !status.Present()
		m.member.was = m.member.was || !gone
		if status == coordinator.StatusReplaced && m.member.was && !m.member.replaced {
			m.member.replaced = true
			m.do(Note{"a newcomer took this member's slot, because its scores were the worst; joining again costs the registration fee: start again if you want to"})
		}
		if status == coordinator.StatusEjected {
			m.expel()
			return
		}
	}
	switch {
	case m.stopping && !gone:
		if m.due(&m.member.askedAt, rejoinMs) {
			m.do(Submit{coordinator.Withdraw{}})
		}
	case !m.stopping && gone && !m.member.replaced:
		if m.due(&m.member.askedAt, rejoinMs) {
			speed, _ := m.speed()
			m.do(Submit{coordinator.Join{Speed: speed}})
		}
	}
}

// expel ends this member's part in the run, once.
func (m *Machine) expel() {
	if m.expelled {
		return
	}
	m.expelled = true
	var found dispute.Conviction
	for _, c := range m.state.Convictions() {
		if c.Key == m.cfg.Self && !c.Offence.Lesser() {
			found = c
		}
	}
	m.do(Expelled{found})
}

// decideReady reports in warmup that this member holds the agreed parameters.
func (m *Machine) decideReady() {
	epoch := m.state.Epoch()
	if m.member.known && !m.stopping && m.atAgreed() && m.state.Member(m.member.index).Status == coordinator.StatusWaiting &&
		m.member.readyFor != epoch && m.due(&m.member.readyAt, reReadyMs) {
		m.do(Submit{coordinator.Ready{Epoch: epoch, Params: m.model.hash}})
	}
}

// submitted notes the fate of a message. A refusal needs no answer: what is still due is asked for
// again later.
func (m *Machine) submitted(ev Submitted) {
	if msg, ok := ev.Message.(coordinator.Ready); ok && ev.Err == nil {
		m.member.readyFor = msg.Epoch
	}
	if msg, ok := ev.Message.(coordinator.Witness); ok && ev.Err == nil {
		m.witness.done = max(m.witness.done, msg.Round)
	}
}

// saving measures how long a checkpoint has waited for the endings.
type saving struct {
	epoch coordinator.Epoch
	since uint64
}

// decideCheckpoint asks for the checkpoint of an epoch, once.
func (m *Machine) decideCheckpoint() {
	epoch := m.state.Epoch()
	agreed, round := m.state.Params()
	if m.saved == epoch || !m.model.known || m.model.hash != agreed {
		return
	}
	if m.saving.epoch != epoch {
		m.saving = saving{epoch, m.now}
	}
	endings, known := m.exchange.endings()
	if !known && !m.reached(m.saving.since+min(endingsPatience, m.run.CooldownMs/2)) {
		return
	}
	m.saved = epoch
	elected := m.member.known && m.state.Checkpointer(m.member.index)
	own, settle := m.exchange.prev(m.state.Step() + 1)
	m.do(Save{Epoch: epoch, Round: round, Params: agreed, Elected: elected,
		Known: known, Endings: endings, Own: own, Settle: settle})
}

func (m *Machine) checkpointSaved(ev Saved) {
	if !ev.OK || !m.hasState || ev.Epoch != m.state.Epoch() || m.state.Phase() != coordinator.Cooldown {
		return
	}
	if m.member.known && m.state.Checkpointer(m.member.index) {
		agreed, _ := m.state.Params()
		m.do(Submit{coordinator.Checkpoint{Epoch: ev.Epoch, Params: agreed, Manifest: ev.Manifest}})
	}
}
