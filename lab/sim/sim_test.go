package sim

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/event"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func run(t *testing.T, cfg Config) Report {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	if r.Holders != cfg.Clients {
		t.Errorf("%d of %d participants hold the agreed parameters at the end", r.Holders, cfg.Clients)
	}
	return r
}

func TestTwentyClientsWithFaultsFinishEqual(t *testing.T) {
	for overlap := range uint8(2) {
		t.Run(fmt.Sprintf("overlap %d", overlap), func(t *testing.T) {
			t.Parallel()
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

func TestTheSameSeedGivesTheSameLog(t *testing.T) {
	cfg := Default(2)
	cfg.Clients, cfg.Steps, cfg.Crashes = 6, 10, 2
	var events int
	cfg.Observe = func(Event) { events++ }
	first := run(t, cfg)
	counted := events
	second := run(t, cfg)
	if !reflect.DeepEqual(first, second) || events != 2*counted {
		t.Errorf("two runs of one seed differ:\n%+v\n%+v", first, second)
	}
	cfg.Seed++
	if other := run(t, cfg); other.Log == first.Log {
		t.Error("another seed gives the same log")
	}
}

func TestWithoutFaultsEverySequenceIsAccepted(t *testing.T) {
	cfg := Config{Seed: 3, Clients: 5, Steps: 20, Limit: Default(3).Limit}
	r := run(t, cfg)
	if r.Rollbacks != 0 || r.Steps != 20 || r.Points != 20*2*5 {
		t.Errorf("%+v", r)
	}
}

// TestFoundSeeds replays histories in which something was broken once, or came close.
func TestFoundSeeds(t *testing.T) {
	for _, f := range []struct {
		why                              string
		seed                             uint64
		clients, crashes, parts, outages int
		overlap                          uint8
		loss                             float64
	}{
		{"a partition of the witnesses while a quarter of the gossip is lost", 1033, 6, 5, 1, 0, 1, 0.24},
		{"most members crash once, and a third of the gossip is lost", 1069, 10, 6, 1, 0, 1, 0.32},
		{"two partitions and two outages of the ledger", 1004, 9, 4, 2, 2, 0, 0.16},
	} {
		t.Run(f.why, func(t *testing.T) {
			t.Parallel()
			cfg := Default(f.seed)
			cfg.Clients, cfg.Overlap, cfg.Crashes, cfg.Partitions, cfg.Outages, cfg.Loss = f.clients, f.overlap, f.crashes, f.parts, f.outages, f.loss
			run(t, cfg)
		})
	}
}

func TestAStuckRunIsReportedWithItsSeed(t *testing.T) {
	cfg := Config{Seed: 4, Clients: 2, Steps: 1000, Limit: 1}
	if _, err := Run(t.Context(), cfg); err == nil || err.Error()[:7] != "seed 4," {
		t.Errorf("got %v", err)
	}
}

func TestHonestWorkPassesEveryCheck(t *testing.T) {
	cfg := Config{Seed: 5, Clients: 6, Steps: 12, Overlap: 1, Verification: 50, Limit: Default(5).Limit}
	r := run(t, cfg)
	if r.Checks == 0 || r.Passed != r.Checks || r.Disputes > 0 || len(r.Convictions) > 0 || r.Steps != cfg.Steps {
		t.Errorf("%d checks, %d passed, %d disputes, convictions %v", r.Checks, r.Passed, r.Disputes, r.Convictions)
	}
}

// Whoever is reformed is not told from the honest, and the members are those of the run with
// cheats.
func TestTheReformedWorkHonestly(t *testing.T) {
	cfg := Config{Seed: 3, Clients: 6, Steps: 20, Limit: Default(1).Limit, Verification: 50, Adversaries: []string{"poison", "withhold"}, Reformed: true}
	r := run(t, cfg)
	if r.Checks == 0 || r.Passed != r.Checks || len(r.Convictions) > 0 || r.Undetected > 0 || r.Holders != cfg.Clients {
		t.Errorf("%d checks, %d passed, convictions %v, %d undetected, %d hold the parameters", r.Checks, r.Passed, r.Convictions, r.Undetected, r.Holders)
	}
}

// TestLinesAreEvents compares lines of the log that are written in less time with those of package
// event.
func TestLinesAreEvents(t *testing.T) {
	p := &part{network: &network{common: newCommon(Config{})}, bodies: map[any][]byte{}}
	for _, ev := range []event.Event{
		event.Fetched{Round: 3, Member: 1, Bytes: 60, Seconds: 0.07},
		event.Fetched{Round: 3, Update: true, Seconds: 12},
		event.Fetched{Seconds: 0},
		event.Fetched{Seconds: 1e-9},
		event.Committed{Epoch: 1, Round: 3, Member: 9, Loss: float32(4321) / 1000, Bytes: 60, Commitment: wire.Sum("one")},
		event.Committed{Loss: float32(1) / 1000},
		event.Committed{Loss: float32(math.MaxUint32) / 1000},
		event.Committed{},
	} {
		want, err := event.Marshal(struct{}{}, ev)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.appendBody(nil, ev); string(got) != string(want[1:]) {
			t.Errorf("%s, want %s", got, want[1:])
		}
	}
}
