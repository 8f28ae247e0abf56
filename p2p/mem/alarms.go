package mem

import "time"

// alarms run functions a fixed time after they are set. Nearly all are stopped before: they wait
// for answers. So they are kept in the order in which they ring, outside the loop, which is told
// of the first only.
type alarms struct {
	part  *Part
	after time.Duration
	queue []*alarm
	armed bool     // the loop will call ring
	free  []*alarm // memory of those that are over
}

// alarm is a function to run at a time, nil once it has run or was stopped.
type alarm struct {
	at   time.Time
	f    func()
	turn uint32 // the uses of this memory before
}

// timer stops an alarm, which may have rung. The zero timer is of none.
type timer struct {
	alarm *alarm
	turn  uint32
}

func (t timer) stop() {
	if t.alarm != nil && t.alarm.turn == t.turn {
		t.alarm.f = nil
	}
}

// set has f run when the time has passed.
func (s *alarms) set(f func()) timer {
	s.pass()
	a := &alarm{}
	if last := len(s.free) - 1; last >= 0 {
		a, s.free = s.free[last], s.free[:last]
	}
	a.at, a.f = s.part.loop.Now().Add(s.after), f
	s.queue = append(s.queue, a)
	s.arm()
	return timer{a, a.turn}
}

// pass drops the first ones that were stopped.
func (s *alarms) pass() {
	for len(s.queue) > 0 && s.queue[0].f == nil {
		a := s.queue[0]
		a.turn++
		s.free = append(s.free, a)
		s.queue[0], s.queue = nil, s.queue[1:]
	}
}

func (s *alarms) arm() {
	if !s.armed && len(s.queue) > 0 {
		s.armed = true
		s.part.loop.After(s.queue[0].at.Sub(s.part.loop.Now()), s.ring)
	}
}

// ring runs those that are due.
func (s *alarms) ring() {
	s.armed = false
	for s.pass(); len(s.queue) > 0 && !s.queue[0].at.After(s.part.loop.Now()); s.pass() {
		a := s.queue[0]
		f := a.f
		a.f = nil
		f()
	}
	s.arm()
}
