package score

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// The part of coordinator.Open that is about validators and scores.

// WellFormed reports whether this package can have written its parts of the buffer.
func (s Book) WellFormed() bool { return s.validatorsOK() && s.talliesOK() && s.scoresOK() }

func (s Book) validatorsOK() bool {
	var keys []key.Public // that have a seat or wait for one
	for k := range s.Layout.Validators {
		b, next := s.Seat(k), s.Bench(k)
		if k >= s.SeatsMax() {
			if !record.Zero(b) || !record.Zero(next) {
				return false
			}
			continue
		}
		if !s.taken(k) && !record.Zero(b) || s.taken(k) && b.Stake() == 0 {
			return false
		}
		if s.taken(k) {
			keys = append(keys, b.Key())
		}
		if waits(next) && !(s.taken(k) && next.Key() == b.Key()) {
			keys = append(keys, next.Key())
		}
		if !waits(next) && !left(next) && !record.Zero(next) || next.Until() != 0 || waits(next) && next.Balance()+next.Earned() > 0 {
			return false
		}
		for _, b := range []record.Seat{b, next} {
			if b.Since() > s.Window() || b.Until() > s.PeriodAt(s.Window()) || !b.WellFormed() {
				return false
			}
		}
	}
	slices.SortFunc(keys, key.Public.Compare)
	if len(slices.Compact(slices.Clone(keys))) < len(keys) {
		return false
	}
	end := s.Layout.Seats + 2*record.SeatBytes*s.Layout.Validators
	return record.Zero(s.B[end:s.Layout.Tallies])
}

// talliesOK checks the tallies: only members have a part, and only accepted results have a score.
func (s Book) talliesOK() bool {
	if s.Layout.Validators == 0 {
		return true
	}
	now, kept := s.PeriodAt(s.Window()), uint32(record.TalliesKept)
	if s.h().Closing() != 0 {
		kept += 2 // what windows that have passed settle is being settled
	}
	for k := range uint32(record.TalliesKept) {
		t := s.TallyOf(k)
		p := t.Period()
		if p == 0 || s.SeatsMax() == 0 {
			if !record.Zero(t) {
				return false
			}
			continue
		}
		if p%record.TalliesKept != k || p > now || p+kept <= now || !t.WellFormed() {
			return false
		}
		for i := range s.h().Count() {
			b := t.Work(i)
			settled := (p <= s.Settled() || s.settling(p)) && b.Sequences() > 0
			if !settled && (b.Weight() != 0 || b.Amount() != 0 || b.Score() != 0) || !b.WellFormed() || b.Weight() > WeightOne {
				return false
			}
		}
		if !record.Zero(t[record.TallyBytes+record.WorkBytes*s.h().Count():]) {
			return false
		}
	}
	return true
}

// settling reports whether a closing may be settling a period.
func (s Book) settling(p uint32) bool { return s.h().Closing() != 0 && p == s.Settled()+1 }

func (s Book) scoresOK() bool {
	if s.Layout.Validators == 0 {
		return true
	}
	for slot := range uint32(record.BallotsKept) {
		b := s.Ballots(slot)
		p := b.Period()
		if p == 0 || s.SeatsMax() == 0 {
			if !record.Zero(b) {
				return false
			}
			continue
		}
		if p%record.BallotsKept != slot || p > s.Settled()+1 || p >= s.PeriodAt(s.Window()) || !b.WellFormed() {
			return false
		}
		for k := range s.Layout.Validators {
			if !s.saidOK(p, k) {
				return false
			}
		}
		if !record.Zero(b[record.PeriodBytes+s.Layout.Validators*(record.BallotBytes+2*s.Layout.Members):]) {
			return false
		}
	}
	return true
}

// saidOK checks the ballot of the validator in seat k in period p.
func (s Book) saidOK(p, k uint32) bool {
	b, given := s.Ballot(p, k), s.Given(p, k)
	unsettled := b.Stake() == 0 && b.Reward() == 0 && b.Agreement() == 0 && b.Trust() == 0
	switch {
	case !b.WellFormed():
	case s.settling(p): // its numbers may be those of a settlement that goes on
		return k < s.SeatsMax() || record.Zero(b) && record.Zero(given)
	case b.Hash().IsZero() || k >= s.SeatsMax():
		return record.Zero(b) && record.Zero(given)
	case !b.Revealed() && !record.Zero(given), !record.Zero(given[2*s.h().Count():]):
	case p > s.Settled() && (!unsettled || !s.taken(k) || b.Key() != s.Seat(k).Key()):
	default:
		return true
	}
	return false
}
