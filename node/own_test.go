package node

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
)

const cutTrains = 900 * time.Millisecond

// powerCut ends all members of a run at once, some quarters of a step into a round, and starts them again. It ends the test if one signs two
// results for a round.
func powerCut(t *testing.T, members int, overlap, percent uint8, quarters int, lose func(*memStore)) (w *world, round coordinator.Round) {
	t.Helper()
	w = newWorld(t, 14, uint32(members), func(c *coordinator.Config) {
		c.EpochMs, c.Overlap, c.RoundTrainMs = 600_000, overlap, 60_000
		if c.VerificationPercent = percent; percent > 0 {
			c.VerifyMs, c.DisputeMs = 30_000, 30_000
		}
	})
	disks := make([]setStore, members)
	signed := map[string]event.Signed{}
	begin := func(i int) {
		w.start(i, func(c *Config) {
			disks[i].memStore = c.Store.(*memStore)
			c.Store = &disks[i]
			c.Cost = func(j Job) time.Duration { return map[string]time.Duration{"train": cutTrains}[j.Kind] }
			c.Observe = func(ev event.Event) {
				if ev, ok := ev.(event.Signed); ok {
					share := fmt.Sprint(i, ev.Round)
					if was, twice := signed[share]; twice && was != ev {
						t.Fatalf("member %d signs two results for round %d", i, ev.Round)
					}
					signed[share] = ev
				}
			}
		})
	}
	for i := range disks {
		begin(i)
	}
	w.until(time.Minute, func() bool { return w.state().Step() > 5 })
	cut := w.clock.Now().Add(cutTrains * time.Duration(quarters) / 4)
	w.until(time.Minute, func() bool { return !w.clock.Now().Before(cut) })
	for i := range disks {
		w.crash(i)
		lose(disks[i].memStore)
	}
	round = w.state().Round()
	for i := range disks {
		begin(i)
	}
	return w, round
}

// After a power cut at any moment of a round nothing that the members had committed to is lost: the run goes on in the round that is open, and each
// still answers for what it signed.
func TestARunGoesOnAtOnceAfterAPowerCut(t *testing.T) {
	t.Parallel()
	for _, members := range []int{1, 3} {
		for overlap := range uint8(2) {
			for _, percent := range []uint8{0, 100} {
				t.Run(fmt.Sprintf("%d members, overlap %d, %d %% checked", members, overlap, percent), func(t *testing.T) {
					for quarters := range 6 {
						w, round := powerCut(t, members, overlap, percent, quarters, func(*memStore) {})
						back := w.clock.Now()
						w.until(10*time.Minute, func() bool { return w.state().Round() > round+3 })
						if took := w.clock.Now().Sub(back); took > 20*cutTrains {
							t.Errorf("cut %d quarters into a round: the next four take %v", quarters, took)
						}
						w.until(20*time.Minute, w.finished)
						w.agree(0)
						if s := w.state(); s.Rollbacks() > 0 || s.ConvictionsTotal() > 0 {
							t.Errorf("%d rollbacks, convictions: %v", s.Rollbacks(), s.Convictions())
						}
					}
				})
			}
		}
	}
}

// Members that lost the states which their results began from do not serve these results: they cannot answer for them. Without results that were
// accepted the run goes back to the agreed parameters, and so do the members, though the sets that they kept lead on from there.
func TestARunGoesOnAfterAPowerCutThatCostTheStates(t *testing.T) {
	for overlap := range uint8(2) {
		for quarters := range 6 {
			w, _ := powerCut(t, 3, overlap, 100, quarters, func(m *memStore) {
				named := map[wire.Hash]bool{m.saved.Params: true, m.saved.Optimizer: true}
				for _, c := range m.cases {
					named[c.Commitment.Params], named[c.Commitment.Prev] = true, true
				}
				maps.DeleteFunc(m.blobs, func(root wire.Hash, _ []byte) bool { return !named[root] })
			})
			w.until(20*time.Minute, w.finished)
			w.agree(0, 1, 2)
		}
	}
}
