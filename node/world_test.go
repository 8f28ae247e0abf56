package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// toy is an engine whose model is a list of numbers and whose updates are the sums of the sequences' indexes: cheap, and still a
// function of everything it is given.
type toy struct {
	*cpu.Engine // nil: its vectors are in host memory
	params      int
}

var toyMagic = []byte("toy1")

func (e toy) Step(ctx context.Context, p, s engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	p, err := engine.Ready(p)
	if err != nil {
		return engine.Result{}, err
	}
	first := engine.Values(p)[0]
	if s, err = engine.Ready(s); err != nil {
		return engine.Result{}, err
	}
	var sum uint64
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			sum += i
		}
	}
	engine.Values(s)[0] += float32(sum)
	payload := binary.LittleEndian.AppendUint32(bytes.Clone(toyMagic), math.Float32bits(first+float32(sum)))
	return engine.Result{Payload: payload, Loss: 1, Tokens: sum, Gradient: wire.Sum("gradient", binary.LittleEndian.AppendUint64(nil, sum), payload)}, ctx.Err()
}

func (e toy) Apply(v engine.Vector, payloads [][]byte, step uint32) error {
	params := engine.Values(v)
	for _, p := range payloads {
		if err := e.Check(p); err != nil {
			return err
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(p[4:]))
		for i := range params {
			params[i] = params[i]/2 + v/1e6 + float32(step)
		}
	}
	return nil
}

func (e toy) Check(p []byte) error {
	if len(p) != 8 || !bytes.HasPrefix(p, toyMagic) {
		return fmt.Errorf("not a toy's payload: %x", p)
	}
	return nil
}

func (e toy) HeldOut(context.Context, engine.Vector) (float32, error) { return 2, nil }

func (e toy) Leaves(v engine.Vector) []wire.Hash {
	return merkle.BlobLeaves(tensor.Bytes(engine.Values(v)))
}
func (e toy) Base() []float32                   { return nil }
func (e toy) Slicer() (engine.Slicer, bool)     { return nil, false }
func (e toy) Follower() (engine.Follower, bool) { return nil, false }
func (e toy) ParamsLen() int                    { return e.params }
func (e toy) StateLen() int                     { return 4 }
func (e toy) PayloadMax() int                   { return 64 }

// world is a chain, a mesh and nodes on one virtual clock.
type world struct {
	t     *testing.T
	clock *loop.Virtual
	chain *ledgermem.Chain
	mesh  *p2pmem.Mesh
	hosts []*testNode
	toy   toy

	engine sliced           // of runs of buckets
	stores *bucketmem.World // likewise
}

// testNode is a node and what a test looks at.
type testNode struct {
	*Node
	store    *memStore
	events   []event.Event
	expelled *ExpelledError
	scope    *loop.Scope
	cancel   context.CancelFunc
}

// memStore is a disk that may be full or damaged.
type memStore struct {
	saved      Saved
	own        []OwnResult
	mu         sync.Mutex // guards blobs, which peers read too
	blobs      map[wire.Hash][]byte
	checkpoint []float32
	of         wire.Hash // the checkpoint's hash
	ok         bool
	damaged    error
	full       error
	narrow     error // there is room for small files only
	saves      int
	cases      []SavedCase
}

func (m *memStore) Load() (Saved, bool, error) { return m.saved, m.ok && m.damaged == nil, m.damaged }

func (m *memStore) Save(s Saved) error {
	if m.full != nil {
		return m.full
	}
	m.saved, m.ok, m.saves = s, true, m.saves+1
	return nil
}

func (m *memStore) SaveOwn(o OwnResult, keep coordinator.Round) error {
	if m.full == nil {
		o.Update = bytes.Clone(o.Update)
		m.own = slices.DeleteFunc(m.own, func(b OwnResult) bool { return b.Round%keep == o.Round%keep })
		m.own = append(m.own, o)
	}
	return m.full
}

func (m *memStore) SaveBlob(root wire.Hash, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := cmp.Or(m.full, m.narrow); err != nil {
		return err
	}
	if m.blobs == nil {
		m.blobs = map[wire.Hash][]byte{}
	}
	m.blobs[root] = bytes.Clone(data)
	return nil
}

func (m *memStore) NewBlob() blobs.NewFile { return &newBlob{store: m} }

// newBlob is a file of a memStore that is being written.
type newBlob struct {
	p2pmem.File
	store *memStore
}

func (b *newBlob) WriteAt(data []byte, at int64) (int, error) {
	if err := cmp.Or(b.store.full, b.store.narrow); err != nil {
		return 0, err
	}
	return b.File.WriteAt(data, at)
}

func (b *newBlob) Commit(root wire.Hash) error { return b.store.SaveBlob(root, b.Bytes()) }

func (b *newBlob) Discard() {}

func (m *memStore) ReadBlob(root wire.Hash, from int64, dst []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := bytes.NewReader(m.blobs[root]).ReadAt(dst, from)
	return err
}

func (m *memStore) DropBlob(root wire.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, root)
	return nil
}

func (m *memStore) Blobs() ([]wire.Hash, error) {
	return slices.SortedFunc(maps.Keys(m.blobs), wire.Hash.Compare), nil
}

func (m *memStore) LoadOwn() ([]OwnResult, error) {
	return slices.Clone(m.own), m.damaged
}

func (m *memStore) SaveCase(c SavedCase) error {
	if m.full == nil {
		m.cases = append(m.cases, c)
	}
	return m.full
}

func (m *memStore) DropCase(s client.Share) error {
	m.cases = slices.DeleteFunc(m.cases, func(c SavedCase) bool { return c.Share == s })
	return nil
}

func (m *memStore) LoadCases() ([]SavedCase, error) { return slices.Clone(m.cases), nil }

const testRun = "test"

// A small model is one chunk of 256 KiB. A large one is two: tests that have parameters travel need it.
const (
	smallParams = 1_000
	largeParams = 70_000
)

func newWorld(t *testing.T, steps uint32, members uint32, adjust ...func(*coordinator.Config)) *world {
	t.Helper()
	return newWorldOf(t, smallParams, steps, members, adjust...)
}

func newLargeWorld(t *testing.T, steps uint32, members uint32, adjust ...func(*coordinator.Config)) *world {
	t.Helper()
	return newWorldOf(t, largeParams, steps, members, adjust...)
}

func newWorldOf(t *testing.T, params int, steps, members uint32, adjust ...func(*coordinator.Config)) *world {
	t.Helper()
	w := &world{t: t, clock: loop.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), toy: toy{params: params}}
	var err error
	if w.chain, err = ledgermem.New(w.clock, ledgermem.Options{Genesis: host.Genesis{Chain: "test", Accounts: purses()}, Referees: toyReferees}); err != nil {
		t.Fatal(err)
	}
	w.mesh = p2pmem.NewMesh(w.clock, p2pmem.Config{Link: p2pmem.Link{Delay: 10 * time.Millisecond}})
	cfg := coordinator.Config{
		Name: testRun, MinMembers: 1, StartMembers: members, WaitingMs: 1000, WarmupMs: 20_000, RoundTrainMs: 5000, RoundWitnessMs: 1000,
		CooldownMs: 1000, EpochMs: 20_000, TotalSteps: coordinator.Step(steps), BatchStart: 8, BatchEnd: 8, SequenceTokens: 8, MissedMax: 3,
		ModelHash: merkle.BlobRoot(tensor.Bytes(w.initial())), SpecHash: host.SpecHash([]byte("spec")), Owner: owner.Public(),
		StateHash: merkle.BlobRoot(make([]byte, 4*w.toy.StateLen())),
	}
	for _, f := range adjust {
		f(&cfg)
	}
	create := host.CreateRun{Limits: coordinator.Limits{Members: 16, Witnesses: 8, Buckets: cfg.Exchange == coordinator.Buckets}, Config: cfg, Spec: []byte("spec")}
	created := false
	w.chain.Client().As(owner).Submit(t.Context(), create, func(err error) {
		if err != nil {
			t.Errorf("creating the run: %v", err)
		}
		created = true
	})
	w.until(time.Minute, func() bool { return created })
	return w
}

// purse is what each key of a world has, and its owner.
const purse = 10_000

func purses() (list []host.Allocation) {
	for i := range 8 {
		list = append(list, host.Allocation{Key: worldKey(i).Public(), Amount: purse})
	}
	list = append(list, host.Allocation{Key: owner.Public(), Amount: purse})
	slices.SortFunc(list, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
	return list
}

var owner = key.FromSeed([32]byte{42})

func (w *world) initial() []float32 {
	p := make([]float32, w.toy.params)
	for i := range p {
		p[i] = float32(i)
	}
	return p
}

func (w *world) key(i int) key.Private { return worldKey(i) }

func worldKey(i int) key.Private { return key.FromSeed([32]byte{1, byte(i)}) }

// start begins node i, with the disk it had before if it ran before.
func (w *world) start(i int, adjust ...func(*Config)) *testNode {
	w.t.Helper()
	for len(w.hosts) <= i {
		w.hosts = append(w.hosts, &testNode{store: &memStore{}})
	}
	h := &testNode{store: w.hosts[i].store, scope: loop.NewScope(w.clock)}
	ctx, cancel := context.WithCancel(w.t.Context())
	h.cancel = cancel
	v, _ := w.chain.Host().View(testRun)
	var err error
	cfg := Config{
		Run: testRun, ID: v.State.ID(), Key: w.key(i), Ledger: w.chain.Client().As(w.key(i)), Loop: h.scope, Engine: w.toy,
		Listen:  func(hd p2p.Handler) (p2p.Network, error) { return w.mesh.Join(w.key(i).Public(), hd), nil },
		Initial: w.initial, Store: h.store, EvalRounds: 5,
		InspectRounds: 5, Inspect: func(_ context.Context, step coordinator.Step, root wire.Hash, params []float32) []event.Event {
			return []event.Event{event.Sample{Step: step, Params: root, Prompt: "after step", Text: fmt.Sprint(step, " of so many parameters: ", len(params))}}
		},
		Checkpoint: func(c Checkpoint) (wire.Hash, error) {
			w.hosts[i].store.checkpoint, w.hosts[i].store.of = append([]float32(nil), c.Params...), c.Hash
			return wire.Sum("checkpoint", c.Hash[:]), nil
		},
		Recall: func(params wire.Hash) []float32 {
			if w.hosts[i].store.of != params {
				return nil
			}
			return append([]float32(nil), w.hosts[i].store.checkpoint...)
		},
		Observe:   func(ev event.Event) { h.events = append(h.events, ev) },
		Cost:      func(Job) time.Duration { return 100 * time.Millisecond },
		Disputant: toyDisputant{toy: w.toy},
		FileFrom:  i % 2, // every second node has versions in files
		Expelled:  func(err *ExpelledError) { h.expelled = err },
	}
	for _, f := range adjust {
		f(&cfg)
	}
	if h.Node, err = New(ctx, cfg); err != nil {
		w.t.Fatal(err)
	}
	h.Node.Start()
	w.hosts[i] = h
	return h
}

// crash ends node i as kill -9 would.
func (w *world) crash(i int) {
	h := w.hosts[i]
	w.mesh.Crash(w.key(i).Public())
	h.scope.End()
	h.cancel()
}

func (w *world) state() coordinator.State {
	v, _ := w.chain.Host().View(testRun)
	return v.State
}

func (w *world) until(limit time.Duration, done func() bool) {
	w.t.Helper()
	end := w.clock.Now().Add(limit)
	for !done() {
		if !w.clock.Step() || w.clock.Now().After(end) {
			for i, h := range w.hosts {
				for _, ev := range h.events[max(0, len(h.events)-5):] {
					w.t.Logf("node %d: %+v", i, ev)
				}
			}
			s := w.state()
			w.t.Fatalf("not after %v: %s, round %d, step %d", limit, s.Phase(), s.Round(), s.Step())
		}
	}
}

func (w *world) finished() bool { return w.state().Phase() == coordinator.Finished }

// agree waits until the given nodes hold the agreed parameters.
func (w *world) agree(which ...int) {
	w.t.Helper()
	w.until(time.Minute, func() bool {
		agreed, _ := w.state().Params()
		for _, i := range which {
			if _, h, ok := w.hosts[i].Params(); !ok || h != agreed {
				return false
			}
		}
		return true
	})
}

// first returns the first event of a type that a node reported.
func first[E event.Event](h *testNode) (ev E, ok bool) {
	for _, e := range h.events {
		if ev, ok = e.(E); ok {
			return ev, true
		}
	}
	return ev, false
}

// count returns how many events of a type a node reported.
func count[E event.Event](h *testNode) (n int) {
	for _, e := range h.events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

// saw reports whether a node reported an event that is.
func (h *testNode) saw(is func(event.Event) bool) bool { return slices.ContainsFunc(h.events, is) }

var errDiskFull = errors.New("no space left on device")

// blobServer is a peer that serves blobs and says nothing.
type blobServer struct{ *blobs.Store }

func (s *blobServer) Gossip(key.Public, []byte) p2p.Verdict { return p2p.Ignore }
func (s *blobServer) Answer(key.Public, []byte) []byte      { return nil }
