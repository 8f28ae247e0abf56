package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
)

// Slots: how many members there are at a time, and who makes room for a newcomer.

// JoinCost returns what registering costs the key if it joins now, besides the stake: nothing where it was a member before and was
// not replaced.
func (s State) JoinCost(pub key.Public) uint64 {
	if i, ok := s.Find(pub); ok && s.status(i) != StatusReplaced {
		return 0
	}
	return s.h().RegisterCost()
}

// Immune tells whether member i came so recently that nobody can replace it. Who came during the epoch and has to wait for the
// next one is immune as long as it waits, and only then its time begins.
func (s State) Immune(i uint32) bool {
	windows := s.h().ImmuneWindows()
	since := s.member(i).Since()
	return windows > 0 && (s.waitsFirst(i) || s.Window()-min(since, s.Window()) < windows)
}

// waitsFirst tells whether member i came since the epoch began, and so could not take part yet.
func (s State) waitsFirst(i uint32) bool {
	return s.status(i) != StatusActive && s.place(i).Since() >= s.h().EpochRound()
}

// standing returns the moving average of member i's scores; who was never scored stands at 0.
func (s State) standing(i uint32) uint16 {
	if score := s.place(i).Score(); score != 0 {
		return score
	}
	return score.Zero
}

// slotFor returns who must make room if i, a member from before if known, joins: NoMember if nobody need. A fresh one replaces
// the worst of those who are not immune, of several the one that came last; another one only who is worse than it was itself.
// One is replaced in a window at most, so that whoever pays for many newcomers does not take the run over at once.
func (s State) slotFor(i uint32, known, fresh bool) (uint32, Error) {
	if s.Present() < s.buffer().SlotsMax() || s.h().Slots() == 0 {
		return NoMember, OK
	}
	if s.book().SeatsMax() == 0 || s.h().Replaced() > s.Window() {
		return NoMember, ErrSlots
	}
	worst, found := uint32(0), false
	for j := range s.Count() {
		if !s.status(j).Present() || s.Immune(j) {
			continue
		}
		score := s.standing(j)
		if !found || score < s.standing(worst) ||
			score == s.standing(worst) && s.place(j).Since() > s.place(worst).Since() {
			worst, found = j, true
		}
	}
	if !found || known && !fresh && s.standing(worst) >= s.standing(i) {
		return NoMember, ErrSlots
	}
	return worst, OK
}

// replace lets member i give its slot up.
func (s State) replace(i uint32, env Env) {
	s.leave(i, StatusReplaced, env)
	s.h().SetReplaced(s.Window() + 1)
}
