package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// downloads is what members receive of the results of a round, in bytes on average.
type downloads struct {
	follower float64 // who applies the update and is no witness in the next two rounds
	all      float64
	whole    float64 // all payloads
}

// measure measures what members receive in a network without faults.
func measure(t testing.TB, clients int, witnesses uint16, overlap uint8, sparse bool) downloads {
	t.Helper()
	type share struct {
		client int
		round  coordinator.Round
	}
	updates, payloads := map[share]uint64{}, map[share]uint64{}
	var sum, payload uint64
	cfg := Config{
		Seed: 1, Clients: clients, Steps: 4, Overlap: overlap, Witnesses: witnesses, Followers: true, Everybody: true, sparse: sparse,
		Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Limit: 30 * time.Minute,
		Observe: func(e Event) {
			ev, ok := e.Event.(event.Fetched)
			if !ok {
				return
			}
			sum += ev.Bytes
			if ev.Update {
				updates[share{e.Client, ev.Round}] += ev.Bytes
				return
			}
			payload = ev.Bytes
			payloads[share{e.Client, ev.Round}] += ev.Bytes
		},
	}
	r, err := Run(t.Context(), cfg)
	if err != nil || r.Holders != clients {
		t.Fatalf("%d of %d hold the agreed parameters: %v", r.Holders, clients, err)
	}
	if want := int(cfg.Steps) * (clients - int(witnesses)); len(updates) != want {
		t.Errorf("%d updates were fetched in %d steps, want %d", len(updates), cfg.Steps, want)
	}
	var follow, n uint64
	for s, b := range updates {
		if payloads[s] == 0 {
			follow += b
			n++
		}
	}
	return downloads{float64(follow) / float64(n), float64(sum) / float64(cfg.Steps) / float64(clients), float64(payload) * float64(clients-1)}
}

func TestWhatAFollowerReceivesDoesNotGrow(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for overlap := range uint8(2) {
			few, many := measure(t, 16, 3, overlap, sparse), measure(t, 48, 3, overlap, sparse)
			payload := few.whole / 15
			if many.follower != few.follower || many.all > few.follower+client.VouchRounds*3*payload || many.all > many.whole/3 {
				t.Errorf("overlap %d, sparse %v: of 16 members each receives %+v, of 48 %+v", overlap, sparse, few, many)
			}
		}
	}
}

// BenchmarkFollowers prints what a member receives of a round's results, by the number of members:
// a follower, a member on average, and one of a run without followers.
func BenchmarkFollowers(b *testing.B) {
	for _, n := range []int{32, 64, 128, 256} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			for b.Loop() {
				d := measure(b, n, 8, 0, false)
				b.ReportMetric(d.follower, "follower-B")
				b.ReportMetric(d.all, "average-B")
				b.ReportMetric(d.whole, "none-B")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestWhoLiesToFollowersCostsThemRounds has a third of the members lie to followers in every round.
// Nobody honest is convicted, all come to hold the agreed parameters, and few rounds are lost.
func TestWhoLiesToFollowersCostsThemRounds(t *testing.T) {
	for _, c := range []struct {
		kind    string
		overlap uint8
		misled  int
	}{{"misleader", 1, 4}, {"mute", 0, 0}, {"boaster", 0, 0}} {
		cfg := Config{
			Seed: 1, Clients: 21, Steps: 7, Overlap: c.overlap, Witnesses: 4, Followers: true, Everybody: true, Verification: 5,
			Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Limit: Default(1).Limit, Adversaries: slices.Repeat([]string{c.kind}, 7),
		}
		var updates int
		cfg.Observe = func(e Event) {
			if ev, ok := e.Event.(event.Fetched); ok && ev.Update {
				updates++
			}
		}
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v\n%+v", c.kind, err, r)
		}
		if r.Holders != 14 || r.Misled > c.misled || len(r.Convictions) > 0 || r.Rounds > 7+5 || updates < 7*14/2 {
			t.Errorf("%s: %d updates, %+v", c.kind, updates, r)
		}
	}
}
