// Package node is one participant of a run: it drives the pure machine of package client with a
// clock, a network, a ledger and a training engine.
//
//	          state changes                      gossip, answers
//	ledger ───────────────► ┌────────────────┐ ◄──────────────── p2p
//	       ◄─────────────── │ node (a loop)  │ ────────────────►
//	          transactions  │ client.Machine │  commitments, fetches
//	                        └───┬────────▲───┘
//	       train, apply, verify │        │ results
//	                            ▼        │
//	                        Engine (one job at a time, off the loop)
//
// Everything happens on one [loop.Loop], so only what peers read from other goroutines (blobs,
// commitments) has a lock. Under loop.Real a node is a process's main job; under loop.Virtual a
// whole network of nodes runs in one process from one seed.
//
// Where a run verifies, a node keeps and serves what its own last results are checked with,
// computes again the shares that it is drawn to check, and argues in disputes with a trace of the
// step ([Disputant]). See prune for the memory cost.
//
// On disk a node leaves its state file and its last own results ([Store]), one file for each
// accepted set since ([SetStore]) and one for each of its own shares under check ([CaseStore]),
// written whole and checked on reading. After a crash it continues from the parameters and the
// optimizer state of the last save, and the machine brings both up to date. An optimizer state that
// does not belong to the last accepted result is useless by then: the optimizer begins from the
// fresh one.
package node

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Store keeps a participant's state over crashes. Load returns ok false if there is none, and an
// error if what is there cannot be trusted.
type Store interface {
	Load() (s Saved, ok bool, err error)
	Save(s Saved) error
	// SaveOwn keeps a result of this member, in place of the one it kept keep rounds before; it
	// must be durable when it returns, because the commitment is made public next. LoadOwn returns
	// those kept, with an error if there is one that cannot be trusted.
	SaveOwn(o OwnResult, keep coordinator.Round) error
	LoadOwn() ([]OwnResult, error)
	// Files keep what the others name by its root.
	blobs.Files
}

// CaseStore is a [Store] that keeps what it takes to argue about shares under check as well, so
// that a crash in the middle of a dispute does not lose it. DropCase deletes one, and LoadCases
// returns all that are kept; with an error come those that can be trusted.
type CaseStore interface {
	Store
	SaveCase(c SavedCase) error
	DropCase(s client.Share) error
	LoadCases() ([]SavedCase, error)
}

// Saved is what a [Store] keeps, beside the blobs that it names: parameters at the start of a round
// and the private optimizer state that goes with them.
type Saved struct {
	Run       wire.Hash
	Epoch     coordinator.Epoch
	Round     coordinator.Round
	Step      coordinator.Step
	Params    wire.Hash
	Optimizer wire.Hash
}

// Checkpoint is handed to [Config.Checkpoint] at an epoch's end.
type Checkpoint struct {
	Epoch  coordinator.Epoch
	Round  coordinator.Round
	Step   coordinator.Step
	Hash   wire.Hash
	Params []float32 // must not be changed or kept after the call

	// How training goes on from it, if Known: the number of the sequence that is trained on next,
	// with which optimizer states the members go on, and this one's own, nil if it begins afresh,
	// which must not be changed or kept either.
	Known    bool
	Sequence uint64
	Endings  []client.Ending
	Own      []float32
}

// Config is what a node needs. Observe, Store and Checkpoint may be nil.
type Config struct {
	Run    string
	ID     wire.Hash // the run's identity, coordinator.State.ID
	Key    key.Private
	Ledger ledger.Ledger
	Loop   loop.Loop
	// Engine computes one job at a time, never on the loop.
	Engine engine.Engine
	// Follow says that members that do not attest a round's results apply their update in place of
	// the payloads, if that is smaller. All members of a run must agree on it.
	Follow bool
	// Aggregators, in a run that makes updates in slices, is the least number of members that sum
	// each slice; 0 in others. Followers of such a run have Follow too.
	Aggregators uint32
	// Bucket is how results travel in a run of buckets, which does not need Listen.
	Bucket *Bucket
	// Listen joins the peer network; it is called once, with the handler that answers peers.
	Listen func(p2p.Handler) (p2p.Network, error)
	// Initial returns the run's first parameters, made from the seed or read from the checkpoint
	// that the run goes on from; nil if this machine does not have that, and gets them from its
	// peers. It is called off the loop, only when they are needed.
	Initial func() []float32
	// States holds, in a run that resumes another, the optimizer states with which members may
	// begin it. Resume returns this member's, nil if it is not here; it is itself nil in a run that
	// resumes none. It is called off the loop if the store is empty. A run of buckets does not
	// consult States, since optimizer states are not judged there.
	States   map[key.Public]wire.Hash
	Resume   func() []float32
	Store    Store
	FileFrom int // 0: blobs.FileFrom
	// Checkpoint writes an epoch's checkpoint and returns its manifest's hash. It is called off the
	// loop.
	Checkpoint func(Checkpoint) (wire.Hash, error)
	// Recall returns the parameters with a hash from a checkpoint on this machine, nil if there is
	// none; may be nil. It is called off the loop. All who hold a run's newest parameters may crash
	// at once; it then goes back to its last checkpoint.
	Recall func(wire.Hash) []float32
	// Kept keeps what has come of a model over crashes; may be nil. Any goroutine calls it.
	Kept p2p.ChunkStore
	// CheckpointAlways writes one at the end of each epoch even if another member was designated.
	CheckpointAlways bool
	// EvalRounds is how many steps lie between two measurements of the held-out loss; 0 measures
	// never.
	EvalRounds uint32
	// Inspect, if not nil, examines the parameters after every InspectRounds steps, in idle time,
	// and returns the events to report. It is called off the loop while the engine is idle, and
	// must neither change nor keep the parameters, whose hash is root.
	Inspect       func(ctx context.Context, step coordinator.Step, root wire.Hash, params []float32) []event.Event
	InspectRounds uint32
	// Stake is the number of tokens that the member stakes in the run when it joins.
	Stake uint64
	// Speed is how many tokens a second this machine trains, by a trial. The member states it when it
	// joins. 0: there was no trial.
	Speed uint32
	// Restake has the member add to its stake again what a fee for its absence took. Otherwise it
	// ends with an *AbsentError if too little is left.
	Restake bool
	// Pool is the pool that the stake comes from; "" is the member's own account.
	Pool string
	// Disputant argues in disputes. Without one this member makes no accusation, and loses every
	// dispute in which it is accused.
	Disputant Disputant
	// Instance tells this process from others with its key; 0: the time of its start does.
	Instance uint64
	// Failed, if not nil, is called on the loop when the node cannot go on; the owner then ends it.
	// After an *ElsewhereError it calls Abandon: another process takes part with the key.
	Failed func(error)
	// Expelled, if not nil, is called on the loop when the member was convicted. Its part in the
	// run is over for good.
	Expelled func(*ExpelledError)
	// Observe takes what happens, on the loop; it must not block.
	Observe func(event.Event)
	// Read reads a signed commitment as gossip carries it; nil means gossip.Read. A simulation, in
	// which all nodes read the same ones, reads each once. It may be called from any goroutine;
	// nobody changes what it returns.
	Read func(data []byte) (*gossip.Authored, bool)
	// Common is the client.Config.Common of the machine; nil means client.Alone.
	Common client.Common
	// Cost returns the virtual time that a job takes, for simulation.
	Cost func(job Job) time.Duration
}

// Node is a participant. Create it with [New]; all methods but New are for the loop.
type Node struct {
	cfg      Config
	ctx      context.Context
	cancel   context.CancelFunc
	unsaved  *unsaved // this member's commitment that is not published yet
	self     key.Public
	machine  *client.Machine
	bulk     []*coming      // payloads to be asked for together
	parts    p2p.Parts      // of blobs whose fetches failed
	heard    []client.Event // events that the machine has not been given
	spare    []client.Event // memory for more
	limits   loop.Limits    // of requests under way
	ticked   time.Time      // when the last tick was
	steps    time.Duration  // of wakeEvery from then to the next; 0: none is set
	stopTick func()
	exchange exchange
	slicer   engine.Slicer             // nil in a run that sends whole updates
	follower engine.Follower           // nil in a run without followers
	lightly  func(light, reports bool) // what Watch asks for
	// own updates that were committed to, by round, until they cannot be revealed any more
	sealed      map[coordinator.Round][]byte
	blobs       *blobs.Store
	commitments *gossip.Commitments
	cases       CaseStore // the store, if it is one

	state  coordinator.State
	height uint64
	roster *client.Roster     // of state
	placed coordinator.Member // what place found last
	// recalled are hashes that were looked for among the checkpoints.
	recalled map[wire.Hash]bool
	// notInitial is set once Config.Initial did not have what the run began with.
	notInitial  bool
	connections connections
	instance    instance
	unfit       unfit
	lack        lack
	was         bool                  // a member since this node began
	failed      bool                  // Config.Failed was called
	params      blobs.Versions        // the current ones, and those that peers may still ask for
	optim       blobs.Versions        // optimizer states: this member's, and of those that it checks
	disk        *blobs.Disk           // nil without a store
	held        map[wire.Hash]bool    // blobs the machine holds on to
	kept        []SavedSet            // sets read back that the machine has not had applied
	saved       map[client.Share]bool // cases that are written down
	engine      *queue.Queue
	checking    map[client.Share]context.CancelFunc // shares being computed again
	arguments   map[client.Share]*argument
	docket      *client.Docket // of the last state whose disputes were told of
	convicted   uint32         // number of the last conviction that was told of
	save        saver
	clock       loop.Monotonic // the machine's
	silentSince time.Time      // of the ledger, on the messages sent to it; zero: it answers
	leaveAt     time.Time      // when a node that leaves does not wait for the ledger any more
	stopped     bool
	onStop      func()
}

// New joins the peer network and returns a node that does nothing until Start. The context bounds
// all it will ever do.
func New(ctx context.Context, cfg Config) (*Node, error) {
	switch {
	case cfg.Ledger == nil || cfg.Loop == nil || cfg.Engine == nil || cfg.Listen == nil && cfg.Bucket == nil || cfg.Initial == nil:
		return nil, errors.New("node: ledger, loop, engine, listen or bucket, and initial must all be given")
	case cfg.Observe == nil:
		cfg.Observe = func(event.Event) {}
	}
	if cfg.Read == nil {
		cfg.Read = gossip.Read
	}
	if cfg.Common == nil {
		cfg.Common = client.Alone{}
	}
	if cfg.Cost == nil {
		cfg.Cost = func(Job) time.Duration { return 0 }
	}
	n := &Node{cfg: cfg, self: cfg.Key.Public(), docket: &client.Docket{}, limits: loop.Limits{Step: wakeEvery}}
	n.cases, _ = cfg.Store.(CaseStore)
	n.ctx, n.cancel = context.WithCancel(ctx)
	n.engine = queue.New(n.ctx, cfg.Loop)
	n.held, n.saved = map[wire.Hash]bool{}, map[client.Share]bool{}
	n.checking, n.arguments = map[client.Share]context.CancelFunc{}, map[client.Share]*argument{}
	n.blobs = blobs.New()
	n.commitments = gossip.NewCommitments()
	if cfg.Store != nil {
		n.disk = blobs.NewDisk(cfg.Store, cfg.Loop, cfg.Cost(Job{Kind: "save"}), cmp.Or(cfg.FileFrom, blobs.FileFrom), n.prune, n.note)
	}
	buffers := blobs.NewBuffers()
	n.params = blobs.NewVersions(n.blobs, n.disk, cfg.Engine, buffers, cfg.Engine.ParamsLen())
	n.optim = blobs.NewVersions(n.blobs, n.disk, cfg.Engine, buffers, cfg.Engine.StateLen())
	machine := client.Config{Self: n.self, PayloadMax: uint32(cfg.Engine.PayloadMax()), States: cfg.States, Speed: cfg.Speed, Common: cfg.Common}
	if f, ok := cfg.Engine.Follower(); ok && cfg.Follow {
		n.follower = f
		machine.Update, machine.UpdateMax = uint64(f.UpdateLen()), uint64(f.UpdateMax())
		machine.Aggregators, machine.SlicesMax = cfg.Aggregators, uint32(f.SlicesMax())
		_, machine.Light = cfg.Ledger.(ledger.Lighter)
	}
	n.machine = client.New(machine)
	n.slicer, _ = cfg.Engine.Slicer()
	n.instance.addr = n.instanceAddr()
	n.sealed = map[coordinator.Round][]byte{}
	if cfg.Bucket != nil {
		n.exchange = newBuckets(n, cfg.Bucket)
		return n, nil
	}
	network, err := cfg.Listen(n.handler())
	if err != nil {
		n.cancel()
		return nil, err
	}
	n.exchange = &peers{node: n, network: network, taken: map[key.Public]coordinator.Round{}}
	return n, nil
}

// Start loads the saved state and begins to follow the run.
func (n *Node) Start() {
	n.lightly = ledger.WatchLightly(n.ctx, n.cfg.Ledger, n.cfg.Run, func(s ledger.Snapshot) {
		n.cfg.Loop.Post(func() { n.follow(s) })
	})
	n.tick()
}

// follow takes a new state of the run.
func (n *Node) follow(s ledger.Snapshot) {
	if n.ctx.Err() != nil || s.Height < n.height {
		return
	}
	first := n.height == 0
	before := n.state
	n.state, n.height, n.silentSince = s.State, s.Height, time.Time{}
	if first || before.Round() != s.State.Round() {
		n.entered(s.State.Round())
	}
	if i, ok := n.place(s.State); ok && s.State.Status(i).Present() {
		n.was = true
	}
	n.updateMembers()
	n.observeState(s)
	if first {
		n.convicted = s.State.ConvictionsTotal()
		i, ok := n.place(s.State)
		n.instance.prior = ok && s.State.Status(i).Present()
	}
	n.watchDisputes()
	n.step(client.StateChanged{State: s.State, TimeMs: s.TimeMs, Light: s.Light, Reports: s.Reports})
	if first {
		n.load()
	}
	if n.onStop != nil {
		n.endIfLeft()
	}
}

// place returns this member's place in a state. Places seldom change, and a search looks at all.
func (n *Node) place(s coordinator.State) (coordinator.Member, bool) {
	if n.placed < s.Count() && s.Key(n.placed) == n.self {
		return n.placed, true
	}
	i, ok := s.Find(n.self)
	n.placed = i
	return i, ok
}

func (n *Node) perform(a client.Action) {
	switch a := a.(type) {
	case client.Submit:
		n.submit(a.Message)
	case client.Watch:
		n.lightly(a.Light, a.Reports)
	case client.Train:
		n.train(a)
	case client.CancelTraining:
		n.engine.Cancel(training(a.Round))
	case client.Commit:
		n.commit(a)
	case client.Republish:
		n.republish(a.Round, a.To)
	case client.AskCommitments:
		n.exchange.askCommitments(a)
	case client.AskSpans:
		if x, ok := n.exchange.(server); ok {
			x.askSpans(a)
		}
	case client.FetchPayload:
		n.fetchPayload(a)
	case client.Reveal:
		n.reveal(a)
	case client.Lack, client.AskLacks, client.Copy, client.FindCopy:
		n.help(a)
	case client.AskUpdate:
		if x, ok := n.exchange.(server); ok {
			x.askUpdate(a)
		}
	case client.MakeUpdate:
		n.makeUpdate(a)
	case client.FetchUpdate:
		n.fetchUpdate(a)
	case client.AskSlices, client.AskHeld, client.ShowHeld, client.SumSlice, client.Recount, client.FetchSlice:
		n.aggregate(a)
	case client.Apply:
		n.apply(a)
	case client.Heal:
		n.heal(a)
	case client.Save:
		n.checkpoint(a)
	case client.Forget:
		n.blobs.Forget(a.Before)
		n.commitments.Forget(a.Before)
	case client.Retain:
		n.retain(a)
	case client.Keep:
		n.keep(a)
	case client.Verify:
		n.verify(a)
	case client.CancelVerify:
		n.cancelVerify(a.Share)
	case client.Prepare:
		n.prepare(a)
	case client.Argue:
		n.argue(a)
	case client.Expelled:
		n.expelled(a)
	case client.Note:
		n.note(a.Text)
	}
}

// Params returns the round whose start the held parameters belong to, and their hash; ok is false
// while there are none.
func (n *Node) Params() (round coordinator.Round, hash wire.Hash, ok bool) { return n.machine.Round() }
