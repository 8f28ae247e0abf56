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
	best, bestMs, bestRank, flying, mentioned := Member(0), uint64(0), keeps, s.inFlight(), s.mentioned()
	affordable := uint64(noRate)
	if rate := s.h().Rate(); rate > 0 {
		affordable = s.Treasury() / rate
	}
	for i, pending := range s.cases().AllPending() {
		i := Member(i)
		b := s.place(i)
		left := b.LeftMs()
		if Status(b.Status()).Present() || pending || bit(mentioned, i) || bestRank == owedNothing && left >= bestMs {
			continue // to rank it takes long
		}
		rank := s.rank(env.NowMs, i, bit(flying, i), affordable)
		if rank > bestRank || rank == bestRank && left >= bestMs || rank == keeps {
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

	noRate = 1<<64 - 1
)

// rank returns when the place of member i is given away, which is gone and has no part in an open
// check or dispute. flies reports whether it has a result in flight; affordable is how many points
// the treasury can pay, or noRate. All members may have to be ranked, so rank does without due.
func (s State) rank(nowMs uint64, i Member, flies bool, affordable uint64) int {
	b := s.place(i)
	points, claimed := b.Points(), b.Claimed()
	unpaid := affordable != noRate && points > claimed
	switch {
	case b.Stake() > 0 && (flies || nowMs < b.ReleaseMs()), b.Unvested() > 0, s.l.Validators > 0 && s.book().Pending(i):
		return keeps
	case unpaid && s.h().InEpoch() && b.Settled() != points:
		return keeps
	case unpaid && points-claimed > affordable && nowMs-min(nowMs, b.LeftMs()) < PlaceMs:
		return keeps
	case Status(b.Status()) == StatusEjected:
		return ejected
	case unpaid, b.Stake() > 0, b.Balance() > 0:
		return payable
	}
	return owedNothing
}

// mentioned returns the bitmap of the members that a round of the running epoch mentions.
func (s State) mentioned() []byte {
	list := make([]byte, s.l.Bitmap)
	if p := s.Phase(); p != RoundTrain && p != RoundWitness && p != Cooldown {
		return list
	}
	for k := range Round(record.RingRounds) {
		if r := s.slot(k); r.Number() != 0 && r.Epoch() == s.Epoch() {
			record.Merge(list, r.active())
		}
	}
	return list
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
