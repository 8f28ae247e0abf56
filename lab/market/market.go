// Package market runs the miners and validators of a run that exchanges by buckets in one process
// and on one virtual clock: real nodes, validators, engine and codec, with the ledger and the
// buckets in memory. Some miners cheat and some validators lie. All results follow from the
// configuration, to the last bit.
//
// docs/rewards.md quotes its measurements (`lab rewards`), and tests use it for attacks.
package market

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/disk"
	"github.com/entrain-network/entrain/ledger"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Miner is a member that trains.
type Miner struct {
	// Kind names its cheat, one of adversary.Miners, or is "" for an honest miner.
	Kind string
	// Percent is the part of its share that it trains on; 0 means all.
	Percent int
	Hide    coordinator.Member // adversary.Options.Hide
	// Slow is the factor by which it computes slower than others; 0 means 1.
	Slow uint32
	// Claims is the speed it states, in per cent of the true one; 0 means the truth.
	Claims uint32
	// Configure, if not nil, changes its node's configuration before it starts.
	Configure func(*node.Config)
}

// Config configures a market. Zero values mean the values in the comments.
type Config struct {
	Miners     []Miner
	Validators []Judge
	Model      llama.Config // [Model]
	Steps      uint32       // training windows: 40
	Period     uint32       // windows of a scoring period: 8
	Share      uint32       // sequences of a miner's share: 8
	// Compression and Leaf are options of the slice codec: 8 and 64, for a model of about 20,000
	// weights.
	Compression, Leaf uint32
	Rate              float64 // learning rate: 4e-3
	// Sharing divides a window's sequences, Share for each miner.
	Sharing coordinator.Sharing
	// Inexact makes validators act as with inexact arithmetic: they do not compare works.
	Inexact bool
	// Verification is the part in per cent of the results whose gradients other miners recompute.
	// Above 0, each miner has a stake.
	Verification uint8
	// Start is the number of miners that must be present for an epoch to begin: all of them.
	Start uint32
	// Disks gives miners disks, with which they survive CrashMiner, and tokens to add to their stakes
	// what a fee took.
	Disks bool
	// Pooled has the first miner's stake come from a pool. It takes Verification.
	Pooled bool
	Seed   wire.Hash
	// Inspect, if not nil, is called after every event.
	Inspect func(*Market)
}

func (c *Config) fill() {
	c.Steps, c.Period, c.Share = cmp.Or(c.Steps, 40), cmp.Or(c.Period, 8), cmp.Or(c.Share, 8)
	c.Compression, c.Leaf = cmp.Or(c.Compression, 8), cmp.Or(c.Leaf, 64)
	c.Start, c.Rate = cmp.Or(c.Start, uint32(len(c.Miners))), cmp.Or(c.Rate, 4e-3)
	c.Model = cmp.Or(c.Model, Model)
}

// The emission of a period, and the validators' part of it.
const (
	Emission         = 1_000_000
	validatorPercent = 20
)

// Model is small, so that hundreds of windows take seconds.
var Model = llama.Config{Vocab: 64, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 24, Theta: 10000, Eps: 1e-5}

const (
	sequence     = 24
	windowBlocks = 25
	heldOut      = 64 // sequences on which the loss is measured
	runName      = "market"
	chainID      = "market"
	treasury     = 1 << 40
	stake        = 1000 // of a miner, where results are verified
	poolName     = "pool"
	epochMs      = 300 * 24 * 3600 * 1000 // longer than any market lasts
)

// Market is a run. Create it with [New]; the caller must Close it. It belongs to one goroutine.
type Market struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	Clock   *loop.Virtual
	Chain   *ledgermem.Chain
	Buckets *bucketmem.World
	run     engine.Run
	engine  engine.Engine
	initial []float32
	text    []byte
	// disputant argues for all miners, and referee judges them; nil without verification.
	disputant node.Disputant
	referee   dispute.Referee

	// filters says, by bucket, who may read what, where not everybody may read everything.
	filters    map[string]func(key.Public, bucket.Name) bool
	miners     []*miner
	validators []*judge
	periods    []score.Scores // settled periods
	saved      []float32      // parameters of the last checkpoint
	savedHash  wire.Hash
}

func newEngine(run engine.Run) (engine.Engine, error) {
	return cpu.New(run, cpu.Options{Workers: 1, Micro: 8})
}

type miner struct {
	node   *node.Node // nil while it is down
	disk   disk.Disk
	notes  []string
	bytes  func() uint64
	scope  *loop.Scope
	chain  *ledgermem.Client
	cancel context.CancelFunc
}

// New creates a run and lets everyone join. Nothing happens before Until.
func New(ctx context.Context, cfg Config) (*Market, error) {
	cfg.fill()
	m := &Market{cfg: cfg, Clock: loop.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), text: []byte("market")}
	m.ctx, m.cancel = context.WithCancel(ctx)
	if err := m.make(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Market) make() (err error) {
	cfg := m.cfg
	m.run = engine.Run{
		Model: cfg.Model, Data: language{}, HeldOut: language{from: 1 << 62}, HeldOutSequences: heldOut, Sequence: sequence,
		Codec:    slice.Config{Compression: cfg.Compression, Leaf: cfg.Leaf, Decay: 1, WeightDecay: 0.1, ClipNorm: 1},
		Schedule: optim.Schedule{Kind: optim.Cosine, Base: cfg.Rate, WarmupSteps: cfg.Steps / 10, Steps: cfg.Steps, Final: cfg.Rate / 10},
	}
	if m.engine, err = newEngine(m.run); err != nil {
		return err
	}
	m.engine = judging{m.engine, map[wire.Hash]engine.Gradient{}}
	m.initial = llama.Init(cfg.Model, wire.Sum("entrain/market", cfg.Seed[:]))
	if cfg.Verification > 0 {
		if err := m.verified(); err != nil {
			return err
		}
	}
	if err := m.found(); err != nil {
		return err
	}
	m.Buckets = bucketmem.New(m.Clock.Now, 1)
	m.filters = map[string]func(key.Public, bucket.Name) bool{}
	for i := range cfg.Miners {
		if err := m.mine(i); err != nil {
			return err
		}
	}
	for i, j := range cfg.Validators {
		if j.Late {
			break
		}
		if err := m.judge(i); err != nil {
			return err
		}
	}
	return nil
}

// Close stops all participants.
func (m *Market) Close() {
	m.cancel()
	if m.engine != nil {
		m.engine.Close()
	}
}

// MinerKey returns a miner's key.
func MinerKey(i int) key.Private { return key.FromSeed([32]byte{1, byte(i), byte(i >> 8)}) }

// judgeKey returns a validator's key.
func judgeKey(i int) key.Private { return key.FromSeed([32]byte{2, byte(i), byte(i >> 8)}) }

var owner = key.FromSeed([32]byte{3})

// found creates the chain and the run.
func (m *Market) found() (err error) {
	cfg := m.cfg
	accounts := []host.Allocation{{Key: owner.Public(), Amount: treasury}}
	for i, j := range cfg.Validators {
		accounts = append(accounts, host.Allocation{Key: judgeKey(i).Public(), Amount: j.stake()})
	}
	if cfg.Verification > 0 {
		for i := range cfg.Miners {
			amount := uint64(stake)
			if cfg.Disks {
				amount += 1 << 20 // more than the least that a purse holds
			}
			accounts = append(accounts, host.Allocation{Key: MinerKey(i).Public(), Amount: amount})
		}
	}
	sortAllocations(accounts)
	genesis := host.Genesis{Chain: chainID, Accounts: accounts, Creators: []key.Public{owner.Public()}}
	m.Chain, err = ledgermem.New(m.Clock, ledgermem.Options{Seed: cfg.Seed, Genesis: genesis, Referees: verify.NewReferee})
	if err != nil {
		return err
	}
	n := uint32(len(cfg.Miners))
	run := coordinator.Config{
		Name: runName, MinMembers: 1, StartMembers: cfg.Start, Witnesses: uint16(min(n, 8)), WaitingMs: 1000, WarmupMs: 30_000, RoundTrainMs: 6000, RoundWitnessMs: 1000,
		CooldownMs: 1000, EpochMs: epochMs, TotalSteps: coordinator.Step(cfg.Steps), BatchStart: n * cfg.Share, BatchEnd: n * cfg.Share, SequenceTokens: sequence, MissedMax: 3,
		Overlap: 1, Exchange: coordinator.Buckets, WindowBlocks: windowBlocks, Validators: uint16(len(cfg.Validators)), ScoreWindows: cfg.Period,
		Emission: Emission, ValidatorPercent: validatorPercent, Penalty: 100, Sharing: cfg.Sharing,
		ModelHash: merkle.Root(m.engine.Leaves(cpu.Floats(m.initial))), SpecHash: host.SpecHash(m.text), Owner: owner.Public(),
		StateHash: merkle.Root(m.engine.Leaves(cpu.Floats(make([]float32, m.engine.StateLen())))),
	}
	if cfg.Verification > 0 {
		run.VerificationPercent, run.VerifyMs, run.DisputeMs, run.UnbondMs, run.Stake = cfg.Verification, verifyMs, disputeMs, unbondMs, stake
	}
	limits := coordinator.Limits{Members: max(n, 2), Witnesses: 8, Validators: run.Validators, Buckets: true, Speeds: cfg.Sharing == coordinator.SpeedShares}
	chain := m.Chain.Client().As(owner)
	if err := m.submit(chain, host.CreateRun{Limits: limits, Config: run, Spec: m.text}); err != nil {
		return fmt.Errorf("creating the run: %w", err)
	}
	have := m.Chain.Host().Balance(owner.Public())
	if cfg.Pooled {
		have -= m.Chain.Host().PoolDeposit() + 4*stake
		pool := host.CreatePool{Name: poolName, Workers: []key.Public{MinerKey(0).Public()}, Runs: []string{runName}}
		if err := m.submit(chain, pool); err != nil {
			return fmt.Errorf("creating the pool: %w", err)
		}
		if err := m.submit(chain, host.Lend{Pool: poolName, Amount: 4 * stake}); err != nil {
			return fmt.Errorf("lending to the pool: %w", err)
		}
	}
	fund := host.RunMessage{Run: runName, Value: have, Message: coordinator.Append(nil, coordinator.Fund{})}
	if err := m.submit(chain, fund); err != nil {
		return fmt.Errorf("filling the treasury: %w", err)
	}
	return nil
}

// submit submits a transaction and makes a block.
func (m *Market) submit(chain ledger.Ledger, body host.Body) (err error) {
	done := false
	chain.Submit(m.ctx, body, func(e error) { done, err = true, e })
	if !m.Until(time.Minute, func() bool { return done }) {
		return errors.New("no block took it")
	}
	return err
}

// Until advances the clock until a condition holds. It reports false if it does not within the
// limit.
func (m *Market) Until(limit time.Duration, done func() bool) bool {
	end := m.Clock.Now().Add(limit)
	for !done() {
		if m.ctx.Err() != nil || !m.Clock.Step() || m.Clock.Now().After(end) {
			return false
		}
		if m.cfg.Inspect != nil && m.Chain != nil {
			m.cfg.Inspect(m)
		}
	}
	return true
}

// State returns the run's state.
func (m *Market) State() coordinator.State {
	v, _ := m.Chain.Host().View(runName)
	return v.State
}

// Place returns the location of a miner's bucket, with credentials to write.
func Place(i int) bucket.Location {
	return bucket.Location{Endpoint: "mem", Bucket: fmt.Sprintf("miner-%d", i), AccessKey: "key", SecretKey: "secret"}
}

// Public returns the location at which others read a miner's bucket.
func Public(i int) bucket.Location {
	return bucket.Location{Endpoint: "mem", Bucket: Place(i).Bucket}
}

// openFor opens stores as a reader sees them.
func (m *Market) openFor(reader key.Public) bucket.Opener {
	return func(at bucket.Location) (bucket.Store, error) {
		s, err := m.Buckets.Open(at)
		return filtered{s, func(n bucket.Name) bool {
			allow := m.filters[at.Bucket]
			return allow == nil || allow(reader, n)
		}}, err
	}
}

// filtered is a bucket whose owner does not show everything to everybody.
type filtered struct {
	bucket.Store
	allow func(bucket.Name) bool
}

func (s filtered) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if name, err := bucket.ParseName(key); err == nil && !s.allow(name) {
		return nil, bucket.Object{}, &bucket.Error{Op: "get", Key: key, Kind: bucket.ErrMissing}
	}
	return s.Store.Get(ctx, key, offset, n)
}

// gang returns the keys of the miners of a kind.
func (m *Market) gang(kind string) (keys []key.Public) {
	for i, who := range m.cfg.Miners {
		if who.Kind == kind {
			keys = append(keys, MinerKey(i).Public())
		}
	}
	return keys
}

// mine starts miner i.
func (m *Market) mine(i int) error {
	m.Buckets.Make(Place(i))
	m.miners = append(m.miners, &miner{})
	return m.ReviveMiner(i)
}

// CrashMiner ends miner i as kill -9 would.
func (m *Market) CrashMiner(i int) {
	x := m.miners[i]
	x.scope.End()
	x.chain.Cut(true)
	x.cancel()
	x.node = nil
}

// ReviveMiner starts miner i, with its disk if it has one.
func (m *Market) ReviveMiner(i int) error {
	who, x := m.cfg.Miners[i], m.miners[i]
	own, err := m.Buckets.Open(Place(i))
	if err != nil {
		return err
	}
	registered, err := Public(i).Registered()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	x.scope, x.chain, x.cancel = loop.NewScope(m.Clock), m.Chain.Client(), cancel
	writer, reader := bucket.NewWriter(own, MinerKey(i), bucket.Options{}), bucket.NewReader(m.openFor(MinerKey(i).Public()), bucket.Options{})
	x.bytes = func() uint64 { return uint64(writer.Traffic.Bytes()) }
	cfg := node.Config{
		Run: runName, ID: m.State().ID(), Key: MinerKey(i), Ledger: x.chain.As(MinerKey(i)), Loop: x.scope, Engine: lazy{m.engine, who.Percent},
		Initial:          func() []float32 { return append([]float32(nil), m.initial...) },
		Bucket:           &node.Bucket{Exchange: bucket.NewExchange(x.scope, writer, reader, bucket.ExchangeOptions{Simulated: true}), Registered: registered},
		CheckpointAlways: true, Speed: m.cfg.claims(who), Disputant: m.disputant,
		Checkpoint: func(c node.Checkpoint) (wire.Hash, error) {
			m.saved, m.savedHash = append([]float32(nil), c.Params...), c.Hash
			return wire.Sum("entrain/market-checkpoint", c.Hash[:]), nil
		},
		Observe: func(got event.Event) {
			switch ev := got.(type) {
			case event.Note:
				x.notes = append(x.notes, ev.Text)
			case event.Refused:
				x.notes = append(x.notes, ev.Text)
			}
		},
		Cost: func(job node.Job) time.Duration {
			if job.Kind == "train" {
				return m.cfg.takes(who, job.Sequences)
			}
			return 50 * time.Millisecond
		},
	}
	if m.cfg.Verification > 0 {
		cfg.Stake = stake
	}
	if m.cfg.Disks {
		cfg.Store, cfg.Restake = &x.disk, true
	}
	if m.cfg.Pooled && i == 0 {
		cfg.Pool = poolName
	}
	if who.Kind != "" {
		o := adversary.Options{Seed: wire.Sum("entrain/market-cheat", m.cfg.Seed[:], wire.AppendU32(nil, uint32(i))), Run: m.run, NewEngine: newEngine, Referee: m.referee,
			Gang: m.gang(who.Kind), Hide: who.Hide, Show: func(allow func(key.Public, bucket.Name) bool) (string, error) {
				m.filters[Place(i).Bucket] = allow
				return registered, nil
			}}
		if cfg, err = adversary.Wrap(who.Kind, cfg, o); err != nil {
			return err
		}
	}
	if who.Configure != nil {
		who.Configure(&cfg)
	}
	if x.node, err = node.New(ctx, cfg); err != nil {
		cancel()
		return err
	}
	x.scope.Post(x.node.Start)
	return nil
}

// Params returns the parameters that a miner holds: at the start of which round, and their hash. It
// is false if it holds none, is down, or has not joined yet.
func (m *Market) Params(i int) (coordinator.Round, wire.Hash, bool) {
	if i >= len(m.miners) || m.miners[i].node == nil {
		return 0, wire.Hash{}, false
	}
	return m.miners[i].node.Params()
}

// HeldOut returns the loss of parameters on held-out text.
func (m *Market) HeldOut(params []float32) (float64, error) {
	loss, err := m.engine.HeldOut(m.ctx, cpu.Floats(params))
	return float64(loss), err
}

// dense returns the size in bytes of the whole model in binary32.
func (m *Market) dense() uint64 { return uint64(len(tensor.Bytes(m.initial))) }
