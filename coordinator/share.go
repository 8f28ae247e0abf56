package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
)

// Shares: which part of a round's batch is whose. Everything that asks whose sequences are whose asks here.

// ShareMost is how many times the equal share a member has at most where shares go by speed, so that who claims to be very fast
// leaves most of the work to the others.
const ShareMost = 4

func (s State) sharing() Sharing { return Sharing(s.h().Sharing()) }

// dealt is the share of one member.
type dealt struct {
	member, count uint32
	spans         []batch.Span
}

// deal returns the shares of a round, in the order of positions.
func (r Round) deal() []dealt {
	line, spans := r.line(), r.Spans()
	list := make([]dealt, 0, len(line))
	from := uint32(0)
	for p, count := range r.parts(line) {
		if count == 0 {
			break // nor has anybody behind
		}
		list = append(list, dealt{member: line[p], count: count, spans: batch.Cut(spans, from, count)})
		from += count
	}
	return list
}

// line returns the members of round a by their positions.
func (a Round) line() []uint32 {
	n := a.ActiveCount()
	at := committee.Positions(a.Seed(), committee.Trainers, n)
	line := make([]uint32, n)
	rank := uint32(0)
	for i := range a.s.Count() {
		if a.Active(i) && rank < n {
			line[at[rank]] = i
			rank++
		}
	}
	return line
}

// parts returns how many sequences the members in a line have.
func (r Round) parts(line []uint32) []uint32 {
	parts := make([]uint32, len(line))
	for p, i := range line {
		if r.s.l.Speeds {
			parts[p] = r.entry(i).Count()
		} else {
			_, parts[p] = batch.Split(r.Batch(), uint32(len(line)), uint32(p))
		}
	}
	return parts
}

// entry returns where member i's part of the slot is, where shares go by speed.
func (r Round) entry(i uint32) record.Share { return r.s.l.Share(r.b, i) }

// shareMost returns how many sequences of a batch one of n members has at most where shares go by speed.
func shareMost(total, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return uint32(min(uint64(total), (ShareMost*uint64(total)+uint64(n)-1)/uint64(n)))
}

// Share returns the sequences that member i trains in the round; none if it has no share.
func (r Round) Share(i uint32) []batch.Span {
	if !r.Expected(i) {
		return nil
	}
	if r.s.l.Speeds {
		at := r.entry(i)
		return batch.Cut(r.Spans(), at.From(), at.Count())
	}
	p, ok := r.Position(i)
	if !ok {
		return nil
	}
	from, count := batch.Split(r.Batch(), r.ActiveCount(), p)
	return batch.Cut(r.Spans(), from, count)
}

// Shares calls visit for each member with a share in the round, in the order of their places. To ask Share for each of them costs
// two orders of magnitude more, since it finds one member's place without the others'.
func (r Round) Shares(visit func(member uint32, spans []batch.Span)) {
	for _, v := range r.deal() {
		visit(v.member, v.spans)
	}
}

// Speed returns what member i's share of the round goes by: its speed when the epoch began. It is 0 where shares are equal, and
// of who is not active in the round.
func (r Round) Speed(i uint32) uint32 {
	if !r.s.l.Speeds || !r.Active(i) {
		return 0
	}
	return r.entry(i).Speed()
}

// setSpeeds notes by which speeds the shares of round r go, and how large they are: those of the round before in the same epoch, in its first round what
// members say now, but 1 for those whose work was scored and found worth nothing.
func (r Round) setSpeeds(members []uint32) {
	s := r.s
	if !s.l.Speeds {
		return
	}
	before, ok := s.At(r.Number() - 1)
	goesOn := ok && before.Epoch() == r.Epoch()
	for _, i := range members {
		b := s.place(i)
		speed, average := b.Speed(), b.Score()
		switch {
		case goesOn:
			speed = before.Speed(i)
		case average != 0 && average <= score.Zero:
			speed = 1
		}
		r.entry(i).SetSpeed(speed)
	}
	r.divide()
}

// divide divides the batch of round r by the speeds.
func (r Round) divide() {
	line := r.line()
	weights := make([]uint32, len(line))
	for p, i := range line {
		weights[p] = r.Speed(i)
	}
	from := uint32(0)
	for p, count := range batch.Weighted(r.Batch(), shareMost(r.Batch(), uint32(len(line))), weights) {
		if count == 0 {
			return // nor has anybody behind
		}
		at := r.entry(line[p])
		at.SetFrom(from)
		at.SetCount(count)
		from += count
	}
}

// sharesOK tells whether speeds are only of members that are active in the round, and shares only of those expected, within the
// batch, and as much as it together.
func (r Round) sharesOK() bool {
	if !r.s.l.Speeds {
		return true
	}
	total := uint64(0)
	for i := range r.s.l.Members {
		at := r.entry(i)
		from, count := at.From(), at.Count()
		switch {
		case !r.Active(i) && at.Speed() != 0, r.Expected(i) != (count > 0), count == 0 && from > 0:
			return false
		case uint64(from)+uint64(count) > uint64(r.Batch()):
			return false
		}
		total += uint64(count)
	}
	return total == uint64(r.Batch())
}

// setSpeed takes a new speed of a member, once in an epoch. Shares go by it from the next epoch on.
func (s State) setSpeed(env Env, m SetSpeed) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	b := s.place(i)
	switch {
	case s.sharing() != SpeedShares:
		return ErrSharing
	case s.Phase() == Finished:
		return ErrPhase
	case b.SpeedSet() || b.Speed() == m.Speed:
		return ErrDuplicate
	}
	b.SetSpeed(m.Speed)
	b.SetSpeedSet(true)
	return OK
}
