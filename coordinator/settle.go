package coordinator

import (
	"cmp"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"math/bits"
	"slices"
)

// The end of a period of scores: what validators agree on becomes members' scores, and pays.

// voter is a validator that was registered in time for the period that is being settled.
type voter struct {
	seat   uint32
	given  record.Given // the scores it revealed; all zero if it did not
	weight uint64       // stake times trust, scaled down together
	near   uint64       // how near its scores were to what was agreed on, summed over the members it scored
	scored uint64       // of the members that were settled, those that it scored
	share  uint64       // of what validators get, as weight
}

const (
	// agreementRange is how far from what was agreed on a score is worth nothing: half a unit.
	agreementRange = (ScoreOne + 1) / 2
	// trustRise is the part of the way to what its agreement deserves that a validator's trust rises in a period; it falls half
	// of the way.
	trustRise = 16
	// silentDivisor: who says nothing about a period loses a part of its trust.
	silentDivisor = 4
	// standingParts: the moving average of a member's scores takes a part of the newest.
	standingParts = 4
)

// advanceScores lets windows pass after the run's end, and settles periods whose time is over.
func (s State) advanceScores(env Env) {
	if s.seats() == 0 {
		return
	}
	s.passTail(env)
	// Windows come one after the other, and so do periods, but for those after the run's end: then the next message goes on.
	for range 2 {
		p := s.settled() + 1
		if p+2 > s.period(s.Window()) {
			return
		}
		s.settlePeriod(p)
		s.h().SetPeriodSettled(p)
	}
}

// passTail counts the windows that have passed since the run's end, as long as periods are left to be settled.
func (s State) passTail(env Env) {
	if s.Phase() != Finished || !s.scoresDue() {
		return
	}
	now, since, length := env.Height, s.h().PhaseHeight(), uint64(s.h().WindowBlocks())
	if s.exchange() != Buckets {
		now, since, length = env.NowMs, s.PhaseSince(), s.h().RoundTrainMs()
	}
	windows := (now - min(now, since)) / length
	_, end := s.PeriodWindows(s.period(s.Round()) + 1)
	s.h().SetTail(max(s.tail(), uint32(min(windows, uint64(end+1-s.Round())))))
}

// settlePeriod combines the scores of period p, pays for it, and makes room for those to come.
func (s State) settlePeriod(p uint32) {
	voters := s.voters(p)
	t := s.tallyOf(p)
	settled := uint64(0)
	if t.Period() == p && s.periodScores(p).Period() == p {
		settled = s.combineAll(p, t, voters)
	}
	s.judgeValidators(p, voters, settled, t.Period() == p && s.worked(t))
	s.ripen()
	if settled > 0 {
		s.emit(p, t, voters)
	}
	if s.Phase() == Finished && p == s.period(s.Round()) {
		s.ripen() // nothing comes that could take it
	}
	clear(s.tallyOf(p + 2))
	clear(s.periodScores(p + 1))
}

// worked tells whether a tally has accepted results.
func (s State) worked(t record.Tally) bool {
	for i := range s.Count() {
		if t.Work(i).Sequences() > 0 {
			return true
		}
	}
	return false
}

// voters returns the validators that were registered before period p began, and those that came during it and revealed scores.
// Their stakes are scaled down together to 32 bits in all, so that nothing below overflows.
func (s State) voters(p uint32) []voter {
	first, _ := s.PeriodWindows(p)
	var list []voter
	stakes := uint64(0)
	for k := range s.seats() {
		if s.taken(k) && (s.seat(k).Since() < first || s.revealed(p, k)) {
			list = append(list, voter{seat: k, given: s.given(p, k)})
			stakes += s.seat(k).Stake()
		}
	}
	shift := max(bits.Len64(stakes), 32) - 32
	for n := range list {
		v := &list[n]
		seat := s.seat(v.seat)
		v.weight = max(1, seat.Stake()>>shift) * uint64(seat.Trust())
	}
	return list
}

// combineAll settles the scores of all members with a part in tally t of period p, and returns of how many.
func (s State) combineAll(p uint32, t record.Tally, voters []voter) uint64 {
	all := uint64(0)
	for _, v := range voters {
		all += v.weight
	}
	settled := uint64(0)
	list := make([]opinion, 0, len(voters))
	for i := range s.Count() {
		b, m := t.Work(i), s.place(i)
		if b.Sequences() == 0 {
			if b.Missed() {
				s.move(i, scoreZero) // it had work to do, and nothing of it was accepted
			}
			continue
		}
		list = list[:0]
		for _, v := range voters {
			// Nobody scores itself.
			if u := v.given.Score(i); u != 0 && s.seat(v.seat).Key() != m.Key() {
				list = append(list, opinion{score: uint32(u), weight: v.weight})
			}
		}
		u, ok := combine(list, all)
		if !ok {
			continue
		}
		settled++
		b.SetScore(uint16(u))
		s.move(i, u)
		if u <= scoreZero {
			s.penalise(i, b)
		}
		for n := range voters {
			v := &voters[n]
			if g := uint32(v.given.Score(i)); g != 0 {
				v.near += uint64(agreementRange - min(agreementRange, distance(g, u)))
				v.scored++
			}
		}
	}
	return settled
}

// move takes a score into the moving average of member i's.
func (s State) move(i, u uint32) {
	b := s.place(i)
	if old := uint32(b.Score()); old != 0 {
		u = (old*(standingParts-1) + u + standingParts/2) / standingParts
	}
	b.SetScore(uint16(u))
}

// penalise takes from member i what a score of 0 or less costs, and notes it in its part of the tally.
func (s State) penalise(i uint32, tally record.Work) {
	m := s.place(i)
	hi, lo := bits.Mul64(s.h().Emission()/uint64(s.slots()), uint64(s.h().Penalty()))
	cost, _ := bits.Div64(hi, lo, 100)
	cost = min(cost, m.Unvested())
	m.SetUnvested(m.Unvested() - cost)
	s.h().SetTreasury(s.Treasury() + cost)
	s.h().SetPenalties(s.h().Penalties() + cost)
	tally.SetAmount(cost)
}

// revealed tells whether the validator in seat k revealed scores of period p.
func (s State) revealed(p, k uint32) bool {
	return s.periodScores(p).Period() == p && s.said(p, k).Revealed()
}

// judgeValidators notes how near validators were to what was agreed on about so many members, and what that does to their
// trust. Silence costs trust too where there was work to score, so that those who are gone do not count for long; to commit and
// not to reveal costs most.
func (s State) judgeValidators(p uint32, voters []voter, settled uint64, work bool) {
	spoken := s.periodScores(p).Period() == p
	for n := range voters {
		v := &voters[n]
		b, seat := s.said(p, v.seat), s.seat(v.seat)
		trust := uint64(seat.Trust())
		switch {
		case !spoken || b.Hash().IsZero():
			if work {
				seat.SetTrust(uint8(trust - trust/silentDivisor))
			}
			continue
		case !b.Revealed():
			trust = max(trustMin, trust/2)
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

// judgedTrust returns the trust in a validator that was so near, on the average, to what was agreed on.
func judgedTrust(trust, near uint64) uint64 {
	earned := trustMin + near*(trustMax-trustMin)/agreementRange
	if earned < trust {
		return trust - (trust-earned+1)/2
	}
	return trust + (earned-trust+trustRise-1)/trustRise
}

// ripen makes what members were given for their last scores theirs.
func (s State) ripen() {
	for i := range s.Count() {
		b := s.place(i)
		if v := b.Unvested(); v > 0 {
			b.SetBalance(b.Balance() + v)
			b.SetUnvested(0)
		}
	}
}

// emit pays for period p: members in proportion to their scores above 0 times the sequences of their accepted results,
// validators in proportion to stake, trust and agreement.
func (s State) emit(p uint32, t record.Tally, voters []voter) {
	emission := min(s.h().Emission(), s.Treasury())
	hi, lo := bits.Mul64(emission, uint64(s.h().ValidatorPercent()))
	forValidators, _ := bits.Div64(hi, lo, 100)

	weights := make([]uint64, s.Count())
	for i := range weights {
		b := t.Work(uint32(i))
		if u := b.Score(); u > scoreZero {
			weights[i] = uint64(u-scoreZero) * uint64(b.Sequences())
		}
	}
	given := uint64(0)
	parts := distribute(WeightOne, weights)
	for i, reward := range distribute(emission-forValidators, weights) {
		if weights[i] == 0 {
			continue
		}
		b, m := t.Work(uint32(i)), s.place(uint32(i))
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
		seat := s.seat(voters[n].seat)
		s.said(p, voters[n].seat).SetReward(reward)
		seat.SetBalance(seat.Balance() + reward)
		seat.SetEarned(seat.Earned() + reward)
		given += reward
	}
	s.h().SetTreasury(s.Treasury() - given)
	s.h().SetEmitted(s.h().Emitted() + given)
}

// distribute divides an amount in proportion to weights, whose sum fits 64 bits: each gets its part rounded down, and what is
// left over goes, one each, to those who lost most by the rounding, the first of equal ones. Nothing is given if all weights are 0.
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
