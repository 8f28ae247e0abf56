package view

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// A key without SOL is refused its message and its addresses every two seconds.
func TestRefusalsAreSaidOnce(t *testing.T) {
	var w Teller
	for i := range 3 {
		for _, text := range []string{"join: no SOL", "announce addresses: no SOL"} {
			if said := w.Words(event.Refused{Text: text}) != ""; said != (i == 0) {
				t.Errorf("%q: said %v, time %d", text, said, i)
			}
		}
	}
	w.Words(event.Note{Text: "the chain answers"})
	if w.Words(event.Refused{Text: "join: no SOL"}) == "" {
		t.Error("a refusal after something else is not said")
	}
}

// While rounds train nothing, nobody reports a step: a line says once what the run does.
func TestTheEndOfAnEpochIsSaid(t *testing.T) {
	config := coordinator.Config{
		Name: "r", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1, TotalSteps: 1,
		BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, MissedMax: 1, ModelHash: wire.Sum("m"), SpecHash: wire.Sum("s"), Owner: key.Public{1},
	}
	state, err := coordinator.New(coordinator.Limits{Members: 4, Witnesses: 2}, config, coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	var w Teller
	apply := func(ms uint64, m coordinator.Message) {
		if err := state.Apply(coordinator.Env{NowMs: ms, Sender: key.Public{2}}, m); err != nil {
			t.Fatal(err)
		}
		ev := event.State{Phase: state.Phase().String(), Epoch: state.Epoch(), Round: state.Round(), Snapshot: &ledger.Snapshot{State: state}}
		if text := w.Words(ev); strings.Contains(text, "ending") {
			said = append(said, text)
		}
	}
	apply(2, coordinator.Join{})
	apply(3, coordinator.Ready{Epoch: 1, Params: config.ModelHash})
	for ms := range uint64(4) {
		apply(10+10*ms, coordinator.Tick{})
	}
	if len(said) != 1 || !strings.HasSuffix(said[0], "rounds without training: 2") {
		t.Errorf("the end of the epoch is told as %q", said)
	}
}
