package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// Of a run whose members answer no more, an auditor reads what still can be audited.
func TestAnAuditOfAFinishedRunNamesTheArchive(t *testing.T) {
	sp := spec.Default(all.Kinds())
	sp.Name, sp.Data.Manifest = "run", wire.Sum("test/manifest").String()
	sp.Members.Min, sp.Members.Start, sp.Batch.Start, sp.Batch.End, sp.Trust = 1, 1, 8, 8, spec.Trust{}
	owner := key.FromSeed(wire.Sum("test/owner")).Public()
	limits, config := sp.Coordinator(owner, wire.Sum("test/model"), wire.Sum("test/spec"))
	config.StateHash = wire.Sum("test/fresh")
	env := coordinator.Env{NowMs: 1, Height: 1, Seed: wire.Sum("test/seed"), Sender: owner}
	s, err := coordinator.New(limits, config, env)
	if err != nil {
		t.Fatalf("%v: %v", err, config.Check(limits))
	}
	for _, want := range []string{"it is in phase WaitingForMembers", `run "run" has finished, and none of its members serves its rounds any more; --archive DIR`} {
		a := &auditor{run: "run", latest: latest{s: ledger.Snapshot{State: s}}}
		if err := a.contact(t.Context(), time.Nanosecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if s.Phase() != coordinator.Finished {
			if err := s.Apply(env, coordinator.End{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
