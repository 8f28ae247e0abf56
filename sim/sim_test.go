package sim

import (
	"fmt"
	"testing"
	"time"
)

func run(t *testing.T, cfg Config) Report {
	t.Helper()
	start := time.Now()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	t.Logf("%v of virtual time in %v: %+v", r.Virtual, time.Since(start).Round(time.Millisecond), r)
	if r.Holders != cfg.Clients {
		t.Errorf("%d of %d participants hold the agreed parameters at the end", r.Holders, cfg.Clients)
	}
	return r
}

func TestTwentyClientsWithFaultsFinishEqual(t *testing.T) {
	for overlap := range uint8(2) {
		t.Run(fmt.Sprintf("overlap %d", overlap), func(t *testing.T) {
			cfg := Default(1)
			cfg.Overlap = overlap
			r := run(t, cfg)
			if r.Crashes != cfg.Crashes || r.Heals == 0 {
				t.Errorf("%d crashes and %d heals: the faults did not happen", r.Crashes, r.Heals)
			}
			if r.LossLast >= r.LossFirst {
				t.Errorf("loss went from %.3f to %.3f: nothing was learned", r.LossFirst, r.LossLast)
			}
		})
	}
}
