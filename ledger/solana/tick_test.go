package solana

import (
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Of a run's members as many send a tick at once as are wanted, whatever the number of members, and
// a step later as many again. Who left, or only watches, holds up nothing, and phases begin with
// other members.
func TestMembersTakeTurnsWithTicks(t *testing.T) {
	const members, left = 100, 10
	signer := func(n int) solana.Signer { return solana.NewSigner(key.FromSeed([32]byte{byte(n)})) }
	owner := key.Public(signer(members).Address())
	s, err := coordinator.New(coordinator.Limits{Members: members, Witnesses: 4}, coordinator.Config{
		Name: "turns", MinMembers: 1, StartMembers: members, WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000,
		EpochMs: 60_000, TotalSteps: 10, BatchStart: members, BatchEnd: members, SequenceTokens: 128, MissedMax: 3,
		ModelHash: wire.Sum("test"), SpecHash: wire.Sum("test"), Owner: owner,
	}, coordinator.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range members + left {
		m := coordinator.Message(coordinator.Join{})
		if n >= members { // the first have joined and leave
			n, m = n-members, coordinator.Withdraw{}
		}
		if err := s.Apply(coordinator.Env{Sender: key.Public(signer(n).Address())}, m); err != nil {
			t.Fatal(err)
		}
	}
	firsts := map[int]bool{}
	for now := range uint64(8) {
		for _, c := range []struct {
			want   uint64
			counts []int // of members that send after each step
		}{
			{1, []int{1, 1, 2, 4, 8, 16, 32, 26}},
			{7, []int{7, 7, 14, 28, 34}},
		} {
			step := func(n int) int {
				a := acting{Client: &Client{poll: time.Second}, signer: signer(n)}
				return int(a.turn(ledger.Snapshot{State: s}, c.want) / (tickStep * a.poll))
			}
			counts := make([]int, len(c.counts))
			for n := left; n < members; n++ {
				counts[step(n)]++
				if c.want == 1 && step(n) == 0 {
					firsts[n] = true
				}
			}
			if !slices.Equal(counts, c.counts) || step(0) != len(counts)-1 {
				t.Errorf("where %d are wanted, %v members send after each step, a stranger after %d; want %v", c.want, counts, step(0), c.counts)
			}
		}
		for _, m := range []coordinator.Message{coordinator.Pause{}, coordinator.Resume{}} { // another phase
			if err := s.Apply(coordinator.Env{NowMs: now, Sender: owner}, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(firsts) < 4 {
		t.Errorf("in 8 phases only the members %v come first", firsts)
	}
}
