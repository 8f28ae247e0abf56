package coordinator

import "github.com/entrain-network/entrain/wire"

// This file works off what is in proportion to a run's members when time ends a round or a warmup.
// A message does all of it, unless its host bounds the work (Env.Work): then it is a closing, which
// Ticks continue. Between them the state takes no other message, and chance is that of the block
// in which the closing began, so the senders of the Ticks, and their times, decide nothing.

// The stages of a closing. Header.Closing is the stage that goes on, Header.Cursor how much of it
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
	scoring    = 14 // leaves the settling of a period to a message that does nothing else
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
	drawUnits    = 160
	checkUnits   = 6000 // besides, if a check is drawn
	lookUnits    = 50   // besides, for each place of a verifier or of a check that is looked at
	sortUnits    = 110  // for each step that divides a batch
	roundUnits   = 60
	scoredUnits  = 60 // besides, of its share, if work is scored
)

// work bounds what a message does of a closing.
type work struct {
	left    uint64
	started bool
}

func (env Env) work() *work {
	if env.Work == 0 {
		return &work{left: 1<<64 - 1}
	}
	return &work{left: env.Work}
}

// takes reports whether the message does something more that takes these units. It always does
// one thing.
func (w *work) takes(units uint64) bool {
	if w.left < units && w.started {
		return false
	}
	w.started = true
	w.spends(units)
	return true
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

// spends counts units that the message has taken besides.
func (w *work) spends(units uint64) { w.left -= min(w.left, units) }

// Closing reports whether a closing goes on: until Ticks have ended it, other messages are refused.
func (s State) Closing() bool { return s.h().Closing() != closed }

// begin begins a closing with a stage, if none goes on. It returns the environment of the closing.
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

// chunk returns up to where below n the message visits numbers from p on, at these units each. It
// returns p if there is no more work to do.
func (w *work) chunk(p, n uint32, units uint64) uint32 {
	some := uint32(max(1, min(uint64(n-p), chunkMost, w.left/units)))
	if p >= n || !w.takes(uint64(some)*units) {
		return p
	}
	return p + some
}

// chunkMost bounds a chunk. To look whether there is work left takes time, too.
const chunkMost = 64

// each calls visit for the numbers below n that are left of the stage, as far as the work goes, and
// reports whether the stage is done.
func (s State) each(w *work, n uint32, units uint64, visit func(p uint32)) bool {
	p := s.h().Cursor()
	for to := w.chunk(p, n, units); p < to; to = w.chunk(p, n, units) {
		for ; p < to; p++ {
			visit(p)
		}
	}
	s.h().SetCursor(p)
	return p >= n
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
func (s State) endRound(env Env, w *work) bool {
	env = s.begin(env, agreeing)
	for ; s.h().Closing() <= scoring; s.h().SetCursor(0) {
		if !s.stage(env, w) {
			return false
		}
		s.h().SetClosing(s.h().Closing() + 1)
	}
	s.end()
	return true
}

// stage continues the current stage of a round's end, and reports whether it is done.
func (s State) stage(env Env, w *work) bool {
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
		if !w.takes(100_000) {
			return false
		}
		s.agree(env, r)
	case stage == lining && attests:
		return w.takes(lineUnits*n) && a.keepLine()
	case stage == accepting && attests:
		return w.takes(acceptUnits*n) && s.accept(r, a)
	case stage == judging && attests:
		return s.judge(env, r, a, w)
	case stage == relining && agreed && !(attests && a.Number() == p.Number()):
		return w.takes(lineUnits*n) && p.keepLine()
	case stage == rewarding && agreed:
		return s.reward(p, w)
	case stage == continuing:
		if !w.takes(s.opening()) {
			return false
		}
		s.judgeSilence(env, r)
		s.next(env, r, agreed)
	case stage == preparing && checks:
		return s.prepareChecks(p, w)
	case stage == drawing && checks:
		return s.drawChecks(env, p, w)
	case stage == clearing, stage == reclearing && s.l.Speeds:
		return s.each(w, uint32(n), clearUnits, s.clearLines)
	case stage == dividing && s.l.Speeds && s.Phase() == RoundTrain && s.slot(s.Round()).Trains():
		return s.slot(s.Round()).divide(w)
	case stage == scoring && s.book().Settles():
		return w.takes(1 << 32)
	}
	return true
}
