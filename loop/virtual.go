package loop

import (
	"container/heap"
	"time"
)

// Virtual is a [Loop] under a clock that stands still while a function runs and
// jumps to the next event when it has returned. Any number of participants share
// one. Make one with [NewVirtual]; it belongs to one goroutine.
type Virtual struct {
	start  time.Time
	now    time.Duration // since start
	events eventHeap
	posted uint64 // events so far, the order among equal times
}

// event is one function to be run at a time. A stopped event stays in the heap
// with a nil f, and passes without advancing the clock.
type event struct {
	at       time.Duration // since the loop's start
	sequence uint64
	f        func()
}

// NewVirtual returns a loop whose clock stands at start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{start: start}
}

// Now is the time of the event being run, or of the last one.
func (v *Virtual) Now() time.Time { return v.start.Add(v.now) }

// Post runs f at the present time, after all events already due. See [Loop].
func (v *Virtual) Post(f func()) { v.add(0, f) }

// After runs f d later. See [Loop].
func (v *Virtual) After(d time.Duration, f func()) (stop func()) {
	e := v.add(d, f)
	return func() { e.f = nil }
}

// Work runs work now and done after cost of virtual time. See [Loop].
func (v *Virtual) Work(cost time.Duration, work, done func()) {
	work()
	v.add(cost, done)
}

func (v *Virtual) add(d time.Duration, f func()) *event {
	if f == nil {
		panic("loop: nil function")
	}
	v.posted++
	e := &event{at: v.now + max(d, 0), sequence: v.posted, f: f}
	heap.Push(&v.events, e)
	return e
}

// Next is the time of the next event. It is false when there is none, in which
// case nothing will ever happen again unless something is posted.
func (v *Virtual) Next() (at time.Time, ok bool) {
	for len(v.events) > 0 && v.events[0].f == nil {
		heap.Pop(&v.events)
	}
	if len(v.events) == 0 {
		return time.Time{}, false
	}
	return v.start.Add(v.events[0].at), true
}

// Step advances the clock to the next event and runs it. It is false when there
// is none.
func (v *Virtual) Step() bool {
	if _, ok := v.Next(); !ok {
		return false
	}
	e := heap.Pop(&v.events).(*event)
	f := e.f
	e.f = nil
	v.now = e.at
	f()
	return true
}

// Run runs every event due by until, those that come up meanwhile included, and
// leaves the clock there.
func (v *Virtual) Run(until time.Time) {
	for {
		at, ok := v.Next()
		if !ok || at.After(until) {
			break
		}
		v.Step()
	}
	v.now = max(v.now, until.Sub(v.start))
}

// eventHeap is a min-heap by (time, sequence) for container/heap.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].sequence < h[j].sequence
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(x any) { *h = append(*h, x.(*event)) }

func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
