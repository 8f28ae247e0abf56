package dispute

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// The part of coordinator.Open that is about checks, disputes and convictions.

// TrustOK reports whether the doubt, counters and points of a member can occur.
func TrustOK(b record.Place) bool {
	switch doubt := b.Doubt(); {
	case doubt < DoubtMin, doubt > DoubtMax:
	case b.Strikes() > StrikesMax, b.Astray() >= AstrayMax:
	case b.Settled() > b.Points(), b.Claimed() > b.Settled():
	case b.EpochPoints() > b.Points():
	default:
		return true
	}
	return false
}

// checkOK reports whether a check can occur, in its own table or in a dispute.
func (s Cases) checkOK(b record.Check) bool {
	c := readCheck(b)
	switch {
	case s.h().VerificationPercent() == 0, !b.WellFormed():
	case c.Round > s.h().Round(), c.Epoch > s.h().Epoch(), c.Member >= s.h().Count(), c.Verifier >= s.h().Count():
	case c.Member == c.Verifier:
	default:
		return true
	}
	return false
}

// checksOK reports whether the table of checks can occur, and whether disputes and disputed checks
// match.
func (s Cases) checksOK() bool {
	disputed, disputes := 0, 0
	for k := range s.Layout.ChecksMax {
		b := s.Check(k)
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
		if !ok || !s.Check(at).Disputed() {
			return false
		}
	}
	return disputed == disputes && record.Zero(s.B[s.Layout.Checks+record.CheckBytes*s.Layout.ChecksMax:s.Layout.Disputes])
}

func (s Cases) disputesOK() bool {
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
	return record.Zero(s.B[s.Layout.Disputes+record.DisputeBytes*record.DisputesMax : s.Layout.Convictions])
}

// sidesOK checks the sides and the subject of a dispute.
func (d dispute) sidesOK() bool {
	s, v := d.s, d.commitment()
	accuser := d.b.Accuser()
	switch {
	case d.b.ID() == 0, d.b.ID() > s.h().Disputes():
	case accuser == NoMember && d.stage() != StageTieBreaking:
	case accuser != NoMember && (accuser >= s.h().Count() || accuser == d.accused()):
	case d.b.Unserved():
		return d.stage() == StageTieBreaking && record.Zero(d.b.Commitment())
	default:
		return v.Run == s.h().ID() && v.Round == d.b.Check().Round() && v.Member == d.accused()
	}
	return false
}

// stageOK checks that the fields of a dispute fit its stage.
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
		if v.Member >= d.s.h().Count() || v.Member == d.accused() || v.Vote > VoteUnserved || !b.WellFormed() {
			return false
		}
	}
	return true
}

func (s Cases) convictionsOK() bool {
	total := s.h().Convictions()
	if total > record.CountMax {
		return false
	}
	for n := total - min(total, record.ConvictionsMax); n < total; n++ {
		b := s.Conviction(n + 1)
		by := b.By()
		offence := Offence(b.Offence())
		if b.Number() != n+1 || b.Member() >= record.Member(s.Layout.Members) || by != NoMember && by >= record.Member(s.Layout.Members) ||
			offence < WrongResult || offence > Contradiction || !b.WellFormed() {
			return false
		}
	}
	used := record.ConvictionBytes * min(total, record.ConvictionsMax)
	return record.Zero(s.B[s.Layout.Convictions+used : s.Layout.Seats])
}

// drawOK checks that nothing is noted of a draw unless one may go on.
func (s Cases) drawOK() bool {
	h := s.h()
	noted := h.Drawn() > 0 || h.CheckPlace() > 0
	for k := range uint32(4) {
		noted = noted || h.Stream(k) > 0
	}
	for w := range uint32(DoubtMax + 1) {
		noted = noted || h.Doubts(w) > 0
	}
	return !noted || h.Closing() != 0
}

// WellFormed reports whether this package can have written its parts of the buffer.
func (s Cases) WellFormed() bool {
	return s.checksOK() && s.disputesOK() && s.convictionsOK() && s.drawOK()
}
