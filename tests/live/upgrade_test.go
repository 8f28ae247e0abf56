//go:build unix

package live_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/internal/freeport"
)

// The releases before and after the upgrade.
const (
	oldRelease = "v1.1.0"
	newRelease = "v1.2.0"
)

// build makes an entrain that says it is of a release.
func build(t *testing.T, release string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "entrain-"+release)
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.release="+release, "-o", path, "../../cmd/entrain").CombinedOutput(); err != nil {
		t.Fatalf("build entrain %s: %v\n%s", release, err, out)
	}
	if is := output(t, path, "--version"); !strings.HasPrefix(string(is), "entrain version "+release+"\n") {
		t.Fatalf("the build of %s says it is %q", release, is)
	}
	return path
}

// freeAddress is one that nothing listens at now.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", freeport.First(t, 1))
}

// upgradeRun lasts a little longer than its upgrade. An epoch is short, since who comes back waits for the next.
const upgradeRun = `
name = "upgrade"
steps = 60
[model]
hidden = 32
layers = 1
heads = 2
kv_heads = 1
head_dim = 16
ffn = 64
context = 64
[data]
sequence = 32
[batch]
start = 4
[members]
min = 1
[times]
waiting = "200ms"
warmup = "20s"
round_train = "2s"
round_witness = "500ms"
cooldown = "5s"
epoch = "3s"
[trust]
verification_percent = 0
`

// service is a part of the network that is there in one process after the other, each with the same arguments.
type service struct {
	*process
	name string
	args []string
	// params is the parameters' hash after each step, of all processes that a client was; last is the newest step.
	params map[float64]string
	last   float64
}

// upgrade has the service go on with another program: it is asked to leave, and started again when meanwhile has seen what it waits for.
func (s *service) upgrade(program string, meanwhile func()) {
	s.t.Helper()
	s.stop()
	meanwhile()
	s.process = start(s.t, program, s.name, s.args...)
}

// stop ends the process, and takes in what it still had to say.
func (s *service) stop() {
	s.end(20 * time.Second)
	for line := range s.lines {
		s.note(line)
	}
}

func (s *service) note(line map[string]any) {
	if line["event"] != "applied" {
		return
	}
	step, _ := line["step"].(float64)
	hash, _ := line["params"].(string)
	if have := s.params[step]; have != "" && have != hash {
		s.t.Errorf("%s has step %v with %s, and with %s", s.name, step, have, hash)
	}
	s.params[step], s.last = hash, max(s.last, step)
}

// wait reads up to an event for which ok holds.
func (s *service) wait(what string, ok func(line map[string]any) bool) {
	s.t.Helper()
	s.until(what, func(line map[string]any) bool {
		s.note(line)
		return ok(line)
	})
}

// steps waits for so many more.
func (s *service) steps(n float64) {
	s.t.Helper()
	to := s.last + n
	s.wait(fmt.Sprintf("step %v", to), func(map[string]any) bool { return s.last >= to })
}

// together waits until the results of both clients are in a step.
func (s *service) together() {
	s.t.Helper()
	s.wait("a step of both", func(line map[string]any) bool { return line["event"] == "applied" && line["results"] == float64(2) })
}

// answered waits until what is asked for is there.
func answered(t *testing.T, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatalf("it is not there in time: %v", err)
}

// Everything is replaced by a newer release, one at a time, while a run goes on; then its owner lets nobody in with the old one.
func TestEverythingIsUpgradedWhileARunGoesOn(t *testing.T) {
	if os.Getenv("ENTRAIN_LIVE") != "long" {
		t.Skip("builds two releases and takes a minute or two: ENTRAIN_LIVE=long go test ./tests/live")
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	old, newer := build(t, oldRelease), build(t, newRelease)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	api, host := freeAddress(t), freeAddress(t)
	output(t, old, "data", "prepare", "-o", in("corpus"), write("text.txt", strings.Repeat("It was the best of times, it was the worst of times. ", 3000)))
	output(t, old, "chain", "init", "--chain-id", "upgrade", "--home", in("chain"), "--api", api, "--block", "100ms", "--key", in("owner"))

	begin := func(name string, args ...string) *service {
		return &service{process: start(t, old, name, args...), name: name, args: args, params: map[float64]string{}}
	}
	url := "http://" + api
	chain := begin("chain", "chain", "start", "--home", in("chain"))
	served := begin("host", "data", "publish", in("corpus"), "--addr", host)
	answered(t, func() error { return exec.Command(old, "status", "--chain", url).Run() })
	output(t, old, "run", "create", "-f", write("run.toml", upgradeRun), "--data", in("corpus"), "--chain", url, "--key", in("owner"))
	join := func(name string) []string {
		return []string{"join", "upgrade", "--chain", url, "--data", "http://" + host, "--key", in(name + ".key"), "--state", in(name), "--workers", "1", "--linger", "3s", "--json"}
	}
	a, b := begin("a", join("a")...), begin("b", join("b")...)
	a.together()

	served.upgrade(newer, func() { a.steps(2) })
	chain.upgrade(newer, func() {})
	a.steps(2)
	a.upgrade(newer, func() { b.steps(2) })
	a.together()
	b.upgrade(newer, func() { a.steps(2) })
	b.together()
	t.Logf("all is upgraded at step %v", max(a.last, b.last))

	output(t, newer, "run", "allow", "upgrade", "--require", newRelease, "--chain", url, "--key", in("owner"))
	words, err := exec.Command(old, join("late")...).CombinedOutput()
	if want := fmt.Sprintf("wants entrain %s or newer, and this is %s", newRelease, oldRelease); err == nil || !strings.Contains(string(words), want) {
		t.Errorf("who comes with the old release is told %q, %v", words, err)
	}
	output(t, newer, "join", "upgrade", "--check", "--chain", url, "--data", "http://"+host, "--key", in("late.key"))

	for _, s := range []*service{a, b} {
		s.wait("the run's end", func(line map[string]any) bool { return line["event"] == "finished" })
	}
	a.stop()
	b.stop()
	if a.last != 60 || b.last != 60 {
		t.Errorf("the clients end with steps %v and %v", a.last, b.last)
	}
	both := 0
	for step, hash := range a.params {
		if other := b.params[step]; other != "" {
			both++
			if other != hash {
				t.Errorf("step %v: %s and %s", step, hash, other)
			}
		}
	}
	if both < 10 {
		t.Errorf("only %d steps were applied by both", both)
	}
	t.Logf("%d steps applied by both have the same hash", both)
}
