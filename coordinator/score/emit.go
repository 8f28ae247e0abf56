package score

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// The emission of a period.

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

// emit continues a step that pays for period p: members in proportion to their scores above 0, up
// to MostPaid, times the sequences of their accepted results; validators in proportion to stake,
// trust and agreement. What the treasury owes for points stays in it.
func (s Book) emit(step, p uint32, t record.Tally, w *record.Meter) bool {
	h, n := s.h(), uint32(s.h().Count())
	switch {
	case step == limiting:
		if !w.Takes(limitUnits * uint64(n)) {
			return false
		}
		s.limit(t)
	case step == rewarding:
		s.rewardValidators(p)
	case h.Doubts(most) == 0: // no member is paid
	case step == summing:
		if !s.Each(w, n, sumUnits, func(i uint32) { h.SetStream(sum, h.Stream(sum)+s.weight(t, record.Member(i))) }) {
			return false
		}
		h.SetStream(least, WeightOne)
	case step == weighing, step == paying:
		return s.Each(w, n, partUnits, func(i uint32) { s.part(t, record.Member(i), step == paying) })
	case step == choosing, step == deciding:
		return s.choose(t, step == deciding, w)
	case step == adding, step == crediting:
		bar := s.bar()
		done := s.Each(w, n, addUnits, func(i uint32) { s.give(t, record.Member(i), step == crediting, &bar) })
		s.setBar(bar)
		if done && step == adding {
			h.SetStream(least, h.Stream(members))
		}
		return done
	}
	return true
}

// limit finds what is given to members and validators, and MostPaid, by its two bytes.
func (s Book) limit(t record.Tally) {
	h, treasury := s.h(), s.h().Treasury()
	emission := min(h.Emission(), treasury-min(treasury, s.Unpaid(treasury)))
	hi, lo := bits.Mul64(emission, uint64(h.ValidatorPercent()))
	forValidators, _ := bits.Div64(hi, lo, 100)
	h.SetStream(validators, forValidators)
	h.SetStream(members, emission-forValidators)
	var high, low [256]uint64
	total := uint64(0)
	for i := range h.Count() {
		b := t.Work(i)
		if u := b.Score(); u > Zero {
			high[u>>8] += uint64(b.Sequences())
			total += uint64(b.Sequences())
		}
	}
	if total == 0 {
		return
	}
	half, top := total-total/2, 0
	for ; high[top] < half; top++ {
		half -= high[top]
	}
	for i := range h.Count() {
		b := t.Work(i)
		if u := b.Score(); u > Zero && int(u>>8) == top {
			low[uint8(u)] += uint64(b.Sequences())
		}
	}
	key := 0
	for ; low[key] < half; key++ {
		half -= low[key]
	}
	h.SetDoubts(most, uint16(top<<8|key)-Zero)
}

// weight returns what member i is paid in proportion to.
func (s Book) weight(t record.Tally, i record.Member) uint64 {
	b := t.Work(i)
	if b.Score() <= Zero {
		return 0
	}
	return uint64(min(b.Score()-Zero, s.h().Doubts(most))) * uint64(b.Sequences())
}

// amount returns what is divided among members: the emission, or else WeightOne.
func (s Book) amount(tokens bool) uint64 {
	if tokens {
		return s.h().Stream(members)
	}
	return WeightOne
}

// part notes member i's part of an amount, rounded down.
func (s Book) part(t record.Tally, i record.Member, tokens bool) {
	w, h := s.weight(t, i), s.h()
	if w == 0 {
		return
	}
	hi, lo := bits.Mul64(s.amount(tokens), w)
	part, _ := bits.Div64(hi, lo, h.Stream(sum)) // below 2^64, since w <= sum
	h.SetStream(least, h.Stream(least)-part)
	if tokens {
		t.Work(i).SetAmount(part)
	} else {
		t.Work(i).SetWeight(uint32(part))
	}
}

// lost returns how much member i lost by rounding, times sum, and its part; false if it has none.
func (s Book) lost(t record.Tally, i record.Member, tokens bool) (lost, part uint64, ok bool) {
	w := s.weight(t, i)
	if w == 0 {
		return 0, 0, false
	}
	if part = uint64(t.Work(i).Weight()); tokens {
		part = t.Work(i).Amount()
	}
	return s.amount(tokens)*w - part*s.h().Stream(sum), part, true
}

// choose finds the bar, a byte in each pass.
func (s Book) choose(t record.Tally, tokens bool, w *record.Meter) bool {
	h, bar := s.h(), s.bar()
	passes := uint32(bits.Len64(h.Stream(sum))+7) / 8 // nobody lost more than sum
	if h.Cursor() == 0 {
		bar = batch.NewBar(uint32(h.Stream(least)))
	}
	for k := h.Cursor(); k < passes && !bar.Found(); k++ {
		if !w.Takes(lossUnits * uint64(h.Count())) {
			return false
		}
		var counts [256]uint32
		shift := 8 * (passes - 1 - k)
		for i := range h.Count() {
			if lost, _, ok := s.lost(t, i, tokens); ok {
				bar.Count(&counts, lost, shift)
			}
		}
		bar.Pass(&counts, shift)
		s.setBar(bar)
		h.SetCursor(k + 1)
	}
	s.setBar(bar)
	return true
}

// bar returns the bar that was found so far.
func (s Book) bar() batch.Bar {
	bar := batch.Bar{Least: s.h().Stream(least), Over: uint32(s.h().Doubts(over))}
	if bar.Over == allOver {
		bar.Over = batch.All
	}
	return bar
}

func (s Book) setBar(bar batch.Bar) {
	s.h().SetStream(least, bar.Least)
	s.h().SetDoubts(over, uint16(min(bar.Over, allOver)))
}

// give gives member i its part, and one more if it lost enough by rounding.
func (s Book) give(t record.Tally, i record.Member, tokens bool, bar *batch.Bar) {
	lost, part, ok := s.lost(t, i, tokens)
	if !ok {
		return
	}
	if bar.Takes(lost) {
		part++
	}
	b, m := t.Work(i), s.Place(i)
	if !tokens {
		b.SetWeight(uint32(part))
		return
	}
	b.SetAmount(part)
	m.SetUnvested(m.Unvested() + part)
	m.SetEarned(m.Earned() + part)
	s.emitted(part)
}

// emitted takes what was given out of the treasury.
func (s Book) emitted(given uint64) {
	s.h().SetTreasury(s.h().Treasury() - given)
	s.h().SetEmitted(s.h().Emitted() + given)
}

// rewardValidators divides the validators' part of the emission.
func (s Book) rewardValidators(p uint32) {
	voters := s.voters(p)
	shares := make([]uint64, len(voters))
	for n, v := range voters {
		shares[n] = v.ballot.Reward()
	}
	for n, reward := range distribute(s.h().Stream(validators), shares) {
		seat := s.Seat(voters[n].seat)
		voters[n].ballot.SetReward(reward)
		seat.SetBalance(seat.Balance() + reward)
		seat.SetEarned(seat.Earned() + reward)
		s.emitted(reward)
	}
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
