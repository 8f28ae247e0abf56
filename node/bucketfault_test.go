package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// Faults of stores cost windows, never agreement: whatever buckets do, all miners hold the same parameters in the end.
func TestMinersAgreeWhateverBucketsDo(t *testing.T) {
	t.Parallel()
	other := func(key string, object []byte) []byte { // an object of miner 0 under every name
		n, err := bucket.ParseName(key)
		if err != nil || n.Kind != bucket.KindReveal {
			return object
		}
		return bucket.Seal(worldKey(0), bucket.Name{Run: n.Run, Window: n.Window, Kind: n.Kind, Member: worldKey(0).Public(), Content: n.Content}, []byte("mine"))
	}
	var first []byte
	replayed := func(key string, object []byte) []byte { // the first reveal, for ever
		n, err := bucket.ParseName(key)
		if err != nil || n.Kind != bucket.KindReveal || object == nil {
			return object
		}
		if first == nil {
			first = object
		}
		return first
	}
	for _, c := range []struct {
		name   string
		all    bool // buckets, rather than that of miner 2 alone
		faults bucketmem.Faults
		most   uint32 // results of miner 2 that may be accepted
		least  uint32 // of the others that must be
	}{
		{"slow", true, bucketmem.Faults{Delay: 300 * time.Millisecond, Jitter: 300 * time.Millisecond}, 10, 10},
		{"failing", true, bucketmem.Faults{Fail: 250}, 10, 9},
		{"lagging", true, bucketmem.Faults{Appear: time.Second}, 10, 10},
		{"losing", true, bucketmem.Faults{Lost: 100}, 10, 5},
		{"silent", false, bucketmem.Faults{Silent: true}, 0, 10},
		{"refusing", false, bucketmem.Faults{Refuse: true}, 0, 10},
		{"lying", false, bucketmem.Faults{Corrupt: 1000}, 0, 10},
		{"truncating", false, bucketmem.Faults{Cut: 1000}, 0, 10},
		{"endless", false, bucketmem.Faults{Endless: true}, 10, 10},
		{"another's", false, bucketmem.Faults{Serve: other}, 0, 10},
		{"replaying", false, bucketmem.Faults{Serve: replayed}, 1, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newBucketWorld(t, 10, 4)
			for i := range 4 {
				if c.all || i == 2 {
					w.stores.Break(place(i), c.faults)
				}
				w.mine(i)
			}
			w.until(20*time.Minute, w.finished)
			w.agree(0, 1, 2, 3)
			for _, i := range []int{0, 1, 3} {
				if got := w.results(i); got < c.least {
					t.Errorf("miner %d: %d results accepted, want %d", i, got, c.least)
				}
			}
			if got := w.results(2); got > c.most {
				t.Errorf("miner 2: %d results accepted, want %d at most", got, c.most)
			}
		})
	}
}

// The server that all buckets are on goes away for longer than a window, and comes back.
func TestMinersOutliveTheirServer(t *testing.T) {
	w := newBucketWorld(t, 12, 3)
	for i := range 3 {
		w.mine(i)
	}
	set := func(f bucketmem.Faults) {
		for i := range 3 {
			w.stores.Break(place(i), f)
		}
	}
	w.until(10*time.Minute, func() bool { return w.state().Step() == 4 })
	set(bucketmem.Faults{Fail: 1000})
	w.until(10*time.Minute, func() bool { return w.state().Step() == 6 })
	set(bucketmem.Faults{})
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	for i := range 3 {
		if got := w.results(i); got < 8 || got > 11 {
			t.Errorf("miner %d: %d results accepted of 12", i, got)
		}
	}
}

func TestAMinerThatIsTooSlowSaysSoAndFollows(t *testing.T) {
	w := newBucketWorld(t, 6, 3, func(cfg *coordinator.Config) { cfg.MissedMax = 20 })
	w.mine(0)
	w.mine(1)
	h := w.mine(2, func(cfg *Config) {
		cfg.Cost = func(j Job) time.Duration {
			if j.Kind == "train" {
				return 7 * time.Second // windows have five
			}
			return 10 * time.Millisecond
		}
	})
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if w.results(2) != 0 || w.results(0) < 4 { // it is a witness too, and busy
		t.Errorf("%d of its results accepted, %d of another's", w.results(2), w.results(0))
	}
	if !h.noted("too slow") {
		t.Error("nobody told its owner")
	}
}

func TestOldWindowsAreRemoved(t *testing.T) {
	w := newBucketWorld(t, 60, 2, func(cfg *coordinator.Config) { cfg.EpochMs = 60_000 })
	w.mine(0)
	w.mine(1)
	w.until(30*time.Minute, w.finished)
	w.agree(0, 1)
	now := w.state().Round()
	for i := range 2 {
		models := map[coordinator.Round]bool{}
		for _, k := range w.stores.Keys(place(i)) {
			n, err := bucket.ParseName(k)
			if err != nil {
				t.Fatal(err)
			}
			switch n.Kind {
			case bucket.KindCommitment, bucket.KindReveal:
				if n.Window+windowsKept+2*tidyEvery < now {
					t.Errorf("in round %d the bucket still has %s of window %d", now, n.Kind, n.Window)
				}
			case bucket.KindIndex:
				models[n.Window] = true
			case bucket.KindState:
				if n.Window+40 < now {
					t.Errorf("in round %d the bucket still has the slice of window %d", now, n.Window)
				}
			}
		}
		if len(models) == 0 || len(models) > 5 {
			t.Errorf("whole models of windows %v in the bucket of miner %d", models, i)
		}
	}
}

// A miner that comes back with what it signed and without its state directory, as on another
// machine, loses the open windows and no more.
func TestAMinerGoesOnWithoutItsSealedUpdates(t *testing.T) {
	w := newBucketWorld(t, 20, 2)
	for i := range 3 {
		w.mine(i)
	}
	w.until(10*time.Minute, func() bool { return w.results(2) >= 3 })
	had := w.results(2)
	w.crash(2)
	for i := range w.hosts[2].store.own {
		w.hosts[2].store.own[i].Update = nil
	}
	w.hosts[2].store.ok = false
	w.mine(2)
	w.until(30*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if got := w.results(2); got < had+3 {
		t.Errorf("%d of its results were accepted before, and %d in the end", had, got)
	}
}

// Once a run has finished, a miner that leaves keeps the final parameters in its bucket and nothing
// else: a member that was away takes them from there.
func TestAfterARunOnlyItsModelStaysInBuckets(t *testing.T) {
	w := newBucketWorld(t, 30, 2, func(cfg *coordinator.Config) { cfg.EpochMs = 60_000 })
	for i := range 3 {
		w.mine(i)
	}
	other := bucket.Name{Run: wire.Sum("another run", nil), Window: 1, Kind: bucket.KindReveal, Member: w.key(0).Public()}.Path()
	own, err := w.stores.Open(place(0))
	if err == nil {
		err = own.Put(t.Context(), other, strings.NewReader("x"), 1, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.until(10*time.Minute, func() bool { return w.state().Step() >= 10 })
	w.crash(2)
	w.until(30*time.Minute, w.finished)
	w.agree(0, 1)
	leave := func(i int) {
		left := false
		w.hosts[i].Stop(time.Millisecond, func() { left = true })
		w.until(time.Minute, func() bool { return left })
	}
	leave(0)
	leave(1)
	w.mine(2)
	w.agree(2)
	leave(2)
	indexes := 0
	agreed, _ := w.state().Params()
	for i := range 3 {
		for _, k := range w.stores.Keys(place(i)) {
			n, err := bucket.ParseName(k)
			switch {
			case err != nil:
				t.Fatal(err)
			case n.Kind == bucket.KindIndex && n.Content == agreed:
				indexes++
			case k != other && n.Kind != bucket.KindPart:
				t.Errorf("the bucket of miner %d still has %s of window %d", i, n.Kind, n.Window)
			}
		}
	}
	if indexes == 0 {
		t.Error("no bucket has the final parameters")
	}
	if keys := w.stores.Keys(place(0)); !slices.Contains(keys, other) {
		t.Errorf("an object of another run was removed: %v", keys)
	}
}

// What liars offer to a miner that missed windows leads to another hash, and it goes another way.
func TestLiesAboutSlicesOfTheModelAreFoundOut(t *testing.T) {
	w := newBucketWorld(t, 30, 3, func(cfg *coordinator.Config) { cfg.EpochMs = 300_000 })
	for i := range 4 {
		w.mine(i)
	}
	w.until(10*time.Minute, func() bool { return w.state().Step() == 4 })
	w.crash(3)
	w.until(10*time.Minute, func() bool { return w.state().Step() == 14 })
	for i := range 2 {
		w.stores.Break(place(i), bucketmem.Faults{Serve: func(key string, object []byte) []byte {
			n, body, err := bucket.Open(object)
			if err != nil || n.Kind != bucket.KindState {
				return object
			}
			wrong := append([]byte(nil), body...)
			wrong[len(wrong)-1] ^= 1
			return bucket.Seal(worldKey(i), n, wrong)
		}})
	}
	w.mine(3)
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2, 3)
}

// A miner keeps nothing of what it does not need: sealed updates go when they cannot be revealed any more.
func TestSealedUpdatesAreLetGo(t *testing.T) {
	w := newBucketWorld(t, 8, 2)
	h := w.mine(0)
	w.mine(1)
	w.until(10*time.Minute, func() bool {
		if len(h.sealed) > 2 {
			t.Fatalf("%d updates are kept", len(h.sealed))
		}
		return w.finished()
	})
}

func TestNobodyTakesPartInARunOfBucketsWithoutABucket(t *testing.T) {
	if _, err := New(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), "bucket") {
		t.Errorf("%v", err)
	}
}

// Who leaves in the middle of a window reveals first what it has committed to, so that its work is not lost.
func TestAMinerThatLeavesRevealsItsLastResult(t *testing.T) {
	w := newBucketWorld(t, 8, 3, func(cfg *coordinator.Config) { cfg.MinMembers = 2 })
	for i := range 3 {
		w.mine(i)
	}
	w.until(10*time.Minute, w.committed(2))
	h := w.hosts[2]
	at := w.state().Round()
	left := false
	h.Stop(3*time.Second, func() { left = true })
	w.until(time.Minute, func() bool { return left })
	if got := w.state().Round(); got != at+1 {
		t.Errorf("it left in round %d, having committed in %d", got, at)
	}
	index, _ := w.state().Find(w.key(2).Public())
	w.until(time.Minute, func() bool { return w.state().Round() == at+2 })
	if r, ok := w.state().At(at); !ok || !r.Accepted(index) {
		t.Error("its last result was not accepted")
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1)
}

// A commitment that could not be written in its window, though the ledger has it, is written when it is revealed.
func TestACommitmentThatWasNotWrittenIsWrittenLater(t *testing.T) {
	w := newBucketWorld(t, 8, 3)
	for i := range 3 {
		w.mine(i)
	}
	w.until(10*time.Minute, func() bool { return w.state().Step() == 3 })
	w.stores.Break(place(2), bucketmem.Faults{Refuse: true})
	w.until(10*time.Minute, func() bool { return w.state().Step() == 4 })
	w.stores.Break(place(2), bucketmem.Faults{})
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if got := w.results(2); got < 7 {
		t.Errorf("%d results accepted of 8", got)
	}
}
