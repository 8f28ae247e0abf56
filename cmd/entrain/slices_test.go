package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/view"
)

// slicedRun has updates made in two slices, each by three or four of seven members. Payloads have
// several pieces. A member may be away for some rounds.
const slicedRun = `
name = "sliced"
steps = %d
[model]
hidden = 64
layers = 2
heads = 2
kv_heads = 1
head_dim = 32
ffn = 128
context = 32
[data]
location = %q
sequence = 32
[optimizer]
%s
[batch]
start = 12
[learning_rate]
warmup = 2
[members]
min = 3
start = 7
overlap = 1
witnesses = 4
missed_max = 4
[exchange]
aggregate = "slices"
aggregators = 3
[times]
waiting = "0s"
warmup = "1m"
round_train = "4s"
round_witness = "500ms"
cooldown = "5s"
epoch = "1h"
[trust]
verification_percent = 0
`

const slicedSteps = 10

// A run makes its updates in slices, over libp2p. One of seven members is a process, which is killed
// and comes back: all hold the same parameters in the end, and receive parts of payloads.
func TestSlicesBetweenProcesses(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	for name, optimizer := range map[string]string{
		"distro":     "codec = \"distro\"\n[optimizer.distro]\nblock = 8\ntop_k = 32",
		"sparseloco": "codec = \"sparseloco\"\n[optimizer.sparseloco]\nchunk = 256\ntop_k = 64\nclip_chunks = 8\ninner_steps = 1",
	} {
		t.Run(name, func(t *testing.T) { testSlicesBetweenProcesses(t, optimizer) })
	}
}

func testSlicesBetweenProcesses(t *testing.T, optimizer string) {
	s := newShell(t)
	s.console.env = startReplica(t)
	dir := t.TempDir()
	corpus := s.data()
	file := writeFile(t, filepath.Join(dir, "run.toml"), fmt.Sprintf(slicedRun, slicedSteps, corpus, optimizer))
	payload := object[founding.Preview](s, "run", "create", "--dry-run", "--few-witnesses", "-f", file, "--json").Needs.Payload
	s.ok("run", "create", "--few-witnesses", "-f", file)

	var members [6]<-chan taking
	var finished atomic.Int32
	leaves := make(chan struct{}) // all have finished: one that is late needs what others hold
	heed := func(ev printed) {
		if ev.Kind == "finished" && finished.Add(1) == int32(len(members)+1) {
			close(leaves)
		}
	}
	for i := range members {
		name := filepath.Join(dir, fmt.Sprint("member", i))
		members[i] = takePartUntil(t.Context(), leaves, heed, t, s.console.env, "sliced", "--key", name+".key", "--state", name)
	}
	step := func() uint32 { return uint32(object[view.Run](s, "status", "sliced", "--json").Step) }
	state := filepath.Join(dir, "killed")
	killed := startMember(t, s.console.env("ENTRAIN_CHAIN"), "sliced", "--key", state+".key", "--state", state)
	at := killed.until("applied", 2).Step
	killed.kill()
	for look := time.Tick(replicaBlock); step() < at+2; { // without it
		<-look
	}
	back := startMember(t, s.console.env("ENTRAIN_CHAIN"), "sliced", "--key", state+".key", "--state", state)
	back.until("trained", at)
	last := back.until("finished", 0)
	final := last.Params
	heed(last)
	if err := back.wait(); err != nil {
		t.Error(err)
	}
	all := back.events
	for i := range members {
		m := <-members[i]
		if m.err != nil {
			t.Fatalf("member %d: %v", i, m.err)
		}
		if kept, ok := m.first("finished"); !ok || kept.Params != final {
			t.Errorf("member %d ends with %q, the killed one with %q", i, kept.Params, final)
		}
		all = append(all, m.events...)
	}
	parts, wholes, updates, applied := 0, 0, 0, 0
	for _, ev := range all {
		switch {
		case ev.Kind == "applied":
			applied++ // 67, on a busy machine fewer
		case ev.Kind != "fetched":
		case ev.Update:
			updates++
		case ev.Bytes < payload*3/4:
			parts++
		default:
			wholes++ // or a slice's ranges of all results, for a group without a quorum
		}
	}
	if parts < slicedSteps*5*4 || wholes > parts/10 || updates < slicedSteps*5 {
		t.Errorf("in %d steps %d ranges, %d payloads, and %d updates and slices are received, and %d sets applied", slicedSteps, parts, wholes, updates, applied)
	}
	if r := object[view.Run](s, "status", "sliced", "--json"); r.Step != slicedSteps || r.Rollbacks != 0 {
		t.Errorf("the run stands at %+v", r)
	}
}

// process is a member that is a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	words  *syncBuffer
	events []printed
}

// startMember starts entrain join.
func startMember(t *testing.T, chain string, args ...string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), program, append([]string{"join", "--workers", "1", "--linger", "2s", "--json"}, args...)...), words: &syncBuffer{}}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), "ENTRAIN_CHAIN="+chain), p.words
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	p.lines.Buffer(nil, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// until reads events up to the first of a kind at a step or later.
func (p *process) until(kind string, step uint32) printed {
	p.t.Helper()
	for p.lines.Scan() {
		var ev printed
		if err := json.Unmarshal(p.lines.Bytes(), &ev); err != nil {
			p.t.Fatalf("line %q: %v", p.lines.Text(), err)
		}
		p.events = append(p.events, ev)
		if ev.Kind == kind && ev.Step >= step {
			return ev
		}
	}
	p.t.Fatalf("it ended before it was %s: %v\n%s", kind, p.cmd.Wait(), p.words)
	return printed{}
}

// kill kills it as a power cut does.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
}

// wait reads the remaining events, and returns what it ended with.
func (p *process) wait() error {
	for p.lines.Scan() {
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.words)
	}
	return nil
}
