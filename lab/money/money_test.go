package money

import (
	"runtime"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
)

// A slice of the hunt. A seed that found something once stays in regressions.
func TestNobodyMakesTokensFromNothing(t *testing.T) {
	episodes := uint64(30)
	if !campaign.Whole() {
		episodes = 12
	}
	sum := Run(t.Context(), Options{First: 1, Episodes: episodes, Workers: runtime.GOMAXPROCS(0)})
	for _, f := range sum.Findings {
		t.Errorf("seed %d: gained %d %s", f.Seed, f.Gained, f.Error)
		for _, line := range f.Script {
			t.Log(line)
		}
	}
	for _, kind := range []string{
		"host.CreateRun", "host.Transfer", "host.CreatePool", "host.Lend", "host.Collect", "host.ClosePool", "coordinator.Join",
		"coordinator.Claim", "coordinator.Witness", "coordinator.Equivocation", "coordinator.End", "coordinator.Pass", "coordinator.Accuse",
		"coordinator.TieBreak", "coordinator.Defend",
	} {
		if sum.Accepted[kind] == 0 {
			t.Errorf("no %s was ever accepted: the hunt does not reach far", kind)
		}
	}
	t.Logf("%d transactions, accepted %v", sum.Transactions, sum.Accepted)
}
