package loop

import (
	"math"
	"testing"
	"time"
)

// TestLimitsEndWithTheirStep has three requests, two of which would end with the same step.
func TestLimitsEndWithTheirStep(t *testing.T) {
	l := Limits{Step: 200 * time.Millisecond}
	if l.Next() != math.MaxUint64 {
		t.Errorf("without requests the next end is at %d", l.Next())
	}
	a, b, c := l.Within(t.Context(), 1010, time.Second), l.Within(t.Context(), 1020, time.Second), l.Within(t.Context(), 1030, 5*time.Second)
	if a != b || a == c {
		t.Error("requests that end together have contexts of their own, or others share theirs")
	}
	if next := l.Next(); next != 2200 {
		t.Errorf("the next end is at %d, want 2200", next)
	}
	l.End(2199)
	if a.Err() != nil {
		t.Error("ended before its time")
	}
	l.End(2200)
	if a.Err() == nil || c.Err() != nil || l.Next() != 6200 {
		t.Errorf("at 2200: %v, %v, next %d", a.Err(), c.Err(), l.Next())
	}
}
