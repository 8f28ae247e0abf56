package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// apply makes the sender a member. A newcomer, or a member that was replaced, pays the cost of
// registering. If all slots are taken, it replaces a member.
func (m Join) apply(s State, env Env) Error {
	if env.Sender.IsZero() {
		return ErrSender
	}
	if s.Phase() == Finished {
		return ErrPhase
	}
	i, ok := s.Find(env.Sender)
	fresh := !ok
	stake := uint64(0)
	if ok {
		switch st := s.status(i); {
		case st.Present():
			return ErrAlreadyMember
		case st == StatusEjected:
			return ErrEjected
		default:
			fresh = st == StatusReplaced
		}
		b := s.place(i)
		stake = b.Stake()
		if s.Owes(i) {
			payee := key.Public(b.Payee())
			if !m.Payee.IsZero() && m.Payee != payee {
				return ErrPayee
			}
			m.Payee = payee
		}
	}
	cost := uint64(0)
	if fresh {
		cost = s.h().RegisterCost()
	}
	switch {
	case !s.h().CanHold(env.Value):
		return ErrValue
	case env.Value < cost:
		return ErrCost
	case stake+env.Value-cost < s.h().Stake():
		return ErrStake
	}
	out, e := s.slotFor(i, ok, fresh)
	if e != OK {
		return e
	}
	if !ok {
		if i, ok = s.vacancy(env); !ok {
			return ErrFull
		}
	}
	s.h().SetPayment(key.Public{}, 0)
	if m.Payee.IsZero() {
		m.Payee = env.Sender
	}
	if out != dispute.NoMember {
		s.replace(out, env)
	}
	s.admit(i, env, m, cost, fresh)
	return OK
}

// PlaceMs is how long a member that is gone keeps its place because the treasury cannot pay its
// points: 30 days.
const PlaceMs = 30 * 24 * 3600 * 1000

// vacancy returns a place for a newcomer. It prefers an unused place, then the place of the member
// gone longest that is not mentioned by a round of the running epoch, a check or a dispute, and is
// owed nothing, and then of one that can be paid all that it is owed. It gives away the place of an
// ejected member only if there is no other, because an ejected member whose place is gone could
// join again.
func (s State) vacancy(env Env) (Member, bool) {
	if n := uint32(s.Count()); n < s.l.Members {
		return Member(n), true
	}
	best, bestMs, bestRank := Member(0), uint64(0), keeps
	for i, pending := range s.cases().AllPending() {
		i := Member(i)
		b := s.place(i)
		if Status(b.Status()).Present() || pending {
			continue
		}
		rank := s.rank(env, i)
		left := b.LeftMs()
		if rank > bestRank || rank == bestRank && left >= bestMs || rank == keeps || s.mentioned(i) {
			continue
		}
		best, bestMs, bestRank = i, left, rank
	}
	return best, bestRank != keeps
}

// The order in which the places of members that are gone are given away.
const (
	owedNothing = 0
	payable     = 1
	ejected     = 2
	keeps       = 3
)

// rank returns when the place of member i, which is gone, is given away.
func (s State) rank(env Env, i Member) int {
	b := s.place(i)
	owed := s.Owes(i)
	d := due{}
	if owed {
		d = s.due(env, i)
	}
	poor := d.settled == b.Points() && env.NowMs-min(env.NowMs, b.LeftMs()) >= PlaceMs
	switch {
	case owed && (d.stake != b.Stake() || b.Unvested() > 0 || s.book().Pending(i)):
		return keeps
	case owed && s.h().Rate() > 0 && b.Claimed()+d.points != b.Points() && !poor:
		return keeps
	case Status(b.Status()) == StatusEjected:
		return ejected
	case owed:
		return payable
	}
	return owedNothing
}

// mentioned reports whether a round of the running epoch mentions member i.
func (s State) mentioned(i Member) bool {
	switch s.Phase() {
	case RoundTrain, RoundWitness, Cooldown:
	default:
		return false
	}
	for k := range Round(record.RingRounds) {
		if r := s.slot(k); r.Number() != 0 && r.Epoch() == s.Epoch() && r.Active(i) {
			return true
		}
	}
	return false
}

// admit puts the sender into place i, which is unused, the sender's earlier place, or the place of
// a member to be forgotten.
func (s State) admit(i Member, env Env, m Join, cost uint64, fresh bool) {
	b := s.place(i)
	if i == s.Count() {
		s.h().SetCount(i + 1)
	} else if b.Key() != env.Sender {
		if d := s.due(env, i); d.amount() > 0 {
			s.payDue(i, d)
		}
		s.h().SetPointsRetired(s.PointsRetired() + b.Points())
		s.forget(i)
		s.book().Forget(i)
		clear(b)
	}
	if b.Key() != env.Sender {
		b.SetDoubt(dispute.DoubtNew)
	}
	b.SetKey(env.Sender)
	b.SetPayee(m.Payee)
	b.SetReleaseMs(0)
	if Status(b.Status()) != StatusWithdrawn { // leaving wipes nothing; a fee does
		b.SetSkipped(0)
		b.SetAstray(0)
		b.SetMissed(0)
		b.SetSteady(0)
		b.SetIdle(0)
	}
	s.addStake(i, env.Value-cost)
	s.h().SetTreasury(s.Treasury() + cost)
	s.h().SetEscrow(s.Escrow() + cost)
	if fresh {
		b.SetSince(s.Window())
		b.SetScore(0)
	}
	putStatus(b, StatusWaiting)
	b.SetSpeed(m.Speed)
	b.SetJoinedMs(env.NowMs)
	b.SetJoinedEpoch(s.Epoch())
}

// forget erases the rounds of ended epochs that mention member i, so that they are not attributed
// to the newcomer in its place.
func (s State) forget(i Member) {
	for k := range Round(record.RingRounds) {
		if r := s.slot(k); r.Active(i) {
			clear(r.bytes(0, s.l.Slot))
		}
	}
}
