package dispute

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// Checks and the verdicts on them.

// A member's doubt is its weight in the draw of checks.
const (
	DoubtMin = 1  // never 0, so that every result may be checked
	DoubtNew = 8  // a newcomer's; each check passed takes one off
	DoubtMax = 16 // after a failed check or a wrong vote
	// doubtStruck is the doubt at which strikes are forgiven: a strike sets it to the most, so four
	// checks must pass after it. If one were enough, a cheat could strike, work until it is checked,
	// and cheat again, and never be convicted.
	doubtStruck = DoubtMax - 4
)

// Doubt returns the doubt of member i.
func (s Cases) Doubt(i record.Member) uint8 {
	return max(DoubtMin, min(s.Place(i).Doubt(), DoubtMax))
}

// checkOf returns the place of the check of a member's result that the sender is to make.
func (s Cases) checkOf(env Env, round record.Round, member record.Member) (k uint32, e record.Error) {
	i, ok := s.Find(env.Sender)
	switch {
	case !ok:
		return 0, record.ErrNotMember
	case s.Place(i).Ejected():
		return 0, record.ErrEjected
	}
	k, ok = s.findCheck(round, member)
	if !ok {
		return 0, record.ErrCheck
	}
	c := readCheck(s.Check(k))
	switch {
	case c.Verifier != i || c.Disputed:
		return 0, record.ErrCheck
	case env.NowMs >= c.DeadlineMs:
		return 0, record.ErrLate
	}
	return k, record.OK
}

// findCheck returns the place of the check of a member's result of a round. There is at most one.
func (s Cases) findCheck(round record.Round, member record.Member) (uint32, bool) {
	if round == 0 {
		return 0, false
	}
	for k := s.NextCheck(0); k < s.Layout.ChecksMax; k = s.NextCheck(k + 1) {
		if b := s.Check(k); b.Round() == round && b.Member() == member {
			return k, true
		}
	}
	return 0, false
}

// about reports whether a signed commitment is the checked member's for the checked round.
func (s Cases) about(c Check, signed Signed) bool {
	v := signed.Commitment
	return v.Run == s.h().ID() && v.Round == c.Round && v.Member == c.Member && signed.Verify(s.Place(c.Member).Key())
}

// fits reports whether a commitment names the epoch, share and parameters of the check.
func (c Check) fits(v Commitment) bool {
	return v.Epoch == c.Epoch && v.Share == c.Share && v.Params == c.Params
}

// Pass takes the verdict that the share was recomputed with the same result.
func (s Cases) Pass(env Env, round record.Round, member record.Member, signed Signed, gradient wire.Hash) record.Error {
	k, e := s.checkOf(env, round, member)
	if e != record.OK {
		return e
	}
	c := readCheck(s.Check(k))
	if !s.about(c, signed) || !c.fits(signed.Commitment) {
		return record.ErrCommitment
	}
	clear(s.Check(k))
	if WorkHash(s.h().ID(), c.Round, c.Member, gradient) != signed.Commitment.Work {
		s.Convict(env, Charge{Member: c.Verifier, Offence: FalsePass, Round: c.Round, By: NoMember, Proof: env.Proof})
		return record.OK
	}
	v := s.Place(c.Verifier)
	v.SetSkipped(v.Skipped() - min(v.Skipped(), 1))
	s.h().SetChecksPassed(s.h().ChecksPassed() + 1)
	s.PayVerifier(c.Verifier, c.Sequences)
	s.clearDoubt(c.Member)
	return record.OK
}

// clearDoubt lowers the doubt of member i, whose result was found right.
func (s Cases) clearDoubt(i record.Member) {
	b := s.Place(i)
	b.SetDoubt(max(s.Doubt(i)-1, DoubtMin))
	if b.Doubt() <= doubtStruck {
		b.SetStrikes(0)
	}
	b.SetPassed(b.Passed() + 1)
}

// Accuse takes the verdict that the share was recomputed with another result.
func (s Cases) Accuse(env Env, round record.Round, member record.Member, signed Signed, trace wire.Hash) record.Error {
	k, e := s.checkOf(env, round, member)
	if e != record.OK {
		return e
	}
	c := readCheck(s.Check(k))
	if !s.about(c, signed) {
		return record.ErrCommitment
	}
	if env.Referee == nil {
		return record.ErrReferee
	}
	if !c.fits(signed.Commitment) {
		// The commitment itself is wrong, so nothing is left to recompute.
		clear(s.Check(k))
		s.Place(c.Verifier).SetSkipped(0)
		s.Convict(env, Charge{Member: c.Member, Offence: WrongResult, Round: c.Round, By: c.Verifier, Proof: env.Proof})
		s.PayVerifier(c.Verifier, c.Sequences)
		return record.OK
	}
	d, ok := s.freeDispute(false)
	if !ok {
		return record.ErrBusy
	}
	s.Place(c.Verifier).SetSkipped(0)
	d.open(env, k)
	signed.Commitment.Append(d.b.Commitment()[:0])
	d.b.SetTrace(Accuser, trace)
	d.drawTies(env)
	return record.OK
}

// Unserved takes the verdict that the author does not serve what the check needs.
func (s Cases) Unserved(env Env, round record.Round, member record.Member) record.Error {
	k, e := s.checkOf(env, round, member)
	if e != record.OK {
		return e
	}
	if s.Check(k).Reassigned() {
		return record.ErrCheck // a tie-breaker that was served makes it
	}
	d, ok := s.freeDispute(true)
	if !ok {
		return record.ErrBusy
	}
	d.open(env, k)
	d.b.SetUnserved(true)
	d.drawTies(env)
	return record.OK
}

// ExpireChecks ends the checks whose time is over. A silent verifier has skipped one check, however
// many it had, unless there was no place for a dispute.
func (s Cases) ExpireChecks(env Env) {
	_, place := s.freeDispute(true)
	var silent []record.Member
	for k := s.NextCheck(0); k < s.Layout.ChecksMax; k = s.NextCheck(k + 1) {
		b := s.Check(k)
		if b.Disputed() || env.NowMs < b.DeadlineMs() {
			continue
		}
		silent = append(silent, b.Verifier())
		clear(b)
	}
	if !place {
		return
	}
	slices.Sort(silent)
	for _, i := range slices.Compact(silent) {
		if s.Place(i).Present() {
			s.skip(i, env)
		}
	}
}
