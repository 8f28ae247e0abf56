package client

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
)

// Where the specification says so, the shares of members follow their speeds. A member states its
// speed when it joins, by a trial of the driver's, and again at the end of an epoch if its own
// steps were faster or slower by more than a quarter. The ledger takes one statement an epoch,
// which the shares of the next epoch follow. Since the statements of others decide as much about
// its share, a member keeps measuring. Steps that it could not finish in time count as well.

const (
	// stepsKept is the number of latest steps whose median counts, and stepsLeast the number
	// required.
	stepsKept, stepsLeast = 8, 3
	// roomParts is the most quarters of a round's time that a step should take, because the result
	// has to be sent too. A member that needs more states a proportionally lower speed.
	roomParts = 3
	// unfinished is the factor by which an unfinished step is assumed to exceed its time so far.
	unfinished = 2

	reSpeedMs = 2000
)

// pace is the speed of this member's own steps.
type pace struct {
	started uint64   // when the step under way was asked for
	tokens  uint64   // of it
	steps   []uint32 // tokens a second that the last steps are good for, oldest first
	at      uint64
}

// stepStarted notes that a step was asked for.
func (m *Machine) stepStarted(spans []batch.Span) {
	m.pace.started, m.pace.tokens = m.now, uint64(batch.Total(spans))*uint64(m.run.SequenceTokens)
}

// stepEnded notes that the step under way has ended, or that its time was over before.
func (m *Machine) stepEnded(finished bool) {
	p := &m.pace
	if p.tokens == 0 {
		return
	}
	ms := max(m.now-p.started, 1)
	if !finished {
		ms *= unfinished
	}
	speed := p.tokens * 1000 / ms
	if room := m.run.RoundTrainMs * roomParts / 4; ms > room {
		speed = speed * room / ms
	}
	p.tokens = 0
	p.steps = append(p.steps, uint32(min(max(speed, 1), 1<<32-1)))
	if len(p.steps) > stepsKept {
		p.steps = slices.Delete(p.steps, 0, 1)
	}
}

// speed returns this member's speed in tokens a second: by its own steps, where shares go by speed
// and there were enough of them, or else as the driver measured it; 0 if it is not known.
func (m *Machine) speed() uint32 {
	if m.run.Sharing != coordinator.SpeedShares || len(m.pace.steps) < stepsLeast {
		return m.cfg.Speed
	}
	sorted := slices.Clone(m.pace.steps)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// differs reports whether two speeds are more than a quarter apart.
func differs(a, b uint32) bool {
	return 4*uint64(a) > 5*uint64(b) || 5*uint64(a) < 4*uint64(b)
}

// decideSpeed states a new speed at the end of an epoch, or before the next one begins.
func (m *Machine) decideSpeed() {
	p := &m.pace
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
	speed := m.speed()
	if len(p.steps) < stepsLeast || !member.Status.Present() || member.SpeedSet || !differs(speed, member.Speed) || !m.due(&p.at, reSpeedMs) {
		return
	}
	m.do(Submit{coordinator.SetSpeed{Speed: speed}})
}
