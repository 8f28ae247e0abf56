package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
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
	immune, waits := s.immuneSince()
	since := int64(s.member(i).Since())
	return since >= immune || since >= waits && s.status(i) != StatusActive
}

// immuneSince returns the first window from which a member is immune, and the first from which it
// is if it is not active.
func (s State) immuneSince() (all, waiting int64) {
	windows := int64(s.h().ImmuneWindows())
	if windows == 0 {
		return 1 << 62, 1 << 62
	}
	return int64(s.Window()) - windows + 1, int64(s.h().EpochRound())
}

// waitsFirst reports whether member i joined after the epoch began, and so has not yet taken part.
func (s State) waitsFirst(i Member) bool {
	return s.status(i) != StatusActive && s.place(i).Since() >= s.h().EpochRound()
}

// standing returns the moving average of a member's scores. It is 0 for a member that was never
// scored.
func standing(b record.Place) uint16 {
	if score := b.Score(); score != 0 {
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
	if s.h().Slots() == 0 {
		return dispute.NoMember, OK
	}
	worst, lowest, present := Member(dispute.NoMember), uint64(1<<64-1), uint32(0)
	immune, waits := s.immuneSince()
	places := s.buffer().Places()
	for j := range s.Count() {
		b := places.At(j)
		status, since := Status(b.Status()), b.Since()
		if !status.Present() {
			continue
		}
		present++
		if int64(since) >= immune || status != StatusActive && int64(since) >= waits {
			continue
		}
		if rank := uint64(standing(b))<<32 | uint64(^since); rank < lowest {
			worst, lowest = j, rank
		}
	}
	switch {
	case present < s.h().Slots():
		return dispute.NoMember, OK
	case s.book().SeatsMax() == 0, s.h().Replaced() > s.Window(), worst == dispute.NoMember,
		known && !fresh && lowest>>32 >= uint64(standing(s.place(i))):
		return dispute.NoMember, ErrSlots
	}
	return worst, OK
}

// replace removes member i from its slot.
func (s State) replace(i Member, env Env) {
	s.leave(i, StatusReplaced, env)
	s.h().SetReplaced(s.Window() + 1)
}
