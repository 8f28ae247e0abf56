package coordinator

import (
	"math/bits"

	"github.com/entrain-network/entrain/batch"
)

// Open returns the state in b, of which it is a view. It checks that b is what this package can have written, so far as
// anything depends on it: after that no method fails on it, whoever wrote b. It fails with ErrUninitialized, ErrVersion,
// ErrLimits or ErrCorrupt.
func Open(b []byte) (State, error) {
	if len(b) < headerBytes {
		return State{}, ErrCorrupt
	}
	if getU32(b, hMagic) == 0 && allZero(b) {
		return State{}, ErrUninitialized
	}
	if getU32(b, hMagic) != magic {
		return State{}, ErrCorrupt
	}
	if getU32(b, hVersion) != version {
		return State{}, ErrVersion
	}
	l := Limits{
		Members: getU32(b, hMembers), Witnesses: getU16(b, hWitnesses),
		Validators: getU16(b, hValidators),
	}
	l.setRoom(getU8(b, hRoom))
	if e := l.check(); e != OK {
		return State{}, e
	}
	s := State{b: b, l: layoutOf(l)}
	if uint64(len(b)) != uint64(s.l.total) {
		return State{}, ErrCorrupt
	}
	if !s.headerOK() || !s.membersOK() || !s.redoOK() || !s.ringOK() {
		return State{}, ErrCorrupt
	}
	if !s.tokensOK() || !s.checksOK() || !s.disputesOK() || !s.convictionsOK() {
		return State{}, ErrCorrupt
	}
	if !s.validatorsOK() || !s.talliesOK() || !s.scoresOK() {
		return State{}, ErrCorrupt
	}
	return s, nil
}

func (s State) headerOK() bool {
	c := s.Config()
	nameBytes := uint32(getU8(s.b, hNameBytes))
	phase := s.Phase()
	switch {
	case len(c.Check(s.Limits())) > 0:
	case nameBytes > NameBytesMax, !allZero(s.b[hName+nameBytes : hName+NameBytesMax]):
	case phase == Uninitialized, phase > Paused:
	case getU8(s.b, hPausePending) > 1, getU8(s.b, hHasCheckpoint) > 1:
	case s.Draining() > c.Overlap+1, getU8(s.b, hRepeats) > repeatsMax:
	case getU8(s.b, hCheckpointersLen) > checkpointersMax, getU8(s.b, hLostWarmups) >= lostWarmupsMax:
	case s.Count() > s.l.members:
	case s.Epoch() > countMax, s.Round() > countMax, s.Step() > countMax, getU32(s.b, hEpochRound) > countMax:
	case getU32(s.b, hParamsRound) > s.Round():
	case getU64(s.b, hTrainLimitMs) > c.RoundTrainMs:
	case s.DataIndex() > sequencesMax:
	case s.DisputesTotal() > countMax:
	case getU8(s.b, hRoom) != s.Limits().room(), !allZero(s.b[hConfigValidators+2 : hEmission]), !allZero(s.b[hEnd:headerBytes]):
	case getU32(s.b, hReplaced) > s.Window()+1:
	case s.tail() > 0 && phase != Finished, s.tail() > tailMax, s.settled() > 0 && s.settled()+2 > s.period(s.Window()):
	default:
		for _, i := range s.Checkpointers() {
			if i >= s.Count() {
				return false
			}
		}
		if phase != RoundTrain && phase != RoundWitness {
			return true
		}
		r, ok := s.At(s.Round())
		return ok && r.Epoch() == s.Epoch()
	}
	return false
}

// sequencesMax bounds numbers of sequences: countMax rounds of BatchMax stay far below.
const sequencesMax = 1 << 60

func (s State) membersOK() bool {
	for i := range s.Count() {
		b := s.place(i)
		st := Status(getU8(b, mStatus))
		if st < StatusWaiting || st > StatusReplaced || !trustOK(b) || getU8(b, mSpoke) > 1 || !allZero(b[mEnd:]) {
			return false
		}
	}
	return allZero(s.b[s.l.table+memberBytes*s.Count() : s.l.redo])
}

func (s State) redoOK() bool {
	n := s.redoLen()
	if n > redoMax {
		return false
	}
	for _, v := range s.Redo() {
		if !spanOK(v) {
			return false
		}
	}
	return allZero(s.b[s.l.redo+spanBytes*n : s.l.ring])
}

func spanOK(v batch.Span) bool { return v.Count > 0 && v.Start <= sequencesMax }

func (s State) ringOK() bool {
	for k := range uint32(ringRounds) {
		r := s.slot(k)
		if r.Number() == 0 {
			if !allZero(r.bytes(0, s.l.slot)) {
				return false
			}
			continue
		}
		if r.Number()%ringRounds != k || !r.numbersOK() || !r.batchOK() || !r.membersOK() || !r.reportsOK() || !r.sharesOK() {
			return false
		}
	}
	return true
}

func (r Round) numbersOK() bool {
	now := r.s.Round()
	n, a := r.Number(), r.Attests()
	if n > now || now-n >= ringRounds || r.Epoch() > r.s.Epoch() || r.u8(rFinal) > 1 || r.u8(rHasAgreed) > 1 {
		return false
	}
	p := r.Filter()
	if a == 0 {
		return p.Bits == 0 && p.Hashes == 0
	}
	if a != n-uint32(getU8(r.s.b, hOverlap)) {
		return false
	}
	// The attested round may be gone: overwritten, or erased with a member that was forgotten.
	if attested, ok := r.s.At(a); ok && (!attested.Trains() || attested.Epoch() != r.Epoch()) {
		return false
	}
	if r.s.exchange() == Buckets {
		return p.Bits == 0 && p.Hashes == 0
	}
	return p.Hashes > 0 && p.Bits > 0 && p.Bits%64 == 0 && p.Bits <= 8*r.s.l.filtersLen &&
		r.electedLen()*(p.Bits/8) <= r.s.l.filtersLen
}

func (r Round) batchOK() bool {
	n := r.u8(rSpansLen)
	if n > spansMax {
		return false
	}
	total := uint64(0)
	for _, v := range r.Spans() {
		if !spanOK(v) {
			return false
		}
		total += uint64(v.Count)
	}
	return total == uint64(r.Batch()) && r.Batch() <= BatchMax && r.Trains() == (total > 0) && (r.Trains() || r.Final())
}

// membersOK checks the round's sets of members.
func (r Round) membersOK() bool {
	l := r.s.l
	active, expected, accepted := r.active(), r.expected(), r.accepted()
	for i := range active {
		if expected[i]&^active[i] != 0 || accepted[i]&^expected[i] != 0 {
			return false
		}
	}
	for i := r.s.Count(); i < 8*l.bitmap; i++ {
		if bit(active, i) {
			return false
		}
	}
	want := min(r.Batch(), r.ActiveCount())
	if ones(active) != r.ActiveCount() || r.ActiveCount() == 0 || r.ExpectedCount() != want || ones(expected) != want {
		return false
	}
	for _, n := range r.counts() {
		if uint32(n) > l.witnesses {
			return false
		}
	}
	return ones(accepted) == r.AcceptedCount() && (r.Final() || r.AcceptedCount() == 0)
}

// reportsOK checks the round's witnesses and what they reported.
func (r Round) reportsOK() bool {
	w := r.electedLen()
	if w > r.s.l.witnesses {
		return false
	}
	reports, completes := uint8(0), uint8(0)
	for p := range r.s.l.witnesses {
		at := r.reportAt(p)
		reported, complete := r.u8(at+pReported), r.u8(at+pComplete)
		i := r.electedAt(p)
		if reported > 1 || complete > reported || p >= w && (reported > 0 || i > 0) || p < w && !r.Active(i) {
			return false
		}
		reports += reported
		completes += complete
	}
	return reports == r.u8(rReports) && completes == r.u8(rCompletes)
}

// ones returns how many bits of a bitmap are set.
func ones(bitmap []byte) uint32 {
	n := uint32(0)
	for _, b := range bitmap {
		n += uint32(bits.OnesCount8(b))
	}
	return n
}
