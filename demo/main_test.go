package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// broken is set in the environment of a child process that is to fail at once.
const broken = "ENTRAIN_TEST_BROKEN"

func TestMain(m *testing.M) {
	if os.Getenv(broken) != "" {
		fmt.Fprintln(os.Stderr, "one line of a log\nno chain here")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestChildThatFailsAtOnceIsGivenUp(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &children{program: program, logs: t.TempDir(), env: append(os.Environ(), broken+"=1"), pause: time.Millisecond, reports: make(chan childReport)}
	c.keep(t.Context(), child{name: "broken"})
	go c.wait()
	starts := 0
	var last childReport
	for r := range c.reports {
		if r.pid != 0 {
			if r.restarts != starts {
				t.Errorf("start %d reports %d restarts", starts, r.restarts)
			}
			starts++
		}
		last = r
	}
	if starts != restartsMax+1 || !last.final || last.err == nil || !strings.Contains(last.err.Error(), "broken.log") {
		t.Errorf("started %d times, last report %+v", starts, last)
	}
	if got := lastLine(c.log(child{name: "broken"})); got != "no chain here" {
		t.Errorf("its log ends with %q", got)
	}
}

// What ends a demo is not forgotten for what its end causes.
func TestTheFirstFailureIsReported(t *testing.T) {
	d, first := &demo{}, errors.New("the chain does not answer")
	d.fail(first)
	d.startClients(context.Canceled, nil)
	if !errors.Is(d.failed, first) {
		t.Errorf("it reports %v", d.failed)
	}
}

// The specification of every kind of demo is valid.
func TestSpecificationsAreValid(t *testing.T) {
	for _, s := range []Settings{
		Default("", Peers, ""), Default("", Peers, "sign-flip"), Default("", Peers, "sybil"), Default("", Buckets, ""), Default("", Buckets, "noise"),
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		s.Preset, s.Rounds = "tiny", 1
		p := s.Specification()
		if want := uint32(s.Clients - s.cheats()); p.Members.Start != want {
			t.Errorf("%+v: waits for %d members; %d are left when the cheats are out", s, p.Members.Start, want)
		}
		p.Data.Manifest = strings.Repeat("0", 64)
		text, err := p.Append(nil)
		if err == nil {
			_, err = spec.Parse(text, all.Kinds())
		}
		if err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Clients = 0 }, "clients 0: want 1 to 64"},
		{func(s *Settings) { s.Rounds = 0 }, "rounds 0"},
		{func(s *Settings) { s.Preset = "huge" }, "preset: "},
		{func(s *Settings) { s.Exchange = "mail" }, "exchange \"mail\""},
		{func(s *Settings) { s.Adversary = "gremlin" }, "the kinds are free-rider"},
		{func(s *Settings) { s.Adversary, s.Clients = "late", 2 }, "clients 2: 1 of them cheat, so there must be at least 3"},
		{func(s *Settings) { *s = Default("", Buckets, "noise"); s.Validators = 0 }, "no cheat is found"},
	} {
		s := Default("", Peers, "")
		c.change(&s)
		if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), strings.SplitN(c.want, ":", 2)[0]) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
	}
}

func TestDirectoriesOfOthersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := ours(dir); err != nil {
		t.Errorf("empty: %v", err)
	}
	if err := ours(dir + "/none"); err != nil {
		t.Errorf("none: %v", err)
	}
	if err := os.WriteFile(dir+"/letter", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ours(dir); err == nil {
		t.Error("with files of somebody else it is taken")
	}
	if err := os.WriteFile(dir+"/lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ours(dir); err != nil {
		t.Errorf("of a demo: %v", err)
	}
}

func TestSummaryShowsAConviction(t *testing.T) {
	s := Summary{
		Rounds: 40, Clients: 4, HashesEqual: true, Adversary: "sign-flip", AdversaryConvicted: true, Exchange: Peers,
		PayloadBytes: 10, DenseBytes: 1000, ParamHash: strings.Repeat("abcd", 16), GeneratedText: "some\ntext " + strings.Repeat("of many words ", 30), TokensPerSecond: 12000, StepTokensPerSecond: 16000,
		Members: []Client{{Member: view.Member{Name: "client-1", Points: 12}, Params: "0123456789abcdef"}, {Member: view.Member{Name: "client-4"}, Cheats: true}},
		Trust: &view.Trust{TrustHead: runlog.TrustHead{Drawn: 3, Passed: 2, Disputed: 1},
			Convictions: []view.Conviction{{Number: 7, Member: 3, Name: "client-4", Words: "lied", Offence: "wrong result", Round: 3, By: 1, Slashed: 1000}},
			Disputes:    []view.Dispute{{ID: 1, Conviction: 7, Level: "slices", Op: 5, OpName: "norm 5", Tile: 2}}},
	}
	for _, want := range []string{
		"40 rounds with 4 clients", ", 1/100 of the dense gradient\n", "12,000 tokens/s, 75 % of the 16,000", "client-1       12 points, parameters 0123456789ab",
		"client-4       0 points, parameters -, the cheat: sign-flip", "3 results were drawn, 2 found right; 1 disputes",
		"CONVICTED      member 3 (client-4) lied in round 3: convicted of wrong result,\n               reported by member 1; loses 1,000 tokens\n",
		"               the traces first differ in operation 5 (norm 5), tile 2, slice 0,\n               which the chain computed itself\n",
		"the same in all honest clients", "    some\n    text",
	} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	for line := range strings.Lines(s.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
	s.AdversaryConvicted = false
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "before the cheat") {
		t.Errorf("without a conviction: %v", err)
	}
}
