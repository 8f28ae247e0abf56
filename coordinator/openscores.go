package coordinator

// The checks of Open on what validators and scores have written.

func (s State) validatorsOK() bool {
	for k := range s.l.validators {
		b := s.seat(k)
		if k >= s.seats() || !s.taken(k) {
			if !allZero(b) {
				return false
			}
			continue
		}
		if getU64(b, vStake) == 0 || getU32(b, vSince) > s.Window() || !allZero(b[vEnd:]) {
			return false
		}
		for j := range k {
			if s.taken(j) && get32(s.seat(j), vKey) == get32(b, vKey) {
				return false
			}
		}
	}
	end := s.l.validatorsAt + validatorBytes*s.l.validators
	return allZero(s.b[end:s.l.tallies])
}

// talliesOK checks the tallies of periods: only members have a part, and only those with accepted results a score.
func (s State) talliesOK() bool {
	if s.l.validators == 0 {
		return true
	}
	now := s.period(s.Window())
	for k := range uint32(talliesKept) {
		t := s.tallyOf(k)
		p := getU32(t, tPeriod)
		if p == 0 || s.seats() == 0 {
			if !allZero(t) {
				return false
			}
			continue
		}
		if p%talliesKept != k || p > now || p+talliesKept <= now || !allZero(t[tMembers-4:tMembers]) {
			return false
		}
		for i := range s.Count() {
			b := tallied(t, i)
			settled := p <= s.settled() && getU32(b, tSequences) > 0
			if !settled && !allZero(b[tWeight:tMissed]) || getU8(b, tMissed) > 1 || !allZero(b[tEnd:]) || getU32(b, tWeight) > WeightOne {
				return false
			}
		}
		if !allZero(t[tMembers+tallyBytes*s.Count():]) {
			return false
		}
	}
	return true
}

func (s State) scoresOK() bool {
	if s.l.validators == 0 {
		return true
	}
	for slot := range uint32(scoresKept) {
		b := s.periodScores(slot)
		p := getU32(b, sPeriod)
		if p == 0 || s.seats() == 0 {
			if !allZero(b) {
				return false
			}
			continue
		}
		if p%scoresKept != slot || p > s.settled()+1 || p >= s.period(s.Window()) || !allZero(b[sSeats-4:sSeats]) {
			return false
		}
		for k := range s.l.validators {
			if !s.saidOK(p, k) {
				return false
			}
		}
		if !allZero(b[sSeats+s.l.validators*(seatBytes+2*s.l.members):]) {
			return false
		}
	}
	return true
}

// saidOK checks what the validator in seat k said about period p.
func (s State) saidOK(p, k uint32) bool {
	b, given := s.said(p, k), s.given(p, k)
	revealed := getU8(b, sRevealed)
	switch {
	case revealed > 1, !allZero(b[sEnd:]):
	case allZero(b[sHash:sHash+32]) || k >= s.seats():
		return allZero(b) && allZero(given)
	case revealed == 0 && !allZero(given), !allZero(given[2*s.Count():]):
	case p > s.settled() && (!allZero(b[sStake:sRevealed]) || !s.taken(k) || get32(b, sKey) != get32(s.seat(k), vKey)):
	default:
		return true
	}
	return false
}
