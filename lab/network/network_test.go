package network

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/lab/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A member over libp2p fetches as many results as a simulated one. Other kinds depend on how long
// rounds last, and so on how busy the machine is.
func TestAMemberSendsWhatTheSimulationSays(t *testing.T) {
	cfg := NewConfig(1, 6, 0, 0, 4, 500*time.Millisecond)
	over, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := Simulate(t.Context(), cfg, over[len(over)-1].Round)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Compare(simulated, over).Kinds {
		t.Logf("%+v", r)
		if r.Kind == Payload.String() && (r.Messages < 0.8 || r.Messages > 1.2 || r.Bytes < 0.8 || r.Bytes > 1.2 || r.Real.Messages == 0) {
			t.Errorf("%s: a member sends %+v over libp2p, %+v in the simulation", r.Kind, r.Real, r.Simulated)
		}
	}
}

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
