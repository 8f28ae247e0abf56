package comet

import "testing"

// A peer's wake is refused by its bytes, and where no deadline has passed not tried again at once:
// a trial costs milliseconds where runs are large, and a wake costs its sender 12 bytes.
func TestWakesAreRefusedCheaply(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	a := r.app
	height := a.host.Height() + 1
	if res := a.checkWake(wakeTx(height + 1)); res.IsOK() || a.asleep.height != 0 {
		t.Error("a wake for another height led to a trial")
	}
	if res := a.checkWake(wakeTx(height)); res.IsOK() || a.asleep.height != height {
		t.Error("there is a reason to wake an empty chain")
	}
	a.asleep.ms += 1 << 40 // so that no time passes
	if a.checkWake(wakeTx(height)); a.asleep.ms < 1<<40 {
		t.Error("the same wake led to another trial")
	}
}
