package sim

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestACrowdsHistoryDependsOnTheSeedAlone has the parts of a network with faults and cheats run one
// after another, and side by side.
func TestACrowdsHistoryDependsOnTheSeedAlone(t *testing.T) {
	cfg := Config{
		Seed: 3, Clients: crowd + 16, Steps: 4, Followers: true, Witnesses: 8,
		Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.05,
		Crashes: 3, Stragglers: 1, Partitions: 1, Outages: 1, Limit: 30 * time.Minute,
		Verification: 10, Adversaries: strings.Fields("free-rider false-accuser equivocate lying-witness late misleader"),
	}
	var logs [2]Report
	for i, processors := range []int{1, 4} {
		before := runtime.GOMAXPROCS(processors)
		r, err := Run(t.Context(), cfg)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = r
	}
	if a, b := logs[0], logs[1]; a.Log != b.Log || a.Crashes != 3 || a.Checks == 0 || a.Holders != b.Holders {
		t.Errorf("with one processor %+v\nwith four %+v", a, b)
	}
}
