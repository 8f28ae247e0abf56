package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/statefile"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// participation is how somebody takes part in a run.
type participation struct {
	reaching
	run         string
	target      onchain.Target
	key         key.Private
	endpoints   []string
	state       string // directory, locked by the caller
	data        string // directory of the data set; "" means where the specification says
	from        string // directory of the checkpoint that the run goes on from; "" means where the specification says, or with the peers
	workers     int
	memory      byteCount // it may take; 0: what is free
	upload      byteCount // a second it serves to peers; 0: as much as they ask
	evaluate    uint32    // steps between two measurements of the held-out loss; 0: none
	heldOut     uint64    // sequences that a measurement reads at most
	look        inspection
	uploads     []string // addresses to which checkpoints go too
	checkpoints int      // kept; 0: only those that the run asks this member for, the last of them
	stake       uint64   // tokens to put up
	delegation  string   // text or file of a delegation; "" if the member works for itself
	pool        string   // that they come from; "" for the member's own account
	mining      mining
	// wrap, if not nil, changes the configuration of the node: the demo makes a cheat of one.
	wrap    func(node.Config, spec.Spec, cpu.Config) (node.Config, error)
	linger  time.Duration // for which the model is served to others after the run has finished
	observe func(event.Event)
	log     *slog.Logger
}

// How long a participant that was asked to stop waits for the chain to take its withdrawal. If it does not, the run notices by itself
// that the member is gone.
const stopPatience = 3 * time.Second

// finishPatience is more than nothing, so that a member of a run that has finished sees its last checks through before it goes.
const finishPatience = time.Millisecond

// participant is the parts of a participation, wired together.
type participant struct {
	participation
	console  console
	id       wire.Hash // of the run
	text     []byte    // of its specification
	client   ledger.Chain
	trainer  *trainer
	store    *statefile.Store
	saver    *checkpoints
	uploader *uploader      // nil if checkpoints stay here
	tracer   *verify.Tracer // nil in a run without verification
	loop     *loop.Real
	cost     stepCost
	looks    *inspector // nil if nothing is to be told of the model
	node     *node.Node

	writing atomic.Int32                 // checkpoints being written
	network atomic.Pointer[lp2p.Network] // nil before it is there, and in a run of buckets
	end     func()                       // of the loop

	// What follows belongs to the loop.
	phase    string
	agreed   wire.Hash // of the parameters that the run agreed on last
	params   wire.Hash // of the parameters held
	finished bool      // the run has, and the final parameters are held
	expelled *node.ExpelledError
}

// newParticipant checks everything that can be checked before taking part: the specification against the chain, the data against the
// specification, this machine's arithmetic against the definition.
func newParticipant(ctx context.Context, c console, p participation) (*participant, error) {
	client, err := c.dial(ctx, p.endpoints, p.log)
	if err != nil {
		return nil, err
	}
	on, err := onchain.GetRun(ctx, client, p.run)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := p.target.Check(client.ChainID(), on.Snapshot.State.ID()); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := errors.Join(p.mining.check(on.Spec), p.bring(ctx, client), p.admitted(ctx, c, client, on)); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if p.data, err = p.target.DataOf(p.data, on); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	t, err := newTrainer(ctx, on.Spec, p.data, p.workers, p.heldOut)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if p.from, err = p.fetchOrigin(ctx, on.Spec, c.env); err == nil {
		t.from, err = findOrigin(on.Spec, p.from, p.log)
	}
	if want, ok := on.Spec.From(); ok && err == nil && t.from == "" {
		t.from, _ = originIn(p.state, want) // this member may have written it
	}
	if err != nil {
		t.close()
		return nil, errors.Join(err, client.Close())
	}
	part := &participant{
		participation: p, console: c, id: on.Snapshot.State.ID(), text: on.Text, client: client, trainer: t, loop: loop.NewReal(),
		store: statefile.New(filepath.Join(p.state, "state"), t.engine.ParamsLen(), t.engine.StateLen()),
		saver: newCheckpoints(filepath.Join(p.state, "checkpoints"), max(p.checkpoints, 1), t),
	}
	part.saver.run, part.saver.self = part.id, p.key.Public()
	if on.Spec.Trust.VerificationPercent > 0 {
		if part.tracer, err = verify.NewTracer(on.Spec, t.set, t.engine); err != nil {
			return nil, errors.Join(err, part.close())
		}
	}
	if err := selfTest(ctx, t.pool); err != nil {
		return nil, errors.Join(err, part.close())
	}
	if part.looks, err = newInspector(p.look, t); err != nil {
		return nil, errors.Join(err, part.close())
	}
	part.cost = newStepCost(t)
	told := func(text string) { part.loop.Post(func() { part.note(text) }) }
	if part.uploader, err = newUploader(p.uploads, max(p.checkpoints, 1), c.env, told); err != nil {
		return nil, errors.Join(err, part.close())
	}
	return part, nil
}

func (p *participant) close() error {
	p.uploader.close()
	p.trainer.close()
	return p.client.Close()
}

// runTo takes part until the run has finished or ctx ends, then leaves cleanly.
func (p *participant) runTo(ctx context.Context) error {
	// The loop outlives ctx: it takes part in leaving.
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	p.end = end
	evaluate := p.evaluate
	if p.trainer.heldOut == 0 {
		evaluate = 0
	}
	cfg := node.Config{
		Run: p.run, ID: p.id, Key: p.key, Ledger: p.client.As(p.key), Loop: p.loop, Engine: p.trainer.engine,
		Listen: p.join, Initial: p.trainer.initial, States: p.trainer.spec.States(), Store: p.store,
		Checkpoint: p.checkpoint, Recall: p.recall, CheckpointAlways: p.checkpoints > 0,
		EvalRounds: evaluate, Observe: p.observed, Stake: p.stake, Pool: p.pool,
		Expelled: func(err *node.ExpelledError) {
			p.expelled = err
			p.node.Stop(0, end)
		},
	}
	if p.trainer.spec.Resume != nil {
		cfg.Resume = p.resume
	}
	if p.looks != nil {
		cfg.Inspect, cfg.InspectRounds = p.looks.inspect, p.evaluate
	}
	if p.tracer != nil {
		cfg.Disputant = disputant{p.tracer}
	}
	if err := p.mine(ctx, &cfg); err != nil {
		return err
	}
	var err error
	if cfg.Speed, err = p.trainer.trial(ctx); err != nil {
		return err
	}
	if p.wrap != nil {
		if cfg, err = p.wrap(cfg, p.trainer.spec, p.trainer.parts); err != nil {
			return err
		}
	}
	n, err := node.New(work, cfg)
	if err != nil {
		return err
	}
	p.node = n
	go p.tellPeers(work)
	stop := func() { n.Stop(stopPatience, end) }
	p.loop.Post(n.Start)
	defer context.AfterFunc(ctx, func() { p.loop.Post(stop) })()
	if err := p.loop.Run(work); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if p.expelled != nil {
		return p.expelled
	}
	if !p.finished {
		return nil
	}
	path, err := p.saver.last(p.store, p.params.String())
	if path != "" {
		p.observe(event.Kept{Params: p.params, Path: path})
		p.uploader.add(path)
	}
	p.uploader.finish(ctx, p.note)
	return err
}

// recall returns the parameters with a hash from a checkpoint, nil if none has them.
func (p *participant) recall(params wire.Hash) []float32 {
	return p.saver.Recall(params, p.trainer.model.Layout())
}

// note tells something in words.
func (p *participant) note(text string) { p.observe(event.Note{Text: text}) }

// disputant is a run's tracer as its node sees it.
type disputant struct{ tracer *verify.Tracer }

// Open is part of node.Disputant.
func (d disputant) Open(ctx context.Context, c coordinator.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
	p, err := d.tracer.Open(ctx, c, spans, params, state)
	if err != nil {
		return nil, err // not a nil *verify.Player in an interface
	}
	return p, nil
}

// join joins the peers of the run.
func (p *participant) join(h p2p.Handler) (p2p.Network, error) {
	o := lp2p.Options{Key: p.key, Run: p.id, Handler: h, Log: p.log, Upload: uint64(p.upload)}
	if err := p.options(&o, p.endpoints, 4*uint64(p.trainer.engine.ParamsLen())); err != nil {
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
func (p *participant) checkpoint(c node.Checkpoint) (wire.Hash, error) {
	p.writing.Add(1)
	defer p.writing.Add(-1)
	path, manifest, err := p.saver.write(c)
	if err == nil {
		p.uploader.add(path)
	}
	return manifest, err
}

// observed takes the node's events, on the loop.
func (p *participant) observed(got event.Event) {
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
		ev.PeakShare = p.cost.share(ev.Tokens, ev.Seconds)
		got = ev
		if p.looks != nil {
			p.looks.trained(ev.Seconds)
		}
	}
	p.observe(got)
	if !p.finished && p.phase == phaseFinished && p.params == p.agreed && p.writing.Load() == 0 {
		p.finished = true
		p.observe(event.Finished{Params: p.params, Seconds: p.linger.Seconds()})
		p.loop.After(p.linger, func() { p.node.Stop(finishPatience, p.end) })
	}
}

// defaultWorkers is how many goroutines compute unless told otherwise.
func defaultWorkers() int { return runtime.GOMAXPROCS(0) }
