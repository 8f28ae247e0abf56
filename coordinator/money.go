package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// This file accounts for tokens. The host holds a run's tokens in one account, the escrow. The
// state records whose they are: the treasury's, and each member's stake and balance. Only Join,
// Deposit, RegisterValidator and Fund bring tokens in. Only Claim, Refund, validators that leave,
// and a Join that takes another's place take them out.

// Treasury returns the tokens that pay for points and scores.
func (s State) Treasury() uint64 { return s.h().Treasury() }

// Escrow returns the tokens that the host holds for the run: the treasury's, the members' and the
// validators'.
func (s State) Escrow() uint64 { return s.h().Escrow() }

// Payout returns the amount that the last applied message pays out of the escrow, and the key it is
// paid to: see WillPay.
func (s State) Payout() (to key.Public, amount uint64) { return s.h().PayoutTo(), s.h().Payout() }

// PointsVerified returns the points given for verification. PointsTotal includes them.
func (s State) PointsVerified() uint64 { return s.h().PointsVerified() }

// releaseMs returns when the stake of member i is free, or 0 while the member has not left.
func (s State) releaseMs(i Member) uint64 {
	b := s.place(i)
	if !Status(b.Status()).Present() {
		return b.ReleaseMs()
	}
	if s.Phase() == Finished {
		return s.PhaseSince() + s.h().UnbondMs()
	}
	return 0
}

func (m Deposit) apply(s State, env Env) Error {
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

func (s State) addStake(i Member, value uint64) {
	b := s.place(i)
	b.SetStake(b.Stake() + value)
	s.h().SetEscrow(s.Escrow() + value)
}

func (Fund) apply(s State, env Env) Error {
	if env.Value == 0 || !s.h().CanHold(env.Value) {
		return ErrValue
	}
	s.h().SetTreasury(s.Treasury() + env.Value)
	s.h().SetEscrow(s.Escrow() + env.Value)
	return OK
}

// apply pays what the run owes the sender to the sender's payee.
func (Claim) apply(s State, env Env) Error {
	i, ok := s.Find(env.Sender)
	if !ok || s.due(env, i).amount() == 0 {
		if ok && s.book().Claim(env.score()) != record.OK {
			return ErrNothing
		}
		if ok {
			return OK
		}
		return s.book().Claim(env.score())
	}
	s.payDue(i, s.due(env, i))
	return OK
}

// due is what a member can claim now.
type due struct {
	settled uint64 // points that no conviction takes
	points  uint64 // those of them that are paid
	paid    uint64 // tokens for points, from the treasury
	balance uint64
	stake   uint64
}

func (d due) amount() uint64 { return d.paid + d.balance + d.stake }

// due returns what member i can claim now.
func (s State) due(env Env, i Member) due {
	return s.dueIf(env, i, s.cases().Pending(i), bit(s.inFlight(), i))
}

// dueIf is due of a member that has a part in an open check or dispute, and a result in flight, or
// not. To find that out takes searches.
func (s State) dueIf(env Env, i Member, pending, flies bool) due {
	b := s.place(i)
	d := due{settled: b.Settled(), balance: b.Balance()}
	if !s.h().InEpoch() && !pending {
		d.settled = b.Points()
	}
	if rate := s.h().Rate(); rate > 0 {
		d.points = min(d.settled-b.Claimed(), s.Treasury()/rate)
		d.paid = d.points * rate
	}
	if b.Stake() > 0 && !pending && !flies && s.stakeFree(env, i) {
		d.stake = b.Stake()
	}
	return d
}

// payDue pays member i what is due to it.
func (s State) payDue(i Member, d due) {
	b := s.place(i)
	b.SetSettled(d.settled)
	b.SetClaimed(b.Claimed() + d.points)
	b.SetBalance(0)
	b.SetStake(b.Stake() - d.stake)
	s.h().SetTreasury(s.Treasury() - d.paid)
	s.h().PayOut(b.Payee(), d.amount())
}

// WillPay returns what a message would pay out of the escrow, and to whom, if it is accepted. It
// costs O(members) at most.
func (s State) WillPay(env Env, m Message) (to key.Public, amount uint64) {
	switch m := m.(type) {
	case Claim:
		if i, ok := s.Find(env.Sender); ok {
			if d := s.due(env, i); d.amount() > 0 {
				return s.place(i).Payee(), d.amount()
			}
		}
		return s.book().WillPay(env.score(), true)
	case RetireValidator:
		return s.book().WillPay(env.score(), false)
	case RegisterValidator:
		if s.book().SeatsMax() > 0 {
			return s.book().WillPayOff(env.score())
		}
	case Join:
		if _, known := s.Find(env.Sender); known || env.Value < s.h().RegisterCost()+s.h().Stake() {
			break
		}
		if i, ok := s.vacancy(env); ok && i < s.Count() {
			return s.place(i).Payee(), s.due(env, i).amount()
		}
	case Refund:
		return s.h().Owner(), m.Amount
	}
	return key.Public{}, 0
}

// stakeFree reports whether member i may take its stake back, unless it has a part in an open check
// or dispute or a result in flight. It must have left, or the run have finished, long enough ago.
func (s State) stakeFree(env Env, i Member) bool {
	return (!s.status(i).Present() || s.Phase() == Finished) && env.NowMs >= s.releaseMs(i)
}

// inFlight returns the bitmap of the members with a result that was neither accepted nor refused
// yet.
func (s State) inFlight() []byte {
	list := make([]byte, s.l.Bitmap)
	for k := range Round(record.RingRounds) {
		if r := s.slot(k); r.Number() != 0 && !r.Final() {
			record.Merge(list, r.expected())
		}
	}
	return list
}

// Owes reports whether member i is owed tokens, now or later.
func (s State) Owes(i Member) bool {
	b := s.place(i)
	return b.Stake() > 0 || b.Balance() > 0 || b.Unvested() > 0 || s.book().Pending(i) ||
		s.h().Rate() > 0 && b.Points() > b.Claimed()
}

// settle protects points from convictions at the end of an epoch. It settles all points of a
// member, unless results or verdicts of the member are in question: then only those it had at the
// end of the epoch before.
func (s State) settle() {
	busy := s.cases().Busy()
	for i := range s.Count() {
		b := s.place(i)
		points := b.Points()
		if bit(busy, i) {
			b.SetSettled(max(b.Settled(), b.EpochPoints()))
		} else {
			b.SetSettled(points)
		}
		b.SetEpochPoints(points)
	}
}
