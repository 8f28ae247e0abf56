package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// This file works off what is in proportion to a run's members when time ends a round or a warmup.
// A message does all of it, unless its host bounds the work (Env.Work): then it is a closing, which
// Ticks continue. Between them the state takes no other message, and chance is that of the block
// in which the closing began, so the senders of the Ticks, and their times, decide nothing.

// The stages of a closing. Header.Closing is the current stage, Header.Cursor how much of it
// is done.
const (
	closed     = 0
	warming    = 1 // charges the members that are late for the epoch
	agreeing   = 2 // the first of a round's end: agrees on parameters
	lining     = 3 // puts the members in the line of the attested round
	accepting  = 4
	judging    = 5
	relining   = 6 // puts them in the line of the round before, if it is another
	rewarding  = 7
	continuing = 8 // charges silent witnesses, and opens the next round or ends the epoch
	preparing  = 9 // prepares the draw of checks
	drawing    = 10
	clearing   = 11
	dividing   = 12 // divides the batch by speeds
	reclearing = 13
	settling   = 14 // settles scores: the only stage of a closing that is not a round's end
)

// What stages take on Solana for each member, in compute units at most.
const (
	lineUnits    = 115
	acceptUnits  = 85
	judgeUnits   = 90
	missUnits    = 420 // besides, of a member that has missed
	rewardUnits  = 80
	openUnits    = 130
	clearUnits   = 25
	countUnits   = 60
	prepareUnits = 160
	drawUnits    = 180
	checkUnits   = 6800 // besides, if a check is drawn
	lookUnits    = 50   // besides, for each place of a verifier or of a check that is looked at
	scoredUnits  = 60   // besides, of its share, if work is scored
)

func (env Env) work() *record.Meter {
	if env.Work == 0 {
		return &record.Meter{Left: 1<<64 - 1}
	}
	return &record.Meter{Left: env.Work}
}

// opening returns what it takes to open a round.
func (s State) opening() uint64 { return openUnits * uint64(s.Count()) }

// units returns what a stage takes for a share of the round.
func (r RoundState) units(plain uint64) uint64 {
	if r.s.l.Validators > 0 {
		plain += scoredUnits
	}
	return plain
}

// Closing reports whether a closing is under way. Until Ticks have ended it, the run refuses
// other messages.
func (s State) Closing() bool { return s.h().Closing() != closed }

// begin begins a closing with a stage, if none is under way. It returns the closing's environment.
func (s State) begin(env Env, stage uint8) Env {
	if !s.Closing() {
		s.h().SetClosing(stage)
		s.h().SetClosingSeed(env.Seed)
	}
	env.Seed = s.h().ClosingSeed()
	return env
}

// end ends a closing.
func (s State) end() {
	s.h().SetClosing(closed)
	s.h().SetCursor(0)
	s.h().SetClosingSeed(wire.Hash{})
	s.cases().End()
}

// clearLines removes what a closing has noted in a place.
func (s State) clearLines(p uint32) {
	b := s.place(Member(p))
	b.SetLine(0)
	b.SetVerifier(0)
}

// lineAt returns the member at a position of the line that a closing keeps.
func (s State) lineAt(p uint32) Member { return Member(s.place(Member(p)).Line()) }

// endRound settles the current round and opens the next, or ends the epoch. It reports whether that
// is done.
func (s State) endRound(env Env, w *record.Meter) bool {
	env = s.begin(env, agreeing)
	for ; s.h().Closing() < settling; s.h().SetCursor(0) {
		if !s.stage(env, w) {
			return false
		}
		s.h().SetClosing(s.h().Closing() + 1)
	}
	s.end()
	return true
}

// stage continues the current stage of a round's end, and reports whether it is done.
func (s State) stage(env Env, w *record.Meter) bool {
	stage, number := s.h().Closing(), s.Round()
	if stage > continuing && s.Phase() == RoundTrain {
		number-- // the next one has opened
	}
	r := s.slot(number)
	p, agreed := s.At(number - 1)
	agreed = agreed && p.b.Agreed()
	a, attests := s.At(r.Attests())
	checks := agreed && s.Phase() == RoundTrain && s.h().VerificationPercent() > 0 && p.Final()
	n := uint64(s.Count())
	switch {
	case stage == agreeing:
		if !w.Takes(100_000) {
			return false
		}
		s.agree(env, r)
	case stage == lining && attests:
		return w.Takes(lineUnits*n) && a.keepLine()
	case stage == accepting && attests:
		return w.Takes(acceptUnits*n) && s.accept(r, a)
	case stage == judging && attests:
		return s.judge(env, r, a, w)
	case stage == relining && agreed && !(attests && a.Number() == p.Number()):
		return w.Takes(lineUnits*n) && p.keepLine()
	case stage == rewarding && agreed:
		return s.reward(p, w)
	case stage == continuing:
		if !w.Takes(s.opening()) {
			return false
		}
		s.judgeSilence(env, r)
		s.next(env, r, agreed)
	case stage == preparing && checks:
		return s.prepareChecks(p, w)
	case stage == drawing && checks:
		return s.drawChecks(env, p, w)
	case stage == clearing, stage == reclearing && s.l.Speeds:
		return s.buffer().Each(w, uint32(n), clearUnits, s.clearLines)
	case stage == dividing && s.l.Speeds && s.Phase() == RoundTrain && s.slot(s.Round()).Trains():
		return s.slot(s.Round()).divide(w)
	}
	return true
}
