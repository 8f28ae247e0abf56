package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
)

// This file implements slots, which bound the number of members at a time and decide which member
// makes room for a newcomer.

// JoinCost returns what registering costs the key if it joins now, besides the stake. It is 0 for a
// former member that was not replaced.
func (s State) JoinCost(pub key.Public) uint64 {
	if i, ok := s.Find(pub); ok && s.status(i) != StatusReplaced {
		return 0
	}
	return s.h().RegisterCost()
}

// Immune reports whether member i joined so recently that it cannot be replaced. A member that
// joined during the epoch is immune until the next one begins, and only then does its time run.
func (s State) Immune(i Member) bool {
	windows := s.h().ImmuneWindows()
	since := s.member(i).Since()
	return windows > 0 && (s.waitsFirst(i) || s.Window()-min(since, s.Window()) < Round(windows))
}

// waitsFirst reports whether member i joined after the epoch began, and so has not yet taken part.
func (s State) waitsFirst(i Member) bool {
	return s.status(i) != StatusActive && s.place(i).Since() >= s.h().EpochRound()
}

// standing returns the moving average of member i's scores. It is 0 for a member that was never
// scored.
func (s State) standing(i Member) uint16 {
	if score := s.place(i).Score(); score != 0 {
		return score
	}
	return score.Zero
}

// slotFor returns the member that must make room if i joins, or NoMember if there is room. known is
// true if i was a member before. A fresh member replaces the lowest-scored member that is not
// immune, and of equal ones the latest to join. A returning one replaces only a member with a lower
// average than its own. At most one member is replaced in a window, so that paying for many
// newcomers does not take over a run at once.
func (s State) slotFor(i Member, known, fresh bool) (Member, Error) {
	if s.h().Slots() == 0 || s.Present() < s.h().Slots() {
		return dispute.NoMember, OK
	}
	if s.book().SeatsMax() == 0 || s.h().Replaced() > s.Window() {
		return dispute.NoMember, ErrSlots
	}
	worst, found := Member(0), false
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
		return dispute.NoMember, ErrSlots
	}
	return worst, OK
}

// replace removes member i from its slot.
func (s State) replace(i Member, env Env) {
	s.leave(i, StatusReplaced, env)
	s.h().SetReplaced(s.Window() + 1)
}
