package runlog

import (
	"time"

	"github.com/entrain-network/entrain/event"
)

// Heard is what came of a round from others, in a run of so many members that a record for each commitment and each payload would be
// most of the log. It says what came since the one before.
type Heard struct {
	Round     uint32
	Step      uint32 // 0: not known
	Committed uint32 // commitments
	LossSum   float64
	LossMin   float32
	LossMax   float32
	Bytes     uint64  // of the payloads that they are to
	Fetched   uint32  // payloads
	Came      uint64  // bytes of those
	Seconds   float64 // that those took, summed
}

// manyMembers is from how many members on a log is kept short: what others do is summed up ([Heard]), the counters of members and their
// accounts are written now and then only, and not every report of a witness is a record. A round then costs some kilobytes, however
// many members there are.
const manyMembers = 256

// heardEvery is the least time between two sums of one round, and heardRounds for how many rounds there can be sums at a time.
const (
	heardEvery  = 2 * time.Second
	heardRounds = 4
)

// hear takes the commitment of another participant.
func (h *Heard) hear(ev event.Committed) {
	if h.Committed == 0 || ev.Loss < h.LossMin {
		h.LossMin = ev.Loss
	}
	if h.Committed == 0 || ev.Loss > h.LossMax {
		h.LossMax = ev.Loss
	}
	h.Committed++
	h.LossSum += float64(ev.Loss)
	h.Bytes += ev.Bytes
}

// sums are what was heard and is not written yet.
type sums struct {
	list []*Heard
	at   []time.Time // when each was begun
}

// take adds an event to the sum of its round; false if it is none that is summed up.
func (s *sums) take(now time.Time, ev event.Event) bool {
	switch ev := ev.(type) {
	case event.Committed:
		s.of(now, ev.Round).hear(ev)
	case event.Fetched:
		h := s.of(now, ev.Round)
		h.Fetched++
		h.Came += ev.Bytes
		h.Seconds += ev.Seconds
	default:
		return false
	}
	return true
}

// of returns the sum of a round, begun at now if there is none.
func (s *sums) of(now time.Time, round uint32) *Heard {
	for _, h := range s.list {
		if h.Round == round {
			return h
		}
	}
	h := &Heard{Round: round}
	s.list, s.at = append(s.list, h), append(s.at, now)
	return h
}

// due returns the oldest sum if it is old enough, or there are too many, or all are wanted.
func (s *sums) due(now time.Time, all bool) *Heard {
	if len(s.list) == 0 || !all && len(s.list) <= heardRounds && now.Sub(s.at[0]) < heardEvery {
		return nil
	}
	h := s.list[0]
	s.list, s.at = s.list[1:], s.at[1:]
	return h
}

func appendHeard(p *pen, h *Heard) {
	p.uint(uint64(h.Round))
	p.uint(uint64(h.Step))
	p.uint(uint64(h.Committed))
	p.f64(h.LossSum)
	p.f32(h.LossMin)
	p.f32(h.LossMax)
	p.uint(h.Bytes)
	p.uint(uint64(h.Fetched))
	p.uint(h.Came)
	p.f64(h.Seconds)
}

func parseHeard(e *eye) *Heard {
	return &Heard{
		Round: e.u32(), Step: e.u32(), Committed: e.u32(), LossSum: e.f64(), LossMin: e.f32(), LossMax: e.f32(), Bytes: e.u64(),
		Fetched: e.u32(), Came: e.u64(), Seconds: e.f64(),
	}
}

// digest is what a log of many members says of a newer state, and what its readers know.
type digest struct {
	known  *Standing // as a reader knows it; nil before the first
	rowsAt uint32    // round in which all counters were written last
}

// news returns what is to be written of a state, nil if nothing is for now. All of what changed is due when whole is set.
func (d *digest) news(s *Standing, whole bool) *Standing {
	if d.known == nil || d.known.ID != s.ID || len(s.Members) < manyMembers {
		changed := s.since(d.known)
		if changed != nil {
			d.known, d.rowsAt = s, s.Round
		}
		return changed
	}
	changed := s.since(d.known)
	if changed == nil {
		return nil
	}
	if !whole && s.Round >= d.rowsAt && s.Round-d.rowsAt < uint32(len(s.Members))/rowsPerRound && s.Phase != "Finished" && s.Phase != "Cooldown" {
		changed = d.short(changed)
	} else {
		d.rowsAt = s.Round
	}
	k := d.known
	urgent := whole || s.Phase != k.Phase || s.Round != k.Round || s.Epoch != k.Epoch || s.Saved != k.Saved || s.Pausing != k.Pausing || s.Rollbacks != k.Rollbacks
	if w := changed.Windows; w != nil {
		urgent = urgent || w.SeatsTold || w.Period != nil
	}
	if t := changed.Trust; t != nil {
		urgent = urgent || len(t.Disputes)+len(t.Ended)+len(t.Convictions) > 0
	}
	if !urgent && len(changed.Members) == 0 {
		return nil
	}
	d.learn(s, changed)
	return changed
}

// rowsPerRound is about how many rows of members a round may cost.
const rowsPerRound = 64

// short leaves out the members and accounts of which only what grows with every round has changed, but for the participant's own.
func (d *digest) short(changed *Standing) *Standing {
	out := *changed
	out.Members = nil // few stay
	for _, m := range changed.Members {
		if int(m.Index) < len(d.known.Members) {
			k := d.known.Members[m.Index]
			k.Points, k.Results, k.Idle = m.Points, m.Results, m.Idle
			if k == m && m.Key != changed.Own {
				continue
			}
		}
		out.Members = append(out.Members, m)
	}
	if changed.Trust == nil || d.known.Trust == nil {
		return &out
	}
	t := *changed.Trust
	t.Accounts = nil
	for _, a := range changed.Trust.Accounts {
		if int(a.Index) < len(d.known.Trust.Accounts) {
			k := d.known.Trust.Accounts[a.Index]
			k.Balance, k.Settled = a.Balance, a.Settled
			if k == a {
				continue
			}
		}
		t.Accounts = append(t.Accounts, a)
	}
	out.Trust = &t
	return &out
}

// learn brings what readers know up to date.
func (d *digest) learn(s, told *Standing) {
	known := *s
	known.Members = append([]Member(nil), d.known.Members...)
	for _, m := range told.Members {
		for uint32(len(known.Members)) <= m.Index {
			known.Members = append(known.Members, Member{})
		}
		known.Members[m.Index] = m
	}
	if s.Trust != nil && d.known.Trust != nil {
		t := *s.Trust
		t.Accounts = append([]Account(nil), d.known.Trust.Accounts...)
		if told.Trust != nil {
			for _, a := range told.Trust.Accounts {
				for uint32(len(t.Accounts)) <= a.Index {
					t.Accounts = append(t.Accounts, Account{})
				}
				t.Accounts[a.Index] = a
			}
		}
		known.Trust = &t
	}
	d.known = &known
}
