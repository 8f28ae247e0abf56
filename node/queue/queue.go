// Package queue runs the computations of a participant one at a time, off its loop.
package queue

import (
	"context"
	"slices"
	"time"

	"github.com/entrain-network/entrain/loop"
)

// Queue runs tasks in the order given, except that those that may wait let the others pass. Its
// methods are for the loop.
type Queue struct {
	ctx     context.Context
	loop    loop.Loop
	running *Task
	waiting []*Task
}

// New returns a queue without tasks. Once ctx ends, all are cancelled, and no Done is called.
func New(ctx context.Context, l loop.Loop) *Queue { return &Queue{ctx: ctx, loop: l} }

// Task is one computation.
type Task struct {
	Of    any  // what Cancel finds it by; nil if nobody cancels it
	Later bool // it may wait for tasks that may not
	Cost  time.Duration
	Work  func(ctx context.Context) // runs off the loop; ctx ends when the task is cancelled
	Done  func(cancelled bool)      // runs on the loop, even if Work never ran

	ctx    context.Context
	cancel context.CancelFunc
}

// Add puts a task into the queue.
func (q *Queue) Add(t *Task) {
	t.ctx, t.cancel = context.WithCancel(q.ctx)
	at := len(q.waiting)
	for !t.Later && at > 0 && q.waiting[at-1].Later {
		at--
	}
	q.waiting = slices.Insert(q.waiting, at, t)
	q.next()
}

func (q *Queue) next() {
	if q.running != nil || len(q.waiting) == 0 {
		return
	}
	t := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1) // what it holds of memory is free once it is done
	q.running = t
	finish := func() {
		cancelled := t.ctx.Err() != nil
		t.cancel()
		q.running = nil
		if q.ctx.Err() == nil {
			t.Done(cancelled)
		}
		q.next()
	}
	if t.ctx.Err() != nil {
		finish()
		return
	}
	q.loop.Work(t.Cost, func() { t.Work(t.ctx) }, finish)
}

// Cancel cancels the tasks of something, whether they run or wait.
func (q *Queue) Cancel(of any) {
	if q.running != nil && q.running.Of == of {
		q.running.cancel()
	}
	for _, t := range q.waiting {
		if t.Of == of {
			t.cancel()
		}
	}
}

// Busy reports whether a task runs.
func (q *Queue) Busy() bool { return q.running != nil }
