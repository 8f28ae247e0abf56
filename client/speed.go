package client

import (
	"github.com/entrain-network/entrain/client/pace"
	"github.com/entrain-network/entrain/coordinator"
)

// Where the specification says so, the shares of members follow their speeds. A member states its
// speed when it joins, by a trial of the driver's, and again at the end of an epoch if its own
// steps were faster or slower by more than a quarter. The ledger takes one statement an epoch,
// which the shares of the next epoch follow. Since the statements of others decide as much about
// its share, a member keeps measuring. Steps that it could not finish in time count as well.

const reSpeedMs = 2000

// stepEnded notes that the step under way has ended, or that its time was over before.
func (m *Machine) stepEnded(finished bool) { m.pace.End(m.now, m.run.RoundTrainMs, finished) }

// speed returns this member's speed in tokens a second: by its own steps, where shares go by speed
// and there were enough of them, or else as the driver measured it; 0 if it is not known.
func (m *Machine) speed() (speed uint32, own bool) {
	if m.run.Sharing == coordinator.SpeedShares {
		speed, own = m.pace.Speed()
	}
	if !own {
		speed = m.cfg.Speed
	}
	return speed, own
}

// decideSpeed states a new speed at the end of an epoch, or before the next one begins.
func (m *Machine) decideSpeed() {
	if m.run.Sharing != coordinator.SpeedShares || !m.member.known || m.stopping {
		return
	}
	switch phase := m.state.Phase(); {
	case phase == coordinator.Finished, phase == coordinator.Uninitialized:
		return
	case m.state.Draining() == 0 && (phase == coordinator.RoundTrain || phase == coordinator.RoundWitness):
		return
	}
	member := m.state.Member(m.member.index)
	speed, own := m.speed()
	if !own || !member.Status.Present() || member.SpeedSet || !pace.Differ(speed, member.Speed) || !m.due(&m.speedAt, reSpeedMs) {
		return
	}
	m.do(Submit{coordinator.SetSpeed{Speed: speed}})
}
