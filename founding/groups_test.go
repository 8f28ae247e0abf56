package founding

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/client/holders"
)

// TestGroupsAgainstIntegers compares the bounds with sums of exact probabilities.
func TestGroupsAgainstIntegers(t *testing.T) {
	for _, g := range []Groups{{1024, 307, 64}, {10_000, 3000, 128}, {10_000, 1000, 32}} {
		of := func(k int) float64 { return float64(g.Slices()) * exactly(g.group(), uint32(k)) }
		n := int(g.Aggregators)
		for what, v := range map[string][2]float64{
			"invented":  {g.Invented(1), of(client.SliceQuorum(n))},
			"denied":    {g.Denied(), of(holders.Quorum(n))},
			"recounted": {g.Recounted(), of(n - client.SliceQuorum(n) + 1)},
		} {
			if v[0] < .999*v[1] || v[0] > 1.001*v[1] {
				t.Errorf("%+v: %s %g, want %g", g, what, v[0], v[1])
			}
		}
	}
}

func TestFewAggregatorsAreRefused(t *testing.T) {
	g := Groups{10_000, 3000, 128}
	if err := g.Fault(100_000); err != nil {
		t.Error(err)
	}
	g.Aggregators = 64
	err := g.Fault(100_000)
	if err == nil || !strings.Contains(err.Error(), "set at least 102") {
		t.Fatal(err)
	}
	if g.Aggregators = 102; g.Fault(100_000) != nil {
		t.Error("what is advised is refused")
	}
}
