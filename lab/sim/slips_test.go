package sim

import (
	"testing"
	"time"
)

// Operators leave and come back, restore old disks and have full ones, and the owner pauses the run.
func TestSlipsOfOperatorsConvictNobody(t *testing.T) {
	for _, cheats := range [][]string{nil, {"false-accuser", "free-rider"}} {
		r, err := Run(t.Context(), Config{
			Seed: 71, Clients: 12, Steps: 24, Overlap: 1, Delay: 30 * time.Millisecond, Verification: 20, Adversaries: cheats,
			Leaves: 4, Restores: 6, FullDisks: 2, Pauses: 2, Limit: 30 * time.Minute,
		})
		if err != nil {
			t.Errorf("%v: %v", cheats, err)
		}
		if r.Crashes == 0 || r.Rounds < 24 {
			t.Errorf("%v: %d crashes, %d rounds", cheats, r.Crashes, r.Rounds)
		}
	}
}
