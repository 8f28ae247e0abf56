package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// stakedMiners is a world of buckets whose miners put up a stake.
func stakedMiners(t *testing.T, steps uint32) *world {
	t.Helper()
	w := newBucketWorld(t, steps, 3, staked, func(cfg *coordinator.Config) { cfg.MinMembers = 2 })
	for i := range 3 {
		w.mine(i, func(c *Config) { c.Stake = worldStake })
	}
	return w
}

// notes returns how many notes of node i have a text.
func (w *world) notes(i int, text string) (n int) {
	for _, ev := range w.hosts[i].events {
		if note, ok := ev.(event.Note); ok && strings.Contains(note.Text, text) {
			n++
		}
	}
	return n
}

// A miner whose bucket takes no objects says so at once and once, leaves the run before it is
// charged for its absence, and goes on when the bucket takes objects.
func TestAMinerWhoseBucketTakesNothingLeavesAndComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		fault bucketmem.Faults
		says  string
		after coordinator.Round // rounds until it says so
	}{
		"full":    {bucketmem.Faults{Full: true}, "no room", 2},
		"refuses": {bucketmem.Faults{Refuse: true}, "refuses access", 2},
		"closed":  {bucketmem.Faults{Closed: true}, "--bucket-read", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := stakedMiners(t, 60)
			w.until(10*time.Minute, func() bool { return w.results(2) >= 3 })
			w.stores.Break(place(2), c.fault)
			at := w.state().Round()
			w.until(10*time.Minute, func() bool { return w.notes(2, c.says) > 0 })
			if now := w.state().Round(); now > at+c.after {
				t.Errorf("it said so in round %d, and the fault is of round %d", now, at)
			}
			w.until(10*time.Minute, func() bool { return w.member(2).Status == coordinator.StatusWithdrawn })
			if n := w.notes(2, c.says); n != 1 {
				t.Errorf("it said so %d times", n)
			}
			if m := w.member(2); m.Stake+w.purse(2) != purse {
				t.Errorf("of %d tokens %d are its stake, and %d in its purse", purse, m.Stake, w.purse(2))
			}
			had := w.results(2)
			w.stores.Break(place(2), bucketmem.Faults{})
			w.until(20*time.Minute, func() bool { return w.results(2) > had })
			w.until(30*time.Minute, w.finished)
			w.agree(0, 1, 2)
			if m := w.member(2); m.Stake+w.purse(2) < purse {
				t.Errorf("it lost tokens: %d are its stake, and %d in its purse", m.Stake, w.purse(2))
			}
		})
	}
}

// unreached is what a bucket is that does not answer.
type unreached struct{ bucket.Store }

func (unreached) Get(context.Context, string, int64, int64) ([]byte, bucket.Object, error) {
	return nil, bucket.Object{}, &bucket.Error{Op: "get", Kind: bucket.ErrUnreachable}
}

// readsAllBut has a miner read all buckets but one.
func (w *world) readsAllBut(i int, when func() bool) func(*Config) {
	return func(c *Config) {
		open := func(l bucket.Location) (bucket.Store, error) {
			s, err := w.stores.Open(l)
			if err == nil && l.Bucket == place(i).Bucket {
				s = switched{s, unreached{s}, when}
			}
			return s, err
		}
		c.Bucket.Exchange = bucket.NewExchange(c.Loop, c.Bucket.Exchange.Writer(), bucket.NewReader(open, bucket.Options{}), bucket.ExchangeOptions{Simulated: true})
	}
}

// switched reads from another store when it shall.
type switched struct {
	bucket.Store
	other bucket.Store
	when  func() bool
}

func (s switched) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if s.when() {
		return s.other.Get(ctx, key, offset, n)
	}
	return s.Store.Get(ctx, key, offset, n)
}

// A miner whose bucket only others cannot read leaves before it pays, and says why.
func TestAMinerThatOnlyOthersCannotReadLeavesBeforeItPays(t *testing.T) {
	for _, missedMax := range []uint8{1, 2, 3} {
		var apart atomic.Bool
		w := newBucketWorld(t, 40, 3, staked, func(cfg *coordinator.Config) { cfg.MinMembers, cfg.MissedMax = 2, missedMax })
		var failed error
		h := w.mine(0, func(c *Config) { c.Stake = worldStake })
		h.cfg.Failed = func(err error) {
			failed = err
			h.Stop(3*time.Second, func() {})
		}
		for i := 1; i < 4; i++ {
			w.mine(i, func(c *Config) { c.Stake = worldStake }, w.readsAllBut(0, apart.Load))
		}
		w.until(10*time.Minute, func() bool { return w.results(0) >= 3 })
		apart.Store(true)
		w.until(20*time.Minute, w.finished)
		var unread *UnreadError
		if !errors.As(failed, &unread) || !strings.Contains(unread.At, place(0).Bucket) {
			t.Errorf("missed_max %d: it ended with: %v", missedMax, failed)
		}
		if m := w.member(0); m.Status != coordinator.StatusWithdrawn || m.Stake+w.purse(0) != purse {
			t.Errorf("missed_max %d: it is %s, with a stake of %d and %d in its purse", missedMax, m.Status, m.Stake, w.purse(0))
		}
	}
}

// A miner whose bucket has no room for a moment stays in the run.
func TestAMinerStaysWhileItsBucketIsFullForAMoment(t *testing.T) {
	w := stakedMiners(t, 20)
	w.until(10*time.Minute, func() bool { return w.results(2) >= 3 })
	for range 5 {
		said := w.notes(2, "no room")
		w.stores.Break(place(2), bucketmem.Faults{Full: true})
		w.until(time.Minute, func() bool { return w.notes(2, "no room") > said })
		w.stores.Break(place(2), bucketmem.Faults{})
		had := w.results(2)
		w.until(time.Minute, func() bool { return w.results(2) > had })
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if w.notes(2, "leaves the run") > 0 {
		t.Error("it left the run")
	}
}

// A full bucket is cleared at once of old windows' objects, but not of those of the newest.
func TestAFullBucketIsClearedOfOldWindows(t *testing.T) {
	w := stakedMiners(t, 60)
	w.until(20*time.Minute, func() bool { return w.state().Round() >= 20 })
	windows := func() (oldest, newest coordinator.Round) {
		for _, k := range w.stores.Keys(place(2)) {
			if n, err := bucket.ParseName(k); err == nil && n.Kind == bucket.KindReveal {
				if oldest == 0 || n.Window < oldest {
					oldest = n.Window
				}
				newest = max(newest, n.Window)
			}
		}
		return oldest, newest
	}
	before, _ := windows()
	w.stores.Break(place(2), bucketmem.Faults{Full: true})
	w.until(5*time.Minute, func() bool { return w.notes(2, "no room") > 0 })
	round := w.state().Round()
	w.until(time.Minute, func() bool { oldest, _ := windows(); return oldest > before })
	oldest, newest := windows()
	if oldest+fullKept < round || newest+2 < round {
		t.Errorf("in round %d it has windows %d to %d, before from %d on", round, oldest, newest, before)
	}
	w.stores.Break(place(2), bucketmem.Faults{})
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
}
