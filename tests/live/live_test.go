//go:build unix

package live_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/tests/campaign"
	_ "github.com/entrain-network/entrain/tests/heap"
)

func TestMain(m *testing.M) { os.Exit(browser.Main{M: m}.Run()) }

// program is the entrain that ENTRAIN_PROGRAM names, or one built for this test.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ENTRAIN_PROGRAM"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "entrain")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "../../cmd/entrain").CombinedOutput(); err != nil {
		t.Fatalf("build entrain: %v\n%s", err, out)
	}
	return path
}

// process is a running entrain. It ends with the test, if not before.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	words string // file of its standard error
	lines chan map[string]any
	ended chan struct{}
	kill  func() // at once, as kill -9 does
}

// start starts entrain, and reads the JSON that it prints.
func start(t *testing.T, program, name string, args ...string) *process {
	t.Helper()
	words, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(program, args...), words: words.Name(), lines: make(chan map[string]any, 1<<16), ended: make(chan struct{})}
	p.cmd.Stderr = words
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer words.Close()
		defer close(p.ended)
		defer close(p.lines)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var line map[string]any
			if json.Unmarshal(in.Bytes(), &line) == nil {
				select {
				case p.lines <- line:
				default: // nobody reads any more
				}
			}
		}
		_ = p.cmd.Wait() // it was asked to end, or its words tell
	}()
	p.kill = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill() // it has ended by itself
		<-p.ended
	})
	t.Cleanup(func() { p.end(30 * time.Second) })
	return p
}

// end has the process leave as Ctrl-C does, and kills it if it takes long.
func (p *process) end(patience time.Duration) {
	_ = p.cmd.Process.Signal(os.Interrupt) // it has ended by itself
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Errorf("%v does not end when asked to", p.cmd.Args[1:])
		p.kill()
	}
	if p.t.Failed() {
		b, _ := os.ReadFile(p.words)
		p.t.Logf("%v said:\n%.4000s", p.cmd.Args[1:], b)
	}
}

// until reads lines up to the first for which ok holds.
func (p *process) until(what string, ok func(line map[string]any) bool) map[string]any {
	p.t.Helper()
	for line := range p.lines {
		if ok(line) {
			return line
		}
	}
	p.t.Fatalf("%v ended before %s", p.cmd.Args[1:], what)
	return nil
}

// event waits for an event of a kind.
func (p *process) event(kind string) map[string]any {
	p.t.Helper()
	return p.until(kind, func(line map[string]any) bool { return line["event"] == kind })
}

// output is what entrain prints.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var words strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("entrain %v: %v\n%s", args, err, &words)
	}
	return strings.TrimSpace(string(out))
}

// network is a demo whose last client cheats, and a server of pages that follows it.
type network struct {
	t              *testing.T
	entrain        string
	dir, api, page string // page is the address of the run's
	demo, web      *process
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, entrain: program(t), dir: filepath.Join(t.TempDir(), "network")}
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("It was the best of times, it was the worst of times. ", 2000)), 0o644); err != nil {
		t.Fatal(err)
	}
	n.demo = start(t, n.entrain, "demo", "demo", "--keep", n.dir, "--json", "--text", text, "--preset", "tiny", "--clients", "4", "--rounds", "100000",
		"--adversary", "sign-flip", "--verification", "60")
	n.demo.event("trained")
	var settings struct{ API string }
	b, err := os.ReadFile(filepath.Join(n.dir, "demo.json"))
	if err == nil {
		err = json.Unmarshal(b, &settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.api = "http://" + settings.API
	n.serve("127.0.0.1:0", "--state", filepath.Join(n.dir, "client-1"))
	return n
}

// serve starts the server of pages, which without --state hears the members.
func (n *network) serve(at string, state ...string) {
	n.t.Helper()
	n.web = start(n.t, n.entrain, "web", append([]string{"web", "demo", "--chain", n.api, "--addr", at, "--json"}, state...)...)
	n.page, _ = n.web.event("listening")["url"].(string)
}

// stranger is somebody who joins with the command of the page, and a stake that the owner sent.
func (n *network) stranger(command string) (p *process, key string) {
	n.t.Helper()
	words := strings.Fields(command)
	if len(words) < 3 || words[0] != "entrain" || words[1] != "join" {
		n.t.Fatalf("the page's command is %q", command)
	}
	file := filepath.Join(n.t.TempDir(), "key")
	key = output(n.t, n.entrain, "key", "--key", file)
	output(n.t, n.entrain, "wallet", "send", key, "1000", "--key", filepath.Join(n.dir, "owner.key"), "--chain", n.api)
	p = start(n.t, n.entrain, "stranger", append(words[1:], "--key", file, "--state", filepath.Join(n.t.TempDir(), "state"), "--stake", "1000", "--json")...)
	return p, key
}

// pages are all there are, each with what is there when it is drawn. The run's curves and members are there; checkpoints come later.
var pages = []struct{ name, path, drawn string }{
	{"overview", "", ".tiles b"}, {"members", "/members", "td .chip"}, {"rounds", "/rounds", "td a"}, {"round", "/rounds/2", "td .chip"},
	{"trust", "/trust", "main .card"}, {"model", "/model", "main .card"}, {"join", "/join", ".command code"},
}

// A run of real processes is looked at from its first rounds on.
func TestPagesOfALiveDemo(t *testing.T) {
	campaign.Only(t)
	b := browser.Open(t)
	b.Patience(2 * time.Minute)
	n := newNetwork(t)

	// Curves move.
	b.Size(1280, 900)
	b.Go(n.page)
	b.Wait(`document.querySelector("#link").dataset.how === "live"`)
	for _, s := range b.Said() {
		if !strings.Contains(s, "404") { // the server did not know the run yet
			t.Errorf("console: %s", s)
		}
	}
	const line = `document.querySelector(".chart .line.c0")?.getAttribute("d")`
	b.Wait(line + " !== undefined")
	before := browser.Value[string](b, line)
	b.Wait(fmt.Sprintf("%s !== %q", line, before))

	// A stranger joins with the command of the page, and is killed.
	b.Go(n.page + "/join")
	b.Wait(`document.querySelector(".command code") !== null`)
	stranger, key := n.stranger(browser.Value[string](b, `document.querySelector(".command code").title`))
	n.look(b, "live")
	b.Go(n.page + "/members/" + key)
	status := func(want string) {
		t.Helper()
		b.Wait(fmt.Sprintf(`document.querySelector("main .chip")?.dataset.status === %q`, want))
		b.Keep("live-member-" + want)
	}
	status("active")
	stranger.event("trained")
	stranger.kill() // it is dropped after three rounds: below

	// The cheat is found out, and the page of its conviction says of what.
	b.Go(n.page + "/trust")
	b.Wait(`document.querySelector('section[aria-labelledby="h-convictions"] tbody')?.innerText.includes("wrong result")`)
	b.Keep("live-conviction")
	b.Wait(`[...document.querySelectorAll(".disputes details")].some((d) => d.textContent.includes("over") && /operation [\d,]+ \(/.test(d.textContent))`)
	b.Click(`section[aria-labelledby="h-convictions"] tbody a`)
	b.Wait(`document.querySelector("main").innerText.includes("Convicted")`)
	b.Keep("live-cheat")
	n.look(b, "late")
	b.Go(n.page + "/members/" + key)
	status("dropped")

	// The server is killed: the page says so, and goes on when there is one again, which knows no
	// participant's log: members themselves tell it their losses.
	b.Go(n.page)
	b.Wait(line + " !== undefined")
	n.web.kill()
	b.Wait(`document.querySelector("#link").textContent.startsWith("Disconnected")`)
	b.Keep("live-disconnected")
	b.Said() // that the connection broke
	before = browser.Value[string](b, line)
	host := strings.TrimPrefix(n.page, "http://")
	n.serve(host[:strings.IndexByte(host, '/')])
	b.Wait(`document.querySelector("#link").dataset.how === "live"`)
	b.Said() // nor could it be made again at once
	b.Wait(fmt.Sprintf("%s !== %q", line, before))
	b.Quiet("after the server was started again")
	if err := syscall.Kill(n.demo.cmd.Process.Pid, 0); err != nil {
		t.Errorf("the demo has ended: %v", err)
	}
}

// look opens every page, and listens to what it complains of.
func (n *network) look(b *browser.Tab, when string) {
	n.t.Helper()
	b.Quiet("so far")
	for _, p := range pages {
		b.Go(n.page + p.path)
		b.Wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
		b.Quiet(p.name)
		b.Keep(when + "-" + p.name)
	}
}
