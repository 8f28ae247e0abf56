package main

import (
	"context"
	"encoding/json"
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
	if a := object[ledger.Account](s, "wallet", "show", who, "--json"); a.Tokens != want {
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
		"--key", file("owner"), "--supply", "10000", "--allocate", public["ann"]+"=3000", "--allocate", public["owner"]+"=1", "--creator", public["owner"])
	s.chainOf(home)
	s.has(public["owner"], 7000)
	s.has(public["ann"], 3000)
	s.has(public["bob"], 0)

	spec := writeFile(t, filepath.Join(dir, "run.toml"), "name = \"paid\"\n[data]\nmanifest = \""+strings.Repeat("1", 64)+
		"\"\n[trust]\nverification_percent = 5\nstake = 100\nrate = 3\n")
	s.ok("run", "create", "-f", spec, "--key", file("owner"))
	s.ok("wallet", "send", "paid", "500", "--key", file("owner"))
	s.fails([]string{"wallet", "send", "paid", "99999", "--key", file("owner")}, "not enough tokens", "the sender has 6500")
	s.fails([]string{"wallet", "send", "none", "5", "--key", file("owner")}, "no such run")
	s.fails([]string{"wallet", "bond", "paid", "5", "--key", file("ann")}, "table of members")
	s.fails([]string{"wallet", "claim", "paid", "--key", file("ann")}, "was never a member")
	s.fails([]string{"wallet", "claim", "paid", "--member", public["bob"], "--key", file("ann")}, "was never a member")
	s.ok("wallet", "send", public["bob"], "250", "--key", file("ann"))
	s.fails([]string{"wallet", "send", public["bob"], "0", "--key", file("ann")}, "no amount")
	s.has(public["ann"], 2750)
	s.has(public["bob"], 250)

	s.ok("pool", "create", "ours", "paid", "--commission", "12.5%", "--own", "50", "--least", "20", "--worker", public["bob"], "--key", file("ann"))
	s.ok("wallet", "send", "pool:ours", "800", "--key", file("ann"))
	s.ok("wallet", "send", "pool:ours", "200", "--key", file("bob"))
	s.fails([]string{"wallet", "send", "pool:ours", "5", "--key", file("owner")}, "starts with at least 20")
	s.fails([]string{"wallet", "bond", "paid", "5", "--pool", "ours", "--key", file("ann")}, "only become stake")
	p := object[host.Pool](s, "pool", "show", "ours", "--json")
	if p.CommissionBP != 1250 || p.OwnBP != 5000 || p.Least != 20 || p.Lent != 1000 || len(p.Lenders) != 2 || len(p.Workers) != 1 || p.Stage != "lending" {
		t.Errorf("%+v", p)
	}
	for _, out := range []string{s.ok("pool", "show", "ours"), s.ok("pool", "show")} {
		if !strings.Contains(out, "12.5 %") || !strings.Contains(out, "1,000") || !strings.Contains(out, "lending") {
			t.Errorf("got %s", out)
		}
	}
	s.fails([]string{"pool", "show", "theirs"}, `no pool "theirs"`, "entrain pool show")
	s.ok("wallet", "claim", "pool:ours", "--key", file("bob"))
	s.ok("pool", "close", "ours", "--key", file("ann"))
	s.ok("wallet", "claim", "pool:ours", "--key", file("ann"))
	s.ok("pool", "close", "ours", "--key", file("ann"))
	s.has(public["ann"], 2750)

	r := object[view.Run](s, "status", "paid", "--json")
	if r.Trust.Treasury != 500 || r.Trust.Escrow != 500 || r.Trust.Stake != 100 || r.Trust.Rate != 3 || r.Trust.Percent != 5 {
		t.Errorf("%+v", r.Trust)
	}
	if out := s.ok("status", "paid"); !strings.Contains(out, "treasury 500, pays 3 a point") {
		t.Errorf("got %s", out)
	}

	s.ok("run", "pause", "paid", "--key", file("owner"))
	s.ok("run", "pause", "paid", "--rate", "4", "--round", "20m", "--key", file("owner"))
	if out := s.ok("status", "paid"); !strings.Contains(out, "treasury 500, pays 4 a point") {
		t.Errorf("got %s", out)
	}
	s.ok("run", "close", "paid", "--refund", "100", "--key", file("owner"))
	s.has(public["owner"], 6600)
	s.fails([]string{"run", "close", "paid", "--refund", "401", "--key", file("owner")}, "beyond what members and validators have earned")
	s.ok("run", "close", "paid", "--key", file("owner"))
	s.fails([]string{"run", "close", "paid", "--key", file("owner")}, "what it owes is not certain yet")
	if out := s.ok("run", "close", "--list", "--json"); out != "" {
		t.Errorf("closed runs: %s", out)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	s := newShell(t)
	k := strings.Repeat("ab", 32)
	for args, want := range map[string]string{
		"wallet send run":                                                  "how many tokens",
		"wallet send run -- -5":                                            "no amount",
		"wallet send run 1.5":                                              "no amount",
		"wallet send run 18446744073709551616":                             "no amount",
		"wallet bond Run! 5":                                               "not a run's name",
		"wallet bond run 5 --member me":                                    "64 hexadecimal digits",
		"wallet claim run --member me":                                     "64 hexadecimal digits",
		"wallet send ME 5":                                                 "64 hexadecimal digits",
		"wallet show me":                                                   "64 hexadecimal digits",
		"pool create p r --own 101%":                                       "--own",
		"pool create p r --commission x":                                   "--commission",
		"pool create p r --worker me":                                      "--worker",
		"wallet send pool:p":                                               "how many tokens",
		"wallet send pool:P_ 5":                                            "not a pool's name",
		"join run --pool p":                                                "--stake N",
		"chain init --chain-id a --allocate x=5":                           "--allocate",
		"chain init --chain-id a --allocate " + k + "=0":                   "--allocate",
		"chain init --chain-id a --supply 3 --allocate " + k + "=5":        "--supply 3",
		"chain init --chain-id a --allocate " + k + "=1152921504606846977": "--allocate",
	} {
		s.fails(strings.Fields(args), want)
	}
}
