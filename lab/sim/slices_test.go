package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/tests/campaign"
)

// shares is a network of slices, without faults.
func shares(clients int, aggregators uint16) Config {
	return Config{
		Seed: 1, Clients: clients, Steps: 4, Overlap: 1, Witnesses: 5, Aggregators: aggregators, Everybody: true,
		Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Limit: 20 * time.Minute,
	}
}

// received runs a network and returns what each member receives in a step on average: ranges of
// payloads, and updates and their slices, in bytes; and the most that one receives in a round.
func received(t testing.TB, cfg Config) (ranges, updates, most float64) {
	t.Helper()
	sums := map[[2]int]uint64{} // by client and round
	cfg.Observe = func(e Event) {
		ev, ok := e.Event.(event.Fetched)
		switch {
		case !ok:
			return
		case ev.Update:
			updates += float64(ev.Bytes)
		default:
			ranges += float64(ev.Bytes)
		}
		sums[[2]int{e.Client, int(ev.Round)}] += ev.Bytes
	}
	r, err := Run(t.Context(), cfg)
	if err != nil || r.Holders != cfg.Clients {
		t.Fatalf("%d of %d hold the agreed parameters: %v", r.Holders, cfg.Clients, err)
	}
	for _, b := range sums {
		most = max(most, float64(b))
	}
	per := float64(cfg.Clients) * float64(cfg.Steps)
	return ranges / per, updates / per, most
}

// computed returns what founding computes that each member receives of ranges in a step.
func computed(t testing.TB, cfg Config) float64 {
	t.Helper()
	s, err := Prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	made, err := s.Run.Codec.New(s.Run.Model.Layout(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := uint32(cfg.Clients)
	c := founding.NewSliced(trainer.Sizes{Payload: uint64(made.PayloadMax())}, founding.Groups{Members: n, Aggregators: uint32(cfg.Aggregators)}, n-1)
	return float64(c.Ranges + c.Proofs)
}

// TestNobodyReceivesAllPayloads doubles the members: what they receive stays.
func TestNobodyReceivesAllPayloads(t *testing.T) {
	t.Parallel()
	few, update, most := received(t, shares(24, 8))
	many, updateMany, mostMany := received(t, shares(48, 8))
	whole := shares(48, 0)
	whole.hidden = 32
	all, _, _ := received(t, whole)
	// A range of few pieces has a proof, and ends within pieces.
	if few < 1000 || many > 1.5*few || updateMany > 1.1*update || mostMany > 1.5*most || many > all/2 {
		t.Errorf("of 24 members each receives %.0f and %.0f bytes a step, at most %.0f; of 48 %.0f, %.0f and %.0f; of 48 without slices %.0f",
			few, update, most, many, updateMany, mostMany, all)
	}
	for n, got := range map[int]float64{24: few, 48: many} {
		if want := computed(t, shares(n, 8)); got < .95*want || got > 1.05*want {
			t.Errorf("of %d members each receives ranges of %.0f bytes a step, and a dry run prints %.0f", n, got, want)
		}
	}
}

// BenchmarkSlices prints what a member receives of a round's results, by the number of members: ranges
// in a run of slices on average, as measured and as computed, these with the slices, the most that one
// member receives, and in a run without.
func BenchmarkSlices(b *testing.B) {
	for _, n := range []int{32, 64, 128} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			for b.Loop() {
				cfg := shares(n, 16)
				cfg.hidden = 64
				ranges, updates, most := received(b, cfg)
				b.ReportMetric(ranges, "ranges-B")
				b.ReportMetric(computed(b, cfg), "computed-B")
				b.ReportMetric(ranges+updates, "average-B")
				b.ReportMetric(most, "most-B")
				cfg.Aggregators = 0
				ranges, _, _ = received(b, cfg)
				b.ReportMetric(ranges, "none-B")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestSlicesWithFaults has slow machines, losses, crashes, a partition and an outage.
func TestSlicesWithFaults(t *testing.T) {
	t.Parallel()
	cfg := shares(24, 6)
	cfg.Steps, cfg.Loss, cfg.Crashes, cfg.Stragglers, cfg.Partitions, cfg.Outages = 12, .05, 3, 1, 1, 1
	if r, err := Run(t.Context(), cfg); err != nil || r.Holders != 24 || r.Crashes != 3 {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestSlicesOfSparseUpdates has codec sparseloco, whose results nobody checks, and aggregators that lie.
func TestSlicesOfSparseUpdates(t *testing.T) {
	t.Parallel()
	cfg := shares(40, 20)
	cfg.sparse, cfg.Adversaries = true, slices.Repeat([]string{"miscounter"}, 8)
	if r, err := Run(t.Context(), cfg); err != nil || r.Holders != 32 || r.Misled > 0 || r.Rounds != 7 || r.Points < 4*2*40 {
		t.Errorf("%+v: %v", r, err)
	}
	cfg = shares(24, 8)
	cfg.sparse, cfg.Steps, cfg.Loss, cfg.Crashes, cfg.Stragglers, cfg.Partitions = true, 8, .05, 2, 1, 1
	if r, err := Run(t.Context(), cfg); err != nil || r.Holders != 24 || r.Crashes != 2 {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestCheatsInSlices has results of a run of slices disputed: their payloads are named by pieces.
func TestCheatsInSlices(t *testing.T) {
	t.Parallel()
	cfg := shares(24, 6)
	cfg.Steps, cfg.Verification, cfg.Adversaries = 12, 30, []string{"free-rider", "scale", "false-accuser", "equivocate"}
	r, err := Run(t.Context(), cfg)
	if err != nil || r.HonestConvicted > 0 || len(r.Convictions) != len(cfg.Adversaries) {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestAggregatorsThatLieCostNothing has a quarter of the members lie about their slices. No member
// holds wrong parameters, and results of all are accepted.
func TestAggregatorsThatLieCostNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"miscounter", "shirker", "disclaimer", "rationer"} {
		if kind != "miscounter" && !campaign.Whole() {
			continue
		}
		cfg := shares(40, 20)
		cfg.Verification, cfg.Adversaries = 5, slices.Repeat([]string{kind}, 8)
		r, err := Run(t.Context(), cfg)
		if err != nil || r.Holders != 32 || r.Misled > 0 || len(r.Convictions) > 0 || r.Rounds != 7 || r.Points < 4*2*40 {
			t.Errorf("%s: %+v: %v", kind, r, err)
		}
	}
}

// With 17 of 40 members lying, slices have no quorum. Witnesses then sum the slices themselves, which
// takes part of the round.
func TestAggregatorsThatAreTooMany(t *testing.T) {
	t.Parallel()
	cfg := shares(40, 20)
	cfg.Adversaries = slices.Repeat([]string{"miscounter"}, 17)
	recounts := 0
	cfg.Observe = func(e Event) {
		if n, ok := e.Event.(event.Note); ok && strings.HasSuffix(n.Text, "summed here") {
			recounts++
		}
	}
	r, err := Run(t.Context(), cfg)
	if err != nil || r.Holders != 23 || r.Misled > 0 || r.Rounds != 7 || r.Points != 4*2*40 || recounts == 0 || recounts > 4*2*2*5 {
		t.Errorf("%d recounts, %+v: %v", recounts, r, err)
	}
}
