package loop

import (
	"testing"
	"time"
)

// wrong is a loop whose clock can be set.
type wrong struct {
	Loop
	now time.Time
}

func (w *wrong) Now() time.Time { return w.now }

func TestMonotonicGoesOnWhenTheClockIsSetBack(t *testing.T) {
	w := &wrong{now: time.UnixMilli(1_000_000)}
	var m Monotonic
	for _, step := range []struct{ ms, want int64 }{{0, 1_000_000}, {5, 1_000_005}, {-3000, 1_000_005}, {7, 1_000_012}, {4000, 1_004_012}, {-1, 1_004_012}, {2, 1_004_014}} {
		w.now = w.now.Add(time.Duration(step.ms) * time.Millisecond)
		if got := m.Ms(w); got != uint64(step.want) {
			t.Errorf("after %d ms: %d, want %d", step.ms, got, step.want)
		}
	}
}
