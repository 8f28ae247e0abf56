package score

import (
	"math/bits"

	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// Settlement: the ballots of a period become the members' scores and pay rewards. A host may work
// it off in several messages, so it goes in steps, whose results are in the ballots, the tallies
// and the header.

const (
	// agreementRange is the distance from the combined score at which closeness is 0: half a unit.
	agreementRange = (One + 1) / 2
	// In a period a validator's trust rises by 1/trustRise of the way to what its closeness deserves,
	// and falls by half of the way.
	trustRise = 16
	// A validator that stays silent about a period loses 1/silentDivisor of its trust.
	silentDivisor = 4
	// The newest score has a weight of 1/standingParts in a member's moving average.
	standingParts = 4
)

// Settles reports whether a period is due to be settled.
func (s Book) Settles() bool { return s.SeatsMax() > 0 && s.Settled()+3 <= s.PeriodAt(s.Window()) }

// Advance counts windows after the run's end, and reports whether a period is due to be settled.
func (s Book) Advance(env Env) bool {
	if s.SeatsMax() == 0 {
		return false
	}
	s.passTail(env)
	return s.Settles()
}

// passTail counts the windows since the run's end while periods are left to settle.
func (s Book) passTail(env Env) {
	if s.h().Phase() != record.PhaseFinished || !s.Due() {
		return
	}
	now, since, length := env.Height, s.h().PhaseHeight(), uint64(s.h().WindowBlocks())
	if s.h().Exchange() != record.ExchangeBuckets {
		now, since, length = env.NowMs, s.h().PhaseSince(), s.h().RoundTrainMs()
	}
	windows := (now - min(now, since)) / length
	_, end := s.PeriodWindows(s.PeriodAt(s.h().Round()) + 1)
	s.h().SetTail(max(s.Tail(), uint32(min(windows, uint64(end+1-s.h().Round())))))
}

// The steps of a settlement. Header.Drawn is the current one, Header.Cursor how much of it is
// done.
const (
	finding   = 0 // finds the validators that are members
	combining = 1
	judging   = 2 // sets the validators' trust
	vesting   = 3
	limiting  = 4 // finds what is paid, and the most that a score is paid
	summing   = 5
	weighing  = 6 // divides WeightOne among the members
	choosing  = 7 // finds who gets the tokens that are left over by rounding
	adding    = 8
	paying    = 9 // divides the emission, in the same way
	deciding  = 10
	crediting = 11
	rewarding = 12 // pays the validators
	lasting   = 13 // vests the last period's rewards
	ending    = 14
)

// What steps take on Solana for each member, in compute units at most.
const (
	findUnits    = 11 // for each validator
	combineUnits = 300
	opinionUnits = 360 // besides, for each validator
	judgeUnits   = 25
	vestUnits    = 40
	limitUnits   = 50
	sumUnits     = 50
	partUnits    = 95
	lossUnits    = 70
	addUnits     = 75
	endUnits     = 100_000
)

// Settle settles the periods that are due, as far as the work goes, and reports whether it is done.
// More than two periods can be due only after the run's end: the next message settles those.
func (s Book) Settle(w *record.Meter) bool {
	h := s.h()
	for h.CheckPlace() < 2 && s.Settles() {
		if !s.step(h.Drawn(), w) {
			return false
		}
		h.SetCursor(0)
		if h.Drawn() < ending {
			h.SetDrawn(h.Drawn() + 1)
			continue
		}
		h.SetDrawn(0)
		h.SetCheckPlace(h.CheckPlace() + 1)
	}
	return true
}

// step continues a step of the settlement of the next period, and reports whether it is done.
func (s Book) step(step uint32, w *record.Meter) bool {
	p, h, n := s.Settled()+1, s.h(), uint32(s.h().Count())
	t := s.TallyOf(p)
	worked, spoken := t.Period() == p, s.Ballots(p).Period() == p
	last := h.Phase() == record.PhaseFinished && p == s.PeriodAt(h.Round())
	switch {
	case step <= combining && !(worked && spoken):
	case step == finding:
		return s.Each(w, s.SeatsMax(), findUnits*uint64(n), func(k uint32) { s.find(p, k) })
	case step == combining:
		return s.combineAll(p, t, w)
	case step == judging:
		if !w.Takes(judgeUnits * uint64(n)) {
			return false
		}
		s.judgeValidators(p, spoken, worked && s.worked(t))
	case step == vesting, step == lasting && last: // no later penalty can take the last period's
		return s.Each(w, n, vestUnits, s.vest)
	case step <= rewarding && h.Doubts(settled) > 0:
		return s.emit(step, p, t, w)
	case step == ending:
		if !w.Takes(endUnits) {
			return false
		}
		clear(s.TallyOf(p + 2))
		clear(s.Ballots(p + 1))
		h.SetPeriodSettled(p)
		s.handOver(p)
		s.forget()
	}
	return true
}

// What a settlement keeps in the header: numbers of Header.Doubts, and of Header.Stream.
const (
	settled = 0 // members whose scores were combined
	most    = 1 // above it a score is paid no more
	over    = 2 // the Bar's Over; allOver if it is found

	sum        = 0 // of the members' weights
	members    = 1 // emission for members
	validators = 2 // and for validators
	least      = 3 // what is not given yet; then the Bar's Least

	allOver = 1<<16 - 1
)

// forget removes what a settlement has kept.
func (s Book) forget() {
	for k := range uint32(4) {
		s.h().SetStream(k, 0)
	}
	for k := range uint32(over + 1) {
		s.h().SetDoubts(k, 0)
	}
}

// worked reports whether a tally has accepted results.
func (s Book) worked(t record.Tally) bool {
	for i := range s.h().Count() {
		if t.Work(i).Sequences() > 0 {
			return true
		}
	}
	return false
}

// find notes in a validator's ballot which member it is, if it is one.
func (s Book) find(p, k uint32) {
	if !s.Votes(k, p) {
		return
	}
	if i, ok := s.Find(s.Seat(k).Key()); ok {
		s.Ballot(p, k).SetAgreement(uint16(i) + 1)
	}
}

// voter is a validator that may score the period that is being settled. Until it is judged its
// ballot has its place as a member, plus 1, as Agreement, near as Reward, and scored as Stake; and
// then share as Reward.
type voter struct {
	seat   uint32
	ballot record.Ballot
	given  record.Given // the scores it revealed; all zero if it did not
	weight uint64       // stake times trust, scaled down together
	near   uint64       // closeness to the combined scores, summed over the members it scored
	scored uint64       // how many of the settled members it scored
}

// voters returns the validators that may score period p. Their stakes are scaled down together to
// 32 bits in all, so that nothing below overflows.
func (s Book) voters(p uint32) []voter {
	list, stakes := make([]voter, 0, s.SeatsMax()), uint64(0)
	for k := range s.SeatsMax() {
		if s.Votes(k, p) {
			b := s.Ballot(p, k)
			list = append(list, voter{seat: k, ballot: b, given: s.Given(p, k), near: b.Reward(), scored: b.Stake()})
			stakes += s.Seat(k).Stake()
		}
	}
	shift := max(bits.Len64(stakes), 32) - 32
	for n := range list {
		v := &list[n]
		seat := s.Seat(v.seat)
		v.weight = max(1, seat.Stake()>>shift) * uint64(seat.Trust())
	}
	return list
}

// combineAll settles the scores of all members with accepted results in tally t of period p.
func (s Book) combineAll(p uint32, t record.Tally, w *record.Meter) bool {
	voters, all := s.voters(p), uint64(0)
	for _, v := range voters {
		all += v.weight
	}
	list := make([]opinion, 0, len(voters))
	units := combineUnits + opinionUnits*uint64(len(voters))
	done := s.Each(w, uint32(s.h().Count()), units, func(n uint32) {
		i := record.Member(n)
		b, m := t.Work(i), s.Place(i)
		if b.Sequences() == 0 {
			if b.Missed() {
				s.average(i, Zero) // it had shares, and none of its results was accepted
			}
			return
		}
		list = list[:0]
		for _, v := range voters {
			// A member that is a validator does not score itself.
			if u := v.given.Score(i); u != 0 && uint32(v.ballot.Agreement()) != n+1 {
				list = append(list, opinion{score: uint32(u), weight: v.weight})
			}
		}
		standing := uint32(m.Score())
		if standing == 0 {
			standing = Zero
		}
		agreed, ok := combine(list, all, standing)
		if !ok {
			return
		}
		u := agreed.score
		s.h().SetDoubts(settled, s.h().Doubts(settled)+1)
		b.SetScore(uint16(u))
		s.average(i, u)
		if u <= Zero {
			s.penalize(i, b)
		}
		for n := range voters {
			v := &voters[n]
			if g := uint32(v.given.Score(i)); g != 0 {
				v.near += uint64(agreementRange - min(agreementRange, agreed.off(g)))
				v.scored++
			}
		}
	})
	for _, v := range voters {
		v.ballot.SetReward(v.near)
		v.ballot.SetStake(v.scored)
	}
	return done
}

// average adds score u to the moving average of member i.
func (s Book) average(i record.Member, u uint32) {
	b := s.Place(i)
	if old := uint32(b.Score()); old != 0 {
		u = (old*(standingParts-1) + u + standingParts/2) / standingParts
	}
	b.SetScore(uint16(u))
}

// penalize takes the penalty for a score of 0 or less from member i, and notes it in its part of
// the tally.
func (s Book) penalize(i record.Member, tally record.Work) {
	m := s.Place(i)
	hi, lo := bits.Mul64(s.h().Emission()/uint64(s.SlotsMax()), uint64(s.h().Penalty()))
	cost, _ := bits.Div64(hi, lo, 100)
	cost = min(cost, m.Unvested())
	m.SetUnvested(m.Unvested() - cost)
	s.h().SetTreasury(s.h().Treasury() + cost)
	s.h().SetPenalties(s.h().Penalties() + cost)
	tally.SetAmount(cost)
}

// judgeValidators sets each validator's agreement and trust, if any has spoken. A validator that is
// silent when there was work to score loses trust, so that validators that are gone do not count
// for long. One that committed and did not reveal loses most.
func (s Book) judgeValidators(p uint32, spoken, work bool) {
	members := uint64(max(s.h().Doubts(settled), 1))
	for _, v := range s.voters(p) {
		b, seat := v.ballot, s.Seat(v.seat)
		if spoken {
			b.SetAgreement(0)
			b.SetReward(0)
			b.SetStake(0)
		}
		trust := uint64(seat.Trust())
		switch {
		case !spoken || b.Hash().IsZero():
			if work {
				seat.SetTrust(uint8(trust - trust/silentDivisor))
			}
			continue
		case !b.Revealed():
			trust = max(TrustMin, trust/2)
		case v.scored > 0:
			trust = judgedTrust(trust, v.near/v.scored)
			agreement := v.near * AgreementOne / (members * agreementRange)
			b.SetAgreement(uint16(agreement))
			b.SetReward(v.weight * agreement)
		}
		seat.SetTrust(uint8(trust))
		b.SetTrust(uint8(trust))
		b.SetStake(seat.Stake())
	}
}

// judgedTrust returns the trust in a validator, given its trust before and its mean closeness.
func judgedTrust(trust, near uint64) uint64 {
	earned := TrustMin + near*(TrustMax-TrustMin)/agreementRange
	if earned < trust {
		return trust - (trust-earned+1)/2
	}
	return trust + (earned-trust+trustRise-1)/trustRise
}

// vest adds a member's unvested reward to its balance.
func (s Book) vest(i uint32) {
	b := s.Place(record.Member(i))
	if v := b.Unvested(); v > 0 {
		b.SetBalance(b.Balance() + v)
		b.SetUnvested(0)
	}
}
