package score

import (
	"fmt"
	"slices"
)

// Verdict is what decided a score.
type Verdict uint8

// The verdicts. Their names are part of the validators' logs.
const (
	Fair      Verdict = iota // the cosine and the losses did
	Absent                   // there was nothing to score: the share was not delivered
	WrongWork                // the commitment's Work is not that of the share's gradient
	TooLong                  // the norm is above the bound
	TooShort                 // the norm is below the bound
	Harmful                  // applied alone it raises the loss, on the member's own sequences and on others
)

var verdicts = [...]string{"fair", "absent", "wrong-work", "too-long", "too-short", "harmful"}

// String returns the verdict's name.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "unknown"
}

// MarshalText writes the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads it.
func (v *Verdict) UnmarshalText(b []byte) error {
	i := slices.Index(verdicts[:], string(b))
	if i < 0 {
		return fmt.Errorf("there is no verdict %q", b)
	}
	*v = Verdict(i)
	return nil
}

// Change is a mean loss before and after a delta was applied alone, in nats a token.
type Change struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Gain is by how much the loss fell.
func (c Change) Gain() float64 { return c.Before - c.After }

// Losses are the changes on the member's own sequences and on as many that nobody gave to it.
type Losses struct {
	Assigned Change `json:"assigned"`
	Random   Change `json:"random"`
}

// Advantage is in [-1,1]: how much more the loss fell on the member's own sequences, as part of
// what it moved in all; 0 if nothing moved.
func (l Losses) Advantage() float64 {
	a, r := l.Assigned.Gain(), l.Random.Gain()
	moved := max(a, -a) + max(r, -r)
	if !(moved > 0) {
		return 0
	}
	return clamp((a - r) / moved)
}

// Evidence is what a validator knows of one result.
type Evidence struct {
	Likeness
	// Median is that of the norms of all deltas of the window, at the slice's places. 0: there is
	// nothing to compare with.
	Median float64 `json:"median_norm"`
	// Work says that the commitment's Work is not what the recomputed gradient makes it; only where
	// arithmetic is exact.
	WorkDiffers bool `json:"work_differs,omitempty"`
	// Losses are nil if they were not measured.
	Losses *Losses `json:"losses,omitempty"`
}

// Rules are the bounds of scoring. The zero value of a field means that its rule is off.
type Rules struct {
	// Norm bounds how many times as long as the median a delta may be, or as short.
	Norm float64
	// Loss is the part of the score, in [0,1], that depends on the losses.
	Loss float64
	// Alpha is the part of the newest score in a member's moving average; 0 stands for the constant
	// of that name.
	Alpha float64
}

// Default is what validators use.
//
// Norm 4: honest deltas of one window differ by less than twice (docs/rewards.md), so that even
// half of them lying leaves room. Loss 0.2: the notes of others' networks agree that losses are too
// noisy for more than a bonus.
func Default() Rules { return Rules{Norm: 4, Loss: 0.2, Alpha: Alpha} }

// Score is the value of a result, in [-1,1], and what decided it.
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

// Median is the middle of values, the lower of two; 0 if there are none. It leaves them as they
// are.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[(len(s)-1)/2]
}
