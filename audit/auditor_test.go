package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// newRun returns the state of a run without members, whose owner is the key owner.
func newRun(t *testing.T) coordinator.State {
	sp := spec.Default(all.Kinds())
	sp.Name, sp.Data.Manifest = "run", wire.Sum("test/manifest").String()
	sp.Members.Min, sp.Members.Start, sp.Batch.Start, sp.Batch.End, sp.Trust = 1, 1, 8, 8, spec.Trust{}
	limits, config := sp.Coordinator(owner, wire.Sum("test/model"), wire.Sum("test/spec"))
	config.StateHash = wire.Sum("test/fresh")
	s, err := coordinator.New(limits, config, env())
	if err != nil {
		t.Fatalf("%v: %v", err, config.Check(limits))
	}
	return s
}

var owner = key.FromSeed(wire.Sum("test/owner")).Public()

func env() coordinator.Env {
	return coordinator.Env{NowMs: 1, Height: 1, Seed: wire.Sum("test/seed"), Sender: owner}
}

// Of a run whose members answer no more, an auditor reads what still can be audited.
func TestAnAuditOfAFinishedRunNamesTheArchive(t *testing.T) {
	s := newRun(t)
	for _, want := range []string{"it is in phase WaitingForMembers", `run "run" has finished, and none of its members serves its rounds any more; --archive DIR`} {
		a := &auditor{run: "run", latest: latest{s: ledger.Snapshot{State: s}}}
		a.options.Say = func(string, ...any) {}
		if err := a.contact(t.Context(), time.Nanosecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if s.Phase() == coordinator.Finished { // also who watches, without a limit
			synctest.Test(t, func(t *testing.T) {
				if err := a.contact(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("without a limit: got %v, want %q", err, want)
				}
			})
		} else {
			if err := s.Apply(env(), coordinator.End{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An auditor that no member answers says so soon, and not first when it gives up.
func TestAnAuditWithoutMembersSaysWhatItWaitsFor(t *testing.T) {
	s := newRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	var said []string
	a := &auditor{run: "run", latest: latest{s: ledger.Snapshot{State: s}}}
	a.options.Say = func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
		cancel()
	}
	if err := a.contact(ctx, 0); err == nil || len(said) != 1 || !strings.Contains(said[0], "no member of the run has answered yet, of 0 on the chain") {
		t.Errorf("got %v, and it said %q", err, said)
	}
}
