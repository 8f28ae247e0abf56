package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
)

// This file divides a round's batch into shares. All code that needs the owner of a sequence uses
// it.

// ShareMost bounds a member's share with SpeedShares, as a multiple of the equal share. A member
// that claims to be very fast so leaves most of the work to the others.
const ShareMost = 4

func (s State) sharing() Sharing { return Sharing(s.h().Sharing()) }

// dealt is the share of one member: count sequences of the round's batch, the first of them is at
// from.
type dealt struct {
	member      Member
	from, count uint32
}

// shares are those of a round. The first ExpectedCount positions of its line have one, the others
// none.
type shares struct {
	of           RoundState
	each, longer uint32 // as batch.Split divides a batch
}

func (r RoundState) shares() shares {
	n := max(1, r.ActiveCount())
	return shares{of: r, each: r.Batch() / n, longer: r.Batch() % n}
}

// at returns the share at position p of the line, which is member i's.
func (l *shares) at(p uint32, i Member) dealt {
	if l.of.s.l.Speeds {
		v := l.of.entry(i)
		return dealt{member: i, from: v.From(), count: v.Count()}
	}
	d := dealt{member: i, from: p*l.each + min(p, l.longer), count: l.each}
	if p < l.longer {
		d.count++
	}
	return d
}

// line returns the active members of round a, in the order of positions.
func (a RoundState) line() []Member {
	active, bitmap, n := make([]Member, a.ActiveCount()), a.active(), 0
	for i := range a.s.Count() {
		if bit(bitmap, i) {
			active[n] = i
			n++
		}
	}
	return committee.Seat(a.Seed(), committee.Trainers, active, a.ActiveCount())
}

// keepLine writes the line into the places of the table, for a closing. It returns true.
func (a RoundState) keepLine() bool {
	for p, i := range a.line() {
		a.s.place(Member(p)).SetLine(uint16(i))
	}
	return true
}

// entry returns member i's part of the slot with SpeedShares.
func (r RoundState) entry(i Member) record.Share { return r.s.l.Share(r.b, i) }

// shareMost returns the most sequences of a batch that one of n members may have with SpeedShares.
func shareMost(total, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return uint32(min(uint64(total), (ShareMost*uint64(total)+uint64(n)-1)/uint64(n)))
}

// Share returns the sequences that member i trains in the round. It is empty if the member has no
// share.
func (r RoundState) Share(i Member) []batch.Span {
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

// Shares calls visit for each member with a share in the round, in the order of places. It
// makes the line once, where Share makes it for each member.
func (r RoundState) Shares(visit func(member Member, spans []batch.Span)) {
	spans, list := r.Spans(), r.shares()
	for p, i := range r.line()[:r.ExpectedCount()] {
		d := list.at(uint32(p), i)
		visit(i, batch.Cut(spans, d.from, d.count))
	}
}

// Speed returns the speed that determines member i's share of the round: the one stated when the
// epoch began. It is 0 with EqualShares, and for a member that is not active in the round.
func (r RoundState) Speed(i Member) uint32 {
	if !r.s.l.Speeds || !r.Active(i) {
		return 0
	}
	return r.entry(i).Speed()
}

// setSpeeds records the speeds of round r's shares. An epoch's first round takes the speeds that
// members state now, but 1 for members whose work was scored and found worthless. Later rounds take
// the speeds of the round before.
func (r RoundState) setSpeeds() {
	s, active := r.s, r.active()
	before, ok := s.At(r.Number() - 1)
	goesOn := ok && before.Epoch() == r.Epoch()
	for i := range s.Count() {
		if !bit(active, i) {
			continue
		}
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
}

// divide divides the batch of round r in proportion to speeds, for a closing: it sets the speeds,
// puts the members in the round's line, and does the steps of record.Divide.
func (r RoundState) divide(w *record.Meter) bool {
	s, most := r.s, shareMost(r.Batch(), r.ActiveCount())
	for step := s.h().Cursor(); step < dividedStep; s.h().SetCursor(step) {
		units := uint64(lineUnits)
		if step >= firstStep {
			units = record.DivideUnits(step - firstStep)
		}
		if !w.Takes(units * uint64(s.Count())) {
			return false
		}
		switch step++; step {
		case 1:
			r.setSpeeds()
		case 2:
			r.keepLine()
		default:
			step = s.buffer().Divide(r.b, most, step-1-firstStep) + firstStep
		}
	}
	return true
}

// The steps of divide. Those of record.Divide are between.
const (
	firstStep   = 2
	dividedStep = firstStep + batch.Steps
)

// apply records a member's new speed, at most once an epoch. It takes effect with the next
// epoch.
func (m SetSpeed) apply(s State, env Env) Error {
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
