package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/verify"
)

// demo is a network of child processes and what is known of it. Its fields belong to the goroutine that calls run.
type demo struct {
	console
	dir      *demoDir
	asJSON   bool
	trainer  *trainer.Trainer
	began    time.Time
	first    float32 // held-out loss of the initial parameters
	board    *board
	screen   *screen
	children *children
	failed   error        // a child that was given up
	watcher  ledger.Chain // follows the run
	gang     []string     // public keys of the clients that cheat
	said     map[string]string
}

// demoEvent is a line of demo --json: an event of a client, or of the demo itself about one of its processes.
type demoEvent struct {
	Time    string `json:"time"`
	Process string `json:"process"`
	PID     int    `json:"pid,omitempty"`

	Event event.Event `json:"-"`
}

// MarshalJSON returns one object of the process and the event.
func (e demoEvent) MarshalJSON() ([]byte, error) {
	type head demoEvent
	return event.Marshal(head(e), e.Event)
}

func newDemo(c console, dir *demoDir, asJSON bool) (*demo, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start it as a child process: %w", err)
	}
	return &demo{
		console: c, dir: dir, asJSON: asJSON, screen: newScreen(c.err, c.env), said: map[string]string{},
		children: &children{program: program, logs: dir.file("logs"), env: os.Environ(), pause: restartAfter, reports: make(chan childReport)},
	}, nil
}

func (d *demo) close() {
	if d.watcher != nil {
		_ = d.watcher.Close() // nothing is lost with it
	}
	if d.trainer != nil {
		d.trainer.Close()
	}
}

const (
	// measureMost is how many held-out sequences the demo measures the loss on: all of Opticks'.
	measureMost = 256
	// evaluateMost is how many a client measures it on now and then, while it trains.
	evaluateMost = 32
	// evaluations is how many of those there are in a run.
	evaluations = 20
	// lingerFor is longer than any demo: its clients serve the model until the demo stops them.
	lingerFor = 24 * time.Hour
	// startFor bounds the time until the chain serves clients.
	startFor = 30 * time.Second
	// agreeFor is how long after the run's end the demo waits for clients that do not hold the final parameters yet.
	agreeFor = time.Minute
	// judgeFor is how long after the run's end the demo waits for what is open about an adversary.
	judgeFor = 2 * time.Minute
	// statesMost is how many states of the run may wait to be looked at.
	statesMost = 64
)

// network is what the demo has running. Clients stop before the chain, which takes their withdrawals.
type network struct {
	chain, clients         context.Context
	stopChain, stopClients context.CancelFunc
	running                int                  // clients and validators that were started and have not ended for good
	waits                  int                  // servers that are not heard of yet: the chain, and that of the buckets
	ready                  chan error           // gets what came of creating the run
	states                 chan ledger.Snapshot // of the run
	heard                  map[string]bool      // servers that have said that they serve
	creating               bool                 // it is being created, or was
	began                  time.Time
	finished               time.Time // when the run was first seen to have finished
}

// stop stops everything in order; the children's reports go on until all have ended.
func (n *network) stop() {
	n.stopClients()
	if n.running == 0 {
		n.stopChain()
	}
}

// run starts the network, shows what it does until all clients hold the final parameters, and stops it.
func (d *demo) run(ctx context.Context) (err error) {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	n := network{waits: 1, heard: map[string]bool{}, ready: make(chan error, 1), states: make(chan ledger.Snapshot, statesMost), began: time.Now()}
	n.chain, n.stopChain = context.WithCancel(context.WithoutCancel(ctx))
	n.clients, n.stopClients = context.WithCancel(n.chain)
	defer n.stopChain()
	defer context.AfterFunc(ctx, n.stopClients)()
	d.children.keep(n.chain, child{name: d.board.chain.name, args: []string{"chain", "start", "--home", d.dir.file("chain"), "--json"}})
	if ch, ok := d.server(); ok {
		n.waits++
		d.children.keep(n.chain, ch)
	}
	go d.children.wait()

	timer := time.NewTicker(redrawEvery)
	defer timer.Stop()
	interrupted := ctx.Done()
	for {
		now := time.Now()
		select {
		case r, ok := <-d.children.reports:
			if !ok {
				d.show(now, true)
				return d.outcome(ctx)
			}
			d.report(now, r)
			d.follow(&n, r)
		case err := <-n.ready:
			d.startClients(&n, err)
		case s := <-n.states:
			for _, text := range d.board.court.judge(s.State) {
				d.note(text)
			}
			d.board.market.judge(&d.board.court, s.State)
		case <-timer.C:
			if !n.creating && now.Sub(n.began) > startFor {
				d.failed = fmt.Errorf("the chain does not answer; its log is in %s", d.dir.file("logs"))
			}
		case <-interrupted:
			interrupted = nil
			d.note("stopping ...")
			n.stop()
		}
		if interrupted != nil {
			d.show(now, false)
		}
		if d.over(&n, now) {
			n.stop()
		}
	}
}

// follow goes on with what a child's report makes possible: once the chain serves clients the run can be created, and once the last
// client has ended the chain is no longer needed.
func (d *demo) follow(n *network, r childReport) {
	serves := d.serves(r.name)
	if r.final && !serves {
		if n.running--; n.running == 0 {
			n.stopChain()
		}
	}
	if r.line != nil && serves && !n.creating && !n.heard[r.name] && endpointLine(r.line) {
		n.heard[r.name] = true
		if n.waits--; n.waits == 0 {
			n.creating = true
			go func() { n.ready <- d.createRun(n.clients) }()
		}
	}
}

// serves says whether a child is one of the servers that the others need.
func (d *demo) serves(name string) bool { return name == d.board.chain.name || name == serverName }

// startClients starts the clients of a run that was created, unless that failed or everything is being stopped.
func (d *demo) startClients(n *network, err error) {
	if err != nil {
		d.failed = err
	}
	if err != nil || n.clients.Err() != nil {
		return
	}
	d.watcher.Watch(n.chain, demoRunName, watchFor(n.states))
	n.running = len(d.board.clients) + d.dir.set.Validators
	for i := range d.board.clients {
		d.children.keep(n.clients, d.client(i))
	}
	for i := range d.dir.set.Validators {
		d.children.keep(n.clients, d.validator(i))
	}
}

// over tells whether there is nothing more to wait for.
func (d *demo) over(n *network, now time.Time) bool {
	if d.board.phase == phaseFinished && n.finished.IsZero() {
		n.finished = now
	}
	switch court := &d.board.court; {
	case d.failed != nil:
		return true
	case n.finished.IsZero():
		return false
	case !d.board.equal():
		return now.Sub(n.finished) > agreeFor
	case d.board.market.on:
		return !d.board.market.open || now.Sub(n.finished) > judgeFor+4*demoScoreWindows*d.dir.set.Window
	default:
		return court.cheats == 0 || court.caught() || !court.pending || now.Sub(n.finished) > judgeFor
	}
}

// show shows the board to people.
func (d *demo) show(now time.Time, force bool) {
	if !d.asJSON {
		d.screen.show(d.board, now, force)
	}
}

// outcome is what run returns when nothing runs any more.
func (d *demo) outcome(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && d.dir.kept:
		return fmt.Errorf("stopped; go on with: entrain demo --keep %q: %w", d.dir.path, context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return d.failed
}

// prepare makes what the demo itself computes with, and says what it is about to do.
func (d *demo) prepare(ctx context.Context) (err error) {
	d.trainer, err = trainer.New(ctx, d.dir.spec, d.dir.file("data"), defaultWorkers(), measureMost)
	if err != nil {
		return err
	}
	n := len(d.trainer.Initial())
	set := d.dir.set
	d.began = time.Now()
	d.say("training a Llama of %s parameters on %s: %d clients and one chain replica, each a process of its own, %d rounds; all of it in %s",
		thousands(uint64(n)), set.Text, set.Clients, set.Rounds, d.dir.path)
	if d.first, err = d.trainer.Engine.HeldOut(ctx, cpu.Floats(d.trainer.Initial())); err != nil {
		return fmt.Errorf("held-out loss of the initial parameters: %w", err)
	}
	d.board = newBoard(fmt.Sprintf("entrain demo: %s, %s parameters, in %s", set.Preset, thousands(uint64(n)), d.dir.path), set.Clients, 4*uint64(n))
	if d.dir.made {
		d.board.heldOut = d.first
	}
	d.board.market.on = d.dir.set.Validators > 0
	if _, ok := d.server(); ok {
		d.board.others = append(d.board.others, process{name: serverName})
	}
	for i := range d.dir.set.Validators {
		d.board.others = append(d.board.others, process{name: validatorName(i)})
	}
	return d.seat()
}

// seat tells the court who is who.
func (d *demo) seat() error {
	c := &d.board.court
	if d.dir.spec.Trust.VerificationPercent > 0 {
		tracer, err := verify.NewTracer(d.dir.spec, d.trainer.Set, d.trainer.Engine)
		if err != nil {
			return err
		}
		c.names = tracer.Operations
	}
	c.kind = d.dir.set.Adversary
	as := demoOptions{adversary: c.kind, exchange: d.dir.set.Exchange}
	c.cheats = as.cheats()
	for i := range d.board.clients {
		k, err := d.dir.clientKey(d.console, i)
		if err != nil {
			return err
		}
		c.keys = append(c.keys, k)
		if i >= len(d.board.clients)-c.cheats {
			d.gang = append(d.gang, k.String())
		}
	}
	if kind, ok := as.kind(); ok {
		d.say("%s is a cheat, %s: it %s", clientName(len(c.keys)-1), c.kind, kind.Tries)
	}
	return nil
}

// client is the child process of one client. The machine's cores are shared out.
func (d *demo) client(i int) child {
	name := clientName(i)
	args := []string{demoRunName, "--json",
		"--chain", "http://" + d.dir.set.API, "--key", d.dir.file(name, "key"), "--state", d.dir.file(name), "--data", d.dir.file("data"),
		"--listen", "127.0.0.1:0", "--workers", fmt.Sprint(max(1, defaultWorkers()/len(d.board.clients))), "--linger", lingerFor.String(),
	}
	if i == 0 {
		args = append(args, "--evaluate", fmt.Sprint(max(1, d.dir.set.Rounds/evaluations)), "--evaluate-sequences", fmt.Sprint(evaluateMost))
	}
	args = append(args, "--stake", fmt.Sprint(demoStake))
	args = append(args, d.bucketArgs(name)...)
	if i < len(d.board.honest()) {
		return child{name: name, args: append([]string{"join"}, args...)}
	}
	args = append(args, "--adversary", d.board.court.kind)
	for _, k := range d.gang {
		args = append(args, "--gang", k)
	}
	return child{name: name, args: append([]string{"demo", "cheat"}, args...), once: true}
}

// createRun creates the run unless an earlier demo did, and puts into it what it pays.
func (d *demo) createRun(ctx context.Context) (err error) {
	client, err := d.dial(ctx, []string{"http://" + d.dir.set.API}, nil)
	if err != nil {
		return err
	}
	d.watcher = client
	runs, err := client.Runs(ctx)
	if err != nil || len(runs) > 0 {
		return err
	}
	owner, err := keyfile.Load(d.dir.file("owner.key"), d.passphrase)
	if err != nil {
		return err
	}
	_, err = createRun(ctx, client, owner, d.dir.spec, d.dir.text)
	var refused *host.TxError
	if errors.As(err, &refused) && refused.Code == host.CodeRunExists {
		return nil
	}
	if err != nil {
		return err
	}
	fund := host.RunMessage{Run: demoRunName, Value: demoTreasury, Message: coordinator.Append(nil, coordinator.Fund{})}
	if err := onchain.Submit(ctx, client.As(owner), fund); err != nil {
		return fmt.Errorf("fund the run: %w", err)
	}
	return nil
}

// report takes what a child process did.
func (d *demo) report(now time.Time, r childReport) {
	p := d.board.process(r.name)
	switch {
	case r.pid != 0:
		p.pid = r.pid
		text := "started"
		if p.restarts > 0 {
			text = "started again"
			d.note(r.name + " " + text)
		}
		d.emit(now, r.name, r.pid, event.Process{Text: text})
	case r.ended:
		p.pid = 0
		text := "ended"
		if r.err != nil {
			p.restarts++
			text = "died: " + r.err.Error()
			// One that was killed had no time to say why; the end of its log is of another time then.
			var exit *exec.ExitError
			if errors.As(r.err, &exit) && exit.Exited() {
				text += ": " + tail(d.dir.file("logs", r.name+".log"))
			}
			d.note(r.name + " " + text)
		}
		if c := d.board.client(r.name); r.final && r.err != nil && (c == nil || !d.cheat(r.name)) {
			d.failed = fmt.Errorf("%s %s", r.name, text)
		}
		d.emit(now, r.name, 0, event.Process{Text: text})
	case r.line != nil && d.board.client(r.name) == nil:
	case r.line != nil:
		ev, err := event.Unmarshal(r.line)
		if err != nil {
			d.note(fmt.Sprintf("%s wrote what is no event: %.100q", r.name, r.line))
			return
		}
		d.board.event(now, r.name, ev)
		switch ev := ev.(type) {
		case event.Traffic:
			d.board.market.traffic(r.name, ev)
		case event.Note:
			if text := r.name + ": " + ev.Text; d.said[r.name] != text {
				d.said[r.name] = text
				d.note(text)
			}
		}
		d.emit(now, r.name, 0, ev)
	}
}

// cheat says whether a client is one. That it gives up, because it was expelled, is no failure of the demo.
func (d *demo) cheat(name string) bool {
	return !slices.ContainsFunc(d.board.honest(), func(c clientRow) bool { return c.name == name })
}

// note shows a line to people.
func (d *demo) note(text string) {
	if !d.asJSON {
		d.screen.note(text)
	}
}

// emit shows an event to programs.
func (d *demo) emit(now time.Time, process string, pid int, ev event.Event) {
	if d.asJSON {
		_ = d.object(demoEvent{now.UTC().Format(time.RFC3339Nano), process, pid, ev})
	}
}

// tail returns the last line of a log, for an error text.
func tail(path string) string {
	b, err := atomicfile.ReadBounded(path, logBytesMax)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	all := strings.TrimSpace(string(b))
	return all[strings.LastIndexByte(all, '\n')+1:]
}

// logBytesMax bounds the log of a child that is read for its last line.
const logBytesMax = 64 << 20
