// Package optim provides the learning rate schedule of a run, and AdamW and Muon, the optimizers of
// members that train on their own.
//
// A Schedule is part of a run's configuration. Every replica computes a step's rate when it applies
// the step's updates, so the rate must have the same bits on every machine. It is computed in
// binary64 from whole numbers of steps, each operation rounded separately, with the cosine of
// package exact, and rounded to binary32 at the end.
//
//	constant   warmup, then Base forever
//	linear     warmup, then a straight line from Base to Final at step Steps, then Final
//	cosine     warmup, then half a cosine wave from Base to Final at step Steps, then Final
//	wsd        warmup, Base for StableSteps, then as cosine
//
// The warmup is a straight line from 0 at step 0 to Base at step WarmupSteps. No schedule rises
// after its warmup.
//
//	Base  ________                 ________
//	     /        \               /        \
//	    /          `-.           /          `-.
//	   /              `--       /              `--
//	   warmup   cosine  Final   warmup stable cosine Final
//
// The shapes are those of Nous Research's Psyche, except that its cosine rises again after the last
// step.
package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
)

// A Kind is the shape of a Schedule after its warmup.
type Kind uint8

// The kinds of schedules. The package comment draws them.
const (
	Constant Kind = iota
	Linear
	Cosine
	WSD
)

// lrMax bounds the rates of a schedule. It is far above any useful rate, and catches a misplaced
// decimal point.
const lrMax = 1000

// A Schedule gives the learning rate of each step. The unit of rates depends on the codec that
// applies them; for a codec that steps by the sign, the rate is the distance every weight moves.
// Settings that do not apply to the kind are ignored.
type Schedule struct {
	Kind        Kind
	Base        float64 // rate after the warmup
	WarmupSteps uint32  // steps before Base is reached
	Steps       uint32  // all but constant: step at which Final is reached, including the warmup
	Final       float64 // all but constant: the final rate
	StableSteps uint32  // wsd: steps at Base after the warmup

	Before uint32 // steps done before step 0 of LR, in a run that resumes from a checkpoint
}

// Check returns all faults of s, joined, or nil. It rejects rates outside [0, LRMax], rates that
// rise after the warmup, and a schedule that ends before its warmup.
func (s Schedule) Check() error {
	var faults []error
	rate := func(name string, v, max float64, of string) {
		if !(v >= 0 && v <= max) { // written so that NaN fails
			faults = append(faults, fmt.Errorf("%s rate is %v, must be in [0, %v]%s", name, v, max, of))
		}
	}
	rate("base", s.Base, lrMax, "")
	switch s.Kind {
	case Constant:
	case Linear, Cosine:
		rate("final", s.Final, s.Base, ", at most the base rate")
		if s.Steps < s.WarmupSteps {
			faults = append(faults, fmt.Errorf("the schedule ends at step %d, before its warmup of %d steps", s.Steps, s.WarmupSteps))
		}
	case WSD:
		rate("final", s.Final, s.Base, ", at most the base rate")
	default:
		faults = append(faults, fmt.Errorf("unknown schedule kind %d", s.Kind))
	}
	return errors.Join(faults...)
}

// LR returns the learning rate of a step, counted from 0. s must pass Check.
func (s Schedule) LR(step uint32) float32 { return float32(s.rate(step + s.Before)) }

func (s Schedule) rate(step uint32) float64 {
	if step < s.WarmupSteps {
		return line(0, s.Base, step, s.WarmupSteps)
	}
	step -= s.WarmupSteps
	switch s.Kind {
	case Linear:
		return line(s.Base, s.Final, step, s.Steps-s.WarmupSteps)
	case Cosine:
		return halfWave(s.Base, s.Final, step, s.Steps-s.WarmupSteps)
	case WSD:
		if step >= s.StableSteps {
			return halfWave(s.Base, s.Final, step-s.StableSteps, s.Steps-min(s.Steps, s.WarmupSteps+s.StableSteps))
		}
	}
	return s.Base
}

// line moves from a to b in the given number of steps and stays there.
func line(a, b float64, step, steps uint32) float64 {
	if step >= steps {
		return b
	}
	return a + float64((b-a)*(float64(step)/float64(steps)))
}

// halfWave moves from a to b along a cosine from 0 to pi in the given number of steps, and stays
// there.
func halfWave(a, b float64, step, steps uint32) float64 {
	if step >= steps {
		return b
	}
	angle := float64(math.Pi*float64(step)) / float64(steps)
	return b + float64((a-b)*float64(0.5*(1+float64(exact.Cos(float32(angle))))))
}

// String returns the name of k in configurations.
func (k Kind) String() string {
	switch k {
	case Constant:
		return "constant"
	case Linear:
		return "linear"
	case Cosine:
		return "cosine"
	case WSD:
		return "wsd"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText returns the name of k in configurations.
func (k Kind) MarshalText() ([]byte, error) {
	if k > WSD {
		return nil, fmt.Errorf("unknown schedule kind %d", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText parses a name that MarshalText returns.
func (k *Kind) UnmarshalText(text []byte) error {
	for _, known := range []Kind{Constant, Linear, Cosine, WSD} {
		if string(text) == known.String() {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("unknown schedule %q, want constant, linear, cosine or wsd", text)
}
