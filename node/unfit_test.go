package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
)

// damaged is an engine whose data cannot be read from some step on.
type damaged struct {
	toy
	from uint32
}

func (e damaged) Step(ctx context.Context, p, s engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	if step >= e.from {
		return engine.Result{}, errors.New("shard 3: chunk 7 is damaged")
	}
	return e.toy.Step(ctx, p, s, spans, step)
}

const worldStake = 800

func staked(c *coordinator.Config) { c.Stake = worldStake }

// purse returns the tokens in the purse of node i.
func (w *world) purse(i int) uint64 { return w.chain.Host().Balance(worldKey(i).Public()) }

// ending starts node i so that it ends as a participant does when its node cannot go on.
func (w *world) ending(i int, adjust ...func(*Config)) (h *testNode, failed func() error) {
	var fault error
	h = w.start(i, append([]func(*Config){func(c *Config) {
		c.Stake = worldStake
		c.Failed = func(err error) {
			fault = err
			h.Stop(3*time.Second, func() {})
		}
	}}, adjust...)...)
	return h, func() error { return fault }
}

// A member that cannot make or keep its results leaves before it is charged for its absence, and
// says why. Before, it was dropped and came back again and again, and its purse paid for each time.
func TestAMemberThatCannotWorkLeavesBeforeItPays(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Config)
		full  bool
		says  string
	}{
		"a damaged shard": {func(c *Config) { c.Engine = damaged{toy{params: smallParams}, 5} }, false, "shard 3"},
		"a full disk":     {func(*Config) {}, true, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60, 3, staked)
			_, failed := w.ending(0, c.spoil)
			for i := 1; i < 4; i++ {
				w.start(i, func(c *Config) { c.Stake = worldStake })
			}
			w.until(5*time.Minute, func() bool { return w.results(0) >= 3 })
			if c.full {
				w.hosts[0].store.full = errDiskFull
			}
			w.until(20*time.Minute, w.finished)
			var unfit *UnfitError
			if err := failed(); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "join again") {
				t.Errorf("it ended with: %v", err)
			}
			if m := w.member(0); m.Status != coordinator.StatusWithdrawn || m.Stake+w.purse(0) != purse {
				t.Errorf("it is %s, with a stake of %d and %d in its purse", m.Status, m.Stake, w.purse(0))
			}
		})
	}
}

// A member that was charged for its absence does not pay again by itself.
func TestAfterAFeeNobodyPaysWithoutBeingAsked(t *testing.T) {
	w := newWorld(t, 80, 3, staked)
	chain := w.chain.Client()
	_, failed := w.ending(0, func(c *Config) { c.Ledger = chain.As(w.key(0)) })
	for i := 1; i < 4; i++ {
		w.start(i, func(c *Config) { c.Stake = worldStake })
	}
	w.until(5*time.Minute, func() bool { return w.results(0) >= 3 })
	chain.Cut(true)
	w.until(5*time.Minute, func() bool { return w.member(0).Status == coordinator.StatusDropped })
	chain.Cut(false)
	w.until(20*time.Minute, w.finished)
	var absent *AbsentError
	if err := failed(); !errors.As(err, &absent) || absent.Lost != worldStake/8 || absent.Left != worldStake-worldStake/8 {
		t.Errorf("it ended with: %v", err)
	}
	if w.purse(0) != purse-worldStake {
		t.Errorf("its purse has %d", w.purse(0))
	}
}
