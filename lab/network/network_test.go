package network

import (
	"encoding/json"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/lab/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	members     = flag.Int("members", 8, "members of TestAMemberSendsWhatTheSimulationSays, without newcomers")
	steps       = flag.Int("steps", 5, "its steps")
	aggregators = flag.Int("aggregators", 0, "least members that sum a slice of the results there")
	pace        = flag.Duration("pace", 5*time.Second, "mean time of a share there")
	last        = flag.Duration("for", 0, "time after which its run over libp2p ends, by the clock of the bubble")
	seed        = flag.Uint64("seed", 1, "the seed of its moves")
	followers   = flag.Bool("followers", false, "have members that are no witnesses apply updates there")
)

// A member sends over libp2p what a simulated one does. The connections are in memory and the clock
// is that of a bubble, so that the machine's load does not matter: libp2p and the nodes are real.
func TestAMemberSendsWhatTheSimulationSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few := max(1, *members/32)
		cfg := NewConfig(*seed, *members, few, few, uint32(*steps), *pace)
		cfg.Memory, cfg.For = true, *last
		cfg.Aggregate(*followers, uint16(*aggregators))
		cfg.Observe = func(r Record) {
			b, _ := json.Marshal(r)
			t.Logf("%s", b)
		}
		over, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		simulated, err := Simulate(t.Context(), cfg, over[len(over)-1].Round)
		if err != nil {
			t.Fatal(err)
		}
		c := Compare(simulated, over)
		for _, r := range append(c.Kinds, c.Wire...) {
			t.Logf("%-40s %8.2f %8.2f %5.2f %9.0f %9.0f %5.2f", r.Kind, r.Simulated.Messages, r.Real.Messages, r.Messages, r.Simulated.Bytes, r.Real.Bytes, r.Bytes)
		}
		t.Logf("%-40s %37.0f", "all that connections carried", c.Carried)
		for _, r := range c.Kinds {
			if min(r.Simulated.Messages, r.Real.Messages) >= rare && (r.Messages < 0.8 || r.Messages > 1.2) || max(r.Simulated.Messages, r.Real.Messages) > 2*rare && r.Messages == 0 {
				t.Errorf("%s: a member sends %+v over libp2p, %+v in the simulation", r.Kind, r.Real, r.Simulated)
			}
		}
	})
}

// rare is the number of messages a member and round below which chance decides.
const rare = 0.5

// Each member that goes comes back, and none goes while it is away.
func TestMovesAreInOrder(t *testing.T) {
	cfg := NewConfig(3, 20, 4, 2, 30, time.Second)
	here := map[int]bool{}
	for i := range cfg.Clients {
		here[i] = !cfg.Later(i)
	}
	came, round := 0, cfg.Moves[0].Round
	for _, m := range cfg.Moves {
		if m.Round < round {
			t.Fatalf("a move in round %d comes after one in round %d", m.Round, round)
		}
		round = m.Round
		if come := m.Do == sim.Come; here[m.Client] == come {
			t.Errorf("round %d: client %d moves (%d) and is here: %v", m.Round, m.Client, m.Do, here[m.Client])
		}
		here[m.Client] = m.Do == sim.Come
		if m.Client >= 20 {
			came++
		}
	}
	if came != 4 {
		t.Errorf("%d newcomers of 4", came)
	}
}
