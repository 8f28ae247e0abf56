package netns

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// long wants the tests that take minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("ENTRAIN_NETNS") != "long" {
		t.Skip("takes minutes: make netns, or ENTRAIN_NETNS=long go test ./tests/netns")
	}
}

// strangers is a run whose steps take some seconds of the two processors that its members may share, with results travelling
// while the next step is computed.
const strangers = `
steps = 100000

[model]
preset = "nano"

[batch]
start = 96

[members]
min = 4
start = 5
overlap = 1
missed_max = 3

[times]
waiting = "10s"
warmup = "20s"
round_train = "60s"
round_witness = "5s"
cooldown = "20s"
epoch = "60s"

[trust]
verification_percent = 0
`

// A run of strangers: a chain of four replicas, a data host, an S3 server with the same data, to which checkpoints go, and eight members on links of 100 Mb/s, 80 ms apart and losing 1 % of the packets,
// one of them behind a NAT. Members come, leave, crash, and are cut off for two rounds, and all hold the same parameters, hash
// for hash, all the time.
func TestStrangersOnTheInternet(t *testing.T) {
	long(t)
	s := newStage(t, 7)
	var chain []*machine
	for i := range 4 {
		chain = append(chain, s.machine(fmt.Sprintf("c%d", i), fmt.Sprintf("45.0.0.1%d", i), Home))
	}
	f := s.found("strangers", strangers, chain...)
	store := s.machine("store", "45.0.0.3", Home)
	store.begin("data", "publish", f.data, "--addr", "45.0.0.3:7380").line("http://")
	buckets := s.serveBuckets(s.machine("s3", "45.0.0.4", Home), "data", "checkpoints")
	f.chain.ok("data", "upload", f.data, buckets("data.write"))
	sources := []string{"http://45.0.0.3:7380", buckets("data.read")}
	f.relay(s.machine("relay", "45.0.0.2", Home))

	var members []*process // in the order in which they join
	join := func(m *machine, more ...string) *process {
		f.data = sources[len(members)%len(sources)]
		p := f.join(m, more...)
		members = append(members, p)
		return p
	}
	address := func(i int) string { return fmt.Sprintf("45.0.2.%d", i) }
	for i := range 6 {
		join(s.machine(fmt.Sprintf("m%d", i), address(i), Home), "--upload", buckets("checkpoints.write"))
	}
	behind := join(s.behindNAT("nat", "45.0.1.1", Home, false))
	for _, p := range members {
		p.applies(3*time.Minute, 3)
	}
	t.Logf("7 members train, one behind a NAT")

	late := s.machine("late", address(7), Home)
	begun := time.Now()
	join(late)
	last := members[7]
	trainedFirst := func() bool { return countOf(last.events, isTrained) > 0 }
	last.until(5*time.Minute, "a first share", trainedFirst)
	t.Logf("an eighth trains after %s", time.Since(begun).Round(time.Second))

	members[1].stop() // leaves cleanly
	members[2].kill() // crashes
	s.Logf("one has left, one has crashed")
	goOn := append(slices.Clone(members[3:]), members[0])
	for _, p := range goOn {
		p.applies(4*time.Minute, p.count(isApplied)+3)
	}
	back := f.join(members[2].machine)
	back.applies(5*time.Minute, 2)
	t.Logf("who has crashed is back")

	f.replicas[3].kill()
	members[0].applies(4*time.Minute, members[0].count(isApplied)+2)
	f.replicas[3] = chain[3].begin("chain", "start", "--home", f.homes[3])
	t.Logf("one of four replicas was killed, and the run went on; it is back")

	s.Cut(address(3)) // for two rounds
	at := members[0].count(isApplied)
	members[0].applies(4*time.Minute, at+2)
	s.Cut()
	t.Logf("one was cut off for two rounds")
	members[3].until(6*time.Minute, "applying again", func() bool {
		n := len(members[3].events)
		return n > 0 && countOf(members[3].events, isApplied) > 0 && members[3].caughtUp(at+4, members[0])
	})
	for _, p := range []*process{members[0], members[3], members[4], members[5], behind, last, back} {
		p.applies(4*time.Minute, p.count(isApplied)+2)
	}
	s.sameParameters(append(members, back))
	for _, p := range []*process{members[0], members[4], members[5], behind} {
		s.utilisation(p)
	}
	sent, lost := s.Packets()
	t.Logf("%d packets, %.2f %% of them lost", sent, 100*float64(lost)/float64(sent))
	s.agreed(f)
	written := 0
	err := filepath.WalkDir(s.path("s3", "served", "objects", "checkpoints"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".safetensors") {
			written++
		}
		return err
	})
	if err != nil || written == 0 {
		t.Errorf("no checkpoint is in the bucket: %v", err)
	}
	t.Logf("%d files of weights are in the bucket", written)
}

// serveBuckets serves buckets on a machine. What it returns tells where one is, as NAME.write or NAME.read.
func (s *stage) serveBuckets(m *machine, names ...string) func(file string) string {
	s.Helper()
	args := append([]string{"bucket", s.path("s3"), "--addr", m.address + ":9000", "--json"}, names...)
	m.begin(args...).line(`{"event":"listening"`)
	return func(file string) string {
		b, err := os.ReadFile(s.path("s3", file))
		if err != nil {
			s.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
}

func isApplied(ev timed) bool { return ev.Kind == "applied" }
func isTrained(ev timed) bool { return ev.Kind == "trained" }

// applies waits until so many accepted sets were applied.
func (p *process) applies(patience time.Duration, n int) {
	p.Helper()
	p.until(patience, fmt.Sprintf("%d sets applied", n), func() bool { return countOf(p.events, isApplied) >= n })
}

// caughtUp reports whether the process holds parameters of a round at least as late as that of another's n-th set.
func (p *process) caughtUp(n int, other *process) bool {
	round := uint32(0)
	seen := 0
	for _, ev := range other.all() {
		if isApplied(ev) {
			if seen++; seen == n {
				round = ev.Round
			}
		}
	}
	if round == 0 {
		return false
	}
	for _, ev := range p.events {
		if isApplied(ev) && ev.Round >= round {
			return true
		}
	}
	return false
}

// sameParameters compares what all have held at the start of each round.
func (s *stage) sameParameters(members []*process) {
	s.Helper()
	held := map[uint32]string{}
	compared := 0
	for _, p := range members {
		for _, ev := range p.all() {
			if ev.Params == "" || !isApplied(ev) && ev.Kind != "healed" {
				continue
			}
			if first, ok := held[ev.Round]; ok && first != ev.Params {
				s.Errorf("round %d: %s holds %s, another %s", ev.Round, p.name, ev.Params, first)
			} else if ok {
				compared++
			}
			held[ev.Round] = ev.Params
		}
	}
	s.Logf("parameters of %d rounds are equal, in %d comparisons", len(held), compared)
	if compared < len(held) {
		s.Error("too few were compared")
	}
}

// utilisation prints and returns which part of the time a member has computed, from its third share to its last.
func (s *stage) utilisation(p *process) float64 {
	s.Helper()
	var shares []timed
	for _, ev := range p.all() {
		if isTrained(ev) {
			shares = append(shares, ev)
		}
	}
	if len(shares) < 6 {
		s.Errorf("%s has trained %d shares", p.name, len(shares))
		return 0
	}
	busy := 0.0
	for _, ev := range shares[3:] {
		busy += ev.Seconds
	}
	wall := shares[len(shares)-1].Time.Sub(shares[2].Time).Seconds()
	s.Logf("%s: %d shares of %.1f s each, computing %.0f %% of the time", p.name, len(shares)-3, busy/float64(len(shares)-3), 100*busy/wall)
	return busy / wall
}

// agreed prints the hash that the chain has agreed on.
func (s *stage) agreed(f *founded) {
	s.Helper()
	var r struct {
		Step   uint32 `json:"step"`
		Params string `json:"params"`
	}
	out := f.chain.ok(append([]string{"status", f.run, "--json"}, f.at...)...)
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&r); err != nil {
		s.Fatal(err)
	}
	s.Logf("the chain agreed on %s at step %d", r.Params, r.Step)
}

// A stranger with nothing but the program and a ticket has its first result accepted within a minute of the next epoch.
func TestAFreshProgramsFirstAcceptedWork(t *testing.T) {
	s := newStage(t, 3)
	f := s.found("fresh", strings.Replace(small, `epoch = "10m"`, `epoch = "20s"`, 1), s.machine("chain", "45.0.0.1", Home))
	store := s.machine("store", "45.0.0.3", Home)
	store.begin("data", "publish", f.data, "--addr", "45.0.0.3:7380").line("http://")
	f.data = "http://45.0.0.3:7380"
	first := f.join(s.machine("m0", "45.0.2.10", Home))
	f.join(s.machine("m1", "45.0.2.11", Home))
	first.applies(2*time.Minute, 1)
	ticket := f.chain.ok(append([]string{"run", "ticket", f.run, "--data", f.data}, f.at...)...)
	fresh := s.behindNAT("fresh", "45.0.1.1", Home, false)
	f.relay(s.machine("relay", "45.0.0.2", Home))
	if _, err := os.Stat(fresh.state()); err == nil {
		t.Fatal("the machine is not fresh")
	}
	begun := time.Now()
	p := fresh.begin("join", ticket, "--json", "--workers", "1", "--state", fresh.state())
	var entered, paid time.Time
	p.until(3*time.Minute, "paid for a result", func() bool {
		for _, ev := range p.events {
			if ev.Kind == "state" && entered.IsZero() && ev.Status == "active" {
				entered = ev.Time
			}
			if ev.Kind == "state" && ev.Points > 0 {
				paid = ev.Time
				return true
			}
		}
		return false
	})
	if entered.IsZero() {
		t.Fatal("it was never active")
	}
	t.Logf("active %s after it was started, first accepted result %s after that epoch's first round",
		entered.Sub(begun).Round(time.Second/10), paid.Sub(entered).Round(time.Second/10))
	if d := paid.Sub(entered); d > time.Minute {
		t.Errorf("the first accepted result took %s", d)
	}
}

// Results travel while the next step is computed: on links of 100 Mb/s and 80 ms, two members whose steps take ten seconds
// and more compute nine tenths of the time.
func TestATenSecondStepKeepsMembersBusy(t *testing.T) {
	long(t)
	s := newStage(t, 11)
	specification := strings.NewReplacer("start = 96", "start = 3400", "min = 4", "min = 2", "start = 5", "start = 2", `epoch = "60s"`, `epoch = "30m"`).Replace(strangers)
	f := s.found("busy", specification, s.machine("chain", "45.0.0.1", Home))
	members := []*process{f.join(s.machine("m0", "45.0.2.10", Home)), f.join(s.machine("m1", "45.0.2.11", Home))}
	for _, p := range members {
		p.applies(10*time.Minute, 10)
	}
	for _, p := range members {
		if busy := s.utilisation(p); busy < 0.9 {
			t.Errorf("%s computed %.0f %% of the time", p.name, 100*busy)
		}
	}
}
