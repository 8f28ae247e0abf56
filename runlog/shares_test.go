package runlog

import (
	"reflect"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Where shares go by speed the log tells how large they are, since nothing else of it does.
func TestSharesBySpeedAreTold(t *testing.T) {
	for sharing, want := range map[coordinator.Sharing][]uint32{coordinator.EqualShares: nil, coordinator.SpeedShares: {19, 16, 5}} {
		cfg := coordinator.Config{
			Name: "test", MinMembers: 1, StartMembers: 3, WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000, EpochMs: 10_000,
			TotalSteps: 9, BatchStart: 40, BatchEnd: 40, SequenceTokens: 8, Sharing: sharing,
			ModelHash: wire.Sum("model"), SpecHash: wire.Sum("spec"), Owner: key.Public{1},
		}
		s, err := coordinator.New(coordinator.Limits{Members: 3, Witnesses: 3, Speeds: sharing == coordinator.SpeedShares}, cfg, coordinator.Env{NowMs: 1})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(sender byte, m coordinator.Message) {
			t.Helper()
			if err := s.Apply(coordinator.Env{NowMs: 10, Sender: key.Public{sender}}, m); err != nil {
				t.Fatal(err)
			}
		}
		for i, speed := range []uint32{1200, 1000, 300} {
			apply(byte(10+i), coordinator.Join{Speed: speed})
		}
		for i := range byte(3) {
			apply(10+i, coordinator.Ready{Epoch: 1, Params: cfg.ModelHash})
		}
		first := Digest(ledger.Snapshot{State: s})
		if len(first.Rounds) != 1 || !slices.Equal(first.Rounds[0].Sequences, want) {
			t.Fatalf("%v: the rounds are %+v, want shares of %d", sharing, first.Rounds, want)
		}
		r, _ := s.At(1)
		for i, n := range first.Rounds[0].Sequences {
			if batch.Total(r.Share(coordinator.Member(uint32(i)))) != n {
				t.Errorf("%v: the share of %d is %v, told is %d", sharing, i, r.Share(coordinator.Member(uint32(i))), n)
			}
		}
		if again := digestAfter(ledger.Snapshot{State: s}, first); !reflect.DeepEqual(again.Rounds[0], first.Rounds[0]) {
			t.Errorf("%v: after %+v comes %+v", sharing, first.Rounds[0], again.Rounds[0])
		}
	}
}
