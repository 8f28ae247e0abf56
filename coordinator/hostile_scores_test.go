package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/score"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// scoredWorld is a run by buckets in its third period of scores: the first is settled, of the second one validator has revealed its
// scores, one has only committed, and one has said nothing.
func scoredWorld(t testingT) *world {
	c := testConfig()
	c.Exchange, c.WindowBlocks = Buckets, 10
	c.Validators, c.ScoreWindows, c.Emission, c.ValidatorPercent, c.Penalty = 4, 2, 1000, 20, 50
	c.RegisterCost, c.Slots, c.ImmuneWindows = 5, 5, 1
	w := newWorld(t, Limits{Members: 9, Witnesses: 4, Validators: 6, Buckets: true}, c, "scored")
	p := &player{w: w}
	for i := range 5 {
		p.must(w.applyWith(testKey(fmt.Sprint("player", i)), 5, Join{}))
	}
	for k := range uint64(3) {
		p.must(w.applyWith(testKey(fmt.Sprint("validator", k)), 10+k, RegisterValidator{}))
	}
	p.must(w.applyWith(testKey("player0"), 5000, Fund{}))
	w.now += c.WaitingMs
	p.must(w.apply(key.Public{}, Tick{}))
	p.honest()
	for w.s.Window() < 6 {
		p.scores(false)
		w.window()
	}
	list := w.s.Validators()
	m := p.promised[list[0].Key]
	p.must(w.apply(list[0].Key, m))
	return w
}

// TestOpenRefusesScores changes one field of what windows, validators and scores have written.
func TestOpenRefusesScores(t *testing.T) {
	w := scoredWorld(t)
	s, lay := w.s, w.s.l
	u32 := func(v uint32) []byte { return wire.AppendU32(nil, v) }
	u64 := func(v uint64) []byte { return wire.AppendU64(nil, v) }
	r, _ := s.At(s.Round())
	seat := func(k, at uint32) uint32 { return lay.Seats + record.SeatBytes*k + at }
	tally := func(p uint32, i Member, at uint32) uint32 {
		return uint32(Member(lay.Tallies+p%record.TalliesKept*lay.Tally+record.TallyBytes)+record.WorkBytes*i) + at
	}
	period := func(p uint32) uint32 { return lay.Periods + p%record.BallotsKept*lay.Period }
	said := func(p, k, at uint32) uint32 { return period(p) + record.PeriodBytes + record.BallotBytes*k + at }
	given := func(p, k uint32, i Member) uint32 {
		return uint32(Member(period(p)+record.PeriodBytes+record.BallotBytes*lay.Validators+2*lay.Members*k) + 2*i)
	}
	for _, c := range []struct {
		what  string
		at    uint32
		value []byte
	}{
		{"room for buckets in a run between peers", hExchange, []byte{0}},
		{"an exchange of no kind", hExchange, []byte{2}},
		{"room for speeds where nobody asks for them", hRoom, []byte{3}},
		{"room for what is not known", hRoom, []byte{5}},
		{"shares by speed without room for speeds", hSharing, []byte{1}},
		{"shares in a way that is not known", hSharing, []byte{2}},
		{"somebody who spoke twice", lay.Table + mSpeedSet, []byte{2}},
		{"windows of no length", hWindowBlocks, u32(0)},
		{"more validators than seats", hValidators, []byte{7}},
		{"bytes between the fields", hValidators + 2, []byte{1}},
		{"a tail before the end", hTail, u32(1)},
		{"a period settled that is not over", hPeriodSettled, u32(2)},
		{"somebody replaced in a window to come", hReplaced, u32(8)},
		{"a reward that is not in the escrow", lay.Table + mUnvested, u64(1)},
		{"a reward without bounds", lay.Table + mUnvested, u64(1 << 63)},
		{"bytes behind a member", lay.Table + mEnd, []byte{1}},
		{"filters where there are none", slotAt(r) + rFilterBits, u32(64)},
		{"a stake of a validator that is not in the escrow", seat(0, vStake), u64(11)},
		{"a stake of a validator without bounds", seat(0, vStake), u64(1 << 63)},
		{"a balance of a validator without bounds", seat(0, vBalance), u64(1 << 63)},
		{"a validator without trust", seat(0, vTrust), []byte{0}},
		{"a validator from the future", seat(0, vSince), u32(7)},
		{"bytes behind a validator", seat(0, vEnd), []byte{1}},
		{"two seats of one validator", seat(1, vKey), s.Bytes()[seat(0, vKey) : seat(0, vKey)+32]},
		{"bytes in a free seat", seat(3, vKey), []byte{1}},
		{"a validator in a seat that is not to take", seat(4, vTrust), []byte{1}},
		{"a stake on a bench that is not in the escrow", seat(6, vStake), u64(1)},
		{"bytes behind the validators", seat(12, 0), []byte{1}},
		{"a tally of another period", lay.Tallies + tPeriod, u32(6)},
		{"a tally of no period", lay.Tallies + 1*lay.Tally + tPeriod, u32(0)},
		{"a tally of an old period", lay.Tallies + 1*lay.Tally + tPeriod, u32(4)},
		{"bytes behind a tally's period", lay.Tallies + 4, []byte{1}},
		{"a score before the period is settled", tally(2, 0, uScore), []byte{1}},
		{"a weight of more than all", tally(1, 0, uWeight), u32(score.WeightOne + 1)},
		{"a miss in a way", tally(1, 0, uMissed), []byte{2}},
		{"a score without results", tally(1, 0, uSequences), u32(0)},
		{"bytes behind a member's part", tally(1, 0, uEnd), []byte{1}},
		{"a part for nobody", tally(1, 5, uSequences), u32(1)},
		{"bytes behind a tally", tally(1, 9, 0), []byte{1}},
		{"scores of another period", period(2), u32(4)},
		{"scores of no period", period(2), u32(0)},
		{"scores of a period that runs", period(1), u32(3)},
		{"bytes behind the scores' period", period(2) + 4, []byte{1}},
		{"scores revealed in a way", said(2, 0, sRevealed), []byte{2}},
		{"scores of no commitment", said(2, 0, sHash), make([]byte, 32)},
		{"scores that were not revealed", given(2, 1, 0), []byte{1}},
		{"scores of nobody that there is", given(2, 0, 5), []byte{1}},
		{"scores in a seat that is not to take", given(2, 4, 0), []byte{1}},
		{"words of somebody else", said(2, 0, sKey), []byte{s.Bytes()[said(2, 0, sKey)] + 1}},
		{"a stake before the period is settled", said(2, 0, sStake), u64(1)},
		{"an agreement before the period is settled", said(2, 0, sAgreement), []byte{1}},
		{"bytes behind a validator's words", said(2, 0, sEnd), []byte{1}},
		{"bytes behind the scores", period(2) + lay.Period - 1, []byte{1}},
	} {
		b := slices.Clone(s.b)
		if n := copy(b[c.at:], c.value); bytes.Equal(b, s.b) || n == 0 {
			t.Errorf("%s: nothing was changed", c.what)
		}
		if _, err := Open(b); err != ErrCorrupt {
			t.Errorf("%s: error %v, want %v", c.what, err, ErrCorrupt)
		}
	}
	if _, err := Open(s.b); err != nil {
		t.Errorf("the state itself: %v", err)
	}
}

// TestScoresCannotBeCopied: who sends another validator's commitment, or reveals what it heard, is refused.
func TestScoresCannotBeCopied(t *testing.T) {
	w := scoredWorld(t)
	list := w.s.Validators()
	p := &player{w: w}
	for w.s.Window() < 7 {
		w.window()
	}
	period, stage := w.s.Scoring()
	if stage != score.StageCommit {
		t.Fatalf("it is time for %v", stage)
	}
	m := p.opinions(period, truth)
	hash := ScoresHash(w.s.ID(), list[0].Key, m)
	p.must(w.apply(list[0].Key, CommitScores{Period: period, Hash: hash}))
	p.must(w.apply(list[1].Key, CommitScores{Period: period, Hash: hash})) // it cannot be told apart from one of its own
	w.window()
	p.must(w.apply(list[0].Key, m))
	if err := w.apply(list[1].Key, m); err != ErrReveal {
		t.Errorf("scores that were copied with their commitment: error %v", err)
	}
	if err := w.apply(list[2].Key, m); err != ErrNotCommitted {
		t.Errorf("scores that were copied when they were revealed: error %v", err)
	}
	before, _ := w.s.Validator(list[1].Key)
	w.window()
	if v, _ := w.s.Validator(list[1].Key); v.Trust != before.Trust/2 || v.Balance > before.Balance {
		t.Errorf("the copier was %+v and ends as %+v", before, v)
	}
	other := m
	other.Period++
	for what, hash := range map[string]wire.Hash{
		"run": ScoresHash(wire.Hash{1}, list[0].Key, m), "validator": ScoresHash(w.s.ID(), list[1].Key, m),
		"period": ScoresHash(w.s.ID(), list[0].Key, other),
	} {
		if hash == ScoresHash(w.s.ID(), list[0].Key, m) {
			t.Errorf("a commitment to scores does not depend on the %s", what)
		}
	}
}

// FuzzApplyScores applies messages that the fuzzer makes up, by whom it likes, to a run in which scores are committed and revealed.
func FuzzApplyScores(f *testing.F) {
	first := scoredWorld(f)
	second := first.clone(f)
	second.window()
	fresh := second.clone(f)
	p := &player{w: fresh}
	p.scores(false)
	worlds := []*world{first, second, fresh}
	r, _ := first.s.At(first.s.Round())
	period, _ := second.s.Scoring()
	m := (&player{w: second}).opinions(period, truth)
	for k, m := range []Message{
		Commit{Signed: first.sign(commitment(r, 1))}, RegisterValidator{}, RetireValidator{}, m, Claim{}, Join{},
		CommitScores{Period: period, Hash: ScoresHash(second.s.ID(), second.s.Validators()[0].Key, m)},
	} {
		f.Add(uint8(k), uint8(k), uint16(k*7), uint64(k), Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, which, who uint8, later uint16, value uint64, b []byte) {
		m, err := ParseMessage(b)
		if err != nil {
			return
		}
		w := worlds[which%3].clone(t)
		w.block += uint64(later)
		senders := []key.Public{testKey("stranger")}
		for _, v := range w.s.Validators() {
			senders = append(senders, v.Key)
		}
		for i := range w.s.Count() {
			senders = append(senders, w.s.Key(i))
		}
		_ = w.applyWith(senders[int(who)%len(senders)], value%(1<<40), m)
		for range 4 {
			w.block += 10
			w.now += w.config.RoundWitnessMs
			if err := w.apply(key.Public{}, Tick{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
