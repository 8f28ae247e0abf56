package tui

import (
	"testing"
	"time"
)

func TestReplayClock(t *testing.T) {
	wall := func(s float64) time.Time { return at(1000 + s) }
	k := &replayClock{speed: 4}
	k.jump(wall(0), at(0))
	expect := func(w, want float64) {
		t.Helper()
		if got := k.now(wall(w)); !got.Equal(at(want)) {
			t.Errorf("after %v s the log's clock shows %v, want %v", w, got.Sub(at(0)), want)
		}
	}
	expect(0, 0)
	expect(2, 8)
	if text := k.steer(wall(2), pause); text != "replay paused" {
		t.Errorf("paused: %q", text)
	}
	expect(10, 8)
	if d := k.wait(wall(10), at(9)); d != replayStep {
		t.Errorf("paused, it waits %v", d)
	}
	k.steer(wall(10), pause)
	if text := k.steer(wall(11), faster); text != "replay x8" {
		t.Errorf("faster: %q", text)
	}
	expect(12, 20)
	if d := k.wait(wall(12), at(20.4)); d < 50*time.Millisecond || d > 51*time.Millisecond {
		t.Errorf("the wait for 0.4 s at x8 is %v", d)
	}
	if d := k.wait(wall(12), at(19)); d != 0 {
		t.Errorf("the wait for the past is %v", d)
	}
	for range 20 {
		k.steer(wall(12), slower)
	}
	if text := k.steer(wall(12), slower); text != "replay x0.0625" {
		t.Errorf("slowest: %q", text)
	}
	k.stopAt(at(20.5))
	expect(1000, 20.5)
}

// at returns a time, in seconds after the beginning of the tests.
func at(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}
