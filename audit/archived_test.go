package audit

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// FuzzParseArchivedRound checks that no file makes a reader fail other than by an error, and that what parses is the one encoding of what it says.
func FuzzParseArchivedRound(f *testing.F) {
	limits := coordinator.Limits{Members: 4, Witnesses: 2}
	config := coordinator.Config{Name: "r", MinMembers: 1, StartMembers: 1, Witnesses: 1, WarmupMs: 1, RoundTrainMs: 1, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1,
		TotalSteps: 1, BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, ModelHash: wire.Sum("m"), SpecHash: wire.Sum("s"), Owner: key.Public{1}}
	state, err := coordinator.New(limits, config, coordinator.Env{NowMs: 1, Height: 1, Seed: wire.Sum("seed")})
	if err != nil {
		f.Fatal(err, config.Check(limits))
	}
	member := key.FromSeed([32]byte{1})
	if err := state.Apply(coordinator.Env{NowMs: 2, Height: 2, Sender: member.Public()}, coordinator.Join{}); err != nil {
		f.Fatal(err)
	}
	blob := []byte("blob")
	whole := archivedRound{State: state, Signed: []dispute.Signed{dispute.Commitment{Run: state.ID(), Round: 1}.Sign(member)}, Blobs: map[wire.Hash][]byte{merkle.BlobRoot(blob): blob}}
	f.Add(whole.Append(nil))
	f.Add([]byte(archiveMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseArchivedRound(b, state.ID())
		if err != nil {
			return
		}
		if again := a.Append(nil); string(again) != string(b) {
			t.Errorf("%d bytes parse but are written as %d others", len(b), len(again))
		}
	})
	if _, err := parseArchivedRound(whole.Append(nil), state.ID()); err != nil {
		f.Errorf("what was written does not parse: %v", err)
	}
}
