package main

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/view"
)

// chainOf starts the chain that a shell's chain init has set up in home, until the test ends.
func (s *shell) chainOf(home string) {
	s.t.Helper()
	replica, err := comet.Open(home, nil, referees)
	if err != nil {
		s.t.Fatal(err)
	}
	s.env["ENTRAIN_CHAIN"] = replica.Endpoint()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// object runs a command and reads the object that it prints.
func object[T any](s *shell, args ...string) T {
	s.t.Helper()
	var v T
	if err := json.Unmarshal([]byte(s.ok(args...)), &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *shell) has(who string, want uint64) {
	s.t.Helper()
	if a := object[ledger.Account](s, "account", "show", who, "--json"); a.Tokens != want {
		s.t.Errorf("%s has %d tokens, want %d", short(who), a.Tokens, want)
	}
}

func TestTokensFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".key") }
	public := map[string]string{}
	for _, name := range []string{"owner", "ann", "bob"} {
		public[name] = strings.TrimSpace(s.ok("key", "new", "--key", file(name)))
	}
	home := filepath.Join(dir, "chain")
	s.ok("chain", "init", "--home", home, "--chain-id", "tokens", "--api", "127.0.0.1:0", "--block", "20ms",
		"--key", file("owner"), "--supply", "10000", "--allocate", public["ann"]+"=3000", "--allocate", public["owner"]+"=1")
	s.chainOf(home)
	s.has(public["owner"], 7000)
	s.has(public["ann"], 3000)
	s.has(public["bob"], 0)

	spec := writeFile(t, filepath.Join(dir, "run.toml"), "name = \"paid\"\n[data]\nmanifest = \""+strings.Repeat("1", 64)+
		"\"\n[trust]\nverification_percent = 5\nstake = 100\nrate = 3\n")
	s.ok("run", "create", "-f", spec, "--key", file("owner"))
	s.ok("fund", "paid", "500", "--key", file("owner"))
	s.fails([]string{"fund", "paid", "99999", "--key", file("owner")}, "not enough tokens", "the sender has 6500")
	s.fails([]string{"fund", "none", "5", "--key", file("owner")}, "no such run")
	s.fails([]string{"bond", "paid", "5", "--key", file("ann")}, "table of members")
	s.fails([]string{"claim", "paid", "--key", file("ann")}, "was never a member")
	s.fails([]string{"claim", "paid", "--member", public["bob"], "--key", file("ann")}, "was never a member")
	s.ok("account", "send", public["bob"], "250", "--key", file("ann"))
	s.fails([]string{"account", "send", public["bob"], "0", "--key", file("ann")}, "no amount")
	s.has(public["ann"], 2750)
	s.has(public["bob"], 250)

	s.ok("pool", "create", "ours", "--run", "paid", "--commission", "12.5%", "--own", "50", "--least", "20", "--worker", public["bob"], "--key", file("ann"))
	s.ok("pool", "lend", "ours", "800", "--key", file("ann"))
	s.ok("pool", "lend", "ours", "200", "--key", file("bob"))
	s.fails([]string{"pool", "lend", "ours", "5", "--key", file("owner")}, "starts with at least 20")
	s.fails([]string{"bond", "paid", "5", "--pool", "ours", "--key", file("ann")}, "only become stake")
	p := object[host.Pool](s, "pool", "show", "ours", "--json")
	if p.CommissionBP != 1250 || p.OwnBP != 5000 || p.Least != 20 || p.Lent != 1000 || len(p.Lenders) != 2 || len(p.Workers) != 1 || p.Stage != "lending" {
		t.Errorf("%+v", p)
	}
	for _, out := range []string{s.ok("pool", "show", "ours"), s.ok("pool", "list")} {
		if !strings.Contains(out, "12.5 %") || !strings.Contains(out, "1,000") || !strings.Contains(out, "lending") {
			t.Errorf("got %s", out)
		}
	}
	s.fails([]string{"pool", "show", "theirs"}, `no pool "theirs"`, "entrain pool list")
	s.ok("pool", "collect", "ours", "--key", file("bob"))
	s.ok("pool", "close", "ours", "--key", file("ann"))
	s.ok("pool", "collect", "ours", "--key", file("ann"))
	s.ok("pool", "close", "ours", "--key", file("ann"))
	s.has(public["ann"], 2750)

	r := object[view.Run](s, "status", "paid", "--json")
	if r.Trust.Treasury != 500 || r.Trust.Escrow != 500 || r.Trust.Stake != 100 || r.Trust.Rate != 3 || r.Trust.Percent != 5 {
		t.Errorf("%+v", r.Trust)
	}
	if out := s.ok("status", "paid"); !strings.Contains(out, "treasury 500, pays 3 a point") {
		t.Errorf("got %s", out)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	s := newShell(t)
	k := strings.Repeat("ab", 32)
	for args, want := range map[string]string{
		"fund run":                                       "how many tokens",
		"fund run -- -5":                                 "no amount",
		"fund run 1.5":                                   "no amount",
		"fund run 18446744073709551616":                  "no amount",
		"fund Run! 5":                                    "not a run's name",
		"bond run 5 --member me":                         "64 hexadecimal digits",
		"claim run --member me":                          "64 hexadecimal digits",
		"account send me 5":                              "64 hexadecimal digits",
		"account show me":                                "64 hexadecimal digits",
		"pool create p --own 101%":                       "--own",
		"pool create p --commission x":                   "--commission",
		"pool create p --worker me":                      "--worker",
		"pool lend p":                                    "how many tokens",
		"pool show P_":                                   "not a pool's name",
		"join run --pool p":                              "--stake N",
		"chain init --chain-id a --allocate x=5":         "--allocate",
		"chain init --chain-id a --allocate " + k + "=0": "--allocate",
		"chain init --chain-id a --supply 3 --allocate " + k + "=5":        "--supply 3",
		"chain init --chain-id a --allocate " + k + "=1152921504606846977": "--allocate",
	} {
		s.fails(strings.Fields(args), want)
	}
}

func TestPercentagesInBasisPoints(t *testing.T) {
	for text, want := range map[string]uint16{"0": 0, "5": 500, "12.5%": 1250, "0.01%": 1, "100%": 10000, "99.99": 9999} {
		got, err := parseBP(text)
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
		if again, err := parseBP(strings.ReplaceAll(bpText(want), " ", "")); err != nil || again != want {
			t.Errorf("%d is written %q, which reads %d, %v", want, bpText(want), again, err)
		}
	}
	for _, text := range []string{"", "%", ".5", "-1", "100.01", "1.234", "x", "5 %", "+5", "1e1"} {
		if got, err := parseBP(text); err == nil {
			t.Errorf("%q reads %d", text, got)
		}
	}
}

func TestStakeCalculator(t *testing.T) {
	s := newShell(t)
	for args, want := range map[string]stakeReport{
		"--check 5% --reward 10":                                 {Rounds: 22, Work: 420, Idle: 420, Stake: 420},
		"--check 5% --reward 10 --delay 0 --loss 100%":           {Rounds: 20, Work: 190, Idle: 190, Stake: 190},
		"--check 1 --reward 0 --saved 1 --delay 0 --loss 100":    {Rounds: 100, Work: 100, Idle: 0, Stake: 100},
		"--check 10 --detect 50% --reward 2 --saved 1 --delay 0": {Rounds: 20, Work: 36, Idle: 76, Stake: 76},
		"--check 100 --reward 10 --saved 1 --delay 0 --loss 100": {Rounds: 1, Work: 0, Idle: 0, Stake: 0},
		"--check 3 --reward 7 --saved 6 --delay 1 --loss 60":     {Rounds: 1/0.03 + 1, Work: ((1/0.03+1)*6 - 7) / 0.6, Idle: 7 / 0.03 / 0.6, Stake: math.Ceil(7 / 0.03 / 0.6)},
	} {
		got := object[stakeReport](s, append([]string{"stake", "--json"}, strings.Fields(args)...)...)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }
		if !near(got.Rounds, want.Rounds) || !near(got.Work, want.Work) || !near(got.Idle, want.Idle) || got.Stake != want.Stake {
			t.Errorf("%s: got %+v, want %+v", args, got, want)
		}
		for _, d := range got.Detected {
			if p := 1 - math.Pow(1-got.Caught, d.Rounds); math.Abs(d.Probability-p) > 1e-12 {
				t.Errorf("%s: found out within %v rounds with %v, want %v", args, d.Rounds, d.Probability, p)
			}
		}
		for _, u := range got.Until {
			if 1-math.Pow(1-got.Caught, u.Rounds) < u.Probability-1e-12 {
				t.Errorf("%s: %v rounds are too few for %v", args, u.Rounds, u.Probability)
			}
		}
	}
	out := s.ok("stake", "--check", "5%", "--reward", "10")
	for _, want := range []string{"least stake   420 tokens", "cheats in 22 rounds", "over 99.9999 %", "\n99 %       90\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	s.fails([]string{"stake", "--check", "0"}, "probability of a check")
	s.fails([]string{"stake", "--check", "101%", "--loss", "0", "--delay", "-1"}, "probability of a check", "part of the stake", "delay")
	s.fails([]string{"stake", "--check", "x"}, "no percentage")
}
