package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/ledger/comet"
)

// TestAChainOfSeveralFromTheCommandLine founds four replicas on one machine, and a chain of one that a second joins.
func TestAChainOfSeveralFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	home := filepath.Join(t.TempDir(), "net")
	s.ok("chain", "init", "--chain-id", "net", "--home", home,
		"--public", "a.example.org", "--public", "b.example.org", "--public", "c.example.org", "--public", "d.example.org")
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
	s.ok("chain", "init", "--chain-id", "single", "--home", one, "--api", "127.0.0.1:0", "--public", fmt.Sprint("127.0.0.1:", freePorts(t)))
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
	others := object[founding.Chain](s, "chain", "id", "--json")
	if len(others.Trusted) != 1 || !strings.HasPrefix(others.Trusted[0], replica.Endpoint()+"#") || fmt.Sprint(others.Peers) != "["+replica.PeerAddress()+"]" {
		t.Fatalf("chain id: %+v", others)
	}
	if _, words, err := s.run("chain", "init", others.Trusted[0], "--home", two, "--api", "127.0.0.1:0"); err != nil || !strings.Contains(words, others.Genesis.String()) {
		t.Errorf("a replica of the chain with genesis %v: %s, %v", others.Genesis, words, err)
	}
	s.ok("chain", "seat", "stake", "5000000", "--home", two)
	shown := object[founding.Chain](s, "chain", "show", "--json")
	if len(shown.Replicas) != 2 || len(shown.Trusted) != 1 {
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

// TestNobodyTakesTheReplicasPlace has a stranger's chain of the same name at the port of a replica that therefore does
// not start.
func TestNobodyTakesTheReplicasPlace(t *testing.T) {
	stranger, s := newShell(t), newShell(t)
	at := fmt.Sprint("127.0.0.1:", freePorts(t))
	theirs, ours := t.TempDir(), t.TempDir()
	stranger.ok("chain", "init", "--chain-id", "my-chain", "--home", theirs, "--api", at)
	s.ok("chain", "init", "--chain-id", "my-chain", "--home", ours, "--api", at)
	stranger.chainOf(theirs)
	s.fails([]string{"chain", "start", "--home", ours}, "api")
	s.fails([]string{"status"}, "http://"+at+": another chain answers", "entrain chain start", "--chain http://"+at)
	s.fails([]string{"join", "my-run", "--check"}, "another chain answers")
	if got := s.ok("chain", "show", "--chain", "http://"+at); strings.Contains(got, "#0:") {
		t.Errorf("chain show prints a genesis that is only this machine's: %s", got)
	}
	s.console.own(theirs) // as chain start does
	s.ok("status")
}
