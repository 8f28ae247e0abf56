package mem

import "time"

// alarms run functions a fixed time after they are set. Nearly all are stopped before: they wait
// for answers. So they are kept in the order in which they ring, outside the loop, which is told
// of the first only.
type alarms struct {
	part   *Part
	after  time.Duration
	queue  []alarm
	passed uint64 // alarms before those in the queue
	armed  bool   // the loop will call ring
}

// alarm is a function to run at a time, nil once it has run or was stopped.
type alarm struct {
	at int64 // in nanoseconds since 1970
	f  func()
}

// timer stops an alarm, which may have rung. The zero timer is of none.
type timer struct {
	of     *alarms
	number uint64 // of the alarms before it
}

func (t timer) stop() {
	if t.of != nil && t.number >= t.of.passed {
		t.of.queue[t.number-t.of.passed].f = nil
	}
}

// set has f run when the time has passed.
func (s *alarms) set(f func()) timer {
	s.pass()
	s.queue = append(s.queue, alarm{s.part.loop.Now().Add(s.after).UnixNano(), f})
	s.arm()
	return timer{s, s.passed + uint64(len(s.queue)) - 1}
}

// pass drops the first ones that were stopped.
func (s *alarms) pass() {
	n := 0
	for n < len(s.queue) && s.queue[n].f == nil {
		n++
	}
	s.queue = s.queue[n:]
	s.passed += uint64(n)
}

func (s *alarms) arm() {
	if !s.armed && len(s.queue) > 0 {
		s.armed = true
		s.part.loop.After(s.part.until(s.queue[0].at), s.ring)
	}
}

// ring runs those that are due.
func (s *alarms) ring() {
	s.armed = false
	for s.pass(); len(s.queue) > 0 && s.queue[0].at <= s.part.loop.Now().UnixNano(); s.pass() {
		f := s.queue[0].f
		s.queue[0].f = nil
		f()
	}
	s.arm()
}
