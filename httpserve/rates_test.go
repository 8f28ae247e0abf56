package httpserve

import (
	"testing"
	"time"
)

func TestAFloodFromOneAddressIsHeldOff(t *testing.T) {
	const perSecond, burst = 500, 1000
	now := time.Unix(1_800_000_000, 0)
	r := NewRates(perSecond, burst, func() time.Time { return now })
	take := func(addr string) (n int) {
		for r.Allow(addr) {
			n++
		}
		return n
	}
	if n := take("a"); n != burst {
		t.Errorf("%d at once, want %d", n, burst)
	}
	if n := take("b"); n != burst {
		t.Errorf("%d at once from another address, want %d", n, burst)
	}
	now = now.Add(time.Second)
	if n := take("a"); n != perSecond {
		t.Errorf("%d after a second, want %d", n, perSecond)
	}
	for i := range ratesMax {
		r.Allow(string(rune(i)) + "x")
	}
	if len(r.buckets) > ratesMax || r.Allow("late") {
		t.Errorf("%d addresses remembered, at most %d; one more is let in", len(r.buckets), ratesMax)
	}
	now = now.Add(time.Hour)
	if !r.Allow("late") {
		t.Error("nobody is let in after all have been quiet")
	}
}
