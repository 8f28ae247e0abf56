package coordinator

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/coordinator/internal/record"
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
		{"more seats than the limits", hWitnesses, u16(33)},
		{"a name that is longer than its field", hNameBytes, []byte{33}},
		{"bytes behind the name", hName + 4, []byte{'x'}},
		{"more drain rounds than an epoch has", hDrain, []byte{4}},
		{"too many repeats", hRepeats, []byte{repeatsMax + 1}},
		{"more members than places", hCount, u32(21)},
		{"members without bounds", hCount, u32(1 << 30)},
		{"fewer members than the round has", hCount, u32(19)},
		{"a round beyond the last", hRound, u32(countMax + 1)},
		{"another round than the ring's", hRound, u32(6)},
		{"another epoch than the round's", hEpoch, u32(2)},
		{"parameters of a round to come", hParamsRound, u32(3)},
		{"a data index without bounds", hDataIndex, u64(record.SequencesMax + 1)},
		{"too many checkpointers", hCheckpointersLen, []byte{4}},
		{"more redo spans than fit", hRedoLen, u32(record.RedoMax + 1)},
		{"bytes behind the redo queue", lay.Redo, []byte{1}},
		{"no status", lay.Table + mStatus, []byte{0}},
		{"a byte between the fields of a member", lay.Table + mSpeedSet + 1, []byte{1}},
		{"a number for another slot", slotAt(r) + rNumber, u32(3)},
		{"a step without a batch", slotAt(r) + rBatch, u32(0)},
		{"a drain round with a batch", slotAt(r) + rStep, u32(0)},
		{"a batch of more than its spans", slotAt(r) + rBatch, u32(21)},
		{"more spans than fit", slotAt(r) + rSpansLen, []byte{record.SpansMax + 1}},
		{"an empty span", slotAt(r) + rSpan + 8, u32(0)},
		{"a span beyond all sequences", slotAt(r) + rSpan, u64(record.SequencesMax + 1)},
		{"more active members than bits", slotAt(r) + rActiveLen, u32(21)},
		{"fewer active members than bits", slotAt(r) + rActiveLen, u32(19)},
		{"an active member that is none", slotAt(r) + lay.Active + 2, []byte{0x1f}},
		{"an expected member that is not active", slotAt(r) + lay.Expected + 3, []byte{1}},
		{"fewer expected members than shares", slotAt(r) + lay.Expected, []byte{0x7f}},
		{"another count of expected members", slotAt(r) + rExpectedLen, u32(19)},
		{"results accepted before the round is final", slotAt(r) + lay.Accepted, []byte{1}},
		{"more holders than witnesses", slotAt(r) + lay.Counts, []byte{33}},
		{"more witnesses than seats", slotAt(r) + rElectedLen, []byte{33}},
		{"a witness that is not active", slotAt(r) + lay.Elected, u32(20)},
		{"another count of reports", slotAt(r) + rReports, []byte{3}},
		{"another count of complete reports", slotAt(r) + rCompletes, []byte{3}},
		{"a report of a seat that is not filled", slotAt(r) + lay.Reports + 25*record.ReportBytes, []byte{1}},
		{"a report that is neither there nor not", slotAt(r) + lay.Reports, []byte{2}},
		{"an attested round that is not the one before", slotAt(r) + rAttests, u32(2)},
		{"filters without an attested round", slotAt(r) + rAttests, u32(0)},
		{"filters of no bits", slotAt(r) + rFilterBits, u32(0)},
		{"filters of odd bits", slotAt(r) + rFilterBits, u32(65)},
		{"filters beyond their space", slotAt(r) + rFilterBits, u32(8 * lay.FiltersLen)},
		{"filters without hashes", slotAt(r) + rFilterHashes, []byte{0}},
		{"a final that is neither", slotAt(r) + rFinal, []byte{2}},
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
	stageOf := func(stage dispute.Stage, revealed bool) State {
		for _, s := range states {
			if d, ok := s.Dispute(2); ok && d.Stage == stage && (d.Revealed[0] || d.Revealed[1]) == revealed {
				return s
			}
		}
		t.Fatalf("no state in %v", stage)
		return State{}
	}
	first, last := stageOf(dispute.StageTieBreaking, false), states[len(states)-1]
	defending, shown := stageOf(dispute.StageDefending, false), stageOf(dispute.StageDescending, true)
	down, end := stageOf(dispute.StageDescending, false), stageOf(dispute.StageEvidence, false)
	lay := first.l
	check := func(at uint32) uint32 { // of one that is not disputed
		for k := range lay.ChecksMax {
			if b := first.buffer().Check(k); b.Round() != 0 && !b.Disputed() {
				return lay.Checks + record.CheckBytes*k + at
			}
		}
		t.Fatal("all checks are disputed")
		return 0
	}
	unserved, accused := lay.Disputes, lay.Disputes+record.DisputeBytes
	for _, c := range []struct {
		what  string
		s     State
		at    uint32
		value []byte
	}{
		{"an escrow that is more than its parts", first, hEscrow, u64(1 << 40)},
		{"a treasury without bounds", first, hTreasury, u64(TokensMax + 1)},
		{"an escrow without bounds", first, hEscrow, u64(TokensMax + 1)},
		{"a stake that is not in the escrow", first, lay.Table + mStake, u64(1)},
		{"a stake without bounds", first, lay.Table + mStake, u64(1<<64 - 1)},
		{"a balance without bounds", first, lay.Table + mBalance, u64(1<<64 - 1)},
		{"a balance that makes the sum too large", first, lay.Table + mBalance, u64(TokensMax)},
		{"no doubt", first, lay.Table + mDoubt, []byte{0}},
		{"too much doubt", first, lay.Table + mDoubt, []byte{17}},
		{"too many strikes", first, lay.Table + mStrikes, []byte{4}},
		{"too many reports astray", first, lay.Table + mAstray, []byte{3}},
		{"more points settled than there are", first, lay.Table + mSettled, u64(100)},
		{"more points claimed than are settled", first, lay.Table + mClaimed, u64(1)},
		{"more points of the last epoch than there are", first, lay.Table + mEpochPoints, u64(100)},
		{"bytes between the fields of a member", first, lay.Table + mLastRound + 4, []byte{1}},
		{"a check of a round to come", first, check(kRound), u32(99)},
		{"a check of an epoch to come", first, check(kEpoch), u32(99)},
		{"a check of nobody", first, check(kMember), u32(7)},
		{"a check by nobody", first, check(kVerifier), u32(7)},
		{"a check that is disputed, in no dispute", first, check(kDisputed), []byte{1}},
		{"a check that is disputed in a way", first, check(kDisputed), []byte{2}},
		{"a check that is reassigned in a way", first, check(kReassigned), []byte{2}},
		{"bytes behind a check", first, check(kEnd), []byte{1}},
		{"bytes in a free check", first, lay.Checks + record.CheckBytes*20 + 9, []byte{1}},
		{"bytes behind the checks", first, lay.Disputes - 1, []byte{1}},
		{"a dispute without its check", first, unserved + kRound, u32(2)},
		{"a dispute without a number", first, unserved + dID, u32(0)},
		{"a dispute of a number to come", first, unserved + dID, u32(3)},
		{"two disputes of one number", first, unserved + dID, u32(2)},
		{"a dispute by nobody that there is", first, unserved + dAccuser, u32(7)},
		{"a dispute by nobody, after tie-breaking", defending, accused + dAccuser, u32(dispute.NoMember)},
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
		{"children that nobody revealed", down, accused + dChild, []byte{1}},
		{"both having revealed", shown, accused + dRevealed, []byte{1, 1}},
		{"evidence at another level", end, accused + dLevel, []byte{1}},
		{"evidence with a depth", end, accused + dDepth, []byte{1}},
		{"too many tie-breakers", first, accused + dTiesLen, []byte{4}},
		{"a tie-breaker that is nobody", first, accused + dTie, u32(7)},
		{"no such vote", first, accused + dTie + 4, []byte{4}},
		{"bytes behind a vote", first, accused + dTie + 5, []byte{1}},
		{"bytes behind a dispute", first, accused + dEnd, []byte{1}},
		{"another commitment's round", first, accused + dCommitment + 36, u32(2)},
		{"bytes in a free dispute", first, lay.Disputes + 2*record.DisputeBytes + 50, []byte{1}},
		{"bytes in a free conviction", last, lay.Convictions + record.ConvictionBytes*5 + 20, []byte{1}},
		{"a conviction that is not there", last, hConvictions, u32(2)},
		{"a conviction of another number", last, lay.Convictions + cNumber, u32(2)},
		{"a conviction of nobody", last, lay.Convictions + cMember, u32(99)},
		{"a conviction by nobody that there is", last, lay.Convictions + cBy, u32(99)},
		{"no such offence", last, lay.Convictions + cOffence, []byte{9}},
		{"bytes behind a conviction", last, lay.Convictions + cEnd, []byte{1}},
		{"disputes without bounds", first, hDisputes, u32(countMax + 1)},
		{"convictions without bounds", first, hConvictions, u32(countMax + 1)},
		{"checks in a run that verifies nothing", first, hVerificationPercent, make([]byte, 1)},
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
