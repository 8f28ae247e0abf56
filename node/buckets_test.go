package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
)

// sliced is a toy whose updates are sealed and revealed in slices by the codec of real runs. Its gradient is a function of the parameters and
// of the sequences' indexes.
type sliced struct {
	toy
	codec *slice.Codec
}

func newSliced(t *testing.T, params int, compression uint32) sliced {
	t.Helper()
	layout := tensor.NewLayout([]tensor.Spec{{Name: "a", Shape: []int{params - 100}}, {Name: "b", Shape: []int{100}}})
	codec, err := slice.New(layout, slice.Config{Compression: compression, Leaf: 128, Decay: 1}, exact.NewPool(1))
	if err != nil {
		t.Fatal(err)
	}
	return sliced{toy{params: params}, codec}
}

func (e sliced) Slicer() (engine.Slicer, bool) { return cpu.NewSlicer(e.codec), true }
func (e sliced) StateLen() int                 { return e.codec.StateLen() }
func (e sliced) PayloadMax() int               { return e.codec.PayloadMax() }
func (e sliced) Check(p []byte) error          { return e.codec.Check(p) }

func (e sliced) Step(ctx context.Context, p, s engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	grad := e.gradient(engine.Values(p), spans)
	payload, err := e.codec.Encode(nil, engine.Values(s), grad, 0.1)
	if err != nil {
		return engine.Result{}, err
	}
	return engine.Result{Payload: payload, Loss: 1, Tokens: uint64(batch.Total(spans)), Gradient: merkle.BlobRoot(tensor.Bytes(grad))}, ctx.Err()
}

func (e sliced) Gradient(ctx context.Context, p engine.Vector, spans []batch.Span) (engine.Gradient, error) {
	return engine.Gradient{Root: merkle.BlobRoot(tensor.Bytes(e.gradient(engine.Values(p), spans)))}, ctx.Err()
}

func (sliced) gradient(params []float32, spans []batch.Span) []float32 {
	var sum uint64
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			sum += i
		}
	}
	grad := make([]float32, len(params))
	for i := range grad {
		grad[i] = (params[i] - float32(sum%97)) / float32(len(params))
	}
	return grad
}

func (e sliced) Apply(v engine.Vector, payloads [][]byte, _ uint32) error {
	params := engine.Values(v)
	return e.codec.Apply(params, payloads, 0.1)
}

// windows makes a world's run one of buckets, with windows of five seconds.
func windows(cfg *coordinator.Config) {
	cfg.Exchange, cfg.WindowBlocks, cfg.Overlap = coordinator.Buckets, 25, 1
	cfg.RoundTrainMs, cfg.WarmupMs, cfg.EpochMs = 6000, 30_000, 60_000
}

// newBucketWorld is a world of buckets.
func newBucketWorld(t *testing.T, steps, members uint32, adjust ...func(*coordinator.Config)) *world {
	t.Helper()
	engine := newSliced(t, 70_000, 20)
	w := newLargeWorld(t, steps, members, append([]func(*coordinator.Config){windows, func(cfg *coordinator.Config) {
		cfg.StateHash = merkle.BlobRoot(make([]byte, 4*engine.StateLen()))
	}}, adjust...)...)
	w.engine = engine
	w.stores = bucketmem.New(w.clock.Now, 1)
	return w
}

func place(i int) bucket.Location {
	return bucket.Location{Endpoint: "mem", Bucket: fmt.Sprintf("miner-%d", i), AccessKey: "key", SecretKey: "secret"}
}

// mine starts node i with a bucket of its own.
func (w *world) mine(i int, adjust ...func(*Config)) *testNode {
	w.t.Helper()
	return w.start(i, append([]func(*Config){func(cfg *Config) {
		w.stores.Make(place(i))
		own, err := w.stores.Open(place(i))
		if err != nil {
			w.t.Fatal(err)
		}
		registered, err := bucket.Location{Endpoint: "mem", Bucket: place(i).Bucket}.Registered()
		if err != nil {
			w.t.Fatal(err)
		}
		writer, reader := bucket.NewWriter(own, w.key(i), bucket.Options{}), bucket.NewReader(w.stores.Open, bucket.Options{})
		cfg.Listen, cfg.Engine = nil, w.engine
		cfg.Bucket = &Bucket{Exchange: bucket.NewExchange(cfg.Loop, writer, reader, bucket.ExchangeOptions{Simulated: true}), Registered: registered}
	}}, adjust...)...)
}

// results is how many of member i's results were accepted.
func (w *world) results(i int) uint32 {
	at, ok := w.state().Find(w.key(i).Public())
	if !ok {
		return 0
	}
	return w.state().Member(at).Results
}

func (h *testNode) noted(text string) bool {
	for _, ev := range h.events {
		if n, ok := ev.(event.Note); ok && strings.Contains(n.Text, text) {
			return true
		}
	}
	return false
}

func TestMinersAgreeWindowByWindow(t *testing.T) {
	for _, speed := range []time.Duration{100 * time.Millisecond, time.Millisecond} {
		t.Run(speed.String(), func(t *testing.T) { minersAgree(t, speed) })
	}
}

// minersAgree lets three miners whose jobs take so long train eight windows. Writing to a bucket takes longer than some of them.
func minersAgree(t *testing.T, speed time.Duration) {
	w := newBucketWorld(t, 8, 3)
	for i := range 3 {
		w.stores.Break(place(i), bucketmem.Faults{Delay: 20 * time.Millisecond})
		w.mine(i, func(cfg *Config) { cfg.Cost = func(Job) time.Duration { return speed } })
	}
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	for i := range 3 {
		if got := w.results(i); got != 8 {
			t.Errorf("miner %d: %d results accepted of 8", i, got)
		}
		h := w.hosts[i]
		if count[event.Healed](h) > 0 || count[event.Refused](h) > 0 || count[event.Note](h) > 0 {
			t.Errorf("miner %d: healed %d, refused %d, notes %d", i, count[event.Healed](h), count[event.Refused](h), count[event.Note](h))
		}
	}
	kinds := map[string]int{}
	for _, k := range w.stores.Keys(place(0)) {
		n, err := bucket.ParseName(k)
		if err != nil {
			t.Fatal(err)
		}
		kinds[n.Kind.String()]++
	}
	if kinds["commitment"] != 8 || kinds["reveal"] != 8 || kinds["state"] != 8 {
		t.Errorf("in the bucket: %v", kinds)
	}
}

var errNoRoom = errors.New("no room")

// committed says whether node i's commitment of the newest round is on the ledger.
func (w *world) committed(i int) func() bool {
	return func() bool {
		s := w.state()
		at, ok := s.Find(w.key(i).Public())
		if r, open := s.At(s.Round()); ok && open && s.Phase() == coordinator.RoundTrain && s.Step() > 2 {
			_, ok = r.Committed(at)
			return ok
		}
		return false
	}
}

func TestAMinerThatCrashedRevealsWhatItCommittedTo(t *testing.T) {
	w := newBucketWorld(t, 8, 3)
	w.mine(0)
	w.mine(1)
	w.mine(2)
	w.until(10*time.Minute, w.committed(2))
	w.crash(2)
	w.mine(2)
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if got := w.results(2); got != 8 {
		t.Errorf("%d results accepted of 8", got)
	}
	if w.hosts[2].noted("cannot be revealed") {
		t.Error("the update was not kept")
	}
}

func TestAMinerWithoutADiskMissesOneWindow(t *testing.T) {
	w := newBucketWorld(t, 8, 3)
	for i := range 3 {
		w.mine(i)
	}
	w.until(10*time.Minute, w.committed(2))
	w.crash(2)
	w.hosts[2].store = &memStore{}
	w.mine(2)
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if got := w.results(2); got < 5 || got > 7 {
		t.Errorf("%d results accepted of 8", got)
	}
}

func TestCommitmentsAreNotMadePublicBeforeTheUpdateIsKept(t *testing.T) {
	w := newBucketWorld(t, 3, 3)
	w.mine(0)
	w.mine(1)
	h := w.mine(2, func(cfg *Config) { cfg.Store.(*memStore).full = errNoRoom })
	w.until(10*time.Minute, w.finished)
	if w.results(2) != 0 || !h.noted("could not be saved") {
		t.Errorf("%d results", w.results(2))
	}
	for _, k := range w.stores.Keys(place(2)) {
		if n, _ := bucket.ParseName(k); n.Kind == bucket.KindCommitment || n.Kind == bucket.KindReveal {
			t.Errorf("in the bucket: %s", k)
		}
	}
}

// A miner that comes in the next epoch gets the whole model, and one that missed windows the slices of those, neither of which it believes
// before the hash is the agreed one.
func TestMinersThatMissedWindowsPatchTheirParameters(t *testing.T) {
	w := newBucketWorld(t, 30, 2, func(cfg *coordinator.Config) { cfg.EpochMs = 300_000 })
	for i := range 3 {
		w.mine(i)
	}
	w.until(10*time.Minute, func() bool { return w.state().Step() == 4 })
	w.crash(2)
	w.until(10*time.Minute, func() bool { return w.state().Step() == 14 })
	h := w.mine(2)
	w.until(10*time.Minute, func() bool { return count[event.Healed](h) > 0 })
	ev, _ := first[event.Healed](h)
	if !strings.Contains(ev.Source, "slices since") {
		t.Errorf("healed from %q", ev.Source)
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
}

func TestALateMinerGetsTheWholeModel(t *testing.T) {
	w := newBucketWorld(t, 30, 2, func(cfg *coordinator.Config) { cfg.EpochMs = 60_000 })
	w.mine(0)
	w.mine(1)
	w.until(10*time.Minute, func() bool { return w.state().Step() == 6 })
	h := w.mine(2, func(cfg *Config) { cfg.Initial = func() []float32 { return nil } })
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	ev, ok := first[event.Healed](h)
	if !ok || !strings.Contains(ev.Source, "verified") {
		t.Errorf("healed: %v, from %q", ok, ev.Source)
	}
	if w.results(2) < 5 {
		t.Errorf("%d results accepted", w.results(2))
	}
}
