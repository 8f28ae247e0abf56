// Package sim runs a whole network in one process: participants that are the real nodes, with the
// real model and codec, on a ledger and a peer network in memory, under one virtual clock.
// Crashes, stragglers, loss, delay and partitions come from one seed, so a run is a function of
// its [Config]: the same seed gives the same history, to the last bit, and a failure is replayed
// by its seed.
//
// While it runs it checks what must always hold, after every event, or with more than 128
// participants, which use all processors, after every 30 ms of virtual time:
//
//   - no honest participant is convicted, no cheat of what it did not do, and tokens add up;
//   - of up to 128 participants no honest one is charged for what is not its fault;
//   - honest participants that hold the parameters of the same round hold the same bits (where some
//     may be misled, those that differ are counted once the round's are agreed on);
//   - no sequence is accepted twice, nothing is accepted that was not given out, and points match
//     the accepted work;
//   - parameters are agreed on after the ones before, or the last fault, within the time that a
//     rollback and three warmups take;
//   - the run finishes within its virtual time.
package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/disk"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/p2p"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Config configures a simulation. Zero fields mean none of the effect; start from [Default].
type Config struct {
	Seed    uint64
	Clients int
	Steps   uint32
	Overlap uint8

	Delay  time.Duration // of a message between peers, and to and from the ledger
	Jitter time.Duration // greatest random addition to Delay
	Loss   float64       // probability that a hop loses a gossip message

	Crashes    int // participants that crash and come back, each once
	Stragglers int // participants that compute ten times slower
	Partitions int // temporary splits of the network in two
	Outages    int // times that the ledger stops making blocks for a while
	// Jumps is the number of times that a participant's own clock jumps, by up to an hour.
	Jumps int `json:",omitempty"`
	// Leaves is the number of times that a participant leaves the run and comes back.
	Leaves int `json:",omitempty"`
	// Restores is the number of participants that crash and come back with an older copy of their
	// disk, or with an empty one.
	Restores int `json:",omitempty"`
	// FullDisks is the number of times that a participant can write nothing for a while.
	FullDisks int `json:",omitempty"`
	// Pauses is the number of times that the owner pauses the run for a while.
	Pauses int `json:",omitempty"`

	// Adversaries names the kinds (package adversary) of the last participants, one each.
	Adversaries []string
	// Reformed makes the adversaries work honestly in an otherwise equal run, as a baseline.
	Reformed bool `json:",omitempty"`
	// Absent keeps the adversaries away, as another baseline: what remains is what honest members do
	// without them.
	Absent bool `json:",omitempty"`
	// Verification is the percentage of accepted results that are recomputed. Members then stake
	// tokens.
	Verification uint8

	// Witnesses is the number of witnesses of a round; 0 means one for each member, up to 32.
	Witnesses uint16 `json:",omitempty"`

	// Followers is whether members that attest nothing follow (exchange.aggregate).
	Followers bool `json:",omitempty"`
	// Aggregators, if not 0, has the run make updates in slices, each by this number of members or
	// more.
	Aggregators uint16 `json:",omitempty"`
	hidden      int    // width of a larger model, as such a run has; 0: 32 in such a run
	sparse      bool   // codec sparseloco, of two steps a round
	// Everybody has the run begin once all clients are there.
	Everybody bool `json:",omitempty"`

	// BySpeed divides batches, twice as large, by stated speeds rather than equally.
	BySpeed bool `json:",omitempty"`

	// Pace, if not 0, is the mean time in which a participant computes its share: each takes between
	// half of it and three halves, the same each time. The run's own times grow with it.
	Pace time.Duration `json:",omitempty"`
	// Moves are what participants do when rounds open, in the order of the rounds. A client whose
	// first move is to come is not there before.
	Moves []Move `json:",omitempty"`

	// Limit is the virtual time in which the run must finish.
	Limit time.Duration
	// Observe receives every event of every participant, in the order of the log.
	Observe func(Event) `json:"-"`
	// Entered, if not nil, is called when a round has opened, before the moves.
	Entered func(s coordinator.State, at time.Duration) `json:"-"`
	// Count is p2p/mem.Config.Count.
	Count func(stream bool, bytes int) `json:"-"`
	// Wrap, if not nil, wraps what a participant gives to the network, and what it gets from it.
	Wrap func(p2p.Handler, func(p2p.Handler) (p2p.Network, error)) (p2p.Network, error) `json:"-"`
}

// Default returns a small network with every kind of fault.
func Default(seed uint64) Config {
	return Config{
		Seed: seed, Clients: 20, Steps: 30,
		Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.05,
		Crashes: 4, Stragglers: 2, Partitions: 1, Outages: 1,
		Limit: 30 * time.Minute,
	}
}

// Event is an event of one participant.
type Event struct {
	At     time.Duration `json:"at"` // virtual time since the beginning
	Client int           `json:"client"`
	Event  event.Event   `json:"-"`
}

// MarshalJSON returns an object with the time, the client and the event.
func (e Event) MarshalJSON() ([]byte, error) {
	type head Event
	return event.Marshal(head(e), e.Event)
}

// network is a running simulation.
type network struct {
	cfg     Config
	seed    wire.Hash
	spec    spec.Spec
	text    []byte // the specification
	clock   *loop.Virtual
	ledger  *loop.Virtual // the chain's: clock, but in a crowd
	start   time.Time
	until   time.Time // to which a crowd's clocks run
	met     time.Time // at which they met last
	owed    []func()  // what the ledger tells the owner
	chain   *ledgermem.Chain
	common  *common
	sharing *sharing
	parts   []*part
	turns   []*turn        // of a crowd
	touched []*participant // memory of takeTouched
	mesh    *p2pmem.Mesh
	set     *data.Set
	run     engine.Run
	referee dispute.Referee // nil without verification
	initial []float32
	owner   key.Private
	random  prng.Source
	members []*participant
	clients map[key.Public]int
	gangs   map[string][]key.Public // by kind, once known
	check   invariants
	trust   trust
	before  *coordinator.State // that inspectConduct saw last
	report  Report
	log     hash.Hash
	round   coordinator.Round // whose moves were made
	moves   []Move            // that are left
	broken  error
	misled  bool // honest participants may be, by adversaries
	clean   func() error
}

// Run simulates a run to its end and returns the report. The error names the broken invariant, the
// time and the seed.
func Run(ctx context.Context, cfg Config) (report Report, err error) {
	n, err := assemble(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, n.clean()) }()
	n.scheduleFaults()
	return n.simulate(ctx)
}

// simulate lets the network run until it has settled after the run's end.
func (n *network) simulate(ctx context.Context) (Report, error) {
	deadline, settle := n.start.Add(n.cfg.Limit), time.Time{}
	for ctx.Err() == nil && n.broken == nil {
		if !n.advance() {
			n.fail("nothing is left to happen, and the run is not finished")
			break
		}
		n.inspect()
		n.move(ctx)
		if n.check.finished {
			// Participants that came back last may still be fetching the model.
			if settle.IsZero() {
				settle = n.clock.Now().Add(settleFor)
			}
			if n.check.holders == n.honest() && n.settledDisputes() || n.clock.Now().After(settle) {
				break
			}
		}
		if still := n.clock.Now().Sub(n.check.movedAt); still > n.patience() && !n.check.finished {
			n.fail("no parameters were agreed on for %v: %s, round %d, step %d", still, n.state().Phase(), n.state().Round(), n.state().Step())
		}
		if n.clock.Now().After(deadline) {
			n.fail("not finished in time: %s, round %d, step %d of %d", n.state().Phase(), n.state().Round(), n.state().Step(), n.cfg.Steps)
		}
	}
	n.finish()
	return n.report, cmp.Or(n.broken, ctx.Err())
}

// settleFor is the time after the end in which participants must reach the last parameters.
const settleFor = 2 * time.Minute

const runName = "sim"

// simSpec returns the specification: a model so small that a round of twenty takes milliseconds,
// and the times of a fast network.
func simSpec(cfg Config) (spec.Spec, error) {
	s := spec.Default(all.Kinds())
	s.Name, s.Steps = runName, cfg.Steps
	s.Model = spec.Model{Preset: "nano", Vocab: 64, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32, Context: 16, Seed: "sim"}
	s.Data.Sequence = 16
	compressor := distro.Config{}.Kind().Defaults.(distro.Config)
	compressor.TopK = 16
	s.Optimizer = compressor
	s.LearningRate = spec.LearningRate{Schedule: "constant", Base: 4e-3, Warmup: min(2, cfg.Steps), Final: 4e-3}
	s.Batch = spec.Batch{Start: uint32(2 * cfg.Clients), End: uint32(2 * cfg.Clients)}
	if cfg.BySpeed {
		s.Batch = spec.Batch{Start: 2 * s.Batch.Start, End: 2 * s.Batch.End, Shares: spec.SharesSpeed}
	}
	s.Members.Capacity, s.Members.Min, s.Members.Start = uint32(max(256, cfg.Clients)), uint32(max(1, cfg.Clients/4)), uint32(max(1, cfg.Clients/2))
	s.Members.Overlap, s.Members.MissedMax = cfg.Overlap, 3
	if cfg.Witnesses > 0 {
		s.Members.Witnesses = cfg.Witnesses
	}
	if cfg.Followers {
		s.Exchange.Aggregate = spec.AggregateFollowers
	}
	if cfg.Aggregators > 0 {
		s.Exchange.Aggregate, s.Exchange.Aggregators = spec.AggregateSlices, cfg.Aggregators
	}
	if cfg.Aggregators > 0 || cfg.hidden > 0 {
		// Payloads of several pieces, that is, of more than a bit a parameter.
		hidden := cmp.Or(cfg.hidden, 32)
		s.Model.Hidden, s.Model.FFN, s.Model.Layers = hidden, 4*hidden, 2
		compressor.Block, compressor.TopK = 8, 32
		s.Optimizer = compressor
	}
	if cfg.sparse {
		s.Optimizer = sparseloco.Options{Chunk: 256, TopK: 64, Decay: .95, OuterRate: 1, ClipChunks: 2, InnerSteps: 2, WeightDecay: .1, ClipNorm: 1}
	}
	sec := func(n int) spec.Duration { return spec.Duration(time.Duration(n) * time.Second) }
	s.Times = spec.Times{Waiting: sec(3), Warmup: sec(20), RoundTrain: sec(10), RoundWitness: sec(2), Cooldown: sec(3), Epoch: sec(60)}
	if cfg.Pace > 0 {
		s.Times = cfg.times()
	}
	if cfg.Everybody {
		s.Members.Start, s.Times.Waiting = cfg.first(), max(s.Times.Waiting, sec(6))
	}
	if len(cfg.Adversaries) > 0 {
		// Everyone is there from the start, so no adversary comes too late to be found out. Later
		// nobody waits for expelled members.
		s.Members.Start, s.Times.Waiting = uint32(cfg.Clients-len(cfg.Adversaries)), sec(6)
		s.Times.Epoch = sec(20) // dropped members soon return for the next offence
	}
	s.Trust = spec.Trust{}
	if cfg.Verification > 0 {
		patience := sec(12)
		if cfg.faulty() {
			patience = sec(60) // slow and returning machines need time to defend themselves
		}
		s.Trust = spec.Trust{VerificationPercent: cfg.Verification, Verify: patience, Dispute: patience, Stake: simStake, Rate: 1}
	}
	text, err := s.Append(nil)
	if err != nil {
		return s, err
	}
	return spec.Parse(text, all.Kinds())
}

// simStake is a member's stake: about a hundred rounds' pay.
const simStake = 1000

func assemble(ctx context.Context, cfg Config) (*network, error) {
	if cfg.Clients < 1 || cfg.Steps < 1 {
		return nil, fmt.Errorf("sim: %d clients and %d steps: there must be at least one of each", cfg.Clients, cfg.Steps)
	}
	if err := cfg.checkKinds(); err != nil {
		return nil, err
	}
	s, err := simSpec(cfg)
	if err != nil {
		return nil, err
	}
	seed := wire.Sum("entrain/sim", wire.AppendU64(nil, cfg.Seed))
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	n := &network{
		cfg: cfg, moves: cfg.Moves, seed: seed, spec: s, start: start, clock: loop.NewVirtual(start), random: prng.New(seed, "faults"), log: sha256.New(),
		owner:   key.FromSeed(wire.Sum("entrain/sim/owner")),
		clients: map[key.Public]int{}, common: newCommon(cfg), sharing: newSharing(),
		check: invariants{movedAt: start, params: map[coordinator.Round]wire.Hash{}, claims: map[coordinator.Round]map[int]wire.Hash{},
			settled: map[coordinator.Round]bool{}, paid: map[coordinator.Round]bool{}},
	}
	n.ledger = n.clock
	if cfg.crowded() {
		n.ledger = loop.NewVirtual(start)
	}
	n.misled = slices.ContainsFunc(adversary.Misleaders(), func(k adversary.Kind) bool { return slices.Contains(cfg.Adversaries, k.Name) })
	if err := n.prepareData(ctx); err != nil {
		return nil, err
	}
	if err := n.connect(ctx); err != nil {
		return nil, errors.Join(err, n.clean())
	}
	for i := range cfg.Clients {
		p := &participant{network: n, part: n.parts[i%len(n.parts)], index: i, key: n.key(i), slowness: 1, disk: disk.Disk{Shares: true}}
		n.members = append(n.members, p)
		n.clients[p.key.Public()] = i
		// Participants do not arrive all at once.
		arrival := time.Duration(n.random.Uint64n(5000)) * time.Millisecond
		if (!cfg.Absent || cfg.kind(i) == "") && !cfg.Later(i) {
			n.clock.After(arrival, func() { p.begin(ctx) })
		}
	}
	return n, nil
}

// key returns a client's key.
func (n *network) key(client int) key.Private {
	return key.FromSeed(wire.Sum("entrain/sim/key", n.seed[:], wire.AppendU32(nil, uint32(client))))
}

// connect creates the ledger, the network and the run.
func (n *network) connect(ctx context.Context) (err error) {
	n.chain, err = ledgermem.New(n.ledger, ledgermem.Options{
		Genesis: n.genesis(), Seed: n.seed, Block: 250 * time.Millisecond, Delay: n.cfg.Delay, Jitter: n.cfg.Jitter, Referees: verify.NewReferee,
		Light: n.cfg.crowded(),
	})
	if err != nil {
		return err
	}
	n.mesh = p2pmem.NewMesh(n.clock, p2pmem.Config{Seed: n.seed, Fanout: n.fanout(), Tick: n.tick(), Count: n.cfg.Count, Link: p2pmem.Link{Delay: n.cfg.Delay, Jitter: n.cfg.Jitter, Loss: n.cfg.Loss}})
	if err := n.makeRun(); err != nil {
		return err
	}
	if err := n.divide(); err != nil {
		return err
	}
	if err := n.createRun(ctx); err != nil {
		return err
	}
	n.met = n.ledger.Now()
	n.clock.Run(n.met)
	return nil
}

// fanout is the number of participants to which one passes on gossip. An author reaches all itself,
// so one suffices if nothing gets lost.
func (n *network) fanout() int {
	if n.cfg.Loss == 0 {
		return 1
	}
	return 3
}

func (n *network) tick() time.Duration {
	if n.cfg.crowded() {
		return crowdTick
	}
	return 0
}

// makeRun makes what engines compute from, and the referee.
func (n *network) makeRun() (err error) {
	if n.initial, err = n.spec.InitialParams(); err != nil {
		return err
	}
	if n.run, err = n.spec.Engine(); err != nil {
		return err
	}
	n.run.Data, n.run.HeldOut, n.run.HeldOutSequences = n.set, n.set.HeldOut(), n.set.HeldOut().Len()
	if n.cfg.Verification > 0 {
		n.referee, err = verify.NewReferee(n.text)
	}
	return err
}

// makeEngine makes the engine of the part's participants. On a virtual clock jobs run immediately,
// so never two of a part at a time.
func (p *part) makeEngine() (err error) {
	n := p.network
	if p.engine, err = n.newEngine(n.run); err != nil || n.cfg.Verification == 0 {
		return err
	}
	tracer, err := verify.NewTracer(n.spec, n.set, p.engine)
	if err != nil {
		return err
	}
	p.disputant = disputant{tracer}
	return nil
}

// disputant converts verify's players to node's.
type disputant struct{ *verify.Tracer }

// Open implements node.Disputant.
func (d disputant) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
	p, err := d.Tracer.Open(ctx, c, spans, params, state)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// state returns the run's newest state.
func (n *network) state() coordinator.State {
	v, ok := n.chain.Host().View(runName)
	if !ok {
		panic("sim: the run is gone")
	}
	return v.State
}

// fail records the first broken invariant.
func (n *network) fail(format string, args ...any) {
	if n.broken == nil {
		n.broken = fmt.Errorf("seed %d, %v: %s", n.cfg.Seed, n.clock.Now().Sub(n.start), fmt.Sprintf(format, args...))
	}
}

// honest returns the number of honest participants.
func (n *network) honest() int {
	if n.cfg.Reformed {
		return len(n.members)
	}
	return len(n.members) - len(n.cfg.Adversaries)
}

// settledDisputes reports whether no dispute is open.
func (n *network) settledDisputes() bool {
	s := n.state()
	return len(s.Checks()) == 0 && len(s.Disputes()) == 0
}

// holders returns the number of honest participants with the agreed parameters.
func (n *network) holders() int {
	agreed, _ := n.state().Params()
	count := 0
	for _, p := range n.members {
		if p.holds(agreed) {
			count++
		}
	}
	return count
}

// holds reports whether an honest participant has parameters.
func (p *participant) holds(params wire.Hash) bool {
	if p.node == nil || p.network.cfg.kind(p.index) != "" {
		return false
	}
	_, hash, ok := p.node.Params()
	return ok && hash == params
}

func (n *network) finish() {
	s := n.state()
	n.report.Rounds, n.report.Steps, n.report.Epochs, n.report.Rollbacks = uint32(s.Round()), uint32(s.Step()), s.Epoch(), s.Rollbacks()
	n.report.Params, _ = s.Params()
	n.report.Points = s.PointsTotal()
	n.report.Virtual = n.clock.Now().Sub(n.start)
	n.report.Holders = n.holders()
	n.judged()
	n.writeLog()
	copy(n.report.Log[:], n.log.Sum(nil))
	for _, p := range n.members {
		p.end()
	}
}
