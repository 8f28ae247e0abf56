package netns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/p2p"
)

// stage is a fabric with the program on it.
type stage struct {
	*testing.T
	*Fabric
	dir     string
	program string
}

// newStage builds the program, unless ENTRAIN_PROGRAM names one, and makes an empty network, or skips the test.
func newStage(t *testing.T, seed uint64) *stage {
	t.Helper()
	if os.Getenv("ENTRAIN_NETNS") == "" {
		t.Skip("takes a minute: ENTRAIN_NETNS=short go test ./tests/netns, or make netns for those that take several")
	}
	if why := Missing(); why != "" {
		t.Skip(why)
	}
	s := &stage{T: t, Fabric: New(seed), dir: t.TempDir()}
	t.Cleanup(func() {
		if err := s.Fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.program = os.Getenv("ENTRAIN_PROGRAM"); s.program != "" {
		return s
	}
	s.program = filepath.Join(s.dir, "entrain")
	build := exec.Command("go", "build", "-o", s.program, "github.com/entrain-network/entrain/cmd/entrain")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return s
}

func (s *stage) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// machine is a namespace in which the program runs.
type machine struct {
	*stage
	name    string
	ns      string
	address string // "" behind a NAT
}

func (s *stage) machine(name, address string, link Link) *machine {
	s.Helper()
	ns, err := s.Fabric.Machine(name, address, link)
	if err != nil {
		s.Fatal(err)
	}
	return &machine{stage: s, name: name, ns: ns, address: address}
}

func (s *stage) behindNAT(name, address string, link Link, random bool) *machine {
	s.Helper()
	if why := MissingNAT(); why != "" {
		s.Skip(why)
	}
	ns, err := s.Fabric.NAT(name, address, link, random)
	if err != nil {
		s.Fatal(err)
	}
	return &machine{stage: s, name: name, ns: ns}
}

// command is the program on a machine, with a home of its own.
func (m *machine) command(ctx context.Context, args ...string) *exec.Cmd {
	home := m.path("home", m.name)
	if err := os.MkdirAll(home, 0o755); err != nil {
		m.Fatal(err)
	}
	cmd := Command(ctx, m.ns, append([]string{m.program}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home+"/config", "XDG_DATA_HOME="+home+"/data", "GOMAXPROCS=2", "ENTRAIN_CHAIN=", "ENTRAIN_KEY_FILE=")
	return cmd
}

// ok runs a command that must succeed, and returns what it prints.
func (m *machine) ok(args ...string) string {
	m.Helper()
	var out, errs bytes.Buffer
	cmd := m.command(m.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		m.Fatalf("%s: entrain %s: %v\n%s%s", m.name, strings.Join(args, " "), err, &out, &errs)
	}
	return strings.TrimSpace(out.String())
}

// process is a command that goes on.
type process struct {
	*machine
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // valid once it has ended
	log   string

	mu     sync.Mutex // guards what follows
	lines  []string
	events []timed
	fresh  chan struct{} // closed and replaced when there is more
}

// timed is an event as join --json prints it.
type timed struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"event"`
	Round   uint32    `json:"round"`
	Step    uint32    `json:"step"`
	Status  string    `json:"status"`
	Params  string    `json:"params"`
	Text    string    `json:"text"`
	Points  uint64    `json:"points"`
	Seconds float64   `json:"seconds"`
	Results int       `json:"results"`
}

// begin starts a command that goes on until the test ends.
func (m *machine) begin(args ...string) *process {
	m.Helper()
	return m.start(m.command(context.Background(), append([]string{"--with-parent"}, args...)...))
}

// start starts a process that goes on until the test ends. It ends when its standard input does.
func (m *machine) start(cmd *exec.Cmd) *process {
	m.Helper()
	p := &process{machine: m, cmd: cmd, ended: make(chan struct{}), fresh: make(chan struct{}), log: m.path(m.name + ".err")}
	errs, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		m.Fatal(err)
	}
	p.cmd.Stderr = errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		m.Fatal(err)
	}
	p.stdin = in
	if err := p.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	go func() {
		p.listen(out)
		p.err = p.cmd.Wait()
		errs.Close()
		close(p.ended)
	}()
	m.Cleanup(func() {
		p.stop()
		if m.Failed() {
			text, _ := os.ReadFile(p.log)
			m.Logf("%s: %.300s: %v\n%s", m.name, cmd, p.err, tail(text, 4000))
		}
	})
	return p
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// listen takes what the process prints.
func (p *process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		var ev timed
		if json.Unmarshal(lines.Bytes(), &ev) == nil && ev.Kind != "" {
			p.events = append(p.events, ev)
		}
		close(p.fresh)
		p.fresh = make(chan struct{})
		p.mu.Unlock()
	}
}

// stop ends the process as a person would, and waits for it.
func (p *process) stop() {
	p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.kill()
	}
}

// kill ends the process at once.
func (p *process) kill() {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Error(err)
	}
	<-p.ended
}

// line waits for a line of the output that begins with prefix.
func (p *process) line(prefix string) string {
	p.Helper()
	found := ""
	p.until(time.Minute, fmt.Sprintf("a line %q", prefix), func() bool {
		for _, l := range p.lines {
			if strings.HasPrefix(l, prefix) {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

// until waits until a condition on the process's output holds.
func (p *process) until(patience time.Duration, what string, holds func() bool) {
	p.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ok, fresh := holds(), p.fresh
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-fresh:
		case <-p.ended:
			p.mu.Lock()
			ok := holds()
			p.mu.Unlock()
			if ok {
				return
			}
			p.Fatalf("%s: the process ended (%v) before %s", p.name, p.err, what)
		case <-timer.C:
			p.Fatalf("%s: after %s: not %s", p.name, patience, what)
		}
	}
}

// count is how many events there are so far of which f is true.
func (p *process) count(f func(timed) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ev := range p.events {
		if f(ev) {
			n++
		}
	}
	return n
}

// all is a copy of the events so far.
func (p *process) all() []timed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]timed(nil), p.events...)
}

// founded is a chain with a run on it.
type founded struct {
	*stage
	chain    *machine   // of the first replica, and of the run's owner
	replicas []*process // with their homes at homes
	homes    []string
	at       []string // --chain URL of each replica
	run      string
	data     string // directory, or URL
}

// found makes a chain of a replica on each of the machines, data and a run of the specification.
func (s *stage) found(run, specification string, on ...*machine) *founded {
	s.Helper()
	f := &founded{stage: s, chain: on[0], run: run, data: s.path("data")}
	args := []string{"chain", "init", "--home", s.path("chain"), "--chain-id", "netns"}
	if len(on) == 1 {
		args = append(args, "--api", on[0].address+":7370")
		f.homes = []string{s.path("chain")}
	} else {
		args = append(args, "--replicas", fmt.Sprint(len(on)))
		for i, m := range on {
			args = append(args, "--host", m.address)
			f.homes = append(f.homes, s.path("chain", fmt.Sprintf("replica-%d", i+1)))
		}
	}
	f.chain.ok(args...)
	for i, m := range on {
		f.at = append(f.at, "--chain", "http://"+m.address+":7370")
		f.replicas = append(f.replicas, m.begin("chain", "start", "--home", f.homes[i]))
	}
	f.replicas[0].reached(f.at)
	f.open(specification)
	return f
}

// open makes data, and a run of the specification.
func (f *founded) open(specification string) {
	f.Helper()
	s := f.stage
	text := s.path("text")
	if err := os.WriteFile(text, []byte(strings.Repeat("All the world's a stage, and all the men and women merely players. ", 4000)), 0o644); err != nil {
		s.Fatal(err)
	}
	f.chain.ok("data", "prepare", "-o", f.data, text)
	file := s.path("run.toml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf("name = %q\n%s", f.run, specification)), 0o644); err != nil {
		s.Fatal(err)
	}
	f.chain.ok(append([]string{"run", "create", "-f", file, "--data", f.data}, f.at...)...)
}

// reached waits until the chain answers.
func (p *process) reached(at []string) {
	p.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 300 {
		if p.command(p.Context(), append([]string{"status"}, at...)...).Run() == nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.ended:
			p.Fatalf("the chain ended: %v", p.err)
		}
	}
	p.Fatal("the chain does not answer")
}

// join lets a machine take part.
func (f *founded) join(m *machine, more ...string) *process {
	f.Helper()
	return m.begin(slices.Concat([]string{"join", f.run, "--data", f.data, "--state", m.state(), "--json", "--workers", "1"}, f.at, more)...)
}

// relay serves as a relay on a machine.
func (f *founded) relay(m *machine) *process {
	f.Helper()
	return m.begin(append([]string{"relay", f.run, "--listen", m.address + ":4001"}, f.at...)...)
}

// state is the directory of a participant's state.
func (m *machine) state() string { return m.path("state", m.name) }

// ways counts the ways in which a participant is connected with its peers.
func (m *machine) ways() map[string]int {
	m.Helper()
	b, err := os.ReadFile(filepath.Join(m.state(), "peers.json"))
	if err != nil {
		return nil // not written yet
	}
	var r struct{ Peers []p2p.PeerStatus }
	if err := json.Unmarshal(b, &r); err != nil {
		m.Fatal(err)
	}
	ways := map[string]int{}
	for _, p := range r.Peers {
		ways[p.Way]++
	}
	return ways
}

// eventually waits until a condition that nothing tells of holds.
func (s *stage) eventually(patience time.Duration, what string, holds func() bool) {
	s.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timer.C:
			s.Fatalf("after %s: not %s", patience, what)
		}
	}
}
