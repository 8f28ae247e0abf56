package sim

import (
	"testing"
	"time"
)

// TestRunsGoOnAfterAStorm has each member of a network crash twice or leave within a minute and a half,
// while it is cut in two and the ledger stops. The run goes on soon, which Run checks. Of seed 3190 with
// followers four of 22 members held the agreed parameters after it, one less than an epoch takes, and the
// others waited for results that nobody had.
func TestRunsGoOnAfterAStorm(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*Config){
		"none":      func(*Config) {},
		"overlap":   func(c *Config) { c.Overlap = 1 },
		"followers": func(c *Config) { c.Followers = true },
		"slices":    func(c *Config) { c.Overlap, c.Aggregators = 1, 8 },
	} {
		for _, seed := range []uint64{1, 3190} {
			cfg := Config{
				Seed: seed, Clients: 22, Steps: 12, Witnesses: 6, Everybody: true,
				Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.1, Limit: 30 * time.Minute,
				Crashes: 42, Leaves: 11, Restores: 5, Stragglers: 1, Partitions: 3, Outages: 2, Jumps: 2, FullDisks: 2, Pauses: 2,
			}
			adjust(&cfg)
			if r, err := Run(t.Context(), cfg); err != nil || r.Holders != cfg.Clients {
				t.Errorf("%s: %+v: %v", name, r, err)
			}
		}
	}
}
