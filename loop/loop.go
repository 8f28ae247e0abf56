// Package loop runs a participant's events one at a time.
//
// A participant is a set of machines that no two goroutines may enter at once.
// Whatever happens to it (a message arrived, a timer fired, a computation
// ended) is a function posted to its [Loop], which calls one such function
// after the other. State touched only by functions on the loop needs no lock.
//
// Two implementations share the interface:
//
//   - [Real] is one goroutine under the wall clock, for a participant in a
//     process of its own.
//   - [Virtual] is a heap of events under a clock that jumps from one event to
//     the next. Events of equal time run in the order in which they were posted,
//     so a whole network on one Virtual is a function of its inputs: the same
//     seed gives the same history.
//
// A [Scope] is a part of a loop that can be ended, pending events and all:
// nothing of a participant remains after a crash.
package loop

import "time"

// A Loop calls the functions given to it one at a time. Its methods return
// without waiting for them and never call them before returning ([Virtual.Work]
// excepted, which runs work, not done, at once).
//
// The methods of [Real] may be called from any goroutine. Those of [Virtual] may
// be called only by the goroutine that steps it, and so by every function it runs.
type Loop interface {
	// Now is the loop's time: the wall clock's or the virtual one's.
	Now() time.Time

	// Post runs f on the loop, after everything posted before it.
	Post(f func())

	// After runs f on the loop once d has passed; a d that is not positive means
	// as soon as possible. When stop is called on the loop, f does not run
	// afterwards; stop may be called more than once and after f has run.
	After(d time.Duration, f func()) (stop func())

	// Work runs work away from the loop, so that it may take its time, and then
	// done on the loop. Work must share nothing with the loop until done runs.
	// Cost is how long work is taken to last: Real, which sees how long it lasts,
	// ignores it; Virtual runs work at once and done after cost of virtual time.
	Work(cost time.Duration, work, done func())
}
