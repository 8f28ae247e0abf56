package runlog

import (
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Heard sums up what came from others in a round since the Heard before it. It stands in for the
// events of single commitments and payloads, which would be most of the log of a large run.
type Heard struct {
	Round     coordinator.Round
	Step      coordinator.Step // 0 if not known
	Committed uint32           // commitments
	LossSum   float64          // the median of their losses, times Committed
	LossMin   float32          // the lower quartile of their losses
	LossMax   float32          // the upper quartile
	Bytes     uint64           // size of the committed payloads
	Fetched   uint32           // payloads
	Came      uint64           // their bytes
	Seconds   float64          // that each took, summed

	losses []float32
}

// Quartiles returns the lower quartile, the median and the upper quartile of values, which it
// sorts: zeros if there are none. Liars that state less than half of the values cannot move the
// median beyond what the others state, and with less than a quarter they cannot move the quartiles.
func Quartiles(values []float32) (low, mid, high float64) {
	n := len(values)
	if n == 0 {
		return 0, 0, 0
	}
	slices.Sort(values)
	mid = (float64(values[(n-1)/2]) + float64(values[n/2])) / 2
	return float64(values[(n-1)/4]), mid, float64(values[n-1-(n-1)/4])
}

// manyMembers is the number of members from which a log is kept short: it sums up what others do
// ([Heard]), and writes the counters of members only now and then. A round then
// costs some kilobytes, however many members there are.
const manyMembers = 256

// heardEvery is the least time between two sums of a round, and heardRounds the most rounds that
// are summed up at a time.
const (
	heardEvery  = 2 * time.Second
	heardRounds = 4
)

// hear takes the commitment of another participant.
func (h *Heard) hear(ev event.Committed) {
	h.Committed++
	h.losses = append(h.losses, ev.Loss)
	h.Bytes += ev.Bytes
}

// sums holds what was heard and is not written yet.
type sums struct {
	list []*Heard
	at   []time.Time // when each began
}

// take adds an event to the sum of its round. It reports whether events of this kind are summed up.
func (s *sums) take(now time.Time, ev event.Event) bool {
	switch ev := ev.(type) {
	case event.Committed:
		s.of(now, ev.Round).hear(ev)
	case event.Fetched:
		if ev.Update {
			return false
		}
		h := s.of(now, ev.Round)
		h.Fetched++
		h.Came += ev.Bytes
		h.Seconds += ev.Seconds
	default:
		return false
	}
	return true
}

// of returns the sum of a round, and begins it at now if there is none.
func (s *sums) of(now time.Time, round coordinator.Round) *Heard {
	for _, h := range s.list {
		if h.Round == round {
			return h
		}
	}
	h := &Heard{Round: round}
	s.list, s.at = append(s.list, h), append(s.at, now)
	return h
}

// due returns the oldest sum if it is old enough, there are too many, or all are wanted.
func (s *sums) due(now time.Time, all bool) *Heard {
	if len(s.list) == 0 || !all && len(s.list) <= heardRounds && now.Sub(s.at[0]) < heardEvery {
		return nil
	}
	h := s.list[0]
	low, mid, high := Quartiles(h.losses)
	h.LossMin, h.LossSum, h.LossMax, h.losses = float32(low), mid*float64(h.Committed), float32(high), nil
	s.list, s.at = s.list[1:], s.at[1:]
	return h
}

// digest decides what a log says of a newer state.
type digest struct {
	known  *Standing         // what readers know; nil before the first
	rowsAt coordinator.Round // the last round in which all counters were written
}

// news returns what to write of a state, nil if nothing yet. With whole, everything that changed is
// due.
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
	if !whole && s.Round >= d.rowsAt && uint32(s.Round-d.rowsAt) < uint32(len(s.Members))/rowsPerRound && s.Phase != "Finished" && s.Phase != "Cooldown" {
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

// rowsPerRound is about the number of members' rows that a round may cost.
const rowsPerRound = 64

// short leaves out the members of which only counters that grow with every round have changed, but
// not the participant's own row.
func (d *digest) short(changed *Standing) *Standing {
	out := *changed
	out.Members = nil // few stay
	own, _ := wire.ParseHash(changed.Own)
	for _, m := range changed.Members {
		if int(m.Index) < len(d.known.Members) {
			k := d.known.Members[m.Index]
			k.Points, k.Results, k.Idle, k.LastRound = m.Points, m.Results, m.Idle, m.LastRound
			k.Balance, k.Settled = m.Balance, m.Settled
			if k == m && m.Key != key.Public(own) {
				continue
			}
		}
		out.Members = append(out.Members, m)
	}
	return &out
}

// learn updates what readers know.
func (d *digest) learn(s, told *Standing) {
	known := *s
	known.Members = append([]Member(nil), d.known.Members...)
	for _, m := range told.Members {
		for coordinator.Member(len(known.Members)) <= m.Index {
			known.Members = append(known.Members, Member{})
		}
		known.Members[m.Index] = m
	}
	d.known = &known
}
