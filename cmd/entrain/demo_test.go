//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/view"
)

// running is a demo in this process, whose chain and clients are processes of their own.
type running struct {
	t      *testing.T
	cancel context.CancelFunc
	events chan printed // closed at the end
	ended  chan error
	words  *syncBuffer
	pids   []int
	final  demo.Summary
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startDemo starts a demo on a text that takes little time.
func startDemo(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, cancel: cancel, events: make(chan printed), ended: make(chan error, 1), words: &syncBuffer{}}
	out, in := io.Pipe()
	s := newShell(t)
	s.console.out, s.console.err = in, r.words
	go func() {
		err := run(ctx, s.console, append([]string{"demo", "--keep", dir, "--json"}, args...))
		in.Close()
		r.ended <- err
	}()
	go func() {
		defer close(r.events)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var ev printed
			if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
				t.Errorf("line %q: %v", lines.Text(), err)
			}
			if ev.Kind == "summary" {
				if err := json.Unmarshal(lines.Bytes(), &r.final); err != nil {
					t.Errorf("summary %q: %v", lines.Text(), err)
				}
			}
			r.events <- ev
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range r.events {
		}
	})
	return r
}

// demoChain returns where the chain of the demo in dir serves clients.
func demoChain(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ API string }
	if err := json.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	return "http://" + set.API
}

// until reads events up to the first for which ok holds.
func (r *running) until(what string, ok func(printed) bool) printed {
	r.t.Helper()
	for ev := range r.events {
		if ev.PID != 0 {
			r.pids = append(r.pids, ev.PID)
		}
		if ok(ev) {
			r.t.Logf("%s: %s", ev.Time, what)
			return ev
		}
	}
	r.t.Fatalf("the demo ended before %s: %v\n%s", what, <-r.ended, r.words)
	return printed{}
}

// end reads the remaining events and returns what the demo ended with.
func (r *running) end() error {
	for ev := range r.events {
		if ev.PID != 0 {
			r.pids = append(r.pids, ev.PID)
		}
	}
	return <-r.ended
}

// nothingRuns fails the test if a child process is left over.
func (r *running) nothingRuns() {
	r.t.Helper()
	for _, pid := range r.pids {
		if alive(pid) {
			r.t.Errorf("process %d is still running", pid)
		}
	}
}

// alive reports whether a process runs; one that has ended and was not waited for does not.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	b, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z")
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func kill(t *testing.T, pid int) {
	t.Helper()
	signalTo(t, pid, syscall.SIGKILL)
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// tinyArgs make a demo of seconds.
func tinyArgs(t *testing.T, rounds string) []string {
	text := writeFile(t, filepath.Join(t.TempDir(), "text.txt"), strings.Repeat("It was the best of times, it was the worst of times. ", 2000))
	return []string{"--text", text, "--preset", "tiny", "--clients", "2", "--rounds", rounds}
}

// A client and the chain are killed in the middle of a run, and the demo itself is interrupted and called again: the run goes on, and in
// the end all hold the same verified parameters.
func TestDemoSurvivesKillsAndInterruption(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := tinyArgs(t, "40")
	d := startDemo(t, dir, args...)
	applied := func(process string, step uint32) func(printed) bool {
		return func(ev printed) bool { return ev.Kind == "applied" && ev.Process == process && ev.Step >= step }
	}
	pids := map[string]int{}
	started := func(process string) func(printed) bool {
		return func(ev printed) bool {
			if ev.PID != 0 {
				pids[ev.Process] = ev.PID
			}
			return ev.PID != 0 && ev.Process == process
		}
	}
	d.until("client-2 started", func(ev printed) bool { started("")(ev); return len(pids) == 3 })

	// kill -9 of a client: the run goes on, and the client comes back with the others' model.
	d.until("three steps", applied("client-1", 3))
	kill(t, pids["client-2"])
	d.until("client-2 was started again", started("client-2"))
	d.until("client-2 holds a model", func(ev printed) bool {
		return ev.Process == "client-2" && (ev.Kind == "loaded" || ev.Kind == "healed")
	})
	back := d.until("client-2 trains again", func(ev printed) bool { return ev.Process == "client-2" && ev.Kind == "applied" })

	// kill -9 of the chain: started again, nothing is lost.
	d.until("steps after that", applied("client-1", back.Step+2))
	kill(t, pids["chain"])
	d.until("the chain was started again", started("chain"))
	d.until("a step on the new chain process", applied("client-2", back.Step+4))

	// Ctrl-C: nothing is left running.
	d.cancel()
	if err := d.end(); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "--keep") {
		t.Errorf("interrupted: got %v", err)
	}
	d.nothingRuns()

	// Called again, the demo goes on where it was.
	d = startDemo(t, dir, args...)
	first := d.until("a step", func(ev printed) bool { return ev.Kind == "applied" })
	if first.Step < back.Step+3 {
		t.Errorf("the second demo began at step %d, the first had done %d", first.Step, back.Step+4)
	}
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	checkSummary(t, d.final, dir, 40)
	for _, client := range []string{"client-1", "client-2"} {
		checkRecords(t, filepath.Join(dir, client), 40)
	}

	// A third time there is nothing to do but to say so.
	d = startDemo(t, dir)
	again := d.until("the summary", func(ev printed) bool { return ev.Kind == "summary" })
	if err := d.end(); err != nil || again.Process != "" || d.final.ParamHash == "" || len(d.pids) > 0 {
		t.Errorf("of a finished run: %+v, %v", d.final, err)
	}
}

func checkSummary(t *testing.T, s demo.Summary, dir string, rounds uint32) {
	t.Helper()
	if s.Rounds != rounds || s.Clients != 2 || !s.HashesEqual || !(s.HeldOutLast > 0 && s.HeldOutLast < s.HeldOutFirst) ||
		s.PayloadBytes == 0 || s.PayloadBytes*10 > s.DenseBytes || s.GeneratedText == "" ||
		!(s.TokensPerSecond > 0 && s.TokensPerSecond < s.StepTokensPerSecond) {
		t.Errorf("summary %+v", s)
	}
	for _, p := range s.Members {
		if p.Points == 0 || p.Params != s.ParamHash {
			t.Errorf("%s has %d points and parameters %s, agreed are %s", p.Name, p.Points, p.Params, s.ParamHash)
		}
	}
	if s.Checkpoint != filepath.Join(dir, "checkpoint") {
		t.Errorf("the checkpoint is said to be in %s", s.Checkpoint)
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(s.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	if saved.Manifest.Params.String() != s.ParamHash || saved.Manifest.Step != rounds {
		t.Errorf("the checkpoint is of parameters %s after step %d", saved.Manifest.Params, saved.Manifest.Step)
	}
	sh := newShell(t)
	text := sh.ok("model", "generate", s.Checkpoint, "--prompt", "It was ", "--tokens", "20", "--seed", "1")
	if !strings.HasPrefix(text, "It was ") || len(text) <= len("It was ") || text != sh.ok("model", "generate", s.Checkpoint, "--prompt", "It was ", "--tokens", "20", "--seed", "1") {
		t.Errorf("generated %q", text)
	}
}

// kill -9 of the demo leaves nothing running.
func TestNothingOutlivesAKilledDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The demo is a child process here, of children like its own.
	cmd := exec.Command(program, append([]string{"demo", "--keep", filepath.Join(dir, "net"), "--json"}, tinyArgs(t, "100000")...)...)
	var words syncBuffer
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var ev printed
		if json.Unmarshal(lines.Bytes(), &ev) == nil && ev.PID != 0 {
			pids = append(pids, ev.PID)
		}
		if len(pids) == 3 && ev.Kind == "applied" {
			break
		}
	}
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait() // it was killed
	if len(pids) != 3 {
		t.Fatalf("processes %v\n%s", pids, &words)
	}
	// The kernel, or the end of their standard input, ends them; there is no event of that here to wait for.
	deadline := time.Now().Add(20 * time.Second)
	for _, pid := range pids {
		for alive(pid) && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if alive(pid) {
			t.Errorf("process %d outlives the demo", pid)
		}
	}
}

// The last of four clients cheats: it is convicted, the others go on and agree, and the demo says so. The run waits for the slowest client, which is
// held up here until the others know the run.
func TestDemoConvictsACheat(t *testing.T) {
	t.Parallel()
	args := tinyArgs(t, "20")
	args[slices.Index(args, "--clients")+1] = "4"
	d := startDemo(t, t.TempDir(), append(args, "--adversary", "sign-flip", "--verification", "60")...)
	first := ""
	known := func(process string) func(printed) bool {
		return func(ev printed) bool {
			if ev.Process == "client-1" && ev.Kind == "state" && first == "" {
				first = ev.Phase
			}
			return ev.Process == process && (ev.PID != 0 || ev.Kind == "state" && ev.Phase != "WaitingForMembers")
		}
	}
	slow := d.until("client-1 was started", known("client-1")).PID
	signalTo(t, slow, syscall.SIGSTOP)
	d.until("client-2 was started", known("client-2"))
	d.until("client-2 knows the run", known("client-2"))
	signalTo(t, slow, syscall.SIGCONT)
	d.until("client-1 knows the run", func(ev printed) bool { known("")(ev); return first != "" })
	if first != "Paused" {
		t.Errorf("a client that joins late finds the run in %s", first)
	}
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	s := d.final
	if !s.AdversaryConvicted || s.HonestConvicted || !s.HashesEqual || s.Rounds != 20 || s.Adversary != "sign-flip" || s.Trust == nil || s.Trust.Drawn == 0 || s.Trust.Disputed == 0 {
		t.Fatalf("summary %+v", s)
	}
	i := slices.IndexFunc(s.Trust.Convictions, func(v view.Conviction) bool { return v.Offence == "wrong result" })
	if i < 0 {
		t.Fatalf("convictions %+v", s.Trust.Convictions)
	}
	v := s.Trust.Convictions[i]
	if v.Name != "client-4" || v.Slashed != 1000 || v.Evidence == "" || v.By < 0 || !strings.Contains(s.Trust.Found(v), "operation") || s.Members[3].Stake != 0 {
		t.Errorf("conviction %+v", v)
	}
}

// One of two clients computes on a device: both hold the same parameters, and pass each other's results.
func TestDemoMixesDevices(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	needDevice(t)
	args := tinyArgs(t, "1")
	args[slices.Index(args, "--clients")+1] = "2"
	d := startDemo(t, t.TempDir(), append(args, "--device", "vulkan:0", "--verification", "100")...)
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	if s := d.final; !s.HashesEqual || s.HonestConvicted || s.Rounds != 1 || s.Trust == nil || s.Trust.Drawn != 2 || s.Trust.Passed == 0 { // the last check may outlast the run
		t.Errorf("summary %+v", s)
	}
}

func TestDemoRefusesCheatsThatMakeNoSense(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct{ args, want string }{
		{"--adversary gremlin", "the kinds are free-rider"},
		{"--adversary sybil --clients 3", "--clients 3: 2 of them cheat, so there must be at least 4"},
		{"--adversary late --verification 0", "no cheat is found"},
		{"--verification 101", "0 to 100"},
		{"--device gpu", "want cpu, auto or vulkan:N"},
	} {
		if err := run(t.Context(), s.console, append([]string{"demo"}, strings.Fields(c.args)...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("demo %s: %v", c.args, err)
		}
	}
}
