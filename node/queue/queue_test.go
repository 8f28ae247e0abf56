package queue

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/loop"
)

func TestTasksRunOneAtATimeAndTheLaterOnesLast(t *testing.T) {
	l := loop.NewVirtual(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q := New(ctx, l)
	var log []string
	add := func(name string, of any, later bool) {
		q.Add(&Task{Of: of, Later: later, Cost: time.Second,
			Work: func(context.Context) { log = append(log, name+" begins") },
			Done: func(cancelled bool) {
				if cancelled {
					name += " without"
				}
				log = append(log, name+" is done")
			}})
	}
	add("a", 1, false)
	add("b", 2, true)
	add("c", 3, false)
	add("d", 4, false)
	q.Cancel(4) // waits: it never begins, and its Done runs all the same
	if !q.Busy() {
		t.Error("nothing runs")
	}
	l.Run(l.Now().Add(time.Minute))
	want := []string{"a begins", "a is done", "c begins", "c is done", "d without is done", "b begins", "b is done"}
	if !slices.Equal(log, want) {
		t.Errorf("%q\nwant %q", log, want)
	}
	if q.Busy() {
		t.Error("a task still runs")
	}
}

func TestCancelEndsATaskThatRuns(t *testing.T) {
	l := loop.NewVirtual(time.Unix(0, 0))
	q := New(context.Background(), l)
	var cancelled bool
	task := &Task{Of: "it", Cost: time.Second, Work: func(context.Context) {}, Done: func(c bool) { cancelled = c }}
	q.Add(task)
	q.Cancel("another")
	if task.ctx.Err() != nil {
		t.Error("it ended for the sake of another")
	}
	q.Cancel("it")
	if task.ctx.Err() == nil {
		t.Error("its context lives on")
	}
	l.Run(l.Now().Add(time.Minute))
	if !cancelled {
		t.Error("Done was not told")
	}
}
