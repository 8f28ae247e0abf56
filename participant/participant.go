// Package participant takes part in a run: as a member that trains, over peers or as a miner over
// buckets ([New]), as a validator that scores miners ([NewValidator]), or as a relay for members
// behind NATs ([NewRelay]).
//
// Each is a value that is made from options, runs until the run has finished or its context ends,
// and is closed. None of them touches the terminal, the command line or the environment: what
// happens goes to the options' callbacks. [CheckOptions.Check] reports whether a machine can take
// part.
package participant

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/statefile"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Options describe how a member takes part in a run. Target, Key, Endpoints and State are required.
type Options struct {
	Reaching
	Target    onchain.Target
	Key       key.Private
	KeyFile   string // of Key; what it signed last is kept beside it; "": only in State
	Endpoints []string
	State     string // directory, locked by the caller
	// DefaultState says that State follows from the run's name and the key. If another run of that
	// name has its state there, this member's is beside it.
	DefaultState bool
	Data         string // directory or addresses of the data set; "": as the specification says
	Kept         *data.Chunks
	// From is the directory of the checkpoint that the run continues, "" where the specification
	// says, or from peers; or that of a checkpoint that the run has agreed on since.
	From        string
	Workers     int    // goroutines that compute; 0: one for each core
	Device      string // that computes instead of them: see trainer.Machine
	Memory      uint64 // bytes it may take; 0: what is free
	Upload      uint64 // bytes a second that it serves to peers; 0: no limit
	Evaluate    uint32 // steps between two measurements of the held-out loss; 0: none
	Look        Inspection
	Uploads     []string // addresses to which checkpoints go too
	Checkpoints int      // number kept; 0: only the last one that the run asked this member for
	Stake       uint64   // tokens to put up
	Delegation  string   // text or file of a delegation; "" if the member works for itself
	Pool        string   // that the stake comes from; "" for the member's own account
	Mining      Mining
	// Wrap, if not nil, changes the node's configuration: package demo makes a cheat this way.
	Wrap func(node.Config, *trainer.Trainer) (node.Config, error)
	// Linger is how long it serves the model after the run has finished; below 0: until ctx ends.
	Linger  time.Duration
	Observe func(event.Event)
	Log     *slog.Logger

	// Remember is the directory of trusted headers: see onchain.DialOptions.
	Remember string
	Program  string                           // version of this program, which a run may require
	Getenv   func(string) string              // the environment, for credentials
	Say      func(format string, args ...any) // takes what the user is told before the run begins
}

// stopPatience is the time that a stopping participant waits for the chain to accept its
// withdrawal. Without one the run notices by itself that the member is gone.
const stopPatience = 3 * time.Second

// finishPatience is above zero, so that a member of a finished run completes its last checks before
// it goes.
const finishPatience = time.Millisecond

// Participant is a member of a run.
type Participant struct {
	Options
	id       wire.Hash // the run's
	unlock   func()    // of its state directory, if that is one beside Options.State
	member   bool      // it was one when New looked
	Text     []byte    // the run's specification
	Client   ledger.Chain
	Trainer  *trainer.Trainer
	store    *statefile.Store
	saver    *checkpoints
	carries  string         // Options.From, if it has parameters that the run agreed on
	uploader *uploader      // nil if checkpoints stay here
	tracer   *verify.Tracer // nil in a run without verification
	loop     *loop.Real
	cost     trainer.StepCost
	looks    *inspector // nil if nothing is to be told of the model
	node     *node.Node

	writing atomic.Int32                 // checkpoints being written
	network atomic.Pointer[lp2p.Network] // nil before it is there, and in a run of buckets
	end     func()                       // of the loop

	// What follows belongs to the loop.
	phase    string
	agreed   wire.Hash // parameters that the run agreed on last
	params   wire.Hash // parameters held
	finished bool      // the run has, and the final parameters are held
	kept     bool      // the user was told where the final checkpoint is
	fault    error     // that the member was expelled, or why its node could not go on
}

// New connects to the run's chain and checks all that can be checked before taking part: the
// specification against the chain, the data against the specification, and this machine's
// arithmetic against the definition. The participant must be closed.
func New(ctx context.Context, p Options) (_ *Participant, err error) {
	p.fill()
	client, on, err := onchain.Open(ctx, p.Endpoints, onchain.DialOptions{Remember: p.Remember, Log: p.Log}, p.Target)
	if err != nil {
		return nil, err
	}
	part := &Participant{id: on.Snapshot.State.ID(), Text: on.Text, Client: client, loop: loop.NewReal(), unlock: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close())
		}
	}()
	if i, ok := on.Snapshot.State.Find(p.Key.Public()); ok {
		part.member = on.Snapshot.State.Status(i).Present()
	}
	if p.State, part.unlock, err = p.apart(part.id, on.Spec); err != nil {
		part.unlock = func() {}
		return nil, err
	}
	if err := errors.Join(removeLeftovers(p.State), p.bring(ctx, client), p.admitted(ctx, client, on)); err != nil {
		return nil, err
	}
	at, err := p.Target.DataOf(p.Data, on, p.Endpoints)
	if err != nil {
		return nil, err
	}
	at.Kept = p.Kept
	if z, err := trainer.SizesOf(on.Spec); err == nil {
		p.Kept.Fit(z.Model)
	}
	machine := part.machine(p)
	if machine.From, part.carries, err = p.origin(ctx, on); err != nil {
		return nil, err
	}
	machine.Frozen = Frozen(client, on, p.Kept, p.Say)
	t, err := trainer.New(ctx, on.Spec, at, machine, HeldOutMost)
	if err != nil {
		return nil, err
	}
	part.Trainer = t
	if t.Model.LoRA != (llama.LoRA{}) {
		if err := part.keepFrozen(ctx, p.State); err != nil {
			return nil, err
		}
	}
	part.Options = p
	part.store = statefile.New(filepath.Join(p.State, stateFile), t.Engine.ParamsLen(), t.Engine.StateLen())
	if p.KeyFile != "" {
		part.store.Beside(filepath.Join(p.KeyFile+".signed", part.id.String()[:16]+"-"+p.Key.Public().String()[:8]))
	}
	part.saver = NewCheckpoints(filepath.Join(p.State, model.CheckpointsDir), max(p.Checkpoints, 1), t)
	part.saver.run, part.saver.self = part.id, p.Key.Public()
	if on.Spec.Trust.VerificationPercent > 0 {
		if part.tracer, err = verify.NewTracer(on.Spec, t.Set, t.Engine); err != nil {
			return nil, err
		}
	}
	if err := trainer.SelfTest(ctx, t.Computing); err != nil {
		return nil, err
	}
	if part.looks, err = NewInspector(p.Look, t); err != nil {
		return nil, err
	}
	part.cost = trainer.NewStepCost(t)
	told := func(text string) { part.loop.Post(func() { part.note(text) }) }
	if part.uploader, err = newUploader(p.Uploads, max(p.Checkpoints, 1), p.Getenv, told); err != nil {
		return nil, err
	}
	return part, nil
}

// HeldOutMost bounds the sequences that a measurement of the held-out loss reads.
const HeldOutMost = 64

// removeLeftovers removes what interrupted writes left in a state directory. The caller has locked
// it, so nobody is writing there.
func removeLeftovers(state string) error {
	return errors.Join(atomicfile.RemoveTemps(state, 0), atomicfile.RemoveTemps(filepath.Join(state, model.CheckpointsDir), 0))
}

// Close ends uploads, and frees what New took.
func (p *Participant) Close() error {
	p.uploader.close()
	if p.Trainer != nil {
		p.Trainer.Close()
	}
	err := p.Client.Close()
	p.unlock()
	return err
}

// collectAt is how much more memory than is in use a member of a large model takes, in percent.
const collectAt = 5

// Run takes part until the run has finished or ctx ends, then leaves cleanly.
func (p *Participant) Run(ctx context.Context) error {
	// The loop outlives ctx: it takes part in leaving.
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	p.end = end
	evaluate := p.Evaluate
	if p.Trainer.HeldOut == 0 {
		evaluate = 0
	}
	cfg := node.Config{
		Run: p.Target.Run, ID: p.id, Key: p.Key, Ledger: p.Client.As(p.Key), Loop: p.loop, Engine: p.Trainer.Engine,
		Listen: p.join, Initial: p.Trainer.Initial, States: p.Trainer.Spec.States(), Store: p.store,
		Follow: p.Trainer.Spec.Followers(), Aggregators: p.Trainer.Spec.Aggregators(),
		Checkpoint: p.checkpoint, Recall: p.recall, Kept: p.Kept, CheckpointAlways: p.Checkpoints > 0,
		EvalRounds: evaluate, Observe: p.observed, Stake: p.Stake, Pool: p.Pool,
		Instance: newInstance(), Failed: p.failed,
		Expelled: func(err *node.ExpelledError) {
			p.fault = err
			p.node.Stop(0, end)
		},
	}
	if p.Trainer.Spec.Resume != nil {
		cfg.Resume = p.resume
	}
	if p.looks != nil {
		cfg.Inspect, cfg.InspectRounds = p.looks.Inspect, p.Evaluate
	}
	if p.tracer != nil {
		cfg.Disputant = disputant{p.tracer}
	}
	if err := p.mine(ctx, &cfg); err != nil {
		return err
	}
	var err error
	if cfg.Speed, err = p.trial(ctx); err != nil {
		return err
	}
	if p.Wrap != nil {
		if cfg, err = p.Wrap(cfg, p.Trainer); err != nil {
			return err
		}
	}
	if 4*cfg.Engine.ParamsLen() >= blobs.FileFrom {
		// Its heap is a few vectors without pointers, so collections are cheap.
		defer debug.SetGCPercent(debug.SetGCPercent(collectAt))
	}
	n, err := node.New(work, cfg)
	if err != nil {
		return err
	}
	p.node = n
	go p.tellPeers(work)
	p.loop.Post(n.Start)
	defer context.AfterFunc(ctx, func() { p.loop.Post(func() { p.leave(context.Cause(ctx)) }) })()
	if err := p.loop.Run(work); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if p.fault != nil || !p.finished {
		return p.fault
	}
	if !p.kept {
		var path string
		path, err = p.saver.last(p.store, p.params.String())
		p.tellKept(path)
	}
	p.uploader.finish(ctx, p.note)
	return err
}

// leave stops the node. It does not wait for a withdrawal that the chain of a finished run refuses,
// nor for any if the chain has ended, as the cause of leaving says.
func (p *Participant) leave(cause error) {
	patience := stopPatience
	switch {
	case errors.As(cause, new(*onchain.EndedError)):
		patience = 0
	case p.finished:
		patience = finishPatience
	}
	p.node.Stop(patience, p.end)
}

// tellKept tells the user that the final checkpoint is at a path, unless that is "", and uploads
// it.
func (p *Participant) tellKept(path string) {
	if path == "" {
		return
	}
	p.kept = true
	p.Observe(event.Kept{Params: p.params, Path: path})
	p.uploader.add(path)
}

// finish begins to serve the final parameters to others.
func (p *Participant) finish() {
	p.finished = true
	p.Observe(event.Finished{Params: p.params, Seconds: p.Linger.Seconds()})
	if p.Linger >= 0 {
		p.loop.After(p.Linger, func() { p.node.Stop(finishPatience, p.end) })
	}
	var path string
	params := p.params.String()
	// If it is not there, Run makes it from the saved state.
	p.loop.Work(0, func() { path, _ = p.saver.Find(params) }, func() { p.tellKept(path) })
}

// recall returns the parameters with a hash from a checkpoint, nil if none has them.
func (p *Participant) recall(params wire.Hash) []float32 {
	layout := p.Trainer.Model.Layout()
	if flat := p.saver.Recall(params, layout); flat != nil || p.carries == "" {
		return flat
	}
	dir, err := trainer.OriginIn(p.carries, params)
	if err != nil {
		return nil
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(dir))
	if err != nil {
		return nil
	}
	flat := make([]float32, layout.Len())
	if saved.Params(layout, flat) != nil {
		return nil // damaged, or of another shape
	}
	return flat
}

// note reports something in words.
func (p *Participant) note(text string) { p.Observe(event.Note{Text: text}) }

// disputant is a run's tracer as its node sees it.
type disputant struct{ tracer *verify.Tracer }

// Open is part of node.Disputant.
func (d disputant) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
	p, err := d.tracer.Open(ctx, c, spans, params, state)
	if err != nil {
		return nil, err // not a nil *verify.Player in an interface
	}
	return p, nil
}

// join joins the run's peers.
func (p *Participant) join(h p2p.Handler) (p2p.Network, error) {
	o := lp2p.Options{Key: p.Key, Run: p.id, Handler: h, Log: p.Log, Upload: uint64(p.Upload)}
	if err := p.options(&o, p.Endpoints, 4*uint64(p.Trainer.Engine.ParamsLen())); err != nil {
		return nil, err
	}
	network, err := lp2p.New(o)
	if err != nil {
		return nil, err
	}
	p.network.Store(network)
	return network, nil
}

// checkpoint writes an epoch's checkpoint, off the loop.
func (p *Participant) checkpoint(c node.Checkpoint) (wire.Hash, error) {
	p.writing.Add(1)
	defer p.writing.Add(-1)
	path, manifest, err := p.saver.write(c)
	if err == nil {
		p.uploader.add(path)
	}
	return manifest, err
}

// observed handles the node's events, on the loop.
func (p *Participant) observed(got event.Event) {
	switch ev := got.(type) {
	case event.Loaded:
		p.params = ev.Params
	case event.Applied:
		p.params = ev.Params
	case event.Healed:
		p.params = ev.Params
	case event.State:
		p.phase, p.agreed = ev.Phase, ev.Params
	case event.Trained:
		ev.PeakShare = p.cost.Share(ev.Tokens, ev.Seconds)
		got = ev
		if p.looks != nil {
			p.looks.Trained(ev.Seconds)
		}
	}
	p.Observe(got)
	if !p.finished && p.phase == coordinator.Finished.String() && p.params == p.agreed && p.writing.Load() == 0 {
		p.finish()
	}
}

// machine returns what computes. Before the run begins the user is told of its device, later also
// those that observe the run.
func (p *Participant) machine(o Options) trainer.Machine {
	return trainer.Machine{Workers: o.Workers, Device: o.Device, Tell: func(text string) {
		if p.Trainer == nil {
			o.Say("%s", text)
			return
		}
		o.Log.Warn(text)
		p.loop.Post(func() { p.Observe(event.Note{Text: text}) })
	}}
}

// fill sets what was left out.
func (p *Options) fill() {
	if p.Workers == 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	if p.Getenv == nil {
		p.Getenv = func(string) string { return "" }
	}
	if p.Say == nil {
		p.Say = func(string, ...any) {}
	}
	if p.Observe == nil {
		p.Observe = func(event.Event) {}
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
}
