package node

import (
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
)

// slicing is a toy whose payloads all have one length, as those of a run of slices have.
type slicing struct{ writing }

func (e slicing) Follower() (engine.Follower, bool) { return e, true }
func (e slicing) PayloadMax() int                   { return len(toyMagic) + 4 }

// TestASliceThatCannotBeSummedIsTriedAgain has ranges disappear while node 0 sums a slice, first as
// an aggregator and then for itself, since one of two aggregators is no quorum.
func TestASliceThatCannotBeSummedIsTriedAgain(t *testing.T) {
	w := newWorld(t, 4, 2, func(c *coordinator.Config) { c.Overlap = 1 })
	for i := range 2 {
		w.start(i, func(cfg *Config) { cfg.Engine, cfg.Follow, cfg.Aggregators = slicing{writing{w.toy}}, true, 1 })
	}
	noted := func(text string) (n int) {
		for _, ev := range w.hosts[0].events {
			if note, ok := ev.(event.Note); ok && strings.Contains(note.Text, text) {
				n++
			}
		}
		return n
	}
	const failed, tried = "slice 0 of round 1 is not summed", "slice 0 of round 1 has no quorum: summed here"
	w.until(5*time.Minute, func() bool {
		if r, ok := w.state().At(1); ok && r.Final() && noted(failed) < 2 {
			w.hosts[0].blobs.Forget(2)
		}
		return w.finished()
	})
	w.agree(0, 1)
	if n := w.state().Rollbacks(); noted(failed) != 2 || noted(tried) != 2 || n > 0 {
		t.Errorf("failed %d times, want 2; tried alone %d times, want 2; the run went back %d times", noted(failed), noted(tried), n)
	}
}
