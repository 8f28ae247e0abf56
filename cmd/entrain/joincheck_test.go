package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

// cannot runs join --check, which must say no, and returns the kinds of its reasons and their text.
func (s *shell) cannot(args ...string) (kinds []string, text string) {
	s.t.Helper()
	out, _, err := s.run(append([]string{"join", "--check", "--json"}, args...)...)
	if !errors.Is(err, errCannotJoin) {
		s.t.Fatalf("join --check %v: %v, %s", args, err, out)
	}
	var r participant.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Can {
		s.t.Fatalf("%v: %s", err, out)
	}
	for _, o := range r.Obstacles {
		kinds, text = append(kinds, o.Kind), text+o.Reason+"\n"
	}
	return kinds, text
}

// join --check says yes, and each reason why not; join says the same.
func TestCanJoin(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	public := map[string]string{}
	for _, name := range []string{"owner", "ann", "bob"} {
		public[name] = strings.TrimSpace(s.ok("key", "new", "--key", file(name)))
	}
	s.ok("chain", "init", "--home", file("chain"), "--chain-id", "ours", "--api", "127.0.0.1:0", "--block", "20ms",
		"--key", file("owner"), "--supply", "10000", "--allocate", public["ann"]+"=3000", "--allocate", public["owner"]+"=1")
	s.chainOf(file("chain"))
	writeFile(t, file("text"), strings.Repeat("Many a man his life hath sold. ", 2000))
	s.ok("data", "prepare", "-o", file("data"), file("text"))
	create := func(name, text string) {
		s.ok("run", "create", "-f", writeFile(t, file(name+".toml"), fmt.Sprintf("name = %q\n%s", name, text)), "--data", file("data"), "--key", file("owner"))
	}
	create("paid", "[trust]\nverification_percent = 5\nstake = 100\n")
	create("tiny", "[members]\nmin = 1\ncapacity = 1\n")
	create("mined", "[exchange]\nkind = \"bucket\"\nwindow_blocks = 10\n[members]\nmin = 1\noverlap = 1\n[trust]\nverification_percent = 0\n")

	if out := s.ok("join", "paid", "--check", "--data", file("data"), "--key", file("ann")); !strings.HasPrefix(out, `yes: this machine can take part in run "paid" on chain "ours"`) {
		t.Errorf("got %s", out)
	}
	if r := object[participant.Report](s, "join", "tiny", "--check", "--data", file("data"), "--key", file("none yet"), "--json"); !r.Can || r.Key != "" || len(r.Obstacles) != 0 || r.Needs.Parameters == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(file("none yet")); err == nil {
		t.Error("join --check made a key")
	}
	for _, c := range []struct {
		args  string
		kinds string
		words []string
	}{
		{"paid --key bob", "stake", []string{"takes 100 tokens", "has 0 tokens: 100 tokens are missing", "wallet send " + public["bob"] + " 100"}},
		{"paid --key ann --stake 50", "stake", []string{"wants a stake of 100 tokens", "50 tokens are missing", "--stake 100"}},
		{"paid --key ann --stake 5000", "stake", []string{"2,000 tokens are missing"}},
		{"paid --key ann --pool none", "stake", []string{`pool "none"`}},
		{"paid --key ann --limit-memory 1MB", "memory", []string{"parameters takes about", "1.0 MB can be had"}},
		{"paid --key bob --limit-memory 1MB --data nowhere", "stake memory data", []string{"nowhere"}},
		{"none --key ann", "run", []string{`has no run "none"`}},
		{"mined --key ann", "bucket", []string{"name your S3 bucket with --bucket FILE"}},
		{"mined --key ann --bucket nowhere", "bucket", []string{"nowhere"}},
		{"tiny --key ann --role miner", "run", []string{"exchanges between peers"}},
	} {
		var args []string
		for _, a := range strings.Fields(c.args) {
			if _, known := public[a]; known {
				a = file(a)
			}
			args = append(args, a)
		}
		if !strings.Contains(c.args, "--data") {
			args = append(args, "--data", file("data"))
		}
		kinds, text := s.cannot(args...)
		if strings.Join(kinds, " ") != c.kinds {
			t.Errorf("%s: got %v: %s", c.args, kinds, text)
		}
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: got %s, want %q", c.args, text, w)
			}
		}
	}
	s.fails([]string{"join", "paid", "--key", file("bob"), "--state", file("b"), "--data", file("data"), "--stake", "100"}, "100 tokens are missing")
	s.fails([]string{"join", "paid", "--key", file("ann"), "--state", file("b"), "--data", file("data")}, "wants a stake of 100 tokens", "say --stake 100")

	s.ok("run", "pause", "tiny", "--key", file("owner"))
	if kinds, text := s.cannot("tiny", "--key", file("ann"), "--data", file("data")); !slices.Equal(kinds, []string{"paused"}) || !strings.Contains(text, "wait until it is resumed") {
		t.Errorf("got %v: %s", kinds, text)
	}
	s.joins("tiny", file("owner"))
	kinds, text := s.cannot("tiny", "--key", file("ann"), "--data", file("data"))
	if !slices.Equal(kinds, []string{"full", "paused"}) || !strings.Contains(text, "all 1 places are taken") {
		t.Errorf("got %v: %s", kinds, text)
	}
	if kinds, _ := s.cannot("tiny", "--key", file("owner"), "--data", file("data")); !slices.Equal(kinds, []string{"paused"}) {
		t.Errorf("a member that comes back: got %v", kinds)
	}
}

// joins makes the key in a file a member, who does nothing.
func (s *shell) joins(run, path string) {
	s.t.Helper()
	k, err := s.console.loadKey(path)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := s.console.dial(s.t.Context(), nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	if err := onchain.Submit(s.t.Context(), client.As(k), host.ToRun(run, coordinator.Join{})); err != nil {
		s.t.Fatal(err)
	}
}

// refusals of a coordinator that has seen more than a test's chain does.
func TestWhoMayNotJoinAnyMore(t *testing.T) {
	config := coordinator.Config{Name: "run", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1000, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1000,
		TotalSteps: 1, BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, MissedMax: 1}
	limits := coordinator.Limits{Members: 4, Witnesses: 1}
	config.Owner[0], config.ModelHash[0], config.SpecHash[0] = 1, 1, 1
	if faults := config.Check(limits); len(faults) > 0 {
		t.Fatal(faults)
	}
	st, err := coordinator.New(limits, config, coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	who := participant.Applicant{Key: key.Public{7}}
	if list, err := who.Asked(t.Context(), nil, ledger.Snapshot{State: st, TimeMs: 1}); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	before := st.Hash()
	if _, err := who.Asked(t.Context(), nil, ledger.Snapshot{State: st, TimeMs: 1}); err != nil || st.Hash() != before {
		t.Errorf("asking changed the state, or failed: %v", err)
	}
	if text := who.Conviction(st); !strings.Contains(text, "was ejected") || !strings.Contains(text, "older than those") {
		t.Errorf("got %s", text)
	}
}

func TestClocksThatAreOff(t *testing.T) {
	s := newShell(t)
	home := filepath.Join(t.TempDir(), "chain")
	s.ok("chain", "init", "--home", home, "--chain-id", "ours", "--api", "127.0.0.1:0", "--key", filepath.Join(t.TempDir(), "key"))
	s.chainOf(home)
	skew, err := onchain.ClockSkew([]string{"http://127.0.0.1:1", s.env["ENTRAIN_CHAIN"]})(t.Context())
	if err != nil || skew.Abs() > time.Minute {
		t.Errorf("got %v, %v", skew, err)
	}
	spec := writeFile(t, filepath.Join(t.TempDir(), "run.toml"), "name = \"run\"\n[data]\nmanifest = \""+strings.Repeat("1", 64)+"\"\n")
	s.ok("run", "create", "-f", spec)
	client, err := comet.NewClient("ours", []string{s.env["ENTRAIN_CHAIN"]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	on, err := onchain.GetRun(t.Context(), client, "run")
	if err != nil {
		t.Fatal(err)
	}
	for off, want := range map[time.Duration]string{10 * time.Minute: "10m0s ahead", -5 * time.Minute: "5m0s behind", time.Minute: "", -time.Minute: ""} {
		a := participant.Applicant{Key: key.Public{1}, Skew: func(context.Context) (time.Duration, error) { return off, nil }}
		list, err := a.Obstacles(t.Context(), client, on)
		if err != nil || (want == "") != (len(list) == 0) || want != "" && (list[0].Kind != participant.ObstacleClock || !strings.Contains(list[0].Reason, want)) {
			t.Errorf("%s: got %v, %v", off, list, err)
		}
	}
}
