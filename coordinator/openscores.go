package coordinator

import "github.com/entrain-network/entrain/coordinator/internal/record"

// The checks of Open on what validators and scores have written.

func (s State) validatorsOK() bool {
	for k := range s.l.Validators {
		b := s.seat(k)
		if k >= s.seats() || !s.taken(k) {
			if !record.Zero(b) {
				return false
			}
			continue
		}
		if b.Stake() == 0 || b.Since() > s.Window() || !b.WellFormed() {
			return false
		}
		for j := range k {
			if s.taken(j) && s.seat(j).Key() == b.Key() {
				return false
			}
		}
	}
	end := s.l.Seats + record.SeatBytes*s.l.Validators
	return record.Zero(s.b[end:s.l.Tallies])
}

// talliesOK checks the tallies of periods: only members have a part, and only those with accepted results a score.
func (s State) talliesOK() bool {
	if s.l.Validators == 0 {
		return true
	}
	now := s.period(s.Window())
	for k := range uint32(record.TalliesKept) {
		t := s.tallyOf(k)
		p := t.Period()
		if p == 0 || s.seats() == 0 {
			if !record.Zero(t) {
				return false
			}
			continue
		}
		if p%record.TalliesKept != k || p > now || p+record.TalliesKept <= now || !t.WellFormed() {
			return false
		}
		for i := range s.Count() {
			b := t.Work(i)
			settled := p <= s.settled() && b.Sequences() > 0
			if !settled && (b.Weight() != 0 || b.Amount() != 0 || b.Score() != 0) || !b.WellFormed() || b.Weight() > WeightOne {
				return false
			}
		}
		if !record.Zero(t[record.TallyBytes+record.WorkBytes*s.Count():]) {
			return false
		}
	}
	return true
}

func (s State) scoresOK() bool {
	if s.l.Validators == 0 {
		return true
	}
	for slot := range uint32(record.BallotsKept) {
		b := s.periodScores(slot)
		p := b.Period()
		if p == 0 || s.seats() == 0 {
			if !record.Zero(b) {
				return false
			}
			continue
		}
		if p%record.BallotsKept != slot || p > s.settled()+1 || p >= s.period(s.Window()) || !b.WellFormed() {
			return false
		}
		for k := range s.l.Validators {
			if !s.saidOK(p, k) {
				return false
			}
		}
		if !record.Zero(b[record.PeriodBytes+s.l.Validators*(record.BallotBytes+2*s.l.Members):]) {
			return false
		}
	}
	return true
}

// saidOK checks what the validator in seat k said about period p.
func (s State) saidOK(p, k uint32) bool {
	b, given := s.said(p, k), s.given(p, k)
	unsettled := b.Stake() == 0 && b.Reward() == 0 && b.Agreement() == 0 && b.Trust() == 0
	switch {
	case !b.WellFormed():
	case b.Hash().IsZero() || k >= s.seats():
		return record.Zero(b) && record.Zero(given)
	case !b.Revealed() && !record.Zero(given), !record.Zero(given[2*s.Count():]):
	case p > s.settled() && (!unsettled || !s.taken(k) || b.Key() != s.seat(k).Key()):
	default:
		return true
	}
	return false
}
