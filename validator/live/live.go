// Package live runs a validator: it performs what the machine of package validator decides.
//
// It reads the run's state from a ledger, and commitments and reveals from the miners' buckets. It
// computes with the run's engine, keeps its record in a file, and publishes only its scores, on the
// chain. All of it happens on one [loop.Loop], in a process or in a simulation.
package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/wire"
)

// Store keeps a validator's record. Load returns nil if there is none.
type Store interface {
	Load() ([]byte, error)
	Save(record []byte) error
}

// Config configures a validator. Store and Observe may be nil.
type Config struct {
	Run     string
	ID      wire.Hash // the run's identity
	Key     key.Private
	Ledger  ledger.Ledger
	Loop    loop.Loop
	Engine  engine.Engine // runs one job at a time, off the loop
	Tensors int           // number of the model's tensors in the slicer's ranges
	// Exchange reads the miners' buckets. With a writer, and where others read what it writes, as in
	// node.Bucket, the validator can say which results it lacks, and witnesses copy these.
	Exchange   *bucket.Exchange
	Registered string
	// Model fetches the parameters that the run agreed on for the start of a round from the miners'
	// buckets. held returns those of the start of round from, or nil if none are held. done is
	// called on the loop, once, unless ctx ends before. Functions that return values are called off
	// the loop. The result is checked against the hash.
	Model func(ctx context.Context, s coordinator.State, from coordinator.Round, held func() []float32, round coordinator.Round, params wire.Hash, done func(values func() []float32, err error))
	// Peers, if not nil, receives the announced addresses.
	Peers func([]host.Peer)
	// Initial returns the run's initial parameters, or nil if this machine does not have them. It
	// is called off the loop.
	Initial func() []float32
	Store   Store
	// Validator configures the decisions. Self and Secret are filled in.
	Validator validator.Config
	// Stake is the number of tokens staked for a seat, and Pool the pool they come from, or "" for
	// the key's purse.
	Stake uint64
	Pool  string
	// Inexact means that the run's arithmetic differs between machines. Then works are not
	// compared, and only cosines and losses count.
	Inexact bool
	// Observe receives events, on the loop. It must not block.
	Observe func(Event)
	// Cost returns the virtual time of a job in a simulation. Jobs are "evaluate", "apply", "hash",
	// "init" and "save".
	Cost func(job string) time.Duration
}

// Event is an event for people and logs. Fields that do not apply to its kind are zero.
type Event struct {
	Kind    string // state, evaluated, scored, ballot, applied, healed, sent, note
	Round   coordinator.Round
	Scored  *validator.Scored
	Ballot  *validator.Balloted
	Seconds float64   // duration of an evaluation
	Loss    float64   // recomputed loss of the share
	Params  wire.Hash // parameters held now
	Text    string
}

// Validator runs a validator. Create it with [New]. Call its methods on the loop.
type Validator struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	self    key.Public
	machine *validator.Machine
	clock   loop.Monotonic // the machine's
	slicer  engine.Slicer
	judge   Judge

	state  coordinator.State
	height uint64
	known  bool
	where  map[key.Public]bucket.Location // announced; nil until the first answer
	signed map[place]dispute.Commitment
	held   map[place]Result // checked results
	told   bool             // something was said about windows that are not forgotten
	params engine.Vector
	ended  bool
}

// place is a member's place in a window.
type place struct {
	window coordinator.Round
	member coordinator.Member
}

// secretDomain is the domain of the signature, which nobody else can make, that determines the
// validator's choices.
const secretDomain = "entrain/validator-secret"

// New returns a validator that does nothing before Start.
func New(ctx context.Context, cfg Config) (*Validator, error) {
	slicer, ok := cfg.Engine.Slicer()
	if !ok {
		return nil, fmt.Errorf("validator: run %q does not exchange by buckets: its results are judged by verifiers, not by validators", cfg.Run)
	}
	if cfg.Cost == nil {
		cfg.Cost = func(string) time.Duration { return 0 }
	}
	v := &Validator{
		cfg: cfg, self: cfg.Key.Public(), slicer: slicer,
		held: map[place]Result{}, signed: map[place]dispute.Commitment{},
		judge: Judge{Run: cfg.ID, Engine: cfg.Engine, Slicer: slicer, Tensors: cfg.Tensors, Inexact: cfg.Inexact},
	}
	// deterministic, so it is the same after a restart
	signature := cfg.Key.Sign(secretDomain, cfg.ID[:])
	v.cfg.Validator.Self, v.cfg.Validator.Secret = v.self, wire.Sum(secretDomain, signature[:])
	v.machine = validator.New(v.cfg.Validator)
	v.ctx, v.cancel = context.WithCancel(ctx)
	return v, nil
}

// Start starts the validator.
func (v *Validator) Start() {
	v.load()
	v.cfg.Ledger.Watch(v.ctx, v.cfg.Run, func(s ledger.Snapshot) { v.cfg.Loop.Post(func() { v.arrived(s) }) })
	v.lookUp()
	v.wake()
}

// Stop stops the validator and then calls done on the loop.
func (v *Validator) Stop(done func()) {
	if v.ended {
		return
	}
	v.ended = true
	v.cancel()
	v.cfg.Loop.Post(done)
}

// State returns the newest state of the run, after the first event of kind state.
func (v *Validator) State() coordinator.State { return v.state }

// Self returns the validator's key.
func (v *Validator) Self() key.Public { return v.self }

// Intervals at which it checks for due work, and for the addresses of miners' buckets.
const (
	wakeEvery  = 250 * time.Millisecond
	peersEvery = 2 * time.Second
)

func (v *Validator) wake() {
	v.cfg.Loop.After(wakeEvery, func() {
		if v.ended {
			return
		}
		v.step(validator.Tick{})
		v.wake()
	})
}

// lookUp refreshes the addresses of the miners' buckets.
func (v *Validator) lookUp() {
	if v.ended {
		return
	}
	v.cfg.Ledger.Peers(v.ctx, v.cfg.Run, func(found []host.Peer, err error) {
		v.cfg.Loop.Post(func() {
			if err != nil || v.ended {
				return
			}
			v.where = map[key.Public]bucket.Location{}
			for _, p := range found {
				for _, addr := range p.Addrs {
					if at, err := bucket.ParseLocation(addr); err == nil {
						v.where[p.Key] = at
						break
					}
				}
			}
			v.announce(found)
			if v.cfg.Peers != nil {
				v.cfg.Peers(found)
			}
		})
	})
	v.cfg.Loop.After(peersEvery, v.lookUp)
}

func (v *Validator) arrived(s ledger.Snapshot) {
	if v.ended || v.known && s.Height <= v.height {
		return
	}
	v.state, v.height, v.known = s.State, s.Height, true
	v.observe(Event{Kind: "state", Round: s.State.Round()})
	v.step(validator.StateChanged{State: s.State})
}

func (v *Validator) step(ev validator.Event) {
	if v.ended {
		return
	}
	for _, a := range v.machine.Step(v.clock.Ms(v.cfg.Loop), ev) {
		v.perform(a)
	}
}

func (v *Validator) observe(ev Event) {
	if v.cfg.Observe != nil {
		v.cfg.Observe(ev)
	}
}

func (v *Validator) note(format string, args ...any) {
	v.observe(Event{Kind: "note", Text: fmt.Sprintf(format, args...)})
}

func (v *Validator) perform(a validator.Action) {
	switch a := a.(type) {
	case validator.Fetch:
		v.fetch(a)
	case validator.Lack:
		v.lack(a)
	case validator.Evaluate:
		v.evaluate(a)
	case validator.Apply:
		v.apply(a)
	case validator.Heal:
		v.heal(a)
	case validator.Submit:
		v.submit(a)
	case validator.Save:
		v.save(a)
	case validator.Forget:
		before := func(p place) bool { return p.window < a.Before }
		maps.DeleteFunc(v.held, func(p place, _ Result) bool { return before(p) })
		maps.DeleteFunc(v.signed, func(p place, _ dispute.Commitment) bool { return before(p) })
		v.tidy(a.Before)
	case validator.Scored:
		v.observe(Event{Kind: "scored", Round: a.Window, Scored: &a})
	case validator.Balloted:
		v.observe(Event{Kind: "ballot", Ballot: &a})
	case validator.Note:
		v.note("%s", a.Text)
	}
}

// load reads the record and makes the initial parameters.
func (v *Validator) load() {
	var loaded validator.Loaded
	var params engine.Vector
	var fault error
	v.cfg.Loop.Work(v.cfg.Cost("init"), func() {
		if v.cfg.Store != nil {
			b, err := v.cfg.Store.Load()
			if err == nil && b != nil {
				var r validator.Record
				if r, err = validator.ParseRecord(b); err == nil && r.Run == v.cfg.ID && r.Self == v.self {
					loaded.Book, loaded.Ballot = r.Book, r.Ballot
				}
			}
			fault = err
		}
		if v.cfg.Initial != nil {
			if first := v.cfg.Initial(); first != nil {
				params = v.cfg.Engine.Load(first)
			}
		}
		if params != nil {
			loaded.Known, loaded.Params = true, merkle.Root(v.cfg.Engine.Leaves(params))
		}
	}, func() {
		if fault != nil {
			v.note("the saved scores are unusable, so scoring starts from the beginning: %v", fault)
		}
		v.params = params
		v.step(loaded)
	})
}

// save writes the record.
func (v *Validator) save(a validator.Save) {
	var err error
	v.cfg.Loop.Work(v.cfg.Cost("save"), func() {
		if v.cfg.Store != nil {
			err = v.cfg.Store.Save(a.Record.Append(nil))
		}
	}, func() {
		if err != nil {
			v.note("keeping the scores: %v", err)
		}
		v.step(validator.Saved{Period: a.Record.Ballot.Period, OK: err == nil})
	})
}

// submit sends a message to the run.
func (v *Validator) submit(a validator.Submit) {
	body := host.ToRun(v.cfg.Run, a.Message)
	if _, ok := a.Message.(coordinator.RegisterValidator); ok {
		body.Value, body.From = v.cfg.Stake, v.cfg.Pool
	}
	v.cfg.Ledger.Submit(v.ctx, body, func(err error) {
		v.cfg.Loop.Post(func() {
			if err == nil {
				v.observe(Event{Kind: "sent", Text: fmt.Sprintf("%T", a.Message)})
			}
			v.step(validator.Submitted{Message: a.Message, Err: err})
		})
	})
}

// heal fetches the agreed parameters.
func (v *Validator) heal(a validator.Heal) {
	failed := validator.Healed{Round: a.Round, Params: a.Params}
	var held func() []float32
	if params := v.params; a.Held > 0 {
		held = func() []float32 { return slices.Clone(engine.Values(params)) }
	}
	v.cfg.Model(v.ctx, v.state, a.Held, held, a.Round, a.Params, func(values func() []float32, err error) {
		if err != nil {
			v.note("fetching the model of round %d: %v", a.Round, err)
			v.step(failed)
			return
		}
		var params engine.Vector
		var root wire.Hash
		v.cfg.Loop.Work(v.cfg.Cost("hash"), func() {
			if found := values(); len(found) == v.cfg.Engine.ParamsLen() {
				params = v.cfg.Engine.Load(found)
				root = merkle.Root(v.cfg.Engine.Leaves(params))
			}
		}, func() {
			if root != a.Params {
				v.note("a model that was fetched is not the one of round %d: trying another way", a.Round)
				v.step(failed)
				return
			}
			v.params = params
			v.observe(Event{Kind: "healed", Round: a.Round, Params: root})
			v.step(validator.Healed{Round: a.Round, Params: root, OK: true})
		})
	})
}
