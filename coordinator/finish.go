package coordinator

import (
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/wire"
)

// This file ends rounds: it agrees on parameters, accepts, pays and charges the results that the
// round's witnesses reported, and decides what comes next.

const (
	// repeatsMax is how many times an epoch's last round is repeated if its witnesses agree on no
	// hash. Then the epoch is rolled back.
	repeatsMax = 3
	// disagreeMax is how many rounds in a row may pass without an agreed hash before the epoch
	// drains. The ring holds four rounds, so a member that starts from the last parameters agreed
	// before those rounds still finds all it needs to catch up.
	disagreeMax = 2
)

// endRound settles the current round and opens the next, or ends the epoch.
func (s State) endRound(env Env) {
	r := s.slot(s.Round())
	agreed := s.agree(r)
	s.judgeWitnesses(env, r)
	s.judge(env, r)
	s.judgeSilence(env, r)
	s.next(env, r, agreed)
	if s.Round() != r.Number() {
		s.drawChecks(env, r.Attests())
	}
}

// judgeSilence charges the witnesses of round r that did not report. If fewer than half of them
// were heard, the ledger was out of reach of most, and nobody is charged. A gang that means to stop
// a round for nothing thus needs more than half of its seats.
func (s State) judgeSilence(env Env, r Round) {
	heard := 2*uint32(r.b.Reports()) >= r.electedLen()
	for p := range r.electedLen() {
		i := r.electedAt(p)
		switch {
		case s.status(i) != StatusActive:
		case r.reported(p):
			s.place(i).SetIdle(0)
		case heard:
			s.idle(i, env)
		}
	}
}

// next continues or ends the epoch after round r.
func (s State) next(env Env, r Round, agreed bool) {
	drain := s.Draining()
	repeats := s.h().Repeats()
	switch {
	case s.tally().active == 0:
		s.endEpoch(env, r, drain == 1 && agreed)
	case drain == 0 && s.mustDrain(env, r):
		s.open(env, s.h().Overlap()+1)
	case drain == 0:
		s.open(env, 0)
	case drain > 1:
		s.open(env, drain-1)
	case agreed:
		s.endEpoch(env, r, true)
	case repeats < repeatsMax:
		s.h().SetRepeats(repeats + 1)
		s.open(env, 1)
	default:
		s.endEpoch(env, r, false)
	}
}

// mustDrain reports whether the epoch must end after the training round r.
func (s State) mustDrain(env Env, r Round) bool {
	since := s.h().EpochSince()
	_, agreedIn := s.Params()
	base := max(agreedIn+1, s.h().EpochRound()) // the epoch began with agreed parameters
	switch {
	case env.NowMs >= since && env.NowMs-since >= s.h().EpochMs():
	case s.Step() >= s.h().TotalSteps():
	case s.PausePending(), s.EndPending():
	case s.tally().active < s.h().MinMembers():
	case uint32(r.b.Reports()) < r.Quorum():
	case r.Number()+1 >= base+disagreeMax:
	default:
		return false
	}
	return true
}

// agree settles which parameters the members held at the start of round r, namely those that a
// quorum of its witnesses named. It reports whether there is such a quorum.
func (s State) agree(r Round) bool {
	for p := range r.electedLen() {
		if !r.reported(p) {
			continue
		}
		hash := r.report(p).Params
		if hash.IsZero() || r.votes(hash) < r.Quorum() {
			continue
		}
		r.b.SetAgreed(hash)
		r.b.SetHasAgreed(true)
		s.h().SetParams(hash)
		s.h().SetParamsRound(r.Number())
		return true
	}
	return false
}

// votes returns how many reports of r name these parameters.
func (r Round) votes(params wire.Hash) uint32 {
	n := uint32(0)
	for p := range r.electedLen() {
		if r.reported(p) && r.report(p).Params == params {
			n++
		}
	}
	return n
}

// judge settles the results of the round that r's witnesses attested. A result that a quorum of
// them holds is accepted and paid, if the parameters that it started from are agreed: without them
// nobody can check it. The sequences of the others enter the redo queue.
//
// A result that was not accepted is not always its author's fault: a network that is cut in two
// leaves no quorum on either side. It counts as missed only if a quorum of the witnesses reported
// that they do not hold it, or if more than two thirds of the other members' results were accepted,
// which shows that the network carried results to a quorum. Silent witnesses satisfy neither
// condition and are charged for their silence alone.
func (s State) judge(env Env, r Round) {
	a, ok := s.At(r.Attests())
	if !ok {
		return
	}
	quorum, reports := r.Quorum(), uint32(r.b.Reports())
	counts := a.counts()
	accepted := uint32(0)
	_, checkable := a.Agreed()
	for i := range s.Count() {
		if checkable && a.holdable(i) && uint32(counts[i]) >= quorum && s.status(i) != StatusEjected {
			setBit(a.accepted(), i)
			accepted++
		}
	}
	a.b.SetAcceptedLen(accepted)
	a.b.SetFinal(true)
	carried := accepted >= committee.Quorum(a.ExpectedCount()-1)
	for _, d := range a.deal() {
		i := d.member
		if a.Accepted(i) {
			s.pay(i, a.Number(), d.count)
			continue
		}
		s.book().Missed(i, a.Number())
		for _, v := range d.spans {
			s.pushRedo(v)
		}
		refused := uint32(counts[i])+quorum <= reports
		if checkable && (refused || carried) && s.status(i) == StatusActive {
			s.miss(i, env)
		}
	}
}

// pay credits member i with the points of an accepted result.
func (s State) pay(i, round, sequences uint32) {
	b := s.place(i)
	b.SetPoints(b.Points() + uint64(sequences))
	b.SetResults(b.Results() + 1)
	if b.FirstRound() == 0 {
		b.SetFirstRound(round)
	}
	b.SetLastRound(round)
	s.h().SetPointsTotal(s.PointsTotal() + uint64(sequences))
	s.book().Accepted(i, round, sequences)
	if Status(b.Status()) == StatusActive {
		b.SetMissed(0)
	}
}

// endEpoch enters Cooldown after round r. If the last parameters were not agreed, the members
// return to the last agreed ones. Results of r that no round attested are not accepted; that
// happens only if all members left before the epoch had drained.
func (s State) endEpoch(env Env, r Round, agreed bool) {
	if !r.Final() {
		for _, v := range r.Spans() {
			s.pushRedo(v)
		}
		r.b.SetFinal(true)
	}
	if !agreed {
		s.h().SetRollbacks(s.Rollbacks() + 1)
	}
	s.h().SetDrain(0)
	s.h().SetRepeats(0)
	s.settle()
	s.chooseCheckpointers(env, r)
	s.enter(Cooldown, env)
}

// chooseCheckpointers draws up to three members to make the epoch's checkpoint. It draws them from
// the witnesses that named the agreed parameters in the last round, because those certainly hold
// them. If there are none, it draws from all active members.
func (s State) chooseCheckpointers(env Env, r Round) {
	var from []uint32
	if hash, ok := r.Agreed(); ok {
		for p := range r.electedLen() {
			i := r.electedAt(p)
			if r.reported(p) && r.report(p).Params == hash && s.status(i) == StatusActive {
				from = append(from, i)
			}
		}
	}
	if len(from) == 0 {
		from = s.activeMembers()
	}
	n := uint32(len(from))
	roundSeed := r.Seed()
	seed := wire.Sum("entrain/checkpointers", env.Seed[:], roundSeed[:])
	chosen := min(n, checkpointersMax)
	s.h().SetCheckpointersLen(uint8(chosen))
	for p := range uint32(checkpointersMax) {
		i := uint32(0)
		if p < chosen {
			i = from[committee.Member(seed, committee.Trainers, n, p)]
		}
		s.h().SetCheckpointer(p, i)
	}
}
