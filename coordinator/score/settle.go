package score

import (
	"cmp"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"math/bits"
	"slices"
)

// Settlement: the ballots of a period become the members' scores and pay rewards.

// voter is a validator that may score the period that is being settled.
type voter struct {
	seat   uint32
	self   record.Member // its place as a member, or NoMember
	given  record.Given  // the scores it revealed; all zero if it did not
	weight uint64        // stake times trust, scaled down together
	near   uint64        // closeness to the combined scores, summed over the members it scored
	scored uint64        // how many of the settled members it scored
	share  uint64        // its weight in the validators' part of the emission
}

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

// Settles reports whether the next Advance settles a period.
func (s Book) Settles() bool { return s.SeatsMax() > 0 && s.Settled()+3 <= s.PeriodAt(s.Window()) }

// Advance counts windows after the run's end, and settles the periods whose time is over.
func (s Book) Advance(env Env) {
	if s.SeatsMax() == 0 {
		return
	}
	s.passTail(env)
	// More than two periods can be due only after the run's end; the next message settles those.
	for range 2 {
		if !s.Settles() {
			return
		}
		p := s.Settled() + 1
		s.settlePeriod(p)
		s.h().SetPeriodSettled(p)
		s.handOver(p)
	}
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

// settlePeriod combines the scores of period p, pays rewards, and clears the places of the periods
// to come.
func (s Book) settlePeriod(p uint32) {
	voters := s.voters(p)
	t := s.TallyOf(p)
	settled := uint64(0)
	if t.Period() == p && s.Ballots(p).Period() == p {
		settled = s.combineAll(p, t, voters)
	}
	s.judgeValidators(p, voters, settled, t.Period() == p && s.worked(t))
	s.vest()
	if settled > 0 {
		s.emit(p, t, voters)
	}
	if s.h().Phase() == record.PhaseFinished && p == s.PeriodAt(s.h().Round()) {
		s.vest() // no later penalty can take it
	}
	clear(s.TallyOf(p + 2))
	clear(s.Ballots(p + 1))
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

// voters returns the validators that may score period p. Their stakes are scaled down together to
// 32 bits in all, so that nothing below overflows.
func (s Book) voters(p uint32) []voter {
	var list []voter
	stakes := uint64(0)
	for k := range s.SeatsMax() {
		if s.Votes(k, p) {
			self, ok := s.Find(s.Seat(k).Key())
			if !ok {
				self = record.NoMember
			}
			list = append(list, voter{seat: k, self: self, given: s.Given(p, k)})
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

// combineAll settles the scores of all members with accepted results in tally t of period p, and
// returns their number.
func (s Book) combineAll(p uint32, t record.Tally, voters []voter) uint64 {
	all := uint64(0)
	for _, v := range voters {
		all += v.weight
	}
	settled := uint64(0)
	list := make([]opinion, 0, len(voters))
	for i := range s.h().Count() {
		b, m := t.Work(i), s.Place(i)
		if b.Sequences() == 0 {
			if b.Missed() {
				s.average(i, Zero) // it had shares, and none of its results was accepted
			}
			continue
		}
		list = list[:0]
		for _, v := range voters {
			// A member that is a validator does not score itself.
			if u := v.given.Score(i); u != 0 && i != v.self {
				list = append(list, opinion{score: uint32(u), weight: v.weight})
			}
		}
		standing := uint32(m.Score())
		if standing == 0 {
			standing = Zero
		}
		agreed, ok := combine(list, all, standing)
		if !ok {
			continue
		}
		u := agreed.score
		settled++
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
	}
	return settled
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

// judgeValidators sets each validator's agreement and trust, given the number of settled members. A
// validator that is silent when there was work to score loses trust, so that validators that are
// gone do not count for long. One that committed and did not reveal loses most.
func (s Book) judgeValidators(p uint32, voters []voter, settled uint64, work bool) {
	spoken := s.Ballots(p).Period() == p
	for n := range voters {
		v := &voters[n]
		b, seat := s.Ballot(p, v.seat), s.Seat(v.seat)
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
			agreement := v.near * AgreementOne / (settled * agreementRange)
			b.SetAgreement(uint16(agreement))
			v.share = v.weight * agreement
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

// vest adds the members' unvested rewards to their balances.
func (s Book) vest() {
	for i := range s.h().Count() {
		b := s.Place(i)
		if v := b.Unvested(); v > 0 {
			b.SetBalance(b.Balance() + v)
			b.SetUnvested(0)
		}
	}
}

// MostPaid returns the score above which a member of a period is paid no more: the median, by
// sequences, of the scores above 0. So a member that finds a way to look better than honest work,
// such as to seal the gradient itself, is paid as honest work is.
func MostPaid(members []MemberScore) int16 {
	var good []opinion
	total := uint64(0)
	for _, m := range members {
		if m.Score > 0 {
			good = append(good, opinion{uint32(m.Score), uint64(m.Sequences)})
			total += uint64(m.Sequences)
		}
	}
	most, _ := weightedMedian(good, total)
	return int16(most)
}

// emit pays for period p: members in proportion to their scores above 0, up to MostPaid, times the
// sequences of their accepted results; validators in proportion to stake, trust and agreement. What
// the treasury owes for points stays in it.
func (s Book) emit(p uint32, t record.Tally, voters []voter) {
	treasury := s.h().Treasury()
	emission := min(s.h().Emission(), treasury-min(treasury, s.Unpaid(treasury)))
	hi, lo := bits.Mul64(emission, uint64(s.h().ValidatorPercent()))
	forValidators, _ := bits.Div64(hi, lo, 100)

	scored := make([]MemberScore, s.h().Count())
	for i := range scored {
		scored[i] = readTally(t.Work(record.Member(i)), record.Member(i))
	}
	most := MostPaid(scored)
	weights := make([]uint64, len(scored))
	for i, m := range scored {
		weights[i] = uint64(max(0, min(m.Score, most))) * uint64(m.Sequences)
	}
	given := uint64(0)
	parts := distribute(WeightOne, weights)
	for i, reward := range distribute(emission-forValidators, weights) {
		if weights[i] == 0 {
			continue
		}
		b, m := t.Work(record.Member(i)), s.Place(record.Member(i))
		b.SetWeight(uint32(parts[i]))
		b.SetAmount(reward)
		m.SetUnvested(m.Unvested() + reward)
		m.SetEarned(m.Earned() + reward)
		given += reward
	}
	shares := make([]uint64, len(voters))
	for n, v := range voters {
		shares[n] = v.share
	}
	for n, reward := range distribute(forValidators, shares) {
		seat := s.Seat(voters[n].seat)
		s.Ballot(p, voters[n].seat).SetReward(reward)
		seat.SetBalance(seat.Balance() + reward)
		seat.SetEarned(seat.Earned() + reward)
		given += reward
	}
	s.h().SetTreasury(s.h().Treasury() - given)
	s.h().SetEmitted(s.h().Emitted() + given)
}

// distribute divides an amount in proportion to weights, whose sum fits 64 bits. Parts are rounded
// down. The remainder goes, one each, to the parts that lost most by rounding, the first of equal
// ones. If all weights are 0 so are the parts.
func distribute(amount uint64, weights []uint64) []uint64 {
	parts := make([]uint64, len(weights))
	sum := uint64(0)
	for _, w := range weights {
		sum += w
	}
	if sum == 0 || amount == 0 {
		return parts
	}
	type rest struct {
		of   int
		lost uint64
	}
	rests := make([]rest, 0, len(weights))
	left := amount
	for i, w := range weights {
		hi, lo := bits.Mul64(amount, w)
		part, lost := bits.Div64(hi, lo, sum) // below 2^64, since w <= sum
		parts[i] = part
		left -= part
		if lost > 0 {
			rests = append(rests, rest{of: i, lost: lost})
		}
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.lost, a.lost) })
	for _, r := range rests[:left] {
		parts[r.of]++
	}
	return parts
}
