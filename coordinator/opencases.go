package coordinator

import "github.com/entrain-network/entrain/bisect"

// The checks of Open on what verification, disputes and tokens have written.

// tokensOK checks that the escrow is what it is made of, and the numbers that may only grow.
func (s State) tokensOK() bool {
	sum := s.Treasury()
	if sum > TokensMax || s.Escrow() > TokensMax {
		return false
	}
	for i := range s.Count() {
		b := s.place(i)
		stake, balance := getU64(b, mStake), getU64(b, mBalance)
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
		unripe := getU64(b, mUnripe)
		if unripe > TokensMax-sum {
			return false
		}
		sum += unripe
	}
	for k := range s.l.validators {
		b := s.seat(k)
		stake, balance := getU64(b, vStake), getU64(b, vBalance)
		if stake > TokensMax-sum || balance > TokensMax-sum-stake {
			return false
		}
		sum += stake + balance
	}
	return sum == s.Escrow()
}

// trustOK checks what a place of the table of members says about trust and points.
func trustOK(b []byte) bool {
	switch doubt := getU8(b, mDoubt); {
	case doubt < doubtMin, doubt > doubtMax:
	case getU8(b, mStrikes) > strikesMax, getU8(b, mAstray) >= astrayMax:
	case getU64(b, mSettled) > getU64(b, mPoints), getU64(b, mClaimed) > getU64(b, mSettled):
	case getU64(b, mRipe) > getU64(b, mPoints):
	case !allZero(b[mAstray+1 : mBalance]), !allZero(b[mLastRound+4 : mPayee]), !allZero(b[mEnd:memberBytes]):
	default:
		return true
	}
	return false
}

// checkOK checks the fields of a check, in its own table or in that of disputes.
func (s State) checkOK(b []byte) bool {
	c := readCheck(b)
	switch {
	case getU8(s.b, hVerification) == 0:
	case c.Round > s.Round(), c.Epoch > s.Epoch(), c.Member >= s.Count(), c.Verifier >= s.Count():
	case c.Member == c.Verifier:
	case getU8(b, kDisputed) > 1, getU8(b, kReassigned) > 1, !allZero(b[kEnd:checkBytes]):
	default:
		return true
	}
	return false
}

// checksOK checks the table of checks: those in dispute are as many as there are disputes, and each dispute has its check.
func (s State) checksOK() bool {
	disputed, disputes := 0, 0
	for k := range s.l.checksMax {
		b := s.check(k)
		if getU32(b, kRound) == 0 {
			if !allZero(b) {
				return false
			}
			continue
		}
		if !s.checkOK(b) {
			return false
		}
		disputed += int(getU8(b, kDisputed))
	}
	for k := range uint32(disputesMax) {
		d := s.dispute(k)
		if d.free() {
			continue
		}
		disputes++
		at, ok := s.findCheck(getU32(d.b, kRound), d.accused())
		if !ok || getU8(s.check(at), kDisputed) == 0 {
			return false
		}
	}
	return disputed == disputes && allZero(s.b[s.l.checks+checkBytes*s.l.checksMax:s.l.disputes])
}

func (s State) disputesOK() bool {
	for k := range uint32(disputesMax) {
		d := s.dispute(k)
		if d.free() {
			if !allZero(d.b) {
				return false
			}
			continue
		}
		if !s.checkOK(d.b) || getU8(d.b, kDisputed) != 1 || !d.sidesOK() || !d.stageOK() || !d.tiesOK() {
			return false
		}
		for j := range k {
			if o := s.dispute(j); o.id() == d.id() {
				return false
			}
		}
	}
	return allZero(s.b[s.l.disputes+disputeBytes*disputesMax : s.l.convictions])
}

// sidesOK checks who disputes about what.
func (d dispute) sidesOK() bool {
	s, v := d.s, d.commitment()
	accuser := d.accuser()
	switch {
	case d.id() == 0, d.id() > s.DisputesTotal():
	case accuser == NoMember && d.stage() != StageTieBreaking:
	case accuser != NoMember && (accuser >= s.Count() || accuser == d.accused()):
	case getU8(d.b, dUnserved) > 1, !allZero(d.b[dEnd:]):
	case d.unserved():
		return d.stage() == StageTieBreaking && allZero(d.b[dCommitment:dEnd])
	default:
		return v.Run == s.ID() && v.Round == getU32(d.b, kRound) && v.Member == d.accused()
	}
	return false
}

// stageOK checks that a dispute's fields are those of its stage.
func (d dispute) stageOK() bool {
	stage, level, depth := d.stage(), d.level(), getU8(d.b, dDepth)
	accused, accuser := d.b[dRevealed+Accused], d.b[dRevealed+Accuser]
	if accused+accuser > 1 || accused > 1 || accused+accuser == 0 && !allZero(d.b[dChildren:dTies]) {
		return false
	}
	switch stage {
	case StageTieBreaking, StageDefending:
		return getU8(d.b, dDefended) == 0 && level == 0 && depth == 0 && accused+accuser == 0
	case StageDescending:
		return getU8(d.b, dDefended) == 1 && level >= LevelOps && level <= LevelSlices && depth > 0 && depth <= bisect.DepthMax
	case StageEvidence:
		return getU8(d.b, dDefended) == 1 && level == LevelSlices && depth == 0 && accused+accuser == 0
	}
	return false
}

func (d dispute) tiesOK() bool {
	n := getU8(d.b, dTiesLen)
	if n > tiesMax {
		return false
	}
	for p := range uint32(n) {
		v := d.tie(p)
		b := d.b[dTies+tieBytes*p:]
		if v.Member >= d.s.Count() || v.Member == d.accused() || v.Vote > VoteUnserved || !allZero(b[5:8]) {
			return false
		}
	}
	return allZero(d.b[dTies+tieBytes*uint32(n) : dCommitment])
}

func (s State) convictionsOK() bool {
	total := s.ConvictionsTotal()
	if total > countMax {
		return false
	}
	for n := total - min(total, convictionsMax); n < total; n++ {
		b := s.conviction(n + 1)
		by := getU32(b, cBy)
		offence := Offence(getU8(b, cOffence))
		if getU32(b, cNumber) != n+1 || getU32(b, cMember) >= s.l.members || by != NoMember && by >= s.l.members ||
			offence < WrongResult || offence > Contradiction || !allZero(b[cEnd:convictionBytes]) {
			return false
		}
	}
	used := convictionBytes * min(total, convictionsMax)
	return allZero(s.b[s.l.convictions+used : s.l.validatorsAt])
}
