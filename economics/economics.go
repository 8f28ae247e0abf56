// Package economics says when cheating does not pay: how likely a cheat is convicted, and how much stake it takes. It is
// arithmetic for people who choose a run's terms, in floats; nothing that replicas agree on depends on it.
//
// # The game
//
// A cheat hands in results that it did not compute, round after round, until it is convicted. Of each, chance decides
// whether it is checked (with probability Check) and whether that check convicts (Detect); so one round's cheating is found
// out with q = Check·Detect, independently of the others. The conviction comes Delay rounds later. Until then the cheat is
// paid, Reward a round, though not for the round that is found out, and saves what honest work would have cost it, Saved a
// round. Then it loses its stake, of which the part Loss is out of its reach: the rest may have gone to an accomplice.
//
// Before a result is found out, (1-q)/q others were not, on average; with it and the delay the cheat has cheated in
// N = 1/q + Delay rounds, and was paid in N - 1 of them. Against honest work in those rounds it has gained
//
//	N·Saved - Reward - Loss·stake
//
// which is nothing or less from stake = (N·Saved - Reward) / Loss on. This is the classical condition on an audited worker,
// p·(fine + reward) >= cost saved (Becker, Crime and Punishment, 1968; Belenkiy et al., Incentivizing Outsourced
// Computation, NetEcon 2008), with a delay and with a fine that may partly miss. Who could not have done the work, and would
// else have gained nothing, gains
//
//	(N - 1)·Reward - Loss·stake
//
// and needs ((N - 1)·Reward) / Loss to be deterred. A member may be either, so the least stake is the greater of the two.
// Who cheats in a part f of its rounds only divides what it saves by as much as it multiplies the rounds until it is
// convicted, so the bound is the same, for any f.
package economics

import (
	"errors"
	"fmt"
	"math"
)

// Game is what a cheat plays.
type Game struct {
	Check  float64 // probability that a result is checked, above 0 to 1
	Detect float64 // probability that the check of a false result convicts, above 0 to 1
	Reward float64 // for a round's result, in tokens
	Saved  float64 // by not computing it, in tokens
	Delay  float64 // rounds between a false result and the conviction
	Loss   float64 // part of the stake that a convicted cheat loses whatever it does, above 0 to 1
}

// Fault says all that is wrong with the numbers.
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

// Caught is the probability that one false result leads to a conviction.
func (g Game) Caught() float64 { return g.Check * g.Detect }

// Rounds is how many rounds a cheat is expected to cheat in, until it is convicted.
func (g Game) Rounds() float64 { return 1/g.Caught() + g.Delay }

// Gain is what a cheat with so much stake, who could have done the work, is expected to gain against doing it.
func (g Game) Gain(stake float64) float64 { return g.Rounds()*g.Saved - g.Reward - g.Loss*stake }

// IdleGain is what a cheat with so much stake, who could not have done the work, is expected to gain.
func (g Game) IdleGain(stake float64) float64 { return (g.Rounds()-1)*g.Reward - g.Loss*stake }

// Stake is the least at which neither gain is above 0.
func (g Game) Stake() float64 { return max(0, g.Gain(0), g.IdleGain(0)) / g.Loss }

// Detected is the probability that a cheat was found out within so many rounds of cheating.
func (g Game) Detected(rounds float64) float64 {
	return -math.Expm1(rounds * math.Log1p(-g.Caught()))
}

// RoundsUntil is the least number of rounds of cheating within which it is found out with at least the probability p, below 1.
func (g Game) RoundsUntil(p float64) float64 {
	n := max(1, math.Ceil(math.Log1p(-p)/math.Log1p(-g.Caught())))
	for n > 1 && g.Detected(n-1) >= p { // what rounding may have added
		n--
	}
	for g.Detected(n) < p {
		n++
	}
	return n
}
