package sim

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// TestStragglersComeToBeGivenLess has shares go by speed, in a run that verifies, with all kinds
// of faults: all that must hold holds, and who is ten times as slow as the others holds up the
// first rounds, not the last ones.
func TestStragglersComeToBeGivenLess(t *testing.T) {
	t.Parallel()
	cfg := Default(1)
	cfg.Clients, cfg.Steps, cfg.Overlap, cfg.Verification, cfg.BySpeed = 12, 60, 1, 20, true
	var first, last time.Duration // the longest step in the first and in the last ten
	cfg.Observe = func(e Event) {
		ev, ok := e.Event.(event.Trained)
		if !ok {
			return
		}
		took := time.Duration(ev.Seconds * float64(time.Second))
		switch {
		case ev.Step <= 10:
			first = max(first, took)
		case ev.Step > coordinator.Step(cfg.Steps)-10:
			last = max(last, took)
		}
	}
	r := run(t, cfg)
	if first < 3*time.Second || last > first/2 {
		t.Errorf("the longest step took %v of the first ten, %v of the last ten", first, last)
	}
	if r.HonestConvicted != 0 || r.Checks == 0 || r.Passed*10 < r.Checks*8 {
		t.Errorf("%d of %d checks passed, %d honest members were convicted", r.Passed, r.Checks, r.HonestConvicted)
	}
}

// TestCheatsAreFoundWhereSharesGoBySpeed has a few kinds of cheats in such a run.
func TestCheatsAreFoundWhereSharesGoBySpeed(t *testing.T) {
	cfg := Config{Seed: 2, Clients: 12, Steps: 40, Overlap: 1, Verification: 20, BySpeed: true, Adversaries: []string{"free-rider", "wrong-data", "sign-flip"}, Limit: Default(2).Limit}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	if r.HonestConvicted != 0 || r.Undetected != 0 || len(r.Convictions) < 3 {
		t.Errorf("%d honest members were convicted, %d cheats not: %+v", r.HonestConvicted, r.Undetected, r.Convictions)
	}
}
