package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/ledger/comet"
)

// TestAChainOfSeveralFromTheCommandLine founds four replicas on one machine, and a chain of one that a second joins.
func TestAChainOfSeveralFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	home := filepath.Join(t.TempDir(), "net")
	s.ok("chain", "init", "--chain-id", "net", "--replicas", "4", "--home", home,
		"--host", "a.example.org", "--host", "b.example.org", "--host", "c.example.org", "--host", "d.example.org")
	var ids []comet.Identity
	for _, name := range []string{"replica-1", "replica-2", "replica-3", "replica-4"} {
		id, err := comet.ReadIdentity(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if !strings.HasSuffix(ids[1].Peer, "@b.example.org:26656") || ids[0].Key == ids[1].Key {
		t.Errorf("%+v", ids[:2])
	}

	one := filepath.Join(t.TempDir(), "one")
	s.ok("chain", "init", "--chain-id", "single", "--home", one, "--api", "127.0.0.1:0")
	replica, err := comet.Open(one, nil, referees)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	s.env["ENTRAIN_CHAIN"] = replica.Endpoint()
	two := filepath.Join(t.TempDir(), "two")
	s.ok("chain", "init", replica.Endpoint(), "--home", two, "--api", "127.0.0.1:0",
		"--peer", strings.Repeat("a", 40)+"@127.0.0.1:1")
	s.ok("chain", "seat", "stake", "5000000", "--home", two)
	shown := object[shownChain](s, "chain", "show", "--json")
	if len(shown.Replicas) != 2 || len(shown.Trusted) != 1 || !strings.HasPrefix(shown.Trusted[0], replica.Endpoint()+"#") {
		t.Fatalf("chain show: %+v", shown)
	}
	id, err := comet.ReadIdentity(two)
	if err != nil {
		t.Fatal(err)
	}
	s.ok("chain", "seat", "leave", id.Key.String()) // a candidate's tokens come back at once
	if got := s.ok("chain", "show", "--chain", shown.Trusted[0]); strings.Contains(got, id.Key.String()) {
		t.Errorf("the replica that has left is shown:\n%s", got)
	}
}
