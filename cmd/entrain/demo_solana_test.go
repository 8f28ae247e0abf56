//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/chain/solana/svm"
)

// Three clients on a cluster of Solana. The cluster and a client are killed in the middle, and all end with the same parameters.
func TestDemoOnSolana(t *testing.T) {
	t.Parallel()
	svm.Folder(t)
	d := startDemo(t, t.TempDir(), append(tinyArgs(t, "6"), "--chain", "solana", "--clients", "3")...)
	pids := map[string]int{}
	d.until("a step", func(ev printed) bool {
		if ev.PID != 0 {
			pids[ev.Process] = ev.PID
		}
		return ev.Kind == "applied" && ev.Process == "client-1" && ev.Step >= 2
	})
	kill(t, pids["chain"])
	kill(t, pids["client-2"])
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	if s := d.final; !s.HashesEqual || s.HeldOutLast >= s.HeldOutFirst || len(s.Members) != 3 || s.Members[0].Points == 0 {
		t.Errorf("%+v", s)
	}
}

func TestDemoOnSolanaRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--chain mars", "want solana"},
		{"--chain solana --adversary sign-flip", "no referee"},
		{"--chain solana --verification 5", "no referee"},
		{"--chain solana --exchange bucket --verification 5", "no referee"},
		{"--chain solana", "make solana"},
	} {
		s := newShell(t)
		args := append([]string{"demo", "--text", writeFile(t, filepath.Join(t.TempDir(), "text"), strings.Repeat("words ", 60_000))}, strings.Fields(c.args)...)
		t.Setenv("ENTRAIN_SOLANA", "")
		if err := run(t.Context(), s.console, args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("demo %s: got %v, want %q", c.args, err, c.want)
		}
	}
}
