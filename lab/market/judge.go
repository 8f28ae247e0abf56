package market

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/wire"
)

// Judge is a validator.
type Judge struct {
	Stake  uint64 // 0: 1000
	Sample uint32 // results evaluated in a window; 0: the default of validator.Config
	// Late validators do not start with the run, but when Enter is called. They come last in the
	// configuration.
	Late bool
	// Writes gives it a bucket, in which it says what it lacks.
	Writes bool
	// Say, if not nil, replaces the scores that it sends to the chain.
	Say func(s coordinator.State, period uint32, honest []scores.Score) []scores.Score
	// Configure, if not nil, changes its configuration before it starts.
	Configure func(*live.Config)
}

func (j Judge) stake() uint64 { return cmp.Or(j.Stake, 1000) }

type judge struct {
	store  *memory
	scope  *loop.Scope
	cancel context.CancelFunc
	scored []validator.Scored
	notes  []string
	healed int
}

// judging is the engine of all participants. It computes a gradient once that several of them
// recompute, which is a quarter of a market's work.
type judging struct {
	engine.Engine
	known map[wire.Hash]engine.Gradient // by parameters and sequences
}

// knownMax bounds the gradients that are remembered: more than the results of a window.
const knownMax = 64

// Gradient implements engine.Engine.
func (e judging) Gradient(ctx context.Context, params engine.Vector, spans []batch.Span) (engine.Gradient, error) {
	root := merkle.Root(e.Leaves(params))
	var b []byte
	for _, s := range spans {
		b = wire.AppendU32(wire.AppendU64(b, s.Start), s.Count)
	}
	name := wire.Sum("entrain/market-gradient", root[:], b)
	if g, ok := e.known[name]; ok {
		return g, nil
	}
	g, err := e.Engine.Gradient(ctx, params, spans)
	if err != nil {
		return g, err
	}
	values := e.NewVector(g.Values.Len())
	e.Copy(values, g.Values) // the engine's are overwritten
	g.Values = values
	if len(e.known) == knownMax {
		clear(e.known)
	}
	e.known[name] = g
	return g, nil
}

// memory is a live.Store in memory.
type memory struct{ record []byte }

func (s *memory) Load() ([]byte, error) { return bytes.Clone(s.record), nil }

func (s *memory) Save(b []byte) error {
	s.record = b
	return nil
}

// judge starts validator i.
func (m *Market) judge(i int) error {
	m.validators = append(m.validators, &judge{store: &memory{}})
	return m.revive(i)
}

// revive starts validator i with its old disk.
func (m *Market) revive(i int) error {
	who, x := m.cfg.Validators[i], m.validators[i]
	x.scope = loop.NewScope(m.Clock)
	ctx, cancel := context.WithCancel(m.ctx)
	x.cancel = cancel
	var writer *bucket.Writer
	registered := ""
	if who.Writes {
		at := bucket.Location{Endpoint: "mem", Bucket: fmt.Sprintf("judge-%d", i)}
		own := at
		own.AccessKey, own.SecretKey = "key", "secret"
		m.Buckets.Make(own)
		store, err := m.Buckets.Open(own)
		if err != nil {
			return err
		}
		if registered, err = at.Registered(); err != nil {
			return err
		}
		writer = bucket.NewWriter(store, judgeKey(i), bucket.Options{})
	}
	exchange := bucket.NewExchange(x.scope, writer, bucket.NewReader(m.Buckets.Open, bucket.Options{}), bucket.ExchangeOptions{Simulated: true})
	initial := func() []float32 { return append([]float32(nil), m.initial...) }
	visitor := node.NewBucketReader(m.State().ID(), x.scope, m.engine, exchange, initial, nil)
	cfg := live.Config{
		Run: runName, ID: m.State().ID(), Key: judgeKey(i), Ledger: m.Chain.Client().As(judgeKey(i)), Loop: x.scope, Engine: m.engine, Tensors: len(m.cfg.Model.Layout().Tensors()),
		Exchange: exchange, Registered: registered, Model: visitor.Model, Peers: visitor.Connect, Initial: initial,
		Store: x.store, Stake: who.stake(), Inexact: m.cfg.Inexact,
		Validator: validator.Config{Rules: score.Default(), Sample: who.Sample, Losses: 4, Register: true, Say: who.Say},
		Observe: func(ev live.Event) {
			switch ev.Kind {
			case "scored":
				x.scored = append(x.scored, *ev.Scored)
			case "healed":
				x.healed++
			case "note":
				x.notes = append(x.notes, ev.Text)
			}
		},
		Cost: func(string) time.Duration { return 100 * time.Millisecond },
	}
	if who.Configure != nil {
		who.Configure(&cfg)
	}
	v, err := live.New(ctx, cfg)
	if err != nil {
		return err
	}
	x.scope.Post(v.Start)
	return nil
}

// Enter starts the Late validator, which must be the last in the configuration.
func (m *Market) Enter() error { return m.judge(len(m.validators)) }

// Crash ends validator i as kill -9 would.
func (m *Market) Crash(i int) {
	m.validators[i].scope.End()
	m.validators[i].cancel()
}

// Revive starts a validator again after Crash, with its old disk.
func (m *Market) Revive(i int) error { return m.revive(i) }

// Scored returns all evaluations that validator i has made since its start.
func (m *Market) Scored(i int) []validator.Scored { return m.validators[i].scored }

func sortAllocations(list []host.Allocation) {
	slices.SortFunc(list, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
}
