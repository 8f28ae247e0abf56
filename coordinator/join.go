package coordinator

import (
	"encoding/binary"

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
	rate, inEpoch, affordable := s.h().Rate(), s.h().InEpoch(), uint64(0)
	if rate > 0 {
		affordable = s.Treasury() / rate
	}
	busy, held := s.cases().Busy(), s.inFlight()
	record.Merge(busy, s.mentioned())
	s.book().MarkPending(busy)
	record.Merge(held, busy)
	late := env.NowMs - min(env.NowMs, PlaceMs-1) // before it no place is kept for points
	// A member must have left before this, by its rank, to be better than the best one so far.
	before := [nobody + 1]uint64{1<<64 - 1, 1<<64 - 1, 1<<64 - 1}
	best, bestRank, word, places := Member(0), nobody, uint64(0), s.buffer().Places()
	for i := range s.Count() { // which may be 10,000: what most places fail at comes first
		if i&63 == 0 {
			word = binary.LittleEndian.Uint64(held[i>>3:])
		}
		isHeld := word&1 == 1
		word >>= 1
		b := places.At(i)
		status, left, stake, rank := Status(b.Status()), b.LeftMs(), b.Stake(), owedNothing
		if status.Present() || left >= before[owedNothing] || isHeld && (stake > 0 || bit(busy, i)) {
			continue
		}
		if points, claimed := b.Points(), b.Claimed(); rate > 0 && points > claimed {
			if points-claimed > affordable && left >= late || inEpoch && b.Settled() != points {
				continue
			}
			rank = payable
		} else if stake|b.Balance() > 0 {
			rank = payable
		}
		if status == StatusEjected {
			rank = ejected
		}
		if left >= before[rank] || b.Unvested() > 0 || stake > 0 && env.NowMs < b.ReleaseMs() {
			continue
		}
		best = i
		for ; rank < bestRank; bestRank-- {
			before[bestRank] = 0
		}
		before[rank] = left
	}
	return best, bestRank != nobody
}

// The order in which the places of members that are gone are given away.
const (
	owedNothing = 0
	payable     = 1
	ejected     = 2
	nobody      = 3
)

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
