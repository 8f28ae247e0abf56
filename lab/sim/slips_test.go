package sim

import (
	"testing"
	"time"
)

// Operators leave and come back, restore old disks and have full ones, and the owner pauses the run.
// With this seed an old disk comes back in a round that its member has signed for: where nodes
// trust their disks, an honest one is convicted.
func TestSlipsOfOperatorsConvictNobody(t *testing.T) {
	r, err := Run(t.Context(), Config{
		Seed: 75, Clients: 12, Steps: 16, Overlap: 1, Delay: 30 * time.Millisecond, Verification: 20, Adversaries: []string{"false-accuser", "free-rider"},
		Leaves: 4, Restores: 6, FullDisks: 2, Pauses: 2, Limit: 30 * time.Minute,
	})
	if err != nil || r.Crashes == 0 || r.Rounds < 16 {
		t.Errorf("%d crashes, %d rounds: %v", r.Crashes, r.Rounds, err)
	}
}
