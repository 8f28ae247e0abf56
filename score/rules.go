package score

import (
	"fmt"
	"slices"
)

// Verdict is what determined a score.
type Verdict uint8

// The verdicts. Their names appear in validators' logs.
const (
	Fair      Verdict = iota // the cosine and the losses
	Absent                   // nothing to score: the share was not delivered
	WrongWork                // the commitment's Work does not match the share's gradient
	TooLong                  // the norm is above the bound
	TooShort                 // the norm is below the bound
	// Harmful: applied alone, the delta raises the loss, both on the member's own sequences and on
	// others.
	Harmful
)

var verdicts = [...]string{"fair", "absent", "wrong-work", "too-long", "too-short", "harmful"}

// String returns the verdict's name.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "unknown"
}

// MarshalText returns the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText parses a verdict's name.
func (v *Verdict) UnmarshalText(b []byte) error {
	i := slices.Index(verdicts[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", b)
	}
	*v = Verdict(i)
	return nil
}

// Change is the mean loss before and after a delta was applied alone, in nats per token.
type Change struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Gain returns how much the loss fell.
func (c Change) Gain() float64 { return c.Before - c.After }

// Losses are the changes on the member's own sequences and on as many unassigned ones.
type Losses struct {
	Assigned Change `json:"assigned"`
	Random   Change `json:"random"`
}

// Advantage returns, in [-1,1], how much more the loss fell on the member's own sequences than on
// the others, relative to the total movement. It returns 0 if nothing moved.
func (l Losses) Advantage() float64 {
	a, r := l.Assigned.Gain(), l.Random.Gain()
	moved := max(a, -a) + max(r, -r)
	if !(moved > 0) {
		return 0
	}
	return clamp((a - r) / moved)
}

// Evidence is what a validator knows about one result.
type Evidence struct {
	Likeness
	// Median is the median norm of all deltas in the window, over the slice's places. 0: there is
	// nothing to compare with.
	Median float64 `json:"median_norm"`
	// Work reports whether the commitment's Work contradicts the recomputed gradient. It is set only
	// where arithmetic is exact.
	WorkDiffers bool `json:"work_differs,omitempty"`
	// Losses is nil if losses were not measured.
	Losses *Losses `json:"losses,omitempty"`
}

// Rules are the bounds of scoring. A zero field turns its rule off.
type Rules struct {
	// Norm is the most by which a delta's norm may exceed the median, or fall below it, as a factor.
	Norm float64
	// Loss is the fraction of the score, in [0,1], that depends on the losses.
	Loss float64
	// Alpha is the weight of the newest score in a member's moving average; 0 stands for the constant
	// Alpha.
	Alpha float64
}

// Default is the set of rules that validators use.
//
// Norm is 4: honest deltas of one window differ by less than a factor of 2 (docs/rewards.md), which
// leaves room even if half of the members lie. Loss is 0.2: other networks report that losses are
// too noisy for more than a bonus.
func Default() Rules { return Rules{Norm: 4, Loss: 0.2, Alpha: Alpha} }

// Score returns the score of a result, in [-1,1], and what determined it.
func (r Rules) Score(e Evidence) (float64, Verdict) {
	if e.WorkDiffers {
		return -1, WrongWork
	}
	s := min(e.Whole, e.Tensors)
	if r.Norm > 0 && e.Median > 0 {
		switch {
		case e.Norm > e.Median*r.Norm:
			return min(s, 0), TooLong
		case e.Norm*r.Norm < e.Median:
			return min(s, 0), TooShort
		}
	}
	if e.Losses == nil || r.Loss <= 0 {
		return s, Fair
	}
	if e.Losses.Assigned.Gain() < 0 && e.Losses.Random.Gain() < 0 {
		return min(s, 0), Harmful
	}
	if s > 0 {
		s *= 1 - float64(r.Loss/2*(1-e.Losses.Advantage()))
	}
	return clamp(s), Fair
}

// Median returns the median of values, the lower one of two, or 0 if there are none. It does not
// modify values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[(len(s)-1)/2]
}
