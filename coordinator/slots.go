package coordinator

// Slots: how many members there are at a time, and who makes room for a newcomer.

// slots returns how many members there may be at a time.
func (s State) slots() uint32 {
	if n := getU32(s.b, hSlots); n > 0 {
		return n
	}
	return s.l.members
}

// Immune tells whether member i came so recently that nobody can replace it.
func (s State) Immune(i uint32) bool {
	return s.Window()-min(getU32(s.member(i), mSince), s.Window()) < getU32(s.b, hImmuneWindows)
}

// neutralScore is what a member that was never scored counts as.
func (s State) standing(i uint32) uint16 {
	if score := getU16(s.place(i), mScore); score != 0 {
		return score
	}
	return scoreZero
}

// slotFor returns who must make room if i, a member from before if known, joins: NoMember if nobody need. A fresh one replaces
// the worst of those who are not immune, of several the one that came last; another one only who is worse than it was itself.
func (s State) slotFor(i uint32, known, fresh bool) (uint32, Error) {
	if s.Present() < s.slots() || getU32(s.b, hSlots) == 0 {
		return NoMember, OK
	}
	if getU16(s.b, hConfigValidators) == 0 {
		return NoMember, ErrSlots
	}
	worst, found := uint32(0), false
	for j := range s.Count() {
		if !s.status(j).Present() || s.Immune(j) {
			continue
		}
		score := s.standing(j)
		if !found || score < s.standing(worst) ||
			score == s.standing(worst) && getU32(s.place(j), mSince) > getU32(s.place(worst), mSince) {
			worst, found = j, true
		}
	}
	if !found || known && !fresh && s.standing(worst) >= s.standing(i) {
		return NoMember, ErrSlots
	}
	return worst, OK
}
