// Package sim runs a whole network in one process: participants that are the real nodes, with the real model and codec, on a ledger
// and a peer network in memory, under one virtual clock. Crashes, stragglers, loss, delay and partitions come from one seed, so a
// run is a function of its [Config]: the same seed gives the same history, to the last bit, and a failure is replayed by its seed.
//
// While it runs it checks what must always hold, after every event:
//
//   - honest participants that hold the parameters of the same round hold the same bits;
//   - no sequence's training is accepted twice, nothing is accepted that was not given out, and points are what was accepted;
//   - nothing sticks: the run finishes within its virtual time.
package sim

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/train"
	"github.com/entrain-network/entrain/wire"
)

// Config is a simulation. The zero value of a field means none of it; use [Default] to begin with.
type Config struct {
	Seed    uint64
	Clients int
	Steps   uint32
	Overlap uint8

	Delay  time.Duration // of a message from peer to peer, and to and from the ledger
	Jitter time.Duration // added to it, at most
	Loss   float64       // probability that a gossip message is lost on a hop

	Crashes    int // participants that crash and come back, each once
	Stragglers int // participants that compute ten times as slowly
	Partitions int // times the network splits in two for a while
	Outages    int // times the ledger makes no blocks for a while

	// Limit is the virtual time within which the run must finish.
	Limit time.Duration
	// Observe is told every event of every participant, in order.
	Observe func(Event) `json:"-"`
}

// Default is a small network with every kind of fault.
func Default(seed uint64) Config {
	return Config{
		Seed: seed, Clients: 20, Steps: 30,
		Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.05,
		Crashes: 4, Stragglers: 2, Partitions: 1, Outages: 1,
		Limit: 30 * time.Minute,
	}
}

// Event is what happened at one participant.
type Event struct {
	At     time.Duration `json:"at"` // virtual time since the beginning
	Client int           `json:"client"`
	node.Event
}

// Report is what came of a run.
type Report struct {
	Rounds    uint32        `json:"rounds"`
	Steps     uint32        `json:"steps"`
	Epochs    uint32        `json:"epochs"`
	Rollbacks uint32        `json:"rollbacks"`
	Crashes   int           `json:"crashes"`
	Heals     int           `json:"heals"`
	Virtual   time.Duration `json:"virtual_ns"`
	Params    wire.Hash     `json:"params"` // agreed last
	Log       wire.Hash     `json:"log"`    // of all events in order
	LossFirst float32       `json:"loss_first"`
	LossLast  float32       `json:"loss_last"`
	Points    uint64        `json:"points"`  // of all members
	Holders   int           `json:"holders"` // participants that hold the agreed parameters at the end
}

// network is a running simulation.
type network struct {
	cfg     Config
	spec    spec.Spec
	clock   *loop.Virtual
	start   time.Time
	chain   *ledgermem.Chain
	mesh    *p2pmem.Mesh
	engine  *train.Engine
	initial []float32
	random  prng.Source
	members []*participant
	check   invariants
	report  Report
	log     hash.Hash
	broken  error
}

// Run simulates until the run has finished and returns what came of it. An error says which invariant broke, when and with which seed.
func Run(ctx context.Context, cfg Config) (Report, error) {
	n, err := assemble(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	n.scheduleFaults()
	deadline := n.start.Add(cfg.Limit)
	settle := time.Time{}
	for ctx.Err() == nil && n.broken == nil {
		if !n.clock.Step() {
			n.fail("nothing is left to happen, and the run is not finished")
			break
		}
		n.inspect()
		if n.state().Phase() == coordinator.Finished {
			// Those who came back last may still be on their way to the model.
			if settle.IsZero() {
				settle = n.clock.Now().Add(settleFor)
			}
			if n.holders() == len(n.members) || n.clock.Now().After(settle) {
				break
			}
		}
		if n.clock.Now().After(deadline) {
			n.fail("not finished in time: %s, round %d, step %d of %d", n.state().Phase(), n.state().Round(), n.state().Step(), cfg.Steps)
		}
	}
	n.finish()
	if n.broken != nil {
		return n.report, n.broken
	}
	return n.report, ctx.Err()
}

// settleFor is how long after the end participants may take to reach the last parameters.
const settleFor = 2 * time.Minute

const runName = "sim"

// simSpec is the run: a model so small that a round of twenty takes milliseconds, and the times of a lively network.
func simSpec(cfg Config) (spec.Spec, error) {
	s := spec.Default()
	s.Name, s.Steps = runName, cfg.Steps
	s.Model = spec.Model{Preset: "nano", Vocab: 64, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32, Context: 16, Seed: "sim"}
	s.Data.Sequence = 16
	s.Optimizer.TopK = 16
	s.LearningRate = spec.LearningRate{Schedule: "constant", Base: 4e-3, Warmup: 2, Final: 4e-3}
	s.Batch = spec.Batch{Start: uint32(2 * cfg.Clients), End: uint32(2 * cfg.Clients)}
	s.Members.Capacity, s.Members.Min, s.Members.Start = 256, uint32(max(1, cfg.Clients/4)), uint32(max(1, cfg.Clients/2))
	s.Members.Overlap, s.Members.MissedMax = cfg.Overlap, 3
	sec := func(n int) spec.Duration { return spec.Duration(time.Duration(n) * time.Second) }
	s.Times = spec.Times{Waiting: sec(3), Warmup: sec(20), RoundTrain: sec(10), RoundWitness: sec(2), Cooldown: sec(3), Epoch: sec(60)}
	text, err := s.Append(nil)
	if err != nil {
		return s, err
	}
	return spec.Parse(text)
}

func assemble(ctx context.Context, cfg Config) (*network, error) {
	if cfg.Clients < 1 || cfg.Steps < 1 {
		return nil, fmt.Errorf("sim: %d clients and %d steps: there must be at least one of each", cfg.Clients, cfg.Steps)
	}
	s, err := simSpec(cfg)
	if err != nil {
		return nil, err
	}
	seed := wire.Sum("entrain/sim", wire.AppendU64(nil, cfg.Seed))
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	n := &network{cfg: cfg, spec: s, start: start, clock: loop.NewVirtual(start), random: prng.New(seed, "faults"), log: sha256.New()}
	n.chain, err = ledgermem.New(n.clock, ledgermem.Options{
		Genesis: ledger.Genesis{Chain: "sim"}, Seed: seed, Block: 250 * time.Millisecond, Delay: cfg.Delay, Jitter: cfg.Jitter,
	})
	if err != nil {
		return nil, err
	}
	n.mesh = p2pmem.NewMesh(n.clock, p2pmem.Config{Seed: seed, Link: p2pmem.Link{Delay: cfg.Delay, Jitter: cfg.Jitter, Loss: cfg.Loss}})
	if err := n.makeEngine(); err != nil {
		return nil, err
	}
	if err := n.createRun(ctx); err != nil {
		return nil, err
	}
	for i := range cfg.Clients {
		p := &participant{network: n, index: i, key: key.FromSeed(wire.Sum("entrain/sim/key", seed[:], wire.AppendU32(nil, uint32(i)))), slowness: 1}
		n.members = append(n.members, p)
		// People do not arrive at once.
		n.clock.After(time.Duration(n.random.Uint64n(5000))*time.Millisecond, func() { p.begin(ctx) })
	}
	return n, nil
}

// makeEngine makes the one engine all participants compute with: on a virtual clock work runs at once, so they never do at the same time.
func (n *network) makeEngine() error {
	model, err := n.spec.Llama()
	if err != nil {
		return err
	}
	pool := exact.NewPool(1)
	codec, err := n.spec.Codec(model.Layout(), pool)
	if err != nil {
		return err
	}
	schedule, err := n.spec.Schedule()
	if err != nil {
		return err
	}
	if n.initial, err = n.spec.InitialParams(); err != nil {
		return err
	}
	n.engine, err = train.New(train.Config{
		Model: model, Codec: codec, Schedule: schedule, Pool: pool, Sequence: n.spec.Data.Sequence, Micro: 4,
		Data: babble{vocab: uint64(model.Vocab)},
	})
	return err
}

// createRun puts the run on the chain and waits for the block.
func (n *network) createRun(ctx context.Context) error {
	text, err := n.spec.Append(nil)
	if err != nil {
		return err
	}
	model, err := n.spec.ModelHash()
	if err != nil {
		return err
	}
	owner := key.FromSeed(wire.Sum("entrain/sim/owner"))
	limits, config := n.spec.Coordinator(owner.Public(), model, ledger.SpecHash(text))
	signer := ledger.Signer{Chain: "sim", Key: owner}
	tx, err := signer.Sign(n.clock.Now(), ledger.CreateRun{Limits: limits, Config: config, Spec: text})
	if err != nil {
		return err
	}
	done, outcome := false, error(nil)
	n.chain.Client().Submit(ctx, tx, func(err error) { done, outcome = true, err })
	for !done && n.clock.Step() {
	}
	return outcome
}

// state is the run's newest.
func (n *network) state() coordinator.State {
	v, ok := n.chain.Host().View(runName)
	if !ok {
		panic("sim: the run is gone")
	}
	return v.State
}

// record takes an event of a participant into the log.
func (n *network) record(i int, ev node.Event) {
	e := Event{At: n.clock.Now().Sub(n.start), Client: i, Event: ev}
	line, err := json.Marshal(e)
	if err != nil {
		panic("sim: " + err.Error())
	}
	n.log.Write(append(line, '\n'))
	switch ev.Kind {
	case "trained":
		if n.report.LossFirst == 0 {
			n.report.LossFirst = ev.Loss
		}
		n.report.LossLast = ev.Loss
	case "healed":
		n.report.Heals++
	}
	if n.cfg.Observe != nil {
		n.cfg.Observe(e)
	}
}

// fail notes the first broken invariant.
func (n *network) fail(format string, args ...any) {
	if n.broken == nil {
		n.broken = fmt.Errorf("seed %d, %v: %s", n.cfg.Seed, n.clock.Now().Sub(n.start), fmt.Sprintf(format, args...))
	}
}

// holders counts the participants that hold the agreed parameters.
func (n *network) holders() int {
	agreed, _ := n.state().Params()
	count := 0
	for _, p := range n.members {
		if p.node == nil {
			continue
		}
		if _, hash, ok := p.node.Params(); ok && hash == agreed {
			count++
		}
	}
	return count
}

func (n *network) finish() {
	s := n.state()
	n.report.Rounds, n.report.Steps, n.report.Epochs, n.report.Rollbacks = s.Round(), s.Step(), s.Epoch(), s.Rollbacks()
	n.report.Params, _ = s.Params()
	n.report.Points = s.PointsTotal()
	n.report.Virtual = n.clock.Now().Sub(n.start)
	n.report.Holders = n.holders()
	copy(n.report.Log[:], n.log.Sum(nil))
	for _, p := range n.members {
		p.end()
	}
}
