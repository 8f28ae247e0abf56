package coordinator

import (
	"math/bits"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/wire"
)

// apply stores the report of an elected witness and counts the results that it holds.
func (m Witness) apply(s State, env Env) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	phase := s.Phase()
	if phase != RoundTrain && phase != RoundWitness {
		return ErrPhase
	}
	if m.Round != s.Round() {
		return ErrRound
	}
	if s.status(i) != StatusActive {
		return ErrNotActive
	}
	r := s.slot(m.Round)
	seat, ok := r.seat(i)
	switch {
	case !ok:
		return ErrNotElected
	case r.reported(seat):
		return ErrDuplicate
	case phase == RoundTrain && !m.Complete:
		return ErrEarly
	case m.Params.IsZero(), m.Prev.IsZero():
		return ErrParams // who names none has not reported
	}
	if e := s.checkHeld(r, m); e != OK {
		return e
	}
	if e := checkFilter(r, m.Commitments, s.expectedIn(r.Attests())); e != OK {
		return e
	}
	s.record(r, seat, m)
	return OK
}

// expectedIn returns how many members have a share in the round with this number, or 0 if there is
// no such round.
func (s State) expectedIn(number Round) uint32 {
	a, ok := s.At(number)
	if !ok {
		return 0
	}
	return a.ExpectedCount()
}

// checkHeld checks the form of a report's bitmap. The bitmap may name only members with a share in
// the attested round. If the report is complete, it must name every one of them that is still
// active, unless the round is Severed.
func (s State) checkHeld(r RoundState, m Witness) Error {
	n := uint32(len(m.Held))
	if n > s.l.Bitmap || n > 0 && m.Held[n-1] == 0 {
		return ErrHeldForm
	}
	a, ok := s.At(r.Attests())
	if !ok {
		if n > 0 {
			return ErrHeld
		}
		return OK
	}
	expected := a.held()
	for i, held := range m.Held {
		if held&^expected[i] != 0 {
			return ErrHeld
		}
	}
	if !m.Complete || a.Severed() {
		return OK
	}
	for i, want := range expected {
		missing := want
		if i < len(m.Held) {
			missing &^= m.Held[i]
		}
		for ; missing != 0; missing &= missing - 1 {
			if s.status(Member(i)<<3+Member(bits.TrailingZeros8(missing))) == StatusActive {
				return ErrNotComplete
			}
		}
	}
	return OK
}

// checkFilter checks a report's filter, which holds commitments to the results of items members.
func checkFilter(r RoundState, filter []byte, items uint32) Error {
	p := r.Filter()
	if uint64(len(filter)) != uint64(p.Bits/8) {
		return ErrFilterSize
	}
	if p.Bits > 0 && !bloom.Filter(filter).Plausible(p, items) {
		return ErrFilterFull
	}
	return OK
}

// record stores a checked report.
func (s State) record(r RoundState, seat uint32, m Witness) {
	b := r.reportAt(seat)
	b.SetReported(true)
	b.SetComplete(m.Complete)
	b.SetParams(m.Params)
	b.SetPrev(m.Prev)
	copy(r.filter(seat), m.Commitments)
	r.b.SetReports(r.b.Reports() + 1)
	if m.Complete {
		r.b.SetCompletes(r.b.Completes() + 1)
	}
	a, ok := s.At(r.Attests())
	if !ok {
		return
	}
	counts := a.counts()
	for _, held := range m.Held {
		most := min(8, len(counts))
		for j := range counts[:most] { // of the members beyond the table no bit is set
			counts[j] += held & 1
			held >>= 1
		}
		counts = counts[most:]
	}
}

// Select returns the index of the candidate that is the member's result of round a. That is the
// commitment that the filters of a quorum of the witnesses confirm, and of several the one with the
// smallest hash. In a run with Buckets it is the one on the ledger. Candidates are the IDs of
// commitments, in any order.
//
// Select is false if the member's result is not accepted, or if no candidate has a quorum. In the
// second case either the caller lacks the right candidate, or the member sent different ones to
// different witnesses and no member applies any.
//
// The filters are those of the reports of round a + Overlap. Select is false once that round has
// left the ring.
func (s State) Select(a Round, member Member, candidates []wire.Hash) (i int, ok bool) {
	round, found := s.At(a)
	if !found || !round.Final() || !round.Accepted(member) {
		return 0, false
	}
	if s.exchange() == Buckets {
		return round.selectCommitted(member, candidates)
	}
	r, found := s.At(a + Round(s.h().Overlap()))
	if !found || r.Attests() != a {
		return 0, false
	}
	p, quorum := r.Filter(), r.Quorum()
	for c, id := range candidates {
		if ok && id.Compare(candidates[i]) >= 0 {
			continue
		}
		holders := uint32(0)
		for seat := range r.electedLen() {
			if holders >= quorum {
				break // further holders change nothing
			}
			if !r.reported(seat) {
				continue
			}
			salt := s.Key(r.electedAt(seat))
			if bloom.Filter(r.filter(seat)).Has(p, salt[:], id) {
				holders++
			}
		}
		if holders >= quorum {
			i, ok = c, true
		}
	}
	return i, ok
}
