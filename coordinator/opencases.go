package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// The checks of Open on what verification, disputes and tokens have written.

// tokensOK checks that the escrow is what it is made of, and the numbers that may only grow.
func (s State) tokensOK() bool {
	sum := s.Treasury()
	if sum > TokensMax || s.Escrow() > TokensMax {
		return false
	}
	for i := range s.Count() {
		b := s.place(i)
		stake, balance := b.Stake(), b.Balance()
		if stake > TokensMax || balance > TokensMax {
			return false
		}
		sum += stake
		if sum > TokensMax {
			return false
		}
		sum += balance
		if sum > TokensMax {
			return false
		}
		unripe := b.Unvested()
		if unripe > TokensMax-sum {
			return false
		}
		sum += unripe
	}
	for k := range s.l.Validators {
		b := s.buffer().Seat(k)
		stake, balance := b.Stake(), b.Balance()
		if stake > TokensMax-sum || balance > TokensMax-sum-stake {
			return false
		}
		sum += stake + balance
	}
	return sum == s.Escrow()
}

// trustOK checks what a place of the table of members says about trust and points.
func trustOK(b record.Member) bool {
	switch doubt := b.Doubt(); {
	case doubt < doubtMin, doubt > doubtMax:
	case b.Strikes() > strikesMax, b.Astray() >= astrayMax:
	case b.Settled() > b.Points(), b.Claimed() > b.Settled():
	case b.EpochPoints() > b.Points():
	default:
		return true
	}
	return false
}

// checkOK checks the fields of a check, in its own table or in that of disputes.
func (s State) checkOK(b record.Check) bool {
	c := readCheck(b)
	switch {
	case s.h().VerificationPercent() == 0, !b.WellFormed():
	case c.Round > s.Round(), c.Epoch > s.Epoch(), c.Member >= s.Count(), c.Verifier >= s.Count():
	case c.Member == c.Verifier:
	default:
		return true
	}
	return false
}

// checksOK checks the table of checks: those in dispute are as many as there are disputes, and each dispute has its check.
func (s State) checksOK() bool {
	disputed, disputes := 0, 0
	for k := range s.l.ChecksMax {
		b := s.check(k)
		if b.Round() == 0 {
			if !record.Zero(b) {
				return false
			}
			continue
		}
		if !s.checkOK(b) {
			return false
		}
		if b.Disputed() {
			disputed++
		}
	}
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() {
			continue
		}
		disputes++
		at, ok := s.findCheck(d.b.Check().Round(), d.accused())
		if !ok || !s.check(at).Disputed() {
			return false
		}
	}
	return disputed == disputes && record.Zero(s.b[s.l.Checks+record.CheckBytes*s.l.ChecksMax:s.l.Disputes])
}

func (s State) disputesOK() bool {
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() {
			if !record.Zero(d.b) {
				return false
			}
			continue
		}
		if !s.checkOK(d.b.Check()) || !d.b.Check().Disputed() || !d.b.WellFormed() || !d.sidesOK() || !d.stageOK() || !d.tiesOK() {
			return false
		}
		for j := range k {
			if o := s.dispute(j); o.b.ID() == d.b.ID() {
				return false
			}
		}
	}
	return record.Zero(s.b[s.l.Disputes+record.DisputeBytes*record.DisputesMax : s.l.Convictions])
}

// sidesOK checks who disputes about what.
func (d dispute) sidesOK() bool {
	s, v := d.s, d.commitment()
	accuser := d.b.Accuser()
	switch {
	case d.b.ID() == 0, d.b.ID() > s.DisputesTotal():
	case accuser == NoMember && d.stage() != StageTieBreaking:
	case accuser != NoMember && (accuser >= s.Count() || accuser == d.accused()):
	case d.b.Unserved():
		return d.stage() == StageTieBreaking && record.Zero(d.b.Commitment())
	default:
		return v.Run == s.ID() && v.Round == d.b.Check().Round() && v.Member == d.accused()
	}
	return false
}

// stageOK checks that a dispute's fields are those of its stage.
func (d dispute) stageOK() bool {
	stage, level, depth := d.stage(), d.level(), d.b.Depth()
	accused, accuser := d.b.Revealed(Accused), d.b.Revealed(Accuser)
	if accused && accuser || !accused && !accuser && d.children() != [bisect.Fan]wire.Hash{} {
		return false
	}
	switch stage {
	case StageTieBreaking, StageDefending:
		return !d.b.Defended() && level == 0 && depth == 0 && !accused && !accuser
	case StageDescending:
		return d.b.Defended() && level >= LevelOps && level <= LevelSlices && depth > 0 && depth <= bisect.DepthMax
	case StageEvidence:
		return d.b.Defended() && level == LevelSlices && depth == 0 && !accused && !accuser
	}
	return false
}

func (d dispute) tiesOK() bool {
	n := d.b.TiesLen()
	if n > record.TiesMax {
		return false
	}
	for p := range uint32(record.TiesMax) {
		b, v := d.b.Tie(p), d.tie(p)
		if p >= uint32(n) {
			if !record.Zero(b) {
				return false
			}
			continue
		}
		if v.Member >= d.s.Count() || v.Member == d.accused() || v.Vote > VoteUnserved || !b.WellFormed() {
			return false
		}
	}
	return true
}

func (s State) convictionsOK() bool {
	total := s.ConvictionsTotal()
	if total > countMax {
		return false
	}
	for n := total - min(total, record.ConvictionsMax); n < total; n++ {
		b := s.conviction(n + 1)
		by := b.By()
		offence := Offence(b.Offence())
		if b.Number() != n+1 || b.Member() >= s.l.Members || by != NoMember && by >= s.l.Members ||
			offence < WrongResult || offence > Contradiction || !b.WellFormed() {
			return false
		}
	}
	used := record.ConvictionBytes * min(total, record.ConvictionsMax)
	return record.Zero(s.b[s.l.Convictions+used : s.l.Seats])
}
