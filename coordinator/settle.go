package coordinator

import (
	"cmp"
	"math/bits"
	"slices"
)

// The end of a period of scores: what validators agree on becomes members' scores, and pays.

// voter is a validator that was registered in time for the period that is being settled.
type voter struct {
	seat   uint32
	given  []byte // the scores it revealed; all zero if it did not
	weight uint64 // stake times trust, scaled down together
	near   uint64 // how near its scores were to what was agreed on, summed over the members it scored
	scored uint64 // of the members that were settled, those that it scored
	share  uint64 // of what validators get, as weight
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
		putU32(s.b, hScored, p)
	}
}

// passTail counts the windows that have passed since the run's end, as long as periods are left to be settled.
func (s State) passTail(env Env) {
	if s.Phase() != Finished || !s.scoresDue() {
		return
	}
	now, since, length := env.Height, getU64(s.b, hPhaseHeight), uint64(getU32(s.b, hWindowBlocks))
	if s.exchange() != Buckets {
		now, since, length = env.NowMs, s.PhaseSince(), getU64(s.b, hRoundTrainMs)
	}
	windows := (now - min(now, since)) / length
	_, end := s.PeriodWindows(s.period(s.Round()) + 1)
	putU32(s.b, hTail, max(s.tail(), uint32(min(windows, uint64(end+1-s.Round())))))
}

// settlePeriod combines the scores of period p, pays for it, and makes room for those to come.
func (s State) settlePeriod(p uint32) {
	voters := s.voters(p)
	t := s.tallyOf(p)
	settled := uint64(0)
	if getU32(t, tPeriod) == p && getU32(s.periodScores(p), sPeriod) == p {
		settled = s.combineAll(p, t, voters)
	}
	s.judgeValidators(p, voters, settled, getU32(t, tPeriod) == p && s.worked(t))
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
func (s State) worked(t []byte) bool {
	for i := range s.Count() {
		if getU32(tallied(t, i), tSequences) > 0 {
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
		if s.taken(k) && (getU32(s.seat(k), vSince) < first || s.revealed(p, k)) {
			list = append(list, voter{seat: k, given: s.given(p, k)})
			stakes += getU64(s.seat(k), vStake)
		}
	}
	shift := max(bits.Len64(stakes), 32) - 32
	for n := range list {
		v := &list[n]
		seat := s.seat(v.seat)
		v.weight = max(1, getU64(seat, vStake)>>shift) * uint64(getU8(seat, vTrust))
	}
	return list
}

// combineAll settles the scores of all members with a part in tally t of period p, and returns of how many.
func (s State) combineAll(p uint32, t []byte, voters []voter) uint64 {
	all := uint64(0)
	for _, v := range voters {
		all += v.weight
	}
	settled := uint64(0)
	list := make([]opinion, 0, len(voters))
	for i := range s.Count() {
		b, m := tallied(t, i), s.place(i)
		if getU32(b, tSequences) == 0 {
			if getU8(b, tMissed) == 1 {
				s.move(i, scoreZero) // it had work to do, and nothing of it was accepted
			}
			continue
		}
		list = list[:0]
		for _, v := range voters {
			// Nobody scores itself.
			if u := getU16(v.given, 2*i); u != 0 && get32(s.seat(v.seat), vKey) != get32(m, mKey) {
				list = append(list, opinion{score: uint32(u), weight: v.weight})
			}
		}
		u, ok := combine(list, all)
		if !ok {
			continue
		}
		settled++
		putU16(b, tScore, uint16(u))
		s.move(i, u)
		if u <= scoreZero {
			s.penalise(i, b)
		}
		for n := range voters {
			v := &voters[n]
			if g := uint32(getU16(v.given, 2*i)); g != 0 {
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
	if old := uint32(getU16(b, mScore)); old != 0 {
		u = (old*(standingParts-1) + u + standingParts/2) / standingParts
	}
	putU16(b, mScore, uint16(u))
}

// penalise takes from member i what a score of 0 or less costs, and notes it in its part of the tally.
func (s State) penalise(i uint32, tally []byte) {
	m := s.place(i)
	hi, lo := bits.Mul64(getU64(s.b, hEmission)/uint64(s.slots()), uint64(getU8(s.b, hPenalty)))
	cost, _ := bits.Div64(hi, lo, 100)
	cost = min(cost, getU64(m, mUnripe))
	putU64(m, mUnripe, getU64(m, mUnripe)-cost)
	putU64(s.b, hTreasury, s.Treasury()+cost)
	putU64(s.b, hPenalties, getU64(s.b, hPenalties)+cost)
	putU64(tally, tAmount, cost)
}

// revealed tells whether the validator in seat k revealed scores of period p.
func (s State) revealed(p, k uint32) bool {
	return getU32(s.periodScores(p), sPeriod) == p && getU8(s.said(p, k), sRevealed) == 1
}

// judgeValidators notes how near validators were to what was agreed on about so many members, and what that does to their
// trust. Silence costs trust too where there was work to score, so that those who are gone do not count for long; to commit and
// not to reveal costs most.
func (s State) judgeValidators(p uint32, voters []voter, settled uint64, work bool) {
	spoken := getU32(s.periodScores(p), sPeriod) == p
	for n := range voters {
		v := &voters[n]
		b, seat := s.said(p, v.seat), s.seat(v.seat)
		trust := uint64(getU8(seat, vTrust))
		switch {
		case !spoken || allZero(b[sHash:sHash+32]):
			if work {
				putU8(seat, vTrust, uint8(trust-trust/silentDivisor))
			}
			continue
		case getU8(b, sRevealed) == 0:
			trust = max(trustMin, trust/2)
		case v.scored > 0:
			trust = judgedTrust(trust, v.near/v.scored)
			agreement := v.near * AgreementOne / (settled * agreementRange)
			putU16(b, sAgreement, uint16(agreement))
			v.share = v.weight * agreement
		}
		putU8(seat, vTrust, uint8(trust))
		putU8(b, sTrust, uint8(trust))
		putU64(b, sStake, getU64(seat, vStake))
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
		if v := getU64(b, mUnripe); v > 0 {
			putU64(b, mBalance, getU64(b, mBalance)+v)
			putU64(b, mUnripe, 0)
		}
	}
}

// emit pays for period p: members in proportion to their scores above 0 times the sequences of their accepted results,
// validators in proportion to stake, trust and agreement.
func (s State) emit(p uint32, t []byte, voters []voter) {
	emission := min(getU64(s.b, hEmission), s.Treasury())
	hi, lo := bits.Mul64(emission, uint64(getU8(s.b, hValidatorPercent)))
	forValidators, _ := bits.Div64(hi, lo, 100)

	weights := make([]uint64, s.Count())
	for i := range weights {
		b := tallied(t, uint32(i))
		if u := getU16(b, tScore); u > scoreZero {
			weights[i] = uint64(u-scoreZero) * uint64(getU32(b, tSequences))
		}
	}
	given := uint64(0)
	parts := distribute(WeightOne, weights)
	for i, reward := range distribute(emission-forValidators, weights) {
		if weights[i] == 0 {
			continue
		}
		b, m := tallied(t, uint32(i)), s.place(uint32(i))
		putU32(b, tWeight, uint32(parts[i]))
		putU64(b, tAmount, reward)
		putU64(m, mUnripe, getU64(m, mUnripe)+reward)
		putU64(m, mEarned, getU64(m, mEarned)+reward)
		given += reward
	}
	shares := make([]uint64, len(voters))
	for n, v := range voters {
		shares[n] = v.share
	}
	for n, reward := range distribute(forValidators, shares) {
		seat := s.seat(voters[n].seat)
		putU64(s.said(p, voters[n].seat), sReward, reward)
		putU64(seat, vBalance, getU64(seat, vBalance)+reward)
		putU64(seat, vEarned, getU64(seat, vEarned)+reward)
		given += reward
	}
	putU64(s.b, hTreasury, s.Treasury()-given)
	putU64(s.b, hEmitted, getU64(s.b, hEmitted)+given)
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
