package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// This file accounts for tokens. The host holds a run's tokens in one account, the escrow. The
// state records whose they are: the treasury's, and each member's stake and balance. Only Join,
// Deposit, RegisterValidator and Fund bring tokens in. Only Claim, and validators that leave, take
// them out.

// Treasury returns the tokens that pay for points and scores.
func (s State) Treasury() uint64 { return s.h().Treasury() }

// Escrow returns the tokens that the host holds for the run: the treasury's, the members' and the
// validators'.
func (s State) Escrow() uint64 { return s.h().Escrow() }

// Payout returns the amount that the last applied message pays out of the escrow, and the key it is
// paid to. The amount is 0 unless the message was a Claim, a RetireValidator, or a
// RegisterValidator that replaced another validator.
func (s State) Payout() (to key.Public, amount uint64) {
	return s.h().PayoutTo(), s.h().Payout()
}

// PointsVerified returns the points given for verification. PointsTotal includes them.
func (s State) PointsVerified() uint64 { return s.h().PointsVerified() }

// releaseMs returns when the stake of member i is free, or 0 while the member has not left.
func (s State) releaseMs(i uint32) uint64 {
	b := s.place(i)
	if !Status(b.Status()).Present() {
		return b.ReleaseMs()
	}
	if s.Phase() == Finished {
		return s.PhaseSince() + s.h().UnbondMs()
	}
	return 0
}

func (s State) deposit(env Env, m Deposit) Error {
	i, ok := s.Find(m.Member)
	switch {
	case env.Value == 0 || !s.h().CanHold(env.Value):
		return ErrValue
	case !ok:
		return ErrNoMember
	case s.status(i) == StatusEjected:
		return ErrEjected
	}
	s.addStake(i, env.Value)
	return OK
}

func (s State) addStake(i uint32, value uint64) {
	b := s.place(i)
	b.SetStake(b.Stake() + value)
	s.h().SetEscrow(s.Escrow() + value)
}

func (s State) fund(env Env, _ Fund) Error {
	if env.Value == 0 || !s.h().CanHold(env.Value) {
		return ErrValue
	}
	s.h().SetTreasury(s.Treasury() + env.Value)
	s.h().SetEscrow(s.Escrow() + env.Value)
	return OK
}

// claim pays what the run owes the sender to the sender's payee.
func (s State) claim(env Env, _ Claim) Error {
	i, ok := s.Find(env.Sender)
	if !ok {
		return Error(s.book().Claim(env.score()))
	}
	b := s.place(i)
	settled := b.Settled()
	if !s.h().InEpoch() && !s.cases().Pending(i) {
		settled = b.Points()
	}
	points := uint64(0)
	rate := s.h().Rate()
	if rate > 0 {
		points = min(settled-b.Claimed(), s.Treasury()/rate)
	}
	paid := points * rate
	amount := paid + b.Balance()
	stake := uint64(0)
	if s.stakeFree(env, i) {
		stake = b.Stake()
	}
	amount += stake
	if amount == 0 {
		if s.book().Claim(env.score()) == record.OK {
			return OK
		}
		return ErrNothing
	}
	b.SetSettled(settled)
	b.SetClaimed(b.Claimed() + points)
	b.SetBalance(0)
	b.SetStake(b.Stake() - stake)
	s.h().SetTreasury(s.Treasury() - paid)
	s.h().SetEscrow(s.Escrow() - amount)
	s.h().SetPayout(amount)
	s.h().SetPayoutTo(b.Payee())
	return OK
}

// stakeFree reports whether member i may take its stake back. It must have left, or the run must
// have finished, long enough ago, and no result of the member may be in flight, in a check or in a
// dispute.
func (s State) stakeFree(env Env, i uint32) bool {
	if s.status(i).Present() && s.Phase() != Finished || env.NowMs < s.releaseMs(i) || s.cases().Pending(i) {
		return false
	}
	for k := range uint32(record.RingRounds) {
		if r := s.slot(k); r.Number() != 0 && !r.Final() && r.Expected(i) {
			return false
		}
	}
	return true
}

// owed reports whether member i is owed tokens, now or later.
func (s State) owed(i uint32) bool {
	b := s.place(i)
	return b.Stake() > 0 || b.Balance() > 0 || b.Unvested() > 0 || s.book().Pending(i) ||
		s.h().Rate() > 0 && b.Points() > b.Claimed()
}

// settle protects points from convictions at the end of an epoch. It settles all points of a
// member, unless results or verdicts of the member are in question: then only those it had at the
// end of the epoch before.
func (s State) settle() {
	for i, pending := range s.cases().AllPending() {
		b := s.place(uint32(i))
		points := b.Points()
		if pending {
			b.SetSettled(max(b.Settled(), b.EpochPoints()))
		} else {
			b.SetSettled(points)
		}
		b.SetEpochPoints(points)
	}
}
