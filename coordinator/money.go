package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// Tokens. The host holds a run's tokens in its escrow, in one account; whose they are stands here: the treasury's, and each
// member's stake and balance. Only Join, Deposit and Fund bring tokens in, only Claim takes them out.

// Treasury returns the tokens from which points and scores are paid.
func (s State) Treasury() uint64 { return s.h().Treasury() }

// Escrow returns the tokens that the host holds for the run: the treasury, and what members and validators have in it.
func (s State) Escrow() uint64 { return s.h().Escrow() }

// Payout returns what the message applied last pays out of the escrow, and to whom; 0 unless it was a Claim, a
// RetireValidator, or a RegisterValidator that replaces somebody.
func (s State) Payout() (to key.Public, amount uint64) {
	return s.h().PayoutTo(), s.h().Payout()
}

// PointsVerified returns the points given for verifying, which are in PointsTotal.
func (s State) PointsVerified() uint64 { return s.h().PointsVerified() }

// releaseMs returns when the stake of member i is free; 0 if it is not known yet, because the member has not left.
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

// claim pays the sender's payee what the sender is owed.
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

// stakeFree tells whether member i may have its stake back: it has left long enough ago, or the run is over so long, and
// nothing that it did is in question or may still come to be.
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

// owed tells whether member i has tokens to get, now or later.
func (s State) owed(i uint32) bool {
	b := s.place(i)
	return b.Stake() > 0 || b.Balance() > 0 || b.Unvested() > 0 || s.book().Pending(i) ||
		s.h().Rate() > 0 && b.Points() > b.Claimed()
}

// settle makes points safe from convictions, at the end of an epoch: all that a member has, or, if results or verdicts of its
// are in question, those it had at the end of the epoch before.
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
