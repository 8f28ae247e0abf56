package loop

import (
	"sync/atomic"
	"time"
)

// Scope is a [Loop] on another one that can be ended by itself: after [Scope.End]
// nothing that was given to it runs, while the other loop goes on. A simulated
// participant lives in a Scope, and its crash is the Scope's end.
type Scope struct {
	on      Loop
	virtual *Virtual // on, if it is one: it asks before it runs a function whether the scope has ended
	ended   atomic.Bool
}

// NewScope returns a scope on l. It may be used wherever l may be used.
func NewScope(l Loop) *Scope {
	v, _ := l.(*Virtual)
	return &Scope{on: l, virtual: v}
}

// End drops everything pending and everything given to the scope later. A
// function that is running, and work that has begun, run to their end.
func (s *Scope) End() { s.ended.Store(true) }

// Now is the time of the loop below.
func (s *Scope) Now() time.Time { return s.on.Now() }

// Post runs f on the loop below unless the scope has ended by then.
func (s *Scope) Post(f func()) {
	if s.virtual != nil {
		s.virtual.add(0, posted{f, s})
		return
	}
	s.on.Post(s.guard(f))
}

// After runs f once d has passed unless the scope has ended by then.
func (s *Scope) After(d time.Duration, f func()) (stop func()) {
	if s.virtual != nil {
		return s.virtual.after(d, posted{f, s})
	}
	return s.on.After(d, s.guard(f))
}

// Work runs work, and done unless the scope has ended by then. An ended scope
// does not begin work.
func (s *Scope) Work(cost time.Duration, work, done func()) {
	if s.ended.Load() {
		return
	}
	if s.virtual != nil {
		work()
		s.virtual.add(cost, posted{done, s})
		return
	}
	s.on.Work(cost, work, s.guard(done))
}

func (s *Scope) guard(f func()) func() {
	return func() {
		if !s.ended.Load() {
			f()
		}
	}
}
