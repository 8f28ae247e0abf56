// Package pace measures how fast the steps of a member are.
package pace

import "slices"

const (
	// kept is the number of latest steps whose median counts, and least the number required.
	kept, least = 8, 3
	// roomParts is the most quarters of a round's time that a step should take, because the result
	// has to be sent too. A member that needs more has a proportionally lower speed.
	roomParts = 3
	// unfinished is the factor by which an unfinished step is assumed to exceed its time so far.
	unfinished = 2
)

// Pace is the speed of a member's own steps.
type Pace struct {
	started uint64   // when the step under way began
	tokens  uint64   // of it
	steps   []uint32 // tokens a second that the last steps are good for, oldest first
}

// Begin notes that a step of some tokens begins.
func (p *Pace) Begin(nowMs, tokens uint64) { p.started, p.tokens = nowMs, tokens }

// End notes that the step under way has ended, or that its time was over before. A round has
// roundMs for it.
func (p *Pace) End(nowMs, roundMs uint64, finished bool) {
	if p.tokens == 0 {
		return
	}
	ms := max(nowMs-p.started, 1)
	if !finished {
		ms *= unfinished
	}
	speed := p.tokens * 1000 / ms
	if room := roundMs * roomParts / 4; ms > room {
		speed = speed * room / ms
	}
	p.tokens = 0
	p.steps = append(p.steps, uint32(min(max(speed, 1), 1<<32-1)))
	if len(p.steps) > kept {
		p.steps = slices.Delete(p.steps, 0, 1)
	}
}

// Speed returns the tokens a second; known is false before there were enough steps.
func (p *Pace) Speed() (speed uint32, known bool) {
	if len(p.steps) < least {
		return 0, false
	}
	sorted := slices.Clone(p.steps)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2], true
}

// Differ reports whether two speeds are more than a quarter apart.
func Differ(a, b uint32) bool {
	return 4*uint64(a) > 5*uint64(b) || 5*uint64(a) < 4*uint64(b)
}
