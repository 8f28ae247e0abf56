package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/wire"
)

// Open returns a view of the state in b. It checks everything in b that a method relies on, so that
// afterwards no method fails, whatever the origin of b. It fails with ErrUninitialized, ErrVersion,
// ErrLimits or ErrCorrupt.
func Open(b []byte) (State, error) {
	s, err := Attach(b)
	if err != nil {
		return State{}, err
	}
	if !s.headerOK() || !s.membersOK() || !s.buffer().RedoOK() || !s.ringOK() {
		return State{}, ErrCorrupt
	}
	if !s.buffer().TokensOK() || !s.cases().WellFormed() {
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
	case s.h().CheckpointersLen() > checkpointersMax, s.h().CheckpointWords() > checkpointersMax:
	case s.h().LostWarmups()%lostWarmup > emptyWarmupsMax, s.h().LostWarmups()/lostWarmup > lostWarmupsMax:
	case s.Count() > Member(s.l.Members):
	case s.Epoch() > countMax, s.Round() > countMax, s.Step() > countMax, s.h().EpochRound() > countMax:
	case s.h().ParamsRound() > s.Round():
	case s.h().TrainLimitMs() > c.RoundTrainMs:
	case s.DataIndex() > record.SequencesMax:
	case s.DisputesTotal() > countMax:
	case s.h().Room() != s.Limits().room():
	case s.h().Replaced() > s.Window()+1:
	case !s.closingOK(phase):
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

// closingOK checks that a closing, if one is under way, fits the phase.
func (s State) closingOK(phase Phase) bool {
	stage := s.h().Closing()
	switch {
	case stage == closed:
		return s.h().Cursor() == 0 && s.h().ClosingSeed() == wire.Hash{}
	case stage == warming:
		return phase == Warmup
	case stage <= continuing:
		return phase == RoundWitness
	}
	return stage == settling || stage < settling && (phase == RoundTrain || phase == Cooldown)
}

func (s State) membersOK() bool {
	for i := range s.Count() {
		b := s.place(i)
		st := Status(b.Status())
		if line := Member(max(b.Line(), b.Verifier())); line >= s.Count() || line > 0 && !s.Closing() {
			return false
		}
		if st < StatusWaiting || st > StatusReplaced || !b.WellFormed() || !dispute.TrustOK(b) || b.Steady() >= steadyMax {
			return false
		}
	}
	return record.Zero(s.b[s.l.Table+uint32(record.PlaceBytes*s.Count()) : s.l.Redo])
}

func (s State) ringOK() bool {
	for k := range Round(record.RingRounds) {
		r := s.slot(k)
		if r.Number() == 0 {
			if !record.Zero(r.bytes(0, s.l.Slot)) {
				return false
			}
			continue
		}
		if r.Number()%record.RingRounds != k || !r.numbersOK() || !r.batchOK() || !s.buffer().SetsOK(r.b) || !s.buffer().ReportsOK(r.b) || !r.dividing() && !s.buffer().SharesOK(r.b) {
			return false
		}
	}
	return true
}

// dividing reports whether a closing is still to divide the round's batch by speeds.
func (r RoundState) dividing() bool {
	stage := r.s.h().Closing()
	return stage > continuing && stage <= dividing && r.Number() == r.s.Round()
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
	total, ok := r.b.Sequences()
	return ok && total == uint64(r.Batch()) && r.Batch() <= BatchMax && r.Trains() == (total > 0) && (r.Trains() || r.Final())
}
