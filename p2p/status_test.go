package p2p

import (
	"math"
	"testing"
	"time"
)

func TestTrafficCountsOnlyTheTimeOfTransfers(t *testing.T) {
	var x Traffic
	now := time.Unix(0, 0)
	if x.Rate() != 0 {
		t.Error("a rate before anything came")
	}
	x.Begin(now)
	x.Begin(now) // two at once share the link
	for range 20 {
		now = now.Add(100 * time.Millisecond)
		x.Move(100_000, now)
	}
	x.End(now)
	x.End(now)
	if r := x.Rate(); math.Abs(r-1e6) > 2e4 || x.Total() != 2_000_000 {
		t.Errorf("%.0f bytes a second, %d in all", r, x.Total())
	}
	before := x.Rate()
	now = now.Add(time.Hour) // nothing runs
	x.Begin(now)
	if x.Rate() != before {
		t.Error("idle time changes the rate")
	}
	for range 6000 { // ten minutes at a tenth
		now = now.Add(100 * time.Millisecond)
		x.Move(10_000, now)
	}
	if r := x.Rate(); math.Abs(r-1e5) > 1e4 {
		t.Errorf("after ten minutes at a tenth %.0f bytes a second", r)
	}
}
