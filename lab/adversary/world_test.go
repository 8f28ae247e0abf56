package adversary_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/p2p"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// world is a run of four nodes without verification on one virtual clock, so that a cheat is seen
// as long as the run lasts. The last one, or for kinds that take several the last two, cheat.
type world struct {
	t       *testing.T
	clock   *loop.Virtual
	chain   *ledgermem.Chain
	mesh    *p2pmem.Mesh
	run     engine.Run
	engine  engine.Engine
	initial []float32
	nodes   []*node.Node
	seen    map[wire.Hash]heard // all commitments that the first node received, by ID
	order   []wire.Hash
	own     []dispute.Commitment // of the first node
	steps   []taken              // of the cheats
	reports map[coordinator.Round][]coordinator.Report
}

// taken is one step that a cheat took.
type taken struct {
	by            int
	params        []float32
	before, after []float32 // optimizer state
	spans         []batch.Span
	step          uint32
	result        engine.Result
}

// watched is a cheat's engine, as its node sees it.
type watched struct {
	engine.Engine
	by int
	w  *world
}

func (e watched) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	t := taken{by: e.by, params: slices.Clone(engine.Values(params)), before: slices.Clone(engine.Values(state)), spans: spans, step: step}
	var err error
	t.result, err = e.Engine.Step(ctx, params, state, spans, step)
	t.after = slices.Clone(engine.Values(state))
	e.w.steps = append(e.w.steps, t)
	return t.result, err
}

// honest is what comes out of the same share in truth.
func (w *world) honest(t taken) (engine.Result, []float32) {
	w.t.Helper()
	state := slices.Clone(t.before)
	r, err := w.engine.Step(w.t.Context(), cpu.Floats(t.params), cpu.Floats(state), t.spans, t.step)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, state
}

// heard is a commitment, and which round had become final when it came.
type heard struct {
	dispute.Signed
	author key.Public
	final  bool
}

const worldRun = "world"

type words struct{ vocab uint64 }

func (w words) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("words", wire.AppendU64(nil, i)), "sequence")
	for k := range dst {
		dst[k] = uint32(random.Uint64n(w.vocab))
	}
	return nil
}

func newWorld(t *testing.T, kind string, steps uint32) *world {
	t.Helper()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{t: t, clock: loop.NewVirtual(start), seen: map[wire.Hash]heard{}, reports: map[coordinator.Round][]coordinator.Report{}}
	s := spec.Default(all.Kinds())
	s.Trust = spec.Trust{} // the chain has no referees
	s.Name, s.Steps = worldRun, steps
	s.Model = spec.Model{Preset: "nano", Vocab: 32, Hidden: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, FFN: 16, Context: 8, Seed: "world"}
	s.LearningRate = spec.LearningRate{Schedule: "constant", Base: 4e-3, Final: 4e-3}
	s.Data.Sequence, s.Batch = 8, spec.Batch{Start: 8, End: 8}
	s.Members.Min, s.Members.Start, s.Members.Capacity, s.Members.MissedMax = 3, 4, 8, 3
	sec := func(n int) spec.Duration { return spec.Duration(time.Duration(n) * time.Second) }
	s.Times = spec.Times{Waiting: sec(1), Warmup: sec(10), RoundTrain: sec(5), RoundWitness: sec(1), Cooldown: sec(1), Epoch: sec(300)}
	text, err := s.Append(nil)
	if err == nil {
		s, err = spec.Parse(text, all.Kinds())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.chain, err = ledgermem.New(w.clock, ledgermem.Options{Genesis: host.Genesis{Chain: "world"}})
	if err != nil {
		t.Fatal(err)
	}
	w.mesh = p2pmem.NewMesh(w.clock, p2pmem.Config{Link: p2pmem.Link{Delay: 10 * time.Millisecond}})
	w.makeEngine(s)
	w.createRun(s, text)
	for i := range 4 {
		w.join(i, kind)
	}
	return w
}

func newEngine(run engine.Run) (engine.Engine, error) {
	return cpu.New(run, cpu.Options{Workers: 1, Micro: 2})
}

func (w *world) makeEngine(s spec.Spec) {
	w.t.Helper()
	var err error
	if w.run, err = s.Engine(); err != nil {
		w.t.Fatal(err)
	}
	w.run.Data = words{uint64(w.run.Model.Vocab)}
	if w.initial, err = s.InitialParams(); err != nil {
		w.t.Fatal(err)
	}
	if w.engine, err = newEngine(w.run); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.engine.Close)
}

func (w *world) createRun(s spec.Spec, text []byte) {
	w.t.Helper()
	owner := key.FromSeed([32]byte{42})
	limits, config := s.Coordinator(owner.Public(), merkle.BlobRoot(tensor.Bytes(w.initial)), host.SpecHash(text))
	create := host.CreateRun{Limits: limits, Config: config, Spec: text}
	created := false
	w.chain.Client().As(owner).Submit(w.t.Context(), create, func(err error) {
		if err != nil {
			w.t.Errorf("creating the run: %v", err)
		}
		created = true
	})
	w.until("the run exists", func() bool { return created })
}

func worldKey(i int) key.Private { return key.FromSeed([32]byte{1, byte(i)}) }

// join starts node i; the first one records what it hears.
func (w *world) join(i int, kind string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	private := worldKey(i)
	cfg := node.Config{
		Run: worldRun, ID: w.state().ID(), Key: private, Ledger: w.chain.Client().As(private), Loop: loop.NewScope(w.clock), Engine: w.engine,
		Listen: func(h p2p.Handler) (p2p.Network, error) {
			if i == 0 {
				h = recorder{Handler: h, w: w}
			}
			return spoken{w.mesh.Join(private.Public(), h), i, w}, nil
		},
		Initial: func() []float32 { return append([]float32(nil), w.initial...) },
		// Cheats are the quicker ones, so that what they say comes in time.
		Cost: func(node.Job) time.Duration { return time.Duration(100-20*i) * time.Millisecond },
	}
	k, _ := adversary.Find(kind)
	if i >= 4-max(1, k.Gang) {
		var err error
		cfg, err = adversary.Wrap(kind, cfg, adversary.Options{
			Seed: wire.Sum("world", []byte{byte(i)}), Run: w.run, NewEngine: newEngine, Secret: wire.Sum("secret"),
			Gang: []key.Public{worldKey(2).Public(), worldKey(3).Public()},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		cfg.Engine = watched{cfg.Engine, i, w}
	}
	n, err := node.New(ctx, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Start()
	w.nodes = append(w.nodes, n)
}

// spoken is the network of a node whose own commitments are noted if it is the first, who does
// not hear itself.
type spoken struct {
	p2p.Network
	by int
	w  *world
}

func (s spoken) Publish(data []byte) error {
	if c, err := dispute.ParseSigned(data[32:]); err == nil && s.by == 0 {
		s.w.own = append(s.w.own, c.Commitment)
	}
	return s.Network.Publish(data)
}

// recorder notes the commitments a node hears of.
type recorder struct {
	p2p.Handler
	w *world
}

func (r recorder) Gossip(from key.Public, data []byte) p2p.Verdict {
	if s, err := dispute.ParseSigned(data[32:]); err == nil {
		id := s.Commitment.ID()
		if _, known := r.w.seen[id]; !known {
			at, ok := r.w.state().At(s.Commitment.Round)
			r.w.seen[id] = heard{Signed: s, author: from, final: ok && at.Final()}
			r.w.order = append(r.w.order, id)
		}
	}
	return r.Handler.Gossip(from, data)
}

func (w *world) state() coordinator.State {
	v, _ := w.chain.Host().View(worldRun)
	return v.State
}

func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	end := w.clock.Now().Add(30 * time.Minute)
	for !done() {
		if !w.clock.Step() || w.clock.Now().After(end) {
			s := w.state()
			w.t.Fatalf("not until %s: %s, round %d, step %d", what, s.Phase(), s.Round(), s.Step())
		}
		w.note()
	}
}

// note keeps the witnesses' reports of the newest rounds.
func (w *world) note() {
	v, ok := w.chain.Host().View(worldRun)
	if !ok {
		return
	}
	for back := range min(v.State.Round(), 3) { // a round may open and end in one block
		if r, ok := v.State.At(v.State.Round() - back); ok {
			w.reports[r.Number()] = r.Reports()
		}
	}
}

// finish runs to the end and checks that the honest ones agree.
func (w *world) finish(kind string) {
	w.t.Helper()
	w.until("the run is finished", func() bool { return w.state().Phase() == coordinator.Finished })
	agreed, _ := w.state().Params()
	k, _ := adversary.Find(kind)
	honest := w.nodes[:4-max(1, k.Gang)]
	w.until("the honest members hold the agreed parameters", func() bool {
		for _, n := range honest {
			if _, h, ok := n.Params(); !ok || h != agreed {
				return false
			}
		}
		return true
	})
}

// by lists what a node committed to, in order of arrival.
func (w *world) by(i int) []heard {
	var out []heard
	for _, id := range w.order {
		if h := w.seen[id]; h.author == worldKey(i).Public() {
			out = append(out, h)
		}
	}
	return out
}

func (h heard) String() string { return fmt.Sprintf("round %d", h.Commitment.Round) }
