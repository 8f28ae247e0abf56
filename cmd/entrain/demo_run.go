package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node"
)

// demo is a network of child processes and what is known of it. Its fields belong to the goroutine that calls run.
type demo struct {
	console
	dir      *demoDir
	asJSON   bool
	trainer  *trainer
	began    time.Time
	first    float32 // held-out loss of the initial parameters
	board    *board
	screen   *screen
	children *children
	failed   error // a child that was given up
	said     map[string]string
}

// demoEvent is a line of demo --json: an event of a client, or of the demo itself about one of its processes.
type demoEvent struct {
	Time    string `json:"time"`
	Process string `json:"process"`
	PID     int    `json:"pid,omitempty"`
	node.Event
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
)

// run starts the network, shows what it does until all clients hold the final parameters, and stops it.
func (d *demo) run(ctx context.Context) (err error) {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	// Clients stop before the chain, which takes their withdrawals.
	chainCtx, stopChain := context.WithCancel(context.WithoutCancel(ctx))
	clientCtx, stopClients := context.WithCancel(chainCtx)
	defer stopChain()
	defer context.AfterFunc(ctx, stopClients)()
	d.children.keep(chainCtx, child{name: d.board.chain.name, args: []string{"chain", "start", "--home", d.dir.file("chain"), "--json"}})

	ready := make(chan error, 1) // whether the run exists
	creating := false
	clients := 0
	var finishedAt time.Time
	timer := time.NewTicker(redrawEvery)
	defer timer.Stop()
	stop := func() { // in order; the reports go on until all have ended
		stopClients()
		if clients == 0 {
			stopChain()
		}
	}
	done := ctx.Done()
	go func() { d.children.wait() }()
	started := time.Now()
	for {
		now := time.Now()
		select {
		case r, ok := <-d.children.reports:
			if !ok {
				d.screen.show(d.board, now, true)
				return d.outcome(ctx)
			}
			d.report(now, r)
			if r.final && r.name != d.board.chain.name {
				if clients--; clients == 0 {
					stopChain()
				}
			}
			if r.line != nil && r.name == d.board.chain.name && !creating {
				creating = true
				go func() { ready <- d.createRun(clientCtx) }()
			}
		case err := <-ready:
			if err != nil {
				d.failed = err
				break
			}
			if clientCtx.Err() != nil {
				break // stopping meanwhile
			}
			clients = len(d.board.clients)
			for i := range d.board.clients {
				d.children.keep(clientCtx, d.client(i))
			}
		case <-timer.C:
			if !creating && now.Sub(started) > startFor {
				d.failed = fmt.Errorf("the chain does not answer; its log is in %s", d.dir.file("logs"))
			}
		case <-done:
			done = nil
			d.note("stopping ...")
			stop()
		}
		if !d.asJSON && done != nil {
			d.screen.show(d.board, now, false)
		}
		if d.board.phase == phaseFinished && finishedAt.IsZero() {
			finishedAt = now
		}
		if d.failed != nil || d.board.equal() || !finishedAt.IsZero() && now.Sub(finishedAt) > agreeFor {
			stop()
		}
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
	d.trainer, err = newTrainer(ctx, d.dir.spec, d.dir.file("data"), defaultWorkers(), measureMost)
	if err != nil {
		return err
	}
	n := len(d.trainer.initial())
	set := d.dir.set
	d.began = time.Now()
	d.say("training a Llama of %s parameters on %s: %d clients and one chain replica, each a process of its own, %d rounds; all of it in %s",
		thousands(uint64(n)), set.Text, set.Clients, set.Rounds, d.dir.path)
	if d.first, err = d.trainer.engine.HeldOut(ctx, d.trainer.initial()); err != nil {
		return fmt.Errorf("held-out loss of the initial parameters: %w", err)
	}
	d.board = newBoard(fmt.Sprintf("entrain demo: %s, %s parameters, in %s", set.Preset, thousands(uint64(n)), d.dir.path), set.Clients, 4*uint64(n))
	d.board.heldOut = d.first
	return nil
}

// client is the child process of one client. The machine's cores are shared out.
func (d *demo) client(i int) child {
	name := clientName(i)
	args := []string{"join", demoRunName, "--json",
		"--chain", "http://" + d.dir.set.API, "--key", d.dir.file(name, "key"), "--state", d.dir.file(name), "--data", d.dir.file("data"),
		"--listen", "127.0.0.1:0", "--workers", fmt.Sprint(max(1, defaultWorkers()/len(d.board.clients))), "--linger", lingerFor.String(),
	}
	if i == 0 {
		args = append(args, "--evaluate", fmt.Sprint(max(1, d.dir.set.Rounds/evaluations)), "--evaluate-sequences", fmt.Sprint(evaluateMost))
	}
	return child{name: name, args: args}
}

// createRun creates the run unless an earlier demo did.
func (d *demo) createRun(ctx context.Context) (err error) {
	client, err := d.dial(ctx, []string{"http://" + d.dir.set.API}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	runs, err := client.Runs(ctx)
	if err != nil || len(runs) > 0 {
		return err
	}
	owner, err := loadKey(d.dir.file("owner.key"), d.passphrase)
	if err != nil {
		return err
	}
	_, err = createRun(ctx, client, owner, d.dir.spec, d.dir.text)
	var refused *ledger.TxError
	if errors.As(err, &refused) && refused.Code == ledger.CodeRunExists {
		return nil
	}
	return err
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
		d.emit(now, r.name, r.pid, node.Event{Kind: "process", Text: text})
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
		if r.final && r.err != nil {
			d.failed = fmt.Errorf("%s %s", r.name, text)
		}
		d.emit(now, r.name, 0, node.Event{Kind: "process", Text: text})
	case r.line != nil && r.name != d.board.chain.name:
		var ev node.Event
		if err := json.Unmarshal(r.line, &ev); err != nil {
			d.note(fmt.Sprintf("%s wrote what is no event: %.100q", r.name, r.line))
			return
		}
		d.board.event(now, r.name, ev)
		if ev.Kind == "note" {
			if text := r.name + ": " + ev.Text; d.said[r.name] != text {
				d.said[r.name] = text
				d.note(text)
			}
		}
		d.emit(now, r.name, 0, ev)
	}
}

// note shows a line to people.
func (d *demo) note(text string) {
	if !d.asJSON {
		d.screen.note(text)
	}
}

// emit shows an event to programs.
func (d *demo) emit(now time.Time, process string, pid int, ev node.Event) {
	if d.asJSON {
		_ = d.object(demoEvent{now.UTC().Format(time.RFC3339Nano), process, pid, ev})
	}
}

// tail returns the last line of a log, for an error text.
func tail(path string) string {
	b, err := readBounded(path, logBytesMax)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	all := strings.TrimSpace(string(b))
	return all[strings.LastIndexByte(all, '\n')+1:]
}

// logBytesMax bounds the log of a child that is read for its last line.
const logBytesMax = 64 << 20
