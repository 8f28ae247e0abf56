//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
)

// A cheat that signs twice is convicted on a cluster of Solana, where no referee is. The cluster and a client are killed in the middle,
// then everything at once, and the honest end with the same parameters.
func TestDemoOnSolana(t *testing.T) {
	t.Parallel()
	svm.Folder(t)
	d := startDemo(t, t.TempDir(), append(tinyArgs(t, "8"), "--chain", "solana", "--clients", "4", "--adversary", "equivocate")...)
	pids := map[string]int{}
	step := func(n uint32) {
		d.until(fmt.Sprintf("step %d", n), func(ev printed) bool {
			if ev.PID != 0 {
				pids[ev.Process] = ev.PID
			}
			return ev.Kind == "applied" && ev.Process == "client-1" && ev.Step >= n
		})
	}
	step(2)
	kill(t, pids["chain"])
	kill(t, pids["client-2"])
	step(4)
	for _, pid := range pids {
		if alive(pid) {
			kill(t, pid)
		}
	}
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	s := d.final
	if !s.HashesEqual || s.HeldOutLast >= s.HeldOutFirst || s.Rounds != 8 || len(s.Members) != 4 || s.Members[0].Points == 0 || !s.AdversaryConvicted || s.HonestConvicted {
		t.Fatalf("%+v", s)
	}
	if v := s.Trust.Convictions; len(v) != 1 || v[0].Name != "client-4" || v[0].Offence != "equivocation" || v[0].Slashed != 1000 || s.Members[3].Stake != 0 {
		t.Errorf("convictions %+v of %+v", v, s.Members[3])
	}
}

// A cheat that seals noise, and argues to the end that an operation of its step had another result, is convicted by what the program
// computes.
func TestDemoOnSolanaConvictsByItsReferee(t *testing.T) {
	t.Parallel()
	svm.Folder(t)
	d := startDemo(t, t.TempDir(), append(tinyArgs(t, "6"), "--chain", "solana", "--exchange", "bucket", "--clients", "3", "--validators", "0",
		"--adversary", "noise", "--verification", "100")...)
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	s := d.final
	if !s.HashesEqual || s.Rounds != 6 || !s.AdversaryConvicted || s.HonestConvicted {
		t.Fatalf("%+v", s)
	}
	conceded := coordinator.MessageHash(coordinator.Concede{Dispute: 1})
	if v := s.Trust.Convictions; len(v) != 1 || v[0].Name != "client-3" || v[0].Offence != "wrong result" || v[0].Evidence == conceded.String() {
		t.Errorf("convictions %+v", v)
	}
}

func TestDemoOnSolanaRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--chain mars", "want solana"},
		{"--chain solana --adversary sign-flip", "only equivocate is convicted there"},
		{"--chain solana --verification 5", "use --exchange bucket"},
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
