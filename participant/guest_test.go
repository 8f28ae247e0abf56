package participant

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/wire"
)

// An ear takes a member's first commitment to a round that is open, or was, and nothing of others.
func TestAnEarTakesOneLossOfEachMember(t *testing.T) {
	ann, eve := key.FromSeed([32]byte{1}), key.FromSeed([32]byte{2})
	state := joined(t, ann.Public())
	var told []event.Committed
	e := NewEar(nil, "r", func(ev event.Committed) { told = append(told, ev) })
	signed := func(author key.Private, c dispute.Commitment) gossip.Authored {
		return gossip.Authored{Author: author.Public(), Signed: c.Sign(author)}
	}
	good := dispute.Commitment{Run: state.ID(), Round: 1, Loss: 3000}
	e.Heard(signed(ann, good)) // before a state
	e.Observe(ledger.Snapshot{State: state})
	e.Heard(signed(eve, good))
	for _, c := range []dispute.Commitment{{Round: 1}, {Run: state.ID()}, {Run: state.ID(), Round: 9}, {Run: state.ID(), Round: 1, Member: 7}} {
		e.Heard(signed(ann, c))
	}
	if len(told) > 0 {
		t.Fatalf("took %+v", told)
	}
	e.Heard(signed(ann, good))
	good.Loss = 9000
	e.Heard(signed(ann, good))
	if len(told) != 1 || told[0].Loss != 3 || told[0].Member != 0 || told[0].Round != 1 {
		t.Errorf("took %+v, want the first loss", told)
	}
}

// joined returns the state of a run with one member.
func joined(t *testing.T, k key.Public) coordinator.State {
	t.Helper()
	config := coordinator.Config{
		Name: "r", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1, TotalSteps: 1,
		BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, MissedMax: 1, ModelHash: wire.Sum("m"), SpecHash: wire.Sum("s"), Owner: key.Public{1},
	}
	state, err := coordinator.New(coordinator.Limits{Members: 4, Witnesses: 2}, config, coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := state.Apply(coordinator.Env{NowMs: 2, Sender: k}, coordinator.Join{}); err != nil {
		t.Fatal(err)
	}
	return state
}
