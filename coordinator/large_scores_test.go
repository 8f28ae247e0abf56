package coordinator

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// largeScored is a run of so many members and validators, at the last window of a period in which the one before was scored: the
// next window settles it. What they say is put into the state directly.
func largeScored(tb testing.TB, members uint32, validators uint16) State {
	tb.Helper()
	c := testConfig()
	c.Exchange, c.WindowBlocks, c.Validators, c.ScoreWindows = Buckets, 10, validators, 2
	c.Emission, c.ValidatorPercent, c.Penalty = 1_000_000_007, 20, 10
	s, err := New(Limits{Members: members, Witnesses: WitnessesMax, Validators: validators, Buckets: true}, c, Env{Seed: wire.Sum("test/large")})
	if err != nil {
		tb.Fatal(err)
	}
	s.h().SetCount(Member(members))
	s.h().SetRound(5) // nobody need have opened it
	s.h().SetTreasury(1 << 40)
	s.h().SetEscrow(1<<40 + uint64(validators)*1000)
	t := s.buffer().TallyOf(1)
	t.SetPeriod(1)
	for i := range Member(members) {
		b := s.place(i)
		b.SetKey(key.Public(wire.Sum("test/large", wire.AppendU32(nil, uint32(i)))))
		putStatus(b, StatusWaiting)
		b.SetDoubt(dispute.DoubtNew)
		t.Work(i).SetSequences(1 + uint32(i%3))
	}
	s.buffer().Ballots(1).SetPeriod(1)
	for k := range uint32(validators) {
		b, said, pub := s.buffer().Seat(k), s.buffer().Ballot(1, k), key.Public(wire.Sum("test/validator", wire.AppendU32(nil, k)))
		b.SetKey(pub)
		b.SetStake(1000)
		b.SetTrust(score.TrustNew)
		said.SetKey(pub)
		said.SetHash(wire.Hash(pub))
		said.SetRevealed(true)
		for i := range Member(members) {
			s.buffer().Given(1, k).SetScore(i, score.Offset(int16(4*i)-20000+int16(k*100)))
		}
	}
	return s
}

// TestTenThousandScores settles a period of the largest run there can be: all that is to be paid is paid, to the token, and the
// state is still sound.
func TestTenThousandScores(t *testing.T) {
	s := largeScored(t, MembersMax, ValidatorsMax)
	if _, err := Open(s.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(Env{NowMs: bornMs}, Tick{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Bytes()); err != nil {
		t.Error(err)
	}
	given, _ := s.Emitted()
	last, ok := s.LastScores()
	if !ok || given != s.Config().Emission || len(last.Members) != MembersMax || len(last.Validators) != ValidatorsMax {
		t.Fatalf("%d of %d emitted, of %d members and %d validators", given, s.Config().Emission, len(last.Members), len(last.Validators))
	}
	for _, m := range last.Members {
		if !m.Scored || (m.Score > 0) != (m.Reward > 0) {
			t.Fatalf("%+v", m)
		}
	}
}

// BenchmarkSettle is the cost of the message that settles a period.
func BenchmarkSettle(b *testing.B) {
	for _, of := range []struct{ members, validators uint32 }{{256, 8}, {MembersMax, 8}, {MembersMax, ValidatorsMax}} {
		base := largeScored(b, of.members, uint16(of.validators))
		b.Run(fmt.Sprintf("members=%d/validators=%d", of.members, of.validators), func(b *testing.B) {
			s := State{b: make([]byte, len(base.b)), l: base.l}
			for b.Loop() {
				b.StopTimer()
				copy(s.b, base.b)
				b.StartTimer()
				if err := s.Apply(Env{NowMs: bornMs}, Tick{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
