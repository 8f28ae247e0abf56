package coordinator

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// TestVacancy compares the place that a newcomer to a full table gets with the rule as the package comment states it, place by place.
func TestVacancy(t *testing.T) {
	given := [nobody + 1]int{}
	compare := func(t *rapid.T) {
		s, now := goneMembers(t)
		best, bestRank := Member(0), nobody
		for i := range s.Count() {
			rank := s.rankOf(now, i)
			if rank < bestRank || rank == bestRank && rank != nobody && s.place(i).LeftMs() < s.place(best).LeftMs() {
				best, bestRank = i, rank
			}
		}
		given[bestRank]++
		if got, ok := s.vacancy(Env{NowMs: now}); ok != (bestRank != nobody) || ok && got != best {
			t.Fatalf("a newcomer gets place %d, %t, want %d, %t", got, ok, best, bestRank != nobody)
		}
	}
	for range 10 { // a hundred runs may lack a rank
		rapid.Check(t, compare)
	}
	for rank, n := range given {
		if n == 0 {
			t.Errorf("no place of rank %d was given", rank)
		}
	}
}

// TestSlot compares the member that makes room for a newcomer with the rule as slotFor states it.
func TestSlot(t *testing.T) {
	outcomes := map[Error]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, _ := goneMembers(t)
		below := func(n uint32, name string) uint32 { return rapid.Uint32Range(0, n-1).Draw(t, name) }
		s.h().SetRound(Round(5 + below(3, "window")))
		s.h().SetEpochRound(Round(1 + below(7, "epoch")))
		s.h().SetImmuneWindows(below(7, "immune"))
		s.h().SetSlots(below(uint32(s.Count()), "slots"))
		for i := range s.Count() {
			b := s.place(i)
			putStatus(b, rapid.SampledFrom([]Status{StatusWaiting, StatusActive, StatusActive, StatusDropped}).Draw(t, "status"))
			b.SetSince(Round(below(8, "since")))
			b.SetScore(uint16(rapid.SampledFrom([]int{0, 1, 32767, 32768, 65535}).Draw(t, "score")))
		}
		worst := Member(dispute.NoMember)
		for i := range s.Count() {
			b := s.place(i)
			waits := s.status(i) != StatusActive && b.Since() >= s.h().EpochRound()
			immune := s.h().ImmuneWindows() > 0 && (waits || b.Since()+Round(s.h().ImmuneWindows()) > s.Window())
			if s.Immune(i) != immune {
				t.Fatalf("member %d is immune: %t", i, s.Immune(i))
			}
			if !s.status(i).Present() || immune {
				continue
			}
			if worst == dispute.NoMember || standing(b) < standing(s.place(worst)) ||
				standing(b) == standing(s.place(worst)) && b.Since() > s.place(worst).Since() {
				worst = i
			}
		}
		known := rapid.Bool().Draw(t, "known")
		want := OK
		switch back := s.place(0); {
		case s.h().Slots() == 0 || s.Present() < s.h().Slots():
			worst = dispute.NoMember
		case worst == dispute.NoMember || known && standing(s.place(worst)) >= standing(back):
			worst, want = dispute.NoMember, ErrSlots
		}
		if got, e := s.slotFor(0, known, false); got != worst || e != want {
			t.Fatalf("%d, %v makes room, want %d, %v", got, e, worst, want)
		}
		if outcomes[want]++; worst != dispute.NoMember {
			outcomes[ErrFull]++ // for one that is replaced
		}
	})
	for _, e := range []Error{OK, ErrSlots, ErrFull} {
		if outcomes[e] == 0 {
			t.Errorf("no run ended in %v", e)
		}
	}
}

// rankOf is when the place of a member is given away, by the questions that others ask about a member.
func (s State) rankOf(nowMs uint64, i Member) int {
	b, d := s.place(i), s.due(Env{NowMs: nowMs}, i)
	unpaid := s.h().Rate() > 0 && b.Points() > b.Claimed()
	switch {
	case s.status(i).Present(), bit(s.mentioned(), i), s.cases().Pending(i), s.book().Pending(i), b.Unvested() > 0, b.Stake() > d.stake:
		return nobody
	case unpaid && s.h().InEpoch() && b.Settled() != b.Points():
		return nobody
	case unpaid && d.points < b.Points()-b.Claimed() && nowMs-b.LeftMs() < PlaceMs:
		return nobody
	case s.status(i) == StatusEjected:
		return ejected
	case s.Owes(i):
		return payable
	}
	return owedNothing
}

// goneMembers returns a run with a full table, most of whose members are gone, and the time.
func goneMembers(t *rapid.T) (State, uint64) {
	n := rapid.Uint32Range(4, 9).Draw(t, "members")
	c := testConfig()
	c.Rate = rapid.SampledFrom([]uint64{0, 1, 3}).Draw(t, "rate")
	c.Exchange, c.WindowBlocks, c.Validators, c.ScoreWindows, c.Emission = Buckets, 10, 1, 2, rapid.Uint64Range(0, 1).Draw(t, "emission")
	s, err := New(Limits{Members: n, Witnesses: 1, Validators: 1, Buckets: true}, c, Env{NowMs: bornMs, Seed: wire.Sum("test/gone")})
	if err != nil {
		t.Fatal(err)
	}
	s.h().SetCount(Member(n))
	s.h().SetPhase(rapid.SampledFrom([]uint8{uint8(WaitingForMembers), uint8(RoundTrain)}).Draw(t, "phase"))
	s.h().SetRound(1)
	s.h().SetEpoch(1)
	s.h().SetTreasury(rapid.Uint64Range(0, 20).Draw(t, "treasury"))
	few := func(most uint64, name string) uint64 {
		return rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, most)).Draw(t, name)
	}
	now, r, k := uint64(bornMs+2*PlaceMs), s.slot(1), uint32(0)
	r.b.SetNumber(1)
	r.b.SetEpoch(Epoch(rapid.Uint32Range(0, 1).Draw(t, "round's epoch")))
	r.b.SetFinal(rapid.Bool().Draw(t, "final"))
	s.buffer().TallyOf(1).SetPeriod(1)
	for i := range Member(n) {
		b := s.place(i)
		b.SetKey(key.Public(wire.Sum("test/gone", wire.AppendU32(nil, uint32(i)))))
		putStatus(b, rapid.SampledFrom([]Status{StatusWaiting, StatusDropped, StatusDropped, StatusWithdrawn, StatusEjected, StatusReplaced}).Draw(t, "status"))
		b.SetLeftMs(now - rapid.SampledFrom([]uint64{0, 5, PlaceMs - 1, PlaceMs, PlaceMs + 5}).Draw(t, "left"))
		b.SetReleaseMs(now - 1 + few(2, "release"))
		b.SetStake(few(2, "stake"))
		b.SetBalance(few(1, "balance"))
		b.SetUnvested(few(1, "unvested") / 2 * few(1, "rarely"))
		b.SetPoints(few(9, "points"))
		b.SetSettled(min(b.Points(), few(9, "settled")))
		b.SetClaimed(min(b.Settled(), few(9, "claimed")))
		s.buffer().TallyOf(1).Work(i).SetSequences(uint32(few(1, "work") * few(1, "rarely")))
		if few(4, "is in the round") == 4 {
			setBit(r.active(), i)
			setBit(r.expected(), i)
		}
		if few(8, "is checked") == 8 {
			v := s.buffer().Check(k)
			v.SetRound(1)
			v.SetMember(i)
			v.SetVerifier(record.Member(few(uint64(n-1), "verifier")))
			k++
		}
	}
	return s, now
}
