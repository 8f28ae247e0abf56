package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// network is some members with a bucket each, on a virtual loop.
type network struct {
	loop      *loop.Virtual
	world     *mem.World
	exchanges []*bucket.Exchange
	sources   []bucket.Source
}

var start = time.Unix(1_700_000_000, 0)

func newNetwork(t *testing.T, members int, o bucket.ExchangeOptions) *network {
	t.Helper()
	l := loop.NewVirtual(start)
	n := &network{loop: l, world: mem.New(l.Now, 1)}
	o.Simulated = true
	for i := range members {
		own := bucket.Location{Endpoint: "mem", Bucket: fmt.Sprintf("miner-%d", i), AccessKey: "key", SecretKey: "secret"}
		n.world.Make(own)
		store, err := n.world.Open(own)
		if err != nil {
			t.Fatal(err)
		}
		k := keyOf(byte(i))
		n.exchanges = append(n.exchanges, bucket.NewExchange(l, bucket.NewWriter(store, k, bucket.Options{}), bucket.NewReader(n.world.Open, bucket.Options{}), o))
		n.sources = append(n.sources, bucket.Source{Location: bucket.Location{Endpoint: "mem", Bucket: own.Bucket}, Member: k.Public()})
	}
	return n
}

// run steps the loop until nothing more happens.
func (n *network) run() {
	for n.loop.Step() {
	}
}

// elapsed is the virtual time since the start.
func (n *network) elapsed() time.Duration { return n.loop.Now().Sub(start) }

func (n *network) put(t *testing.T, i int, name bucket.Name, body []byte) {
	n.exchanges[i].Put(name, body, time.Hour, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	n.run()
}

func (n *network) want(i int, name bucket.Name) bucket.Want {
	return bucket.Want{Location: n.sources[i].Location, Name: name}
}

func TestExchangeTakesTheTimeOfItsStores(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{})
	name := reveal(0, 1)
	n.world.Break(n.sources[0].Location, mem.Faults{Delay: 100 * time.Millisecond})
	n.put(t, 0, name, []byte("x"))
	if n.elapsed() != 100*time.Millisecond {
		t.Errorf("publishing took %v", n.elapsed())
	}
	got := false
	n.exchanges[1].Get(n.want(0, name), time.Second, func(b []byte, err error) {
		got = true
		if string(b) != "x" || err != nil || n.elapsed() != 200*time.Millisecond {
			t.Errorf("after %v: %q, %v", n.elapsed(), b, err)
		}
	})
	if got {
		t.Error("done is called before Get returns")
	}
	n.run()
	if !got {
		t.Error("done is never called")
	}
}

func TestExchangeEndsInTime(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{})
	n.world.Break(n.sources[0].Location, mem.Faults{Silent: true})
	calls := 0
	n.exchanges[1].Get(n.want(0, reveal(0, 1)), time.Minute, func(_ []byte, err error) {
		calls++
		expectKind(t, err, bucket.ErrSlow)
		if n.elapsed() != time.Minute {
			t.Errorf("it gave up after %v", n.elapsed())
		}
	})
	n.run()
	if calls != 1 {
		t.Errorf("done is called %d times", calls)
	}
}

func TestExchangeFindsWhatAppears(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{})
	n.world.Break(n.sources[0].Location, mem.Faults{Delay: time.Millisecond, Appear: 30 * time.Second})
	name := reveal(0, 1)
	n.put(t, 0, name, []byte("x"))
	n.exchanges[1].Get(n.want(0, name), time.Hour, func(_ []byte, err error) { expectKind(t, err, bucket.ErrMissing) })
	found := false
	n.loop.After(time.Minute, func() {
		n.exchanges[1].Get(n.want(0, name), time.Hour, func(b []byte, err error) {
			if found = string(b) == "x"; err != nil {
				t.Error(err)
			}
		})
	})
	n.run()
	if !found {
		t.Error("it never came")
	}
}

// One bucket that is slow holds up only its own, even when much of it is wanted first.
func TestSlowBucketHoldsUpOnlyItself(t *testing.T) {
	n := newNetwork(t, 3, bucket.ExchangeOptions{Parallel: 4, PerBucket: 2})
	n.put(t, 1, reveal(1, 1), []byte("x"))
	n.world.Break(n.sources[0].Location, mem.Faults{Silent: true})
	slow := 0
	for range 10 {
		n.exchanges[2].Get(n.want(0, reveal(0, 1)), time.Hour, func(_ []byte, err error) {
			slow++
			expectKind(t, err, bucket.ErrSlow)
		})
	}
	quick := false
	n.exchanges[2].Get(n.want(1, reveal(1, 1)), time.Hour, func(_ []byte, err error) {
		quick = true
		if err != nil || slow > 0 || n.elapsed() >= time.Hour {
			t.Errorf("the other bucket's object came after %v: %v", n.elapsed(), err)
		}
	})
	n.run()
	if !quick || slow != 10 {
		t.Errorf("done is called %d times of 10, and the other's: %t", slow, quick)
	}
}

// An operation that may bring much is not slow for as long as that takes: on a narrow link, more at once would have all of them run out of time.
func TestLargeObjectsComeFewAtATime(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{Parallel: 2, PerBucket: 16})
	name := reveal(0, 1)
	n.put(t, 0, name, []byte("x"))
	n.world.Break(n.sources[0].Location, mem.Faults{Delay: 9 * time.Second})
	w := n.want(0, name)
	w.Max = 10_000_000
	begin, last := n.loop.Now(), time.Duration(0)
	for range 6 {
		n.exchanges[1].Get(w, time.Minute, func(_ []byte, err error) {
			last = n.loop.Now().Sub(begin)
			if err != nil {
				t.Error(err)
			}
		})
	}
	n.run()
	if last != 27*time.Second {
		t.Errorf("the last of six comes after %v, want two at a time", last)
	}
}

// Forty buckets that accept connections and serve nothing hold up another one's object, and the own uploads, for seconds at first. Once
// they have run into their time limits they hold up nothing.
func TestManySlowBucketsHoldUpOnlyThemselves(t *testing.T) {
	const members, slow, limit = 42, 40, 10 * time.Second
	n := newNetwork(t, members, bucket.ExchangeOptions{})
	reader := n.exchanges[members-1]
	for _, s := range n.sources[:slow] {
		n.world.Break(s.Location, mem.Faults{Silent: true})
	}
	for k, most := range []time.Duration{5 * time.Second, 0, 0} {
		window := k + 1
		name := reveal(slow, coordinator.Round(window))
		n.put(t, slow, name, []byte("x"))
		began := n.loop.Now()
		late := 0
		for i := range slow {
			w := n.want(i, reveal(byte(i), coordinator.Round(window)))
			w.Max = 300
			reader.Get(w, limit, func(_ []byte, err error) {
				late++
				expectKind(t, err, bucket.ErrSlow)
			})
		}
		ended := 0
		took := func(what string, most time.Duration) func(error) {
			return func(err error) {
				ended++
				if took := n.loop.Now().Sub(began); err != nil || took > most {
					t.Errorf("window %d: %s takes %v, want at most %v: %v", window, what, took, most, err)
				}
			}
		}
		read, write := took("another's object", most), took("an upload", 0)
		reader.Get(n.want(slow, name), limit, func(_ []byte, err error) { read(err) })
		reader.Put(reveal(members-1, coordinator.Round(window)), []byte("y"), limit, write)
		n.run()
		if late != slow || ended != 2 {
			t.Errorf("window %d: %d of %d slow ones and %d of 2 others end", window, late, slow, ended)
		}
	}
}

func TestStoppedOperationIsSilent(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{PerBucket: 1})
	n.world.Break(n.sources[0].Location, mem.Faults{Delay: time.Second})
	fail := func(_ []byte, err error) { t.Errorf("done of a stopped operation is called: %v", err) }
	var stops []func()
	for range 3 { // one runs, the others wait
		stops = append(stops, n.exchanges[1].Get(n.want(0, reveal(0, 1)), time.Minute, fail))
	}
	stops = append(stops, n.exchanges[1].Blob(bucket.BlobWant{Bytes: 1, From: n.sources[:1]}, time.Minute, func([]byte, []wire.Hash, error) { t.Error("done of a stopped blob is called") }))
	stops = append(stops, n.exchanges[0].PutBlob(wire.Hash{}, 1, []byte("x"), time.Minute, func(wire.Hash, error) { t.Error("done of a stopped blob is called") }))
	for _, stop := range stops {
		stop()
		stop()
	}
	n.run()
	done := false
	n.exchanges[1].Get(n.want(0, reveal(0, 1)), time.Minute, func(_ []byte, err error) {
		done = true
		expectKind(t, err, bucket.ErrMissing)
	})
	n.run()
	if !done {
		t.Error("after stopped operations there is no place for another")
	}
}

// What chance does on a virtual loop is the same every time.
func TestSimulatedFaultsAreAFunctionOfTheSeed(t *testing.T) {
	history := func() string {
		var b strings.Builder
		n := newNetwork(t, 4, bucket.ExchangeOptions{})
		for i, s := range n.sources {
			n.world.Break(s.Location, mem.Faults{Delay: 10 * time.Millisecond, Jitter: time.Second, Fail: 300, Corrupt: 200, Cut: 100, Lost: 100})
			n.exchanges[i].Put(reveal(byte(i), 1), bytes.Repeat([]byte{byte(i)}, 100), time.Minute, func(err error) { fmt.Fprintln(&b, n.elapsed(), i, err) })
		}
		n.run()
		for i := range n.sources {
			for j := range n.exchanges {
				n.exchanges[j].Get(n.want(i, reveal(byte(i), 1)), time.Minute, func(body []byte, err error) {
					fmt.Fprintln(&b, n.elapsed(), i, j, body, err)
					if err == nil && !bytes.Equal(body, bytes.Repeat([]byte{byte(i)}, 100)) {
						t.Errorf("what is taken is not what %d published", i)
					}
				})
			}
		}
		n.run()
		return b.String()
	}
	first := history()
	if history() != first {
		t.Error("two runs with one seed differ")
	}
	for _, want := range []string{bucket.ErrLied.Error(), bucket.ErrMissing.Error(), "<nil>"} {
		if !strings.Contains(first, want) {
			t.Errorf("it never happens that %q:\n%s", want, first)
		}
	}
}

// blob returns data of three parts.
func blob() []byte {
	b := make([]byte, 2*bucket.PartChunks*merkle.ChunkBytes+300_000)
	for i := 0; i < len(b); i += 1000 {
		b[i] = byte(i / 1000)
		b[i+1] = byte(i / 256_000)
	}
	return b
}

func TestBlobComesFromWhoeverIsHonest(t *testing.T) {
	n := newNetwork(t, 6, bucket.ExchangeOptions{})
	data, run := blob(), wire.Sum("run")
	root := merkle.BlobRoot(data)
	for _, i := range []int{1, 4} {
		n.exchanges[i].PutBlob(run, 9, data, time.Minute, func(got wire.Hash, err error) {
			if err != nil || got != root {
				t.Errorf("publishing: %v, root %v", err, got)
			}
		})
	}
	n.run()
	n.world.Break(n.sources[0].Location, mem.Faults{Silent: true})
	n.world.Break(n.sources[1].Location, mem.Faults{Corrupt: 1000})
	n.world.Break(n.sources[2].Location, mem.Faults{Serve: func(string, []byte) []byte { return nil }})
	n.world.Break(n.sources[3].Location, mem.Faults{Refuse: true})
	w := bucket.BlobWant{Run: run, Window: 9, Root: root, Bytes: uint64(len(data)), From: n.sources[:5]}
	begin, done := n.loop.Now(), false
	n.exchanges[5].Blob(w, time.Minute, func(got []byte, _ []wire.Hash, err error) {
		done = true
		if err != nil || !bytes.Equal(got, data) || n.loop.Now().Sub(begin) >= time.Minute {
			t.Errorf("after %v: %d bytes, %v", n.loop.Now().Sub(begin), len(got), err)
		}
	})
	n.run()
	if !done {
		t.Fatal("it never came")
	}
	for name, change := range map[string]func(*bucket.BlobWant){
		"nobody has it":      func(w *bucket.BlobWant) { w.From = w.From[:4] },
		"another size":       func(w *bucket.BlobWant) { w.Bytes-- },
		"a part more":        func(w *bucket.BlobWant) { w.Bytes += 64 * merkle.ChunkBytes },
		"another root":       func(w *bucket.BlobWant) { w.Root[0]++ },
		"another window":     func(w *bucket.BlobWant) { w.Window++ },
		"nobody to ask":      func(w *bucket.BlobWant) { w.From = nil },
		"larger than a blob": func(w *bucket.BlobWant) { w.Bytes = bucket.BlobBytesMax + 1 },
	} {
		bad, calls := w, 0
		bad.From = slices.Clone(w.From)
		change(&bad)
		n.exchanges[5].Blob(bad, time.Minute, func(got []byte, _ []wire.Hash, err error) {
			calls++
			if err == nil || got != nil {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		})
		n.run()
		if calls != 1 {
			t.Errorf("%s: done is called %d times", name, calls)
		}
	}
}

// shelf keeps parts in memory.
type shelf struct {
	mu    sync.Mutex
	parts map[wire.Hash][]byte
}

func (s *shelf) Get(root wire.Hash, _ uint64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[root]
}

func (s *shelf) Put(root wire.Hash, part []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[root] = bytes.Clone(part)
}

// What a fetch got before the process was killed is not fetched again.
func TestAFetchGoesOnAfterACrash(t *testing.T) {
	n := newNetwork(t, 2, bucket.ExchangeOptions{})
	data, run := blob(), wire.Sum("run")
	n.exchanges[0].PutBlob(run, 9, data, time.Minute, func(_ wire.Hash, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	n.run()
	left := 1 // parts until the bucket falls silent
	served := 0
	n.world.Break(n.sources[0].Location, mem.Faults{Serve: func(key string, body []byte) []byte {
		if !strings.Contains(key, "/part/") {
			return body
		}
		if left--; left < 0 {
			return nil
		}
		served++
		return body
	}})
	kept := &shelf{parts: map[wire.Hash][]byte{}}
	w := bucket.BlobWant{Run: run, Window: 9, Root: merkle.BlobRoot(data), Bytes: uint64(len(data)), From: n.sources[:1], Kept: kept}
	n.exchanges[1].Blob(w, time.Minute, func(_ []byte, _ []wire.Hash, err error) {
		if err == nil {
			t.Error("it came whole")
		}
	})
	n.run()
	if served != 1 || len(kept.parts) != 1 {
		t.Fatalf("%d parts were served and %d kept, want 1", served, len(kept.parts))
	}
	left = 1 << 10
	done := false
	n.exchanges[1].Blob(w, time.Minute, func(got []byte, parts []wire.Hash, err error) {
		done = true
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if len(parts) != 3 {
			t.Errorf("%d parts are named, want 3", len(parts))
		}
	})
	n.run()
	if !done || served != 3 {
		t.Errorf("done: %v, and %d parts were served in all, want 3", done, served)
	}
}

// A model of which three of a hundred members have the parts comes in seconds though ten others, and one of the three once it has served
// its index, accept connections and serve nothing.
func TestSilentBucketsHoldUpNoBlob(t *testing.T) {
	const members, silent = 100, 10
	n := newNetwork(t, members+1, bucket.ExchangeOptions{})
	data, run := blob(), wire.Sum("run")
	root := merkle.BlobRoot(data)
	for _, i := range []int{0, 40, 80} {
		n.exchanges[i].PutBlob(run, 9, data, time.Minute, func(_ wire.Hash, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	n.run()
	n.world.Break(n.sources[0].Location, mem.Faults{Serve: func(key string, body []byte) []byte {
		if strings.Contains(key, "/index/") {
			return body
		}
		return nil
	}, Delay: time.Minute})
	for i := range silent {
		n.world.Break(n.sources[1+i].Location, mem.Faults{Silent: true})
	}
	w := bucket.BlobWant{Run: run, Window: 9, Root: root, Bytes: uint64(len(data)), From: n.sources[:members]}
	begin, done := n.loop.Now(), false
	n.exchanges[members].Blob(w, 30*time.Minute, func(got []byte, _ []wire.Hash, err error) {
		done = true
		if took := n.loop.Now().Sub(begin); err != nil || !bytes.Equal(got, data) || took > 3*time.Minute {
			t.Errorf("after %v: %d bytes, %v", took, len(got), err)
		}
	})
	n.run()
	if !done {
		t.Fatal("it never came")
	}
}

// The same on the clock of the wall and a real server, where operations end while others are given up.
func TestExchangeOnARealLoop(t *testing.T) {
	s := startServer(t, t.TempDir(), "")
	c := newClient(t, bucket.S3Options{})
	own, public, err := s.Make("miner")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	l := loop.NewReal()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(ctx) })
	defer running.Wait()
	defer cancel()
	e := bucket.NewExchange(l, bucket.NewWriter(store, keyOf(1), bucket.Options{}), bucket.NewReader(c.Open, bucket.Options{}), bucket.ExchangeOptions{})
	data := blob()
	results := make(chan error, 100)
	l.Post(func() {
		e.PutBlob(wire.Sum("run"), 1, data, time.Minute, func(root wire.Hash, err error) {
			w := bucket.BlobWant{Run: wire.Sum("run"), Window: 1, Root: root, Bytes: uint64(len(data)), From: []bucket.Source{{Location: public, Member: keyOf(1).Public()}}}
			for range 3 {
				e.Blob(w, time.Millisecond, func(_ []byte, _ []wire.Hash, err error) {
					if err == nil {
						err = errors.New("a blob came within a millisecond")
					} else if errors.Is(err, bucket.ErrSlow) {
						err = nil
					}
					results <- err
				})
				e.Blob(w, time.Minute, func([]byte, []wire.Hash, error) { results <- errors.New("a stopped operation is not silent") })()
			}
			e.Blob(w, time.Minute, func(got []byte, _ []wire.Hash, err error) {
				if err == nil && !bytes.Equal(got, data) {
					err = errors.New("it is another blob")
				}
				results <- err
			})
			results <- err
		})
	})
	for range 5 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
