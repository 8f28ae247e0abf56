// Package economics computes when cheating does not pay: how likely a cheat is convicted, and how
// much stake that takes. It is arithmetic in floats for people who choose a run's terms; nothing
// that replicas agree on depends on it.
//
// # The game
//
// A cheat hands in results that it did not compute, round after round, until it is convicted.
// Chance decides whether a result is checked (with probability Check) and whether that check
// convicts (Detect). So the cheating of one round is found out with q = Check·Detect,
// independently of other rounds. The conviction comes Delay rounds later. Until then the cheat
// earns Reward a round, except for the round that is found out, and saves the cost of honest
// work, Saved a round. Then it loses the part Loss of its stake for certain; the rest may have
// gone to an accomplice.
//
// On average, (1-q)/q results are not found out before one is. With that one and the delay, the
// cheat has cheated in N = 1/q + Delay rounds and was paid in N - 1 of them. Compared with honest
// work in those rounds it has gained
//
//	N·Saved - Reward - Loss·stake
//
// which is nothing or less if stake >= (N·Saved - Reward) / Loss. This is the classical condition
// on an audited worker, p·(fine + reward) >= cost saved (Becker, Crime and Punishment, 1968;
// Belenkiy et al., Incentivizing Outsourced Computation, NetEcon 2008), with a delay and with a
// fine that may partly miss. A cheat that could not have done the work, and would otherwise have
// gained nothing, gains
//
//	(N - 1)·Reward - Loss·stake
//
// and is deterred by ((N - 1)·Reward) / Loss. A member may be either kind, so the least stake is
// the greater of the two. A cheat that cheats in a part f of its rounds divides its savings by as
// much as it multiplies the rounds until its conviction, so the bound is the same for any f.
package economics

import (
	"errors"
	"fmt"
	"math"
)

// Game is the game that a cheat plays.
type Game struct {
	Check  float64 // probability that a result is checked, above 0 to 1
	Detect float64 // probability that the check of a false result convicts, above 0 to 1
	Reward float64 // in tokens, for a round's result
	Saved  float64 // in tokens, by not computing a round's result
	Delay  float64 // rounds between a false result and the conviction
	Loss   float64 // part of the stake that a convicted cheat loses whatever it does, above 0 to 1
}

// Fault returns an error that names every number out of its range.
func (g Game) Fault() error {
	var faults []error
	for _, p := range []struct {
		name  string
		value float64
	}{{"probability of a check", g.Check}, {"probability of detection", g.Detect}, {"part of the stake that is lost", g.Loss}} {
		if !(p.value > 0 && p.value <= 1) {
			faults = append(faults, fmt.Errorf("%s: %v, want above 0 to 1", p.name, p.value))
		}
	}
	for _, p := range []struct {
		name  string
		value float64
	}{{"reward", g.Reward}, {"cost saved", g.Saved}, {"delay", g.Delay}} {
		if !(p.value >= 0) || math.IsInf(p.value, 0) {
			faults = append(faults, fmt.Errorf("%s: %v, want 0 or more", p.name, p.value))
		}
	}
	return errors.Join(faults...)
}

// Caught returns the probability that one false result leads to a conviction.
func (g Game) Caught() float64 { return g.Check * g.Detect }

// Rounds returns the expected number of rounds in which a cheat cheats until it is convicted.
func (g Game) Rounds() float64 { return 1/g.Caught() + g.Delay }

// Gain returns the expected gain of cheating over honest work, for a cheat that could have done
// the work.
func (g Game) Gain(stake float64) float64 { return g.Rounds()*g.Saved - g.Reward - g.Loss*stake }

// IdleGain returns the expected gain of a cheat that could not have done the work.
func (g Game) IdleGain(stake float64) float64 { return (g.Rounds()-1)*g.Reward - g.Loss*stake }

// Stake returns the least stake at which neither gain is above 0.
func (g Game) Stake() float64 { return max(0, g.Gain(0), g.IdleGain(0)) / g.Loss }

// Detected returns the probability that a number of rounds of cheating suffice to find a cheat
// out.
func (g Game) Detected(rounds float64) float64 {
	return -math.Expm1(rounds * math.Log1p(-g.Caught()))
}

// RoundsUntil returns the least number of rounds of cheating that suffice with at least the
// probability p, which is below 1.
func (g Game) RoundsUntil(p float64) float64 {
	n := max(1, math.Ceil(math.Log1p(-p)/math.Log1p(-g.Caught())))
	for n > 1 && g.Detected(n-1) >= p { // rounding may have added one
		n--
	}
	for g.Detected(n) < p {
		n++
	}
	return n
}
