package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

const (
	// evaluations is the number of times that a client measures the held-out loss while it trains.
	evaluations = 20
	// linger is longer than any demo: clients serve the model until the demo stops them.
	linger = 24 * time.Hour

	// startFor bounds the time until the servers listen, joinFor until all clients of a run with a
	// cheat are members. Servers that fail to start are given up sooner.
	startFor, joinFor = 2 * time.Minute, 4 * time.Minute
	// agreeFor is how long after the run's end the demo waits for clients that do not hold the final
	// parameters yet, judgeFor for what is undecided about a cheat.
	agreeFor, judgeFor = time.Minute, 2 * time.Minute

	tickEvery = 250 * time.Millisecond
	statesMax = 64 // states of the run that may wait to be looked at

	chainName, serverName = "chain", "s3"
)

// Run starts the network and returns what came of it, once all honest clients hold the final
// parameters. If the directory keeps a run that has finished, Run returns its summary. When ctx
// ends, Run stops the processes in order and returns the cause.
func Run(ctx context.Context, o Options) (s Summary, err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return s, fmt.Errorf("find this program, to start it as a child process: %w", err)
		}
	}
	if o.Env == nil {
		// without the user's buckets
		o.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ENTRAIN_BUCKET") })
	}
	dir, err := openDirectory(ctx, o)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	d := &demo{Options: o, dir: dir, notes: map[string]string{}, listening: map[string]bool{}}
	d.Settings = dir.set.Settings
	if d.buckets() && dir.set.S3 == "" {
		// There is one location, and all write with its credentials.
		d.Env = append(d.Env, "ENTRAIN_BUCKET_SHARED=1")
	}
	if dir.summary != nil {
		d.say("the run kept in %s has finished; for another one choose another directory, or remove this one", dir.path)
		return *dir.summary, nil
	}
	if d.trainer, err = trainer.New(ctx, dir.spec, data.Place{Location: dir.file("data")}, trainer.Machine{Workers: runtime.GOMAXPROCS(0)}, participant.HeldOutMost); err != nil {
		return s, err
	}
	defer d.trainer.Close()
	defer func() {
		if d.chain != nil {
			_ = d.chain.Close() // nothing is lost with it
		}
	}()
	if err := d.run(ctx); err != nil {
		return s, err
	}
	if s, err = d.conclude(ctx); err != nil {
		return s, err
	}
	return s, dir.writeJSON(summaryFile, s)
}

// demo is a network of child processes. Its fields belong to the goroutine of Run.
type demo struct {
	Options
	progress progress
	dir      *directory
	trainer  *trainer.Trainer
	chain    ledger.Chain // nil before the run was created
	at       string       // its address, for --chain
	began    time.Time
	first    float32 // held-out loss of the initial parameters
	failed   error   // why the demo cannot go on
	notes    map[string]string

	children                 *children
	serving                  []child         // the servers
	servers, clients         context.Context // servers stop last: they take the clients' withdrawals
	stopServers, stopClients context.CancelFunc
	running                  int             // clients and validators that have not ended for good
	listening                map[string]bool // servers that do
	creating                 bool            // the run is being created, or was
	waiting                  bool            // a run with a cheat, until all clients are members
	finished                 time.Time       // when the run was first seen to have finished
}

func (d *demo) say(format string, args ...any) {
	if d.Say != nil {
		d.Say(fmt.Sprintf(format, args...))
	}
}

// show passes a record to those that show the run.
func (d *demo) show(r runlog.Record) {
	d.progress.fold.Add(r)
	if d.Record != nil {
		d.Record(r)
	}
}

// record shows an event.
func (d *demo) record(who string, ev event.Event) {
	d.show(runlog.Record{Time: time.Now(), Who: who, Event: ev})
}

func (d *demo) note(who, text string) { d.record(who, event.Note{Text: text}) }

// emit passes an event to programs.
func (d *demo) emit(process string, pid int, ev event.Event) {
	if d.Event != nil {
		d.Event(Event{time.Now().UTC().Format(time.RFC3339Nano), process, pid, ev})
	}
}

// run starts the network, follows it until there is nothing more to wait for, and stops it.
func (d *demo) run(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	var err error
	if d.serving, err = d.serverChildren(); err != nil {
		return err
	}
	d.children = &children{program: d.Program, logs: d.dir.file("logs"), env: d.Env, pause: restartAfter, reports: make(chan childReport)}
	d.servers, d.stopServers = context.WithCancel(context.WithoutCancel(ctx))
	d.clients, d.stopClients = context.WithCancel(d.servers)
	defer d.stopServers()
	defer context.AfterFunc(ctx, d.stopClients)()
	for _, ch := range d.serving {
		d.children.keep(d.servers, ch)
	}
	go d.children.wait()

	created, resumed, states := make(chan creation, 1), make(chan error, 1), make(chan ledger.Snapshot, statesMax)
	timer := time.NewTicker(tickEvery)
	defer timer.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case r, ok := <-d.children.reports:
			if !ok {
				return d.outcome(ctx)
			}
			d.report(r)
			if !d.creating && len(d.listening) == len(d.serving) && d.clients.Err() == nil {
				d.creating = true
				go func() {
					chain, err := create(d.clients, d.dir)
					created <- creation{chain, err}
				}()
			}
		case c := <-created:
			d.chain = c.chain
			d.startClients(c.err, states)
		case s := <-states:
			d.observe(s)
			if d.waiting && d.progress.joined() {
				d.waiting = false
				go func() { resumed <- resume(d.clients, d.chain, d.dir) }()
			}
		case err := <-resumed:
			d.fail(err)
		case <-timer.C:
		case <-interrupted:
			interrupted = nil
			d.note("demo", "stopping ...")
			d.stop()
		}
		if d.over(time.Now()) {
			d.stop()
		}
	}
}

// stop stops everything in order; the children's reports end when all have ended.
func (d *demo) stop() {
	d.stopClients()
	if d.running == 0 {
		d.stopServers()
	}
}

// observe takes a state of the run.
func (d *demo) observe(s ledger.Snapshot) {
	standing := runlog.Digest(s)
	standing.Chain = d.chain.ChainID()
	d.progress.state, d.progress.seen = s.State, true
	d.show(runlog.Record{Time: time.Now(), Standing: standing})
	d.waiting = d.waiting && s.State.Epoch() == 0
}

// fail notes why the demo cannot go on. Only the first reason counts: stopping causes others.
func (d *demo) fail(err error) {
	if d.failed == nil {
		d.failed = err
	}
}

// startClients starts the clients of a run that was created, unless that failed or everything is
// being stopped.
func (d *demo) startClients(err error, states chan ledger.Snapshot) {
	d.fail(err)
	if err != nil || d.clients.Err() != nil {
		return
	}
	d.chain.Watch(d.servers, runName, func(s ledger.Snapshot) {
		select {
		case states <- s:
		default: // states that come faster than they are read are left out
		}
	})
	d.waiting = d.cheats() > 0
	for i := range d.progress.clients {
		d.running++
		d.children.keep(d.clients, d.clientChild(i))
	}
	for i := range d.Validators {
		d.running++
		d.children.keep(d.clients, d.validatorChild(i))
	}
}

// over reports whether there is nothing more to wait for.
func (d *demo) over(now time.Time) bool {
	p := &d.progress
	if p.over() && d.finished.IsZero() {
		d.finished = now
	}
	after := now.Sub(d.finished)
	switch {
	case d.failed != nil:
	case !d.creating && now.Sub(d.began) > startFor:
		d.fail(fmt.Errorf("the chain does not answer; its log is in %s", d.dir.file("logs")))
	case d.waiting && now.Sub(d.began) > joinFor:
		d.fail(fmt.Errorf("not all clients have joined the run in %v; their logs are in %s", joinFor, d.dir.file("logs")))
	case d.finished.IsZero():
		return false
	case !p.equal():
		return after > agreeFor
	case d.Validators > 0:
		return !p.scoring() || after > judgeFor+4*scoreWindows*d.Window
	default:
		return d.cheats() == 0 || p.caught() || !p.undecided() || after > judgeFor
	}
	return true
}

// outcome returns the result of run when no child runs any more.
func (d *demo) outcome(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && d.dir.kept:
		return fmt.Errorf("%w; continue with: entrain demo --keep %q", context.Cause(ctx), d.dir.path)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return d.failed
}

// prepare measures the initial parameters, and announces what is about to begin.
func (d *demo) prepare(ctx context.Context) (err error) {
	d.began = time.Now()
	if !d.dir.made {
		d.say("continuing the run kept in %s", d.dir.path)
	}
	chain := "one chain replica"
	if d.Chain == Solana {
		chain = "a cluster of Solana (litesvm)"
	}
	d.say("training a Llama of %s parameters on %s: %d clients and %s, each a process of its own, %d rounds; all of it in %s",
		view.Thousands(uint64(d.trainer.Engine.ParamsLen())), cmp.Or(d.Text, "Newton's Opticks"), d.Clients, chain, d.Rounds, d.dir.path)
	if d.buckets() {
		d.say("a window takes %v and never closes early: with the scores of the last ones the demo takes about %v on an idle machine",
			d.Window, d.Takes())
	}
	if d.first, err = d.trainer.Engine.HeldOut(ctx, cpu.Floats(d.trainer.Initial())); err != nil {
		return fmt.Errorf("held-out loss of the initial parameters: %w", err)
	}
	d.at = "http://" + d.dir.set.API
	if d.Chain == Solana {
		at, err := d.dir.place()
		if err != nil {
			return err
		}
		d.at = at.String()
	}
	p := &d.progress
	p.set, p.fold = d.Settings, view.New("")
	p.fold.NameOps(verify.OpNames(d.dir.text))
	for i := range d.Clients {
		k, err := ensureKey(d.dir.file(clientName(i), "key"))
		if err != nil {
			return err
		}
		c := client{name: clientName(i), key: k.Public(), cheats: i >= d.Clients-d.cheats()}
		p.clients = append(p.clients, c)
		p.fold.Name(c.key.String(), c.name)
		if d.Member != nil {
			d.Member(c.key.String(), c.name)
		}
	}
	if kind, ok := d.kind(); ok {
		d.say("%s is a cheat, %s: it %s", clientName(d.Clients-1), kind.Name, kind.Tries)
	}
	return nil
}

// serverChildren returns the children that the others need: the chain, and the server of buckets.
func (d *demo) serverChildren() ([]child, error) {
	list := []child{{name: chainName, args: []string{"chain", "start", "--home", d.dir.file("chain"), "--json"}}}
	if d.Chain == Solana {
		cluster, err := d.cluster()
		if err != nil {
			return nil, err
		}
		list[0] = cluster
	}
	if d.buckets() && d.dir.set.S3 != "" {
		args := []string{"bucket", d.dir.file(serverDir), "--addr", d.dir.set.S3, "--json"}
		for i := range d.Clients {
			args = append(args, clientName(i))
		}
		list = append(list, child{name: serverName, args: args})
	}
	return list, nil
}

// clientChild returns the child of a client. The machine's cores are shared out.
func (d *demo) clientChild(i int) child {
	c := d.progress.clients[i]
	args := []string{runName, "--json", "--chain", d.at, "--key", d.dir.file(c.name, "key"), "--state", d.dir.file(c.name),
		"--data", d.dir.file("data"), "--listen", "127.0.0.1:0", "--workers", fmt.Sprint(max(1, runtime.GOMAXPROCS(0)/d.Clients)),
		"--linger", linger.String(), "--stake", fmt.Sprint(stake)}
	if i == 0 {
		args = append(args, "--evaluate", fmt.Sprint(max(1, d.Rounds/evaluations)))
	}
	if i%2 == 1 && d.Device != "" {
		args = append(args, "--device", d.Device)
	}
	switch own := d.dir.file(serverDir, c.name); {
	case d.buckets() && d.dir.set.S3 != "":
		args = append(args, "--bucket", own+".write", "--bucket-read", own+".read", "--private-buckets")
	case d.buckets():
		args = append(args, "--bucket", d.dir.file(c.name, bucketWrite), "--bucket-read", d.dir.file(c.name, bucketRead),
			"--private-buckets")
	}
	if !c.cheats {
		return child{name: c.name, args: append([]string{"join"}, args...)}
	}
	cheat := []string{"demo", "cheat", "--adversary", d.Adversary}
	for _, c := range d.progress.clients {
		if c.cheats {
			cheat = append(cheat, "--gang", c.key.String())
		}
	}
	return child{name: c.name, args: append(append(cheat, "--"), args...), once: true}
}

// validatorChild returns the child of a validator.
func (d *demo) validatorChild(i int) child {
	name := validatorName(i)
	return child{name: name, args: []string{"validate", runName, "--json", "--private-buckets", "--chain", d.at,
		"--key", d.dir.file(name, "key"), "--state", d.dir.file(name), "--data", d.dir.file("data"), "--workers", "1", "--stake", fmt.Sprint(stake)}}
}

// report takes what a child did.
func (d *demo) report(r childReport) {
	server := r.name == chainName || r.name == serverName
	c := d.progress.client(r.name)
	switch {
	case r.pid != 0:
		text := "started"
		if r.restarts > 0 {
			text = "started again"
		}
		d.note(r.name, fmt.Sprintf("%s, pid %d", text, r.pid))
		d.emit(r.name, r.pid, event.Process{Text: text})
	case r.ended:
		d.ended(r, c != nil && c.cheats)
		if r.final && !server {
			if d.running--; d.running == 0 {
				d.stopServers()
			}
		}
	case server:
		var ev struct {
			Event string `json:"event"`
		}
		if json.Unmarshal(r.line, &ev) == nil && ev.Event == "listening" {
			d.listening[r.name] = true
		}
	case c != nil:
		d.heard(c, r.line)
	}
}

// ended takes the end of a child. That a cheat gives up, because it was ejected, is not a failure.
func (d *demo) ended(r childReport, cheat bool) {
	text := "ended"
	if r.err != nil {
		text = "died: " + r.err.Error()
		// A child that was killed had no time to explain; the end of its log is older.
		var exit *exec.ExitError
		if errors.As(r.err, &exit) && exit.Exited() {
			text += ": " + lastLine(d.dir.file("logs", r.name+".log"))
		}
		d.note(r.name, text)
	}
	if r.final && r.err != nil && (!cheat || d.waiting) {
		d.fail(fmt.Errorf("%s %s", r.name, text))
	}
	d.emit(r.name, 0, event.Process{Text: text})
}

// heard takes a line that a client wrote.
func (d *demo) heard(c *client, line []byte) {
	ev, err := event.Unmarshal(line)
	if err != nil {
		d.note(c.name, fmt.Sprintf("wrote a line that is not an event: %.100q", line))
		return
	}
	d.progress.event(c, ev)
	switch ev := ev.(type) {
	case event.Note:
		if d.notes[c.name] == ev.Text {
			break // it repeats itself
		}
		d.notes[c.name] = ev.Text
		d.record(c.name, ev)
	case event.Verdict:
		if ev.Status != event.Passed { // which is what most of them are
			d.record(c.name, ev)
		}
	case event.Trained, event.Committed, event.Fetched, event.Evaluated, event.Healed, event.Refused:
		d.record(c.name, ev)
	}
	d.emit(c.name, 0, ev)
}

// logBytesMax bounds the log of a child that is read for its last line.
const logBytesMax = 64 << 20

// lastLine returns the last line of a log, for an error text.
func lastLine(path string) string {
	b, err := atomicfile.ReadBounded(path, logBytesMax)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	all := strings.TrimSpace(string(b))
	return all[strings.LastIndexByte(all, '\n')+1:]
}
