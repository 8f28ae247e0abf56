// Package optim has the learning rate of each step of a run, and AdamW, the optimizer of those who
// train by themselves.
//
// A Schedule is part of a run's configuration; every replica computes the rate of a step from it
// when it applies the step's updates, so the rate has the same bits on every machine: it is
// computed in binary64, each operation rounded on its own, from whole numbers of steps, with the
// cosine of package exact, and rounded to binary32 at the end.
//
//	constant   warmup, then Base for ever
//	linear     warmup, then a straight line from Base to Final at step Steps, then Final
//	cosine     warmup, then half a cosine wave from Base to Final at step Steps, then Final
//	wsd        warmup; Base for StableSteps; half a cosine wave to CosineFinal in CosineSteps; a line to Final in LinearSteps; then Final
//
// The warmup is a straight line from WarmupInit at step 0 to Base at step WarmupSteps. No schedule
// rises after its warmup.
//
//	Base  ________                 ________
//	     /        \               /        \
//	    /          `-.           /          \
//	   /              `--       /            `-.__
//	   warmup   cosine  Final   warmup stable cosine line Final
//
// The shapes and their parameters are those of Nous Research's Psyche, so that its configurations carry over, but for its cosine, which rises
// again after the last step.
package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/exact"
)

// A Kind is the shape of a Schedule after its warmup.
type Kind uint8

// The kinds of schedules; the package comment draws them.
const (
	Constant Kind = iota
	Linear
	Cosine
	WSD
)

// LRMax bounds the rates of a schedule: far above any that trains, it catches a misplaced point.
const LRMax = 1000

// A Schedule gives the learning rate of each step. Rates are in the units of the codec that applies them; for a codec that steps by the sign,
// the rate is the distance every weight moves. Settings that the kind does not name are ignored.
type Schedule struct {
	Kind        Kind
	Base        float64 // rate after the warmup
	WarmupSteps uint32  // steps before Base is reached
	WarmupInit  float64 // rate of step 0, if there is a warmup
	Steps       uint32  // linear, cosine: the step, counted from 0 and so with the warmup, at which Final is reached
	Final       float64 // all but constant: the rate from then on

	StableSteps uint32  // wsd: steps at Base after the warmup
	CosineSteps uint32  // wsd: steps from Base to CosineFinal
	CosineFinal float64 // wsd: where the cosine ends and the line begins
	LinearSteps uint32  // wsd: steps from CosineFinal to Final

	Before uint32 // steps that were done before those that LR counts: of a run that goes on from a checkpoint
}

// Check returns all that is wrong with s, joined, or nil: rates that are no numbers in [0, LRMax], rates that rise after the warmup, and an end
// before the warmup's.
func (s Schedule) Check() error {
	var faults []error
	rate := func(name string, v, max float64, of string) {
		if !(v >= 0 && v <= max) { // written so that NaN fails
			faults = append(faults, fmt.Errorf("%s rate is %v, it must be in [0, %v]%s", name, v, max, of))
		}
	}
	rate("base", s.Base, LRMax, "")
	rate("warmup's first", s.WarmupInit, s.Base, ", at most the base rate")
	switch s.Kind {
	case Constant:
	case Linear, Cosine:
		rate("final", s.Final, s.Base, ", at most the base rate")
		if s.Steps < s.WarmupSteps {
			faults = append(faults, fmt.Errorf("the schedule ends at step %d, before its warmup of %d steps", s.Steps, s.WarmupSteps))
		}
	case WSD:
		rate("cosine's final", s.CosineFinal, s.Base, ", at most the base rate")
		rate("final", s.Final, s.CosineFinal, ", at most the rate where the cosine ends")
	default:
		faults = append(faults, fmt.Errorf("schedule of unknown kind %d", s.Kind))
	}
	return errors.Join(faults...)
}

// LR returns the learning rate of a step, counted from 0. s must pass Check.
func (s Schedule) LR(step uint32) float32 { return float32(s.rate(step + s.Before)) }

func (s Schedule) rate(step uint32) float64 {
	if step < s.WarmupSteps {
		return line(s.WarmupInit, s.Base, step, s.WarmupSteps)
	}
	step -= s.WarmupSteps
	switch s.Kind {
	case Linear:
		return line(s.Base, s.Final, step, s.Steps-s.WarmupSteps)
	case Cosine:
		return halfWave(s.Base, s.Final, step, s.Steps-s.WarmupSteps)
	case WSD:
		if step < s.StableSteps {
			return s.Base
		}
		step -= s.StableSteps
		if step < s.CosineSteps {
			return halfWave(s.Base, s.CosineFinal, step, s.CosineSteps)
		}
		return line(s.CosineFinal, s.Final, step-s.CosineSteps, s.LinearSteps)
	}
	return s.Base
}

// line goes from a to b in so many steps and stays there.
func line(a, b float64, step, steps uint32) float64 {
	if step >= steps {
		return b
	}
	return a + float64((b-a)*(float64(step)/float64(steps)))
}

// halfWave goes from a to b as the cosine goes from 0 to pi, in so many steps, and stays there.
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

// MarshalText writes k as in configurations.
func (k Kind) MarshalText() ([]byte, error) {
	if k > WSD {
		return nil, fmt.Errorf("schedule of unknown kind %d", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(text []byte) error {
	for _, known := range []Kind{Constant, Linear, Cosine, WSD} {
		if string(text) == known.String() {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("unknown schedule %q, want constant, linear, cosine or wsd", text)
}
