package loop

import (
	"math"
	"time"
)

// Virtual is a [Loop] under a clock that stands still while a function runs and
// jumps to the next event when it has returned. Any number of participants share
// one. Make one with [NewVirtual]; it belongs to one goroutine.
type Virtual struct {
	start   time.Time
	now     time.Duration // since start
	events  []entry       // a heap: no entry comes before its parent
	added   uint64        // events so far, the order among equal times
	stopped int           // entries of events that were stopped
	// due is the events for now, which come after those of the heap for now: they were added later.
	// Half of all events are of this kind, and need no place in the heap.
	due []posted
	ran int // of due
	// free is the memory of events that are over.
	free []*event
}

// entry is an event's place in the order of time. The heap compares entries only, so that ordering
// millions of events follows no pointers.
type entry struct {
	at       time.Duration // since the loop's start
	sequence uint64
	event    *event
}

// posted is one function to be run now.
type posted struct {
	f  func()
	of *Scope // nil, or f does not run if this has ended
}

// event is one function to be run later. f is nil once it has run or was stopped; the entry of a
// stopped one passes without advancing the clock.
type event struct {
	posted
	turn uint32 // the uses of this memory before
}

// NewVirtual returns a loop whose clock stands at start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{start: start}
}

// Now is the time of the event being run, or of the last one.
func (v *Virtual) Now() time.Time { return v.start.Add(v.now) }

// Post runs f at the present time, after all events already due. See [Loop].
func (v *Virtual) Post(f func()) { v.add(0, posted{f, nil}) }

// After runs f d later. See [Loop].
func (v *Virtual) After(d time.Duration, f func()) (stop func()) { return v.after(d, posted{f, nil}) }

func (v *Virtual) after(d time.Duration, p posted) (stop func()) {
	if d <= 0 {
		f, stopped := p.f, false
		v.add(0, posted{func() {
			if !stopped {
				f()
			}
		}, p.of})
		return func() { stopped = true }
	}
	e := v.add(d, p)
	turn := e.turn
	return func() {
		if e.f != nil && e.turn == turn {
			e.f = nil
			v.stopped++
		}
	}
}

// Work runs work now and done after cost of virtual time. See [Loop].
func (v *Virtual) Work(cost time.Duration, work, done func()) {
	work()
	v.add(cost, posted{done, nil})
}

// add adds a function. It returns nil if that is due now.
func (v *Virtual) add(d time.Duration, p posted) *event {
	if p.f == nil {
		panic("loop: nil function")
	}
	if d <= 0 {
		v.due = append(v.due, p)
		return nil
	}
	e := v.take()
	e.posted = p
	if v.stopped > len(v.events)/2 {
		v.sweep()
	}
	v.added++
	v.events = append(v.events, entry{})
	v.up(len(v.events)-1, entry{at: v.now + d, sequence: v.added, event: e})
	return e
}

// take returns memory for an event, and give takes back that of one that is over.
func (v *Virtual) take() *event {
	last := len(v.free) - 1
	if last < 0 {
		return &event{}
	}
	e := v.free[last]
	v.free = v.free[:last]
	return e
}

func (v *Virtual) give(e *event) {
	*e = event{turn: e.turn + 1}
	v.free = append(v.free, e)
}

// Next is the time of the next event. It is false when there is none, in which
// case nothing will ever happen again unless something is posted.
func (v *Virtual) Next() (at time.Time, ok bool) {
	first, due := v.next()
	switch {
	case due:
		return v.start.Add(v.now), true
	case first:
		return v.start.Add(v.events[0].at), true
	}
	return time.Time{}, false
}

// next reports whether the heap's first event is the next one, or the first of those due now.
func (v *Virtual) next() (first, due bool) {
	for len(v.events) > 0 && v.events[0].event.f == nil {
		v.give(v.pop().event)
		v.stopped--
	}
	first = len(v.events) > 0
	due = v.ran < len(v.due) && !(first && v.events[0].at <= v.now)
	return first && !due, due
}

// passDue removes the first event of due.
func (v *Virtual) passDue() posted {
	p := v.due[v.ran]
	v.due[v.ran] = posted{}
	if v.ran++; v.ran == len(v.due) {
		v.due, v.ran = v.due[:0], 0
	}
	return p
}

// Step advances the clock to the next event and runs it. It is false when there
// is none.
func (v *Virtual) Step() bool { return v.stepBy(math.MaxInt64) }

// stepBy is Step if the next event is due by a time.
func (v *Virtual) stepBy(until time.Duration) bool {
	first, due := v.next()
	var p posted
	switch {
	case due && v.now <= until:
		p = v.passDue()
	case first && v.events[0].at <= until:
		next := v.pop()
		p, v.now = next.event.posted, next.at
		v.give(next.event)
	default:
		return false
	}
	if p.of == nil || !p.of.ended.Load() {
		p.f()
	}
	return true
}

// Run runs every event due by until, those that come up meanwhile included, and
// leaves the clock there.
func (v *Virtual) Run(until time.Time) {
	by := until.Sub(v.start)
	for v.stepBy(by) {
	}
	v.now = max(v.now, by)
}

// sweep drops the entries of stopped events. Timers that wait for what usually comes in time would
// otherwise be most of the heap.
func (v *Virtual) sweep() {
	kept := v.events[:0]
	for _, e := range v.events {
		if e.event.f != nil {
			kept = append(kept, e)
		} else {
			v.give(e.event)
		}
	}
	clear(v.events[len(kept):])
	v.events, v.stopped = kept, 0
	for i := range kept {
		v.up(i, kept[i])
	}
}

// pop removes the first entry.
func (v *Virtual) pop() entry {
	first, last := v.events[0], len(v.events)-1
	e := v.events[last]
	v.events[last] = entry{}
	v.events = v.events[:last]
	if last > 0 {
		v.down(0, e)
	}
	return first
}

// arity is the number of children of an entry in the heap. Four are compared at little more cost
// than two, and the heap is half as deep.
const arity = 4

// up puts e at i, or above.
func (v *Virtual) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / arity
		if !e.before(v.events[parent]) {
			break
		}
		v.events[i] = v.events[parent]
		i = parent
	}
	v.events[i] = e
}

// down puts e at i, or below.
func (v *Virtual) down(i int, e entry) {
	for {
		first := arity*i + 1
		if first >= len(v.events) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(v.events)); c++ {
			if v.events[c].before(v.events[least]) {
				least = c
			}
		}
		if !v.events[least].before(e) {
			break
		}
		v.events[i] = v.events[least]
		i = least
	}
	v.events[i] = e
}

func (e entry) before(o entry) bool {
	return e.at < o.at || e.at == o.at && e.sequence < o.sequence
}
