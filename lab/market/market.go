// Package market runs miners and validators of a run that exchanges by buckets, all in one
// process and on one virtual clock: real nodes, real validators, the real engine and codec, the
// ledger and the buckets in memory. Some miners cheat and some validators lie. Everything that
// comes of it follows from the configuration, to the last bit.
//
// It is where the rewards of docs/rewards.md are measured (`entrain bench rewards`), and where
// attacks are tested.
package market

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/ledger"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Miner is who trains.
type Miner struct {
	// Kind is how it cheats: one of adversary.Miners, "" if it is honest.
	Kind string
	// Percent is how much of its share it trains on; 0: all.
	Percent int
	// Slow is how many times as long as others it computes; 0: once.
	Slow uint32
	// Claims is how fast it says that it is, in per cent of the truth; 0: the truth.
	Claims uint32
	// Bend, if not nil, changes its node before it starts.
	Bend func(*node.Config)
}

// Config is who takes part, and for how long. Zero values stand for what the comments say.
type Config struct {
	Miners     []Miner
	Validators []Judge
	Steps      uint32 // windows that train: 40
	Period     uint32 // windows of a scoring period: 8
	Share      uint32 // sequences of a miner in a window: 8
	// Compression and Leaf are the slice codec's: 8 and 64, for a model of some 20,000 weights.
	Compression, Leaf uint32
	Rate              float64 // learning rate: 4e-3
	// Sharing is how a window's sequences, Share for each miner, are divided among them.
	Sharing coordinator.Sharing
	// Inexact says that validators act as where arithmetic is not exact: they do not compare works.
	Inexact bool
	Seed    wire.Hash
}

func (c *Config) fill() {
	set := func(v *uint32, to uint32) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.Steps, 40)
	set(&c.Period, 8)
	set(&c.Share, 8)
	set(&c.Compression, 8)
	set(&c.Leaf, 64)
	if c.Rate == 0 {
		c.Rate = 4e-3
	}
}

// The emission of a period, and what part of it is the validators'.
const (
	Emission         = 1_000_000
	ValidatorPercent = 20
)

// The model: a small one, so that hundreds of windows take seconds.
var Model = llama.Config{Vocab: 64, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 24, Theta: 10000, Eps: 1e-5}

const (
	sequence = 24
	heldOut  = 64 // sequences the loss is measured on
	runName  = "market"
	chainID  = "market"
	treasury = 1 << 40
	epochMs  = 300 * 24 * 3600 * 1000 // longer than any market lasts
)

// Market is a run. Make it with [New]; it belongs to one goroutine. Close must be called.
type Market struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	Clock   *loop.Virtual
	Chain   *ledgermem.Chain
	Buckets *bucketmem.World
	pool    *exact.Pool
	codec   *slice.Codec
	parts   cpu.Config
	engine  *cpu.Engine
	initial []float32
	text    []byte

	miners     []*miner
	validators []*judge
	periods    []coordinator.Scores // as they were settled
	saved      []float32            // the parameters of the last checkpoint
	savedHash  wire.Hash
}

type miner struct {
	node  *node.Node
	notes []string
	bytes func() uint64
}

// New makes a run and lets all take part. Nothing happens before Until.
func New(ctx context.Context, cfg Config) (*Market, error) {
	cfg.fill()
	m := &Market{cfg: cfg, Clock: loop.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), pool: exact.NewPool(1), text: []byte("market")}
	m.ctx, m.cancel = context.WithCancel(ctx)
	if err := m.make(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Market) make() (err error) {
	cfg := m.cfg
	m.codec, err = slice.New(Model.Layout(), slice.Config{Compression: cfg.Compression, Leaf: cfg.Leaf, Decay: 1, WeightDecay: 0.1, ClipNorm: 1}, m.pool)
	if err != nil {
		return err
	}
	m.parts = cpu.Config{
		Model: Model, Codec: m.codec, Pool: m.pool, Data: language{}, HeldOut: language{from: 1 << 62}, HeldOutSequences: heldOut,
		Sequence: sequence, Micro: 8,
		Schedule: optim.Schedule{Kind: optim.Cosine, Base: cfg.Rate, WarmupSteps: cfg.Steps / 10, Steps: cfg.Steps, Final: cfg.Rate / 10},
	}
	if m.engine, err = cpu.New(m.parts); err != nil {
		return err
	}
	m.initial = llama.Init(Model, wire.Sum("entrain/market", cfg.Seed[:]))
	if err := m.found(); err != nil {
		return err
	}
	m.Buckets = bucketmem.New(m.Clock.Now, 1)
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

// Close ends everything.
func (m *Market) Close() {
	m.cancel()
	m.pool.Close()
}

// MinerKey and JudgeKey are the keys of the participants.
func MinerKey(i int) key.Private { return key.FromSeed([32]byte{1, byte(i), byte(i >> 8)}) }

// JudgeKey is a validator's.
func JudgeKey(i int) key.Private { return key.FromSeed([32]byte{2, byte(i), byte(i >> 8)}) }

var owner = key.FromSeed([32]byte{3})

// found makes the chain and the run.
func (m *Market) found() (err error) {
	cfg := m.cfg
	accounts := []host.Allocation{{Key: owner.Public(), Amount: treasury}}
	for i, j := range cfg.Validators {
		accounts = append(accounts, host.Allocation{Key: JudgeKey(i).Public(), Amount: j.stake()})
	}
	sortAllocations(accounts)
	genesis := host.Genesis{Chain: chainID, Accounts: accounts, Creators: []key.Public{owner.Public()}}
	m.Chain, err = ledgermem.New(m.Clock, ledgermem.Options{Seed: cfg.Seed, Genesis: genesis})
	if err != nil {
		return err
	}
	n := uint32(len(cfg.Miners))
	run := coordinator.Config{
		Name: runName, MinMembers: 1, StartMembers: n, Witnesses: uint16(min(n, 8)), WaitingMs: 1000, WarmupMs: 30_000, RoundTrainMs: 6000, RoundWitnessMs: 1000,
		CooldownMs: 1000, EpochMs: epochMs, TotalSteps: cfg.Steps, BatchStart: n * cfg.Share, BatchEnd: n * cfg.Share, SequenceTokens: sequence, MissedMax: 3,
		Overlap: 1, Exchange: coordinator.Buckets, WindowBlocks: 25, Validators: uint16(len(cfg.Validators)), ScoreWindows: cfg.Period,
		Emission: Emission, ValidatorPercent: ValidatorPercent, Penalty: 100, Sharing: cfg.Sharing,
		ModelHash: merkle.Root(m.engine.Leaves(cpu.Floats(m.initial))), SpecHash: host.SpecHash(m.text), Owner: owner.Public(),
		StateHash: merkle.Root(m.engine.Leaves(cpu.Floats(make([]float32, m.engine.StateLen())))),
	}
	limits := coordinator.Limits{Members: max(n, 2), Witnesses: 8, Validators: run.Validators, Buckets: true, Speeds: cfg.Sharing == coordinator.SpeedShares}
	chain := m.Chain.Client().As(owner)
	if err := m.submit(chain, host.CreateRun{Limits: limits, Config: run, Spec: m.text}); err != nil {
		return fmt.Errorf("creating the run: %w", err)
	}
	fund := host.RunMessage{Run: runName, Value: treasury, Message: coordinator.Append(nil, coordinator.Fund{})}
	if err := m.submit(chain, fund); err != nil {
		return fmt.Errorf("filling the treasury: %w", err)
	}
	return nil
}

// submit brings a transaction into a block.
func (m *Market) submit(chain ledger.Ledger, body host.Body) (err error) {
	done := false
	chain.Submit(m.ctx, body, func(e error) { done, err = true, e })
	if !m.Until(time.Minute, func() bool { return done }) {
		return errors.New("no block took it")
	}
	return err
}

// Until lets the clock go on until something is so; false if it is not after that long.
func (m *Market) Until(limit time.Duration, done func() bool) bool {
	end := m.Clock.Now().Add(limit)
	for !done() {
		if m.ctx.Err() != nil || !m.Clock.Step() || m.Clock.Now().After(end) {
			return false
		}
	}
	return true
}

// State is the run's.
func (m *Market) State() coordinator.State {
	v, _ := m.Chain.Host().View(runName)
	return v.State
}

// Place is where a miner's bucket is, with the credentials to write.
func Place(i int) bucket.Location {
	return bucket.Location{Endpoint: "mem", Bucket: fmt.Sprintf("miner-%d", i), AccessKey: "key", SecretKey: "secret"}
}

// Public is where others read a miner's bucket.
func Public(i int) bucket.Location {
	return bucket.Location{Endpoint: "mem", Bucket: Place(i).Bucket}
}

// mine starts miner i.
func (m *Market) mine(i int) error {
	who := m.cfg.Miners[i]
	m.Buckets.Make(Place(i))
	own, err := m.Buckets.Open(Place(i))
	if err != nil {
		return err
	}
	registered, err := Public(i).Registered()
	if err != nil {
		return err
	}
	scope := loop.NewScope(m.Clock)
	writer, reader := bucket.NewWriter(own, MinerKey(i), bucket.Options{}), bucket.NewReader(m.Buckets.Open, bucket.Options{})
	x := &miner{bytes: func() uint64 { return uint64(writer.Traffic.Bytes()) }}
	cfg := node.Config{
		Run: runName, ID: m.State().ID(), Key: MinerKey(i), Ledger: m.Chain.Client().As(MinerKey(i)), Loop: scope, Engine: lazy{m.engine, who.Percent},
		Initial:          func() []float32 { return append([]float32(nil), m.initial...) },
		Bucket:           &node.Bucket{Exchange: bucket.NewExchange(scope, writer, reader, bucket.ExchangeOptions{Simulated: true}), Registered: registered},
		CheckpointAlways: true, Speed: m.cfg.claims(who),
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
	if who.Kind != "" {
		o := adversary.Options{Seed: wire.Sum("entrain/market-cheat", m.cfg.Seed[:], wire.AppendU32(nil, uint32(i))), Train: m.parts}
		if cfg, err = adversary.Wrap(who.Kind, cfg, o); err != nil {
			return err
		}
	}
	if who.Bend != nil {
		who.Bend(&cfg)
	}
	if x.node, err = node.New(m.ctx, cfg); err != nil {
		return err
	}
	m.miners = append(m.miners, x)
	m.Clock.Post(x.node.Start)
	return nil
}

// Notes are what a miner had to say.
func (m *Market) Notes(i int) []string { return m.miners[i].notes }

// HeldOut is the loss of parameters on text that nobody trains on.
func (m *Market) HeldOut(params []float32) (float64, error) {
	loss, err := m.engine.HeldOut(m.ctx, cpu.Floats(params))
	return float64(loss), err
}

// dense is the bytes of a model sent whole, each weight in 32 bits.
func (m *Market) dense() uint64 { return uint64(len(tensor.Bytes(m.initial))) }
