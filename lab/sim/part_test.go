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

// TestAllClientsHaveTheirStake has more clients than genesis has room for.
func TestAllClientsHaveTheirStake(t *testing.T) {
	cfg := Config{Seed: 1, Clients: funded + 700, Steps: 1, Verification: 10, Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond}
	n, err := assemble(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer n.clean()
	for i, p := range n.members {
		if got := n.chain.Host().Balance(p.key.Public()); got != 2*simStake {
			t.Fatalf("client %d has %d tokens, want %d", i, got, 2*simStake)
		}
	}
}
