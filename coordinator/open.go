package coordinator

import (
	"math/bits"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
)

// Open returns a view of the state in b. It checks everything in b that a method relies on, so that
// afterwards no method fails, whatever the origin of b. It fails with ErrUninitialized, ErrVersion,
// ErrLimits or ErrCorrupt.
func Open(b []byte) (State, error) {
	s, err := Attach(b)
	if err != nil {
		return State{}, err
	}
	if !s.headerOK() || !s.membersOK() || !s.redoOK() || !s.ringOK() {
		return State{}, ErrCorrupt
	}
	if !s.tokensOK() || !s.cases().WellFormed() {
		return State{}, ErrCorrupt
	}
	if !s.book().WellFormed() {
		return State{}, ErrCorrupt
	}
	return s, nil
}

// Attach is Open without the checks of what is in b, which cost O(len(b)): for a host whose own
// messages alone have written it.
func Attach(b []byte) (State, error) {
	if len(b) < record.HeaderBytes {
		return State{}, ErrCorrupt
	}
	h := record.Header(b)
	if h.Magic() == 0 && record.Zero(b) {
		return State{}, ErrUninitialized
	}
	if h.Magic() != magic {
		return State{}, ErrCorrupt
	}
	if h.Version() != version {
		return State{}, ErrVersion
	}
	l := State{b: b}.Limits()
	if e := l.check(); e != OK {
		return State{}, e
	}
	s := State{b: b, l: l.layout()}
	if uint64(len(b)) != uint64(s.l.Total) {
		return State{}, ErrCorrupt
	}
	return s, nil
}

func (s State) headerOK() bool {
	c := s.Config()
	phase := s.Phase()
	switch {
	case !s.h().WellFormed(), len(c.Check(s.Limits())) > 0:
	case phase == Uninitialized, phase > Paused:
	case s.Draining() > c.Overlap+2, s.h().Repeats() > repeatsMax:
	case s.h().CheckpointersLen() > checkpointersMax, s.h().CheckpointWords() > checkpointersMax, s.h().LostWarmups() >= lostWarmupsMax:
	case s.Count() > Member(s.l.Members):
	case s.Epoch() > countMax, s.Round() > countMax, s.Step() > countMax, s.h().EpochRound() > countMax:
	case s.h().ParamsRound() > s.Round():
	case s.h().TrainLimitMs() > c.RoundTrainMs:
	case s.DataIndex() > record.SequencesMax:
	case s.DisputesTotal() > countMax:
	case s.h().Room() != s.Limits().room():
	case s.h().Replaced() > s.Window()+1:
	case s.book().Tail() > 0 && phase != Finished, s.book().Tail() > score.TailMax, s.book().Settled() > 0 && s.book().Settled()+2 > s.book().PeriodAt(s.Window()):
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

func (s State) membersOK() bool {
	for i := range s.Count() {
		b := s.place(i)
		st := Status(b.Status())
		if st < StatusWaiting || st > StatusReplaced || !b.WellFormed() || !dispute.TrustOK(b) || b.Steady() >= steadyMax {
			return false
		}
	}
	return record.Zero(s.b[s.l.Table+uint32(record.PlaceBytes*s.Count()) : s.l.Redo])
}

func (s State) redoOK() bool {
	n := s.redoLen()
	if n > record.RedoMax {
		return false
	}
	for _, v := range s.Redo() {
		if !spanOK(v) {
			return false
		}
	}
	return record.Zero(s.b[s.l.Redo+record.SpanBytes*n : s.l.Ring])
}

func spanOK(v batch.Span) bool { return v.Count > 0 && v.Start <= record.SequencesMax }

func (s State) ringOK() bool {
	for k := range Round(record.RingRounds) {
		r := s.slot(k)
		if r.Number() == 0 {
			if !record.Zero(r.bytes(0, s.l.Slot)) {
				return false
			}
			continue
		}
		if r.Number()%record.RingRounds != k || !r.numbersOK() || !r.batchOK() || !r.membersOK() || !r.reportsOK() || !r.sharesOK() {
			return false
		}
	}
	return true
}

func (r RoundState) numbersOK() bool {
	now := r.s.Round()
	n, a := r.Number(), r.Attests()
	if n > now || now-n >= record.RingRounds || r.Epoch() > r.s.Epoch() || !r.b.WellFormed() {
		return false
	}
	p := r.Filter()
	if a == 0 {
		return p.Bits == 0 && p.Hashes == 0
	}
	if a != n-Round(r.s.h().Overlap()) {
		return false
	}
	// The attested round may be gone: overwritten, or erased with a forgotten member.
	if attested, ok := r.s.At(a); ok && (!attested.Trains() || attested.Epoch() != r.Epoch()) {
		return false
	}
	if r.s.exchange() == Buckets {
		return p.Bits == 0 && p.Hashes == 0
	}
	return p.Hashes > 0 && p.Bits > 0 && p.Bits%64 == 0 && p.Bits <= 8*r.s.l.FiltersLen &&
		r.electedLen()*(p.Bits/8) <= r.s.l.FiltersLen
}

func (r RoundState) batchOK() bool {
	n := r.b.SpansLen()
	if n > record.SpansMax {
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
func (r RoundState) membersOK() bool {
	l := r.s.l
	active, expected, accepted := r.active(), r.expected(), r.accepted()
	for i := range active {
		if expected[i]&^active[i] != 0 || accepted[i]&^expected[i] != 0 {
			return false
		}
	}
	for i := r.s.Count(); i < Member(8*l.Bitmap); i++ {
		if bit(active, i) {
			return false
		}
	}
	want := min(r.Batch(), r.ActiveCount())
	if ones(active) != r.ActiveCount() || r.ActiveCount() == 0 || r.ExpectedCount() != want || ones(expected) != want {
		return false
	}
	for _, n := range r.counts() {
		if uint32(n) > l.Witnesses {
			return false
		}
	}
	return ones(accepted) == r.AcceptedCount() && (r.Final() || r.AcceptedCount() == 0)
}

// reportsOK checks the round's witnesses and what they reported.
func (r RoundState) reportsOK() bool {
	w := r.electedLen()
	if w > r.s.l.Witnesses {
		return false
	}
	reports, completes := uint8(0), uint8(0)
	for p := range r.s.l.Witnesses {
		b := r.reportAt(p)
		i := r.electedAt(p)
		unused := record.Zero(b) && i == 0
		if !b.WellFormed() || b.Complete() && !b.Reported() || p >= w && !unused || p < w && !r.Active(i) {
			return false
		}
		if b.Reported() {
			reports++
		}
		if b.Complete() {
			completes++
		}
	}
	return reports == r.b.Reports() && completes == r.b.Completes()
}

// ones returns how many bits of a bitmap are set.
func ones(bitmap []byte) uint32 {
	n := uint32(0)
	for _, b := range bitmap {
		n += uint32(bits.OnesCount8(b))
	}
	return n
}

// tokensOK checks that the escrow is the sum of its parts, and checks the numbers that may only
// grow.
func (s State) tokensOK() bool {
	sum := uint64(0)
	ok := addTokens(&sum, s.Treasury())
	for i := range s.Count() {
		b := s.place(i)
		ok = ok && addTokens(&sum, b.Stake(), b.Balance(), b.Unvested())
	}
	for k := range 2 * s.l.Validators {
		b := s.buffer().Seat(k) // or a bench
		ok = ok && addTokens(&sum, b.Stake(), b.Balance())
	}
	return ok && sum == s.Escrow()
}

// addTokens adds parts to a sum, and reports whether it stays within TokensMax.
func addTokens(sum *uint64, parts ...uint64) bool {
	for _, v := range parts {
		if v > TokensMax-*sum {
			return false
		}
		*sum += v
	}
	return true
}
