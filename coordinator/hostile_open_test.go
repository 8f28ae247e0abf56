package coordinator

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// TestOpenRefuses changes one field of a state in the middle of a round, by its offset, so that the state contradicts itself.
func TestOpenRefuses(t *testing.T) {
	l := newLarge(t, 20, 0)
	l.reports(t, 2)
	s := l.s
	r, _ := s.At(2)
	lay := s.l
	u16 := func(v uint16) []byte { return wire.AppendU16(nil, v) }
	u32 := func(v uint32) []byte { return wire.AppendU32(nil, v) }
	u64 := func(v uint64) []byte { return wire.AppendU64(nil, v) }
	for _, c := range []struct {
		what  string
		at    uint32
		value []byte
	}{
		{"a configuration with a fault", hTotalSteps, u32(0)},
		{"more seats than the limits", hConfigWitnesses, u16(33)},
		{"a name that is longer than its field", hNameBytes, []byte{33}},
		{"bytes behind the name", hName + 4, []byte{'x'}},
		{"more drain rounds than an epoch has", hDrain, []byte{3}},
		{"too many repeats", hRepeats, []byte{repeatsMax + 1}},
		{"more members than places", hCount, u32(21)},
		{"members without bounds", hCount, u32(1 << 30)},
		{"fewer members than the round has", hCount, u32(19)},
		{"a round beyond the last", hRound, u32(countMax + 1)},
		{"another round than the ring's", hRound, u32(6)},
		{"another epoch than the round's", hEpoch, u32(2)},
		{"parameters of a round to come", hParamsRound, u32(3)},
		{"a data index without bounds", hDataIndex, u64(sequencesMax + 1)},
		{"too many checkpointers", hCheckpointersLen, []byte{4}},
		{"more redo spans than fit", hRedoLen, u32(redoMax + 1)},
		{"bytes behind the redo queue", lay.redo, []byte{1}},
		{"no status", lay.table + mStatus, []byte{0}},
		{"a byte between the fields of a member", lay.table + mAstray + 1, []byte{1}},
		{"a number for another slot", r.at + rNumber, u32(3)},
		{"a step without a batch", r.at + rBatch, u32(0)},
		{"a drain round with a batch", r.at + rStep, u32(0)},
		{"a batch of more than its spans", r.at + rBatch, u32(21)},
		{"more spans than fit", r.at + rSpansLen, []byte{spansMax + 1}},
		{"an empty span", r.at + rSpans + 8, u32(0)},
		{"a span beyond all sequences", r.at + rSpans, u64(sequencesMax + 1)},
		{"more active members than bits", r.at + rActiveLen, u32(21)},
		{"fewer active members than bits", r.at + rActiveLen, u32(19)},
		{"an active member that is none", r.at + lay.active + 2, []byte{0x1f}},
		{"an expected member that is not active", r.at + lay.expected + 3, []byte{1}},
		{"fewer expected members than shares", r.at + lay.expected, []byte{0x7f}},
		{"another count of expected members", r.at + rExpectedLen, u32(19)},
		{"results accepted before the round is final", r.at + lay.accepted, []byte{1}},
		{"more holders than witnesses", r.at + lay.counts, []byte{33}},
		{"more witnesses than seats", r.at + rElectedLen, []byte{33}},
		{"a witness that is not active", r.at + lay.elected, u32(20)},
		{"another count of reports", r.at + rReports, []byte{3}},
		{"another count of complete reports", r.at + rCompletes, []byte{3}},
		{"a report of a seat that is not filled", r.at + lay.reports + 25*reportBytes, []byte{1}},
		{"a report that is neither there nor not", r.at + lay.reports, []byte{2}},
		{"an attested round that is not the one before", r.at + rAttests, u32(2)},
		{"filters without an attested round", r.at + rAttests, u32(0)},
		{"filters of no bits", r.at + rFilterBits, u32(0)},
		{"filters of odd bits", r.at + rFilterBits, u32(65)},
		{"filters beyond their space", r.at + rFilterBits, u32(8 * lay.filtersLen)},
		{"filters without hashes", r.at + rFilterHashes, []byte{0}},
		{"a final that is neither", r.at + rFinal, []byte{2}},
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

// TestOpenRefusesCases is the same for what verification, disputes and tokens write.
func TestOpenRefusesCases(t *testing.T) {
	states := disputed(t, 2)
	u32 := func(v uint32) []byte { return wire.AppendU32(nil, v) }
	u64 := func(v uint64) []byte { return wire.AppendU64(nil, v) }
	stageOf := func(stage Stage, revealed bool) State {
		for _, s := range states {
			if d, ok := s.Dispute(2); ok && d.Stage == stage && (d.Revealed[0] || d.Revealed[1]) == revealed {
				return s
			}
		}
		t.Fatalf("no state in %v", stage)
		return State{}
	}
	first, last := stageOf(StageTieBreaking, false), states[len(states)-1]
	defending, shown := stageOf(StageDefending, false), stageOf(StageDescending, true)
	down, end := stageOf(StageDescending, false), stageOf(StageEvidence, false)
	lay := first.l
	check := func(at uint32) uint32 { // of one that is not disputed
		for k := range lay.checksMax {
			if b := first.check(k); getU32(b, kRound) != 0 && getU8(b, kDisputed) == 0 {
				return lay.checks + checkBytes*k + at
			}
		}
		t.Fatal("all checks are disputed")
		return 0
	}
	unserved, accused := lay.disputes, lay.disputes+disputeBytes
	for _, c := range []struct {
		what  string
		s     State
		at    uint32
		value []byte
	}{
		{"an escrow that is more than its parts", first, hEscrow, u64(1 << 40)},
		{"a treasury without bounds", first, hTreasury, u64(TokensMax + 1)},
		{"an escrow without bounds", first, hEscrow, u64(TokensMax + 1)},
		{"a stake that is not in the escrow", first, lay.table + mStake, u64(1)},
		{"a stake without bounds", first, lay.table + mStake, u64(1<<64 - 1)},
		{"a balance without bounds", first, lay.table + mBalance, u64(1<<64 - 1)},
		{"a balance that makes the sum too large", first, lay.table + mBalance, u64(TokensMax)},
		{"no doubt", first, lay.table + mDoubt, []byte{0}},
		{"too much doubt", first, lay.table + mDoubt, []byte{17}},
		{"too many strikes", first, lay.table + mStrikes, []byte{4}},
		{"too many reports astray", first, lay.table + mAstray, []byte{3}},
		{"more points settled than there are", first, lay.table + mSettled, u64(100)},
		{"more points claimed than are settled", first, lay.table + mClaimed, u64(1)},
		{"more points of the last epoch than there are", first, lay.table + mRipe, u64(100)},
		{"bytes between the fields of a member", first, lay.table + mLastRound + 4, []byte{1}},
		{"a check of a round to come", first, check(kRound), u32(99)},
		{"a check of an epoch to come", first, check(kEpoch), u32(99)},
		{"a check of nobody", first, check(kMember), u32(7)},
		{"a check by nobody", first, check(kVerifier), u32(7)},
		{"a check that is disputed, in no dispute", first, check(kDisputed), []byte{1}},
		{"a check that is disputed in a way", first, check(kDisputed), []byte{2}},
		{"a check that is reassigned in a way", first, check(kReassigned), []byte{2}},
		{"bytes behind a check", first, check(kEnd), []byte{1}},
		{"bytes in a free check", first, lay.checks + checkBytes*20 + 9, []byte{1}},
		{"bytes behind the checks", first, lay.disputes - 1, []byte{1}},
		{"a dispute without its check", first, unserved + kRound, u32(2)},
		{"a dispute without a number", first, unserved + dID, u32(0)},
		{"a dispute of a number to come", first, unserved + dID, u32(3)},
		{"two disputes of one number", first, unserved + dID, u32(2)},
		{"a dispute by nobody that there is", first, unserved + dAccuser, u32(7)},
		{"a dispute by nobody, after tie-breaking", defending, accused + dAccuser, u32(NoMember)},
		{"a dispute that is unserved in a way", first, unserved + dUnserved, []byte{2}},
		{"an unserved dispute with a commitment", first, accused + dUnserved, []byte{1}},
		{"an accusation without a commitment", first, unserved + dUnserved, []byte{0}},
		{"a dispute in no stage", first, accused + dStage, []byte{0}},
		{"a dispute beyond all stages", first, accused + dStage, []byte{5}},
		{"an accused that defended itself too early", first, accused + dDefended, []byte{1}},
		{"an accused that did not defend itself", down, accused + dDefended, []byte{0}},
		{"a descent at no level", down, accused + dLevel, []byte{0}},
		{"a descent below all levels", down, accused + dLevel, []byte{4}},
		{"a descent of no depth", down, accused + dDepth, []byte{0}},
		{"a descent of more than any depth", down, accused + dDepth, []byte{9}},
		{"children that nobody revealed", down, accused + dChildren, []byte{1}},
		{"both having revealed", shown, accused + dRevealed, []byte{1, 1}},
		{"evidence at another level", end, accused + dLevel, []byte{1}},
		{"evidence with a depth", end, accused + dDepth, []byte{1}},
		{"too many tie-breakers", first, accused + dTiesLen, []byte{4}},
		{"a tie-breaker that is nobody", first, accused + dTies, u32(7)},
		{"no such vote", first, accused + dTies + 4, []byte{4}},
		{"bytes behind a vote", first, accused + dTies + 5, []byte{1}},
		{"bytes behind a dispute", first, accused + dEnd, []byte{1}},
		{"another commitment's round", first, accused + dCommitment + 36, u32(2)},
		{"bytes in a free dispute", first, lay.disputes + 2*disputeBytes + 50, []byte{1}},
		{"bytes in a free conviction", last, lay.convictions + convictionBytes*5 + 20, []byte{1}},
		{"a conviction that is not there", last, hConvictions, u32(2)},
		{"a conviction of another number", last, lay.convictions + cNumber, u32(2)},
		{"a conviction of nobody", last, lay.convictions + cMember, u32(99)},
		{"a conviction by nobody that there is", last, lay.convictions + cBy, u32(99)},
		{"no such offence", last, lay.convictions + cOffence, []byte{9}},
		{"bytes behind a conviction", last, lay.convictions + cEnd, []byte{1}},
		{"disputes without bounds", first, hDisputes, u32(countMax + 1)},
		{"convictions without bounds", first, hConvictions, u32(countMax + 1)},
		{"checks in a run that verifies nothing", first, hVerification, make([]byte, 1)},
	} {
		b := slices.Clone(c.s.b)
		if n := copy(b[c.at:], c.value); bytes.Equal(b, c.s.b) || n == 0 {
			t.Errorf("%s: nothing was changed", c.what)
		}
		if _, err := Open(b); err != ErrCorrupt {
			t.Errorf("%s: error %v, want %v", c.what, err, ErrCorrupt)
		}
	}
	for k, s := range states {
		if _, err := Open(s.b); err != nil {
			t.Errorf("state %d itself: %v", k, err)
		}
	}
}
