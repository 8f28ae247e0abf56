package client

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
)

// Speed is what a member's shares go by in a run that says so. It says how fast it is when it joins, by a trial of the driver's, and then at
// the end of an epoch if its own steps were faster or slower than that by more than a quarter: the ledger takes one statement an epoch, and
// the shares of the next one go by it. What others say matters as much for how much there is to do as what it says itself, so it measures
// and says again. Steps it could not finish in time count as well.

const (
	// stepsKept is of how many of its last steps a member takes the median, stepsLeast how many there must be.
	stepsKept, stepsLeast = 8, 3
	// roomParts of four are what of a round's time a step should take at most: the result has to be sent too. Who needs more says that it is
	// slower than it is, in that proportion.
	roomParts = 3
	// unfinished is how many times as long as it was given a step is taken to need that was not finished.
	unfinished = 2

	reSpeedMs = 2000
)

// pace is how fast this member's own steps were.
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

// speed is how fast this member is by its own steps, where shares go by it and they were not too few, or as the driver said; 0 if nobody
// knows.
func (m *Machine) speed() uint32 {
	if m.run.Sharing != coordinator.SpeedShares || len(m.pace.steps) < stepsLeast {
		return m.cfg.Speed
	}
	sorted := slices.Clone(m.pace.steps)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// differs says whether two speeds are more than a quarter apart.
func differs(a, b uint32) bool {
	return 4*uint64(a) > 5*uint64(b) || 5*uint64(a) < 4*uint64(b)
}

// decideSpeed states a new speed when the epoch is at its end, or the next one has not begun.
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
