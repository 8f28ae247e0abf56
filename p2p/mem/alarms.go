package mem

import "time"

// alarms run functions a fixed time after they are set. Nearly all are stopped before: they wait
// for answers. So they are kept in the order in which they ring, outside the loop, which is told
// of the first only.
type alarms struct {
	part  *Part
	after time.Duration
	queue []*alarm
	armed bool // the loop will call ring
}

// alarm is a function to run at a time, nil once it has run or was stopped.
type alarm struct {
	at time.Time
	f  func()
}

func (a *alarm) stop() {
	if a != nil {
		a.f = nil
	}
}

// set has f run when the time has passed.
func (s *alarms) set(f func()) *alarm {
	a := &alarm{s.part.loop.Now().Add(s.after), f}
	s.pass()
	s.queue = append(s.queue, a)
	s.arm()
	return a
}

// pass drops the first ones that were stopped.
func (s *alarms) pass() {
	for len(s.queue) > 0 && s.queue[0].f == nil {
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
