package node

import (
	"context"
	"time"
)

// queue runs the engine's jobs one at a time, off the loop, in the order given.
type queue struct {
	node    *Node
	running *job
	waiting []*job
}

// job is one computation. work runs off the loop and may look at ctx; done runs on the loop, always, with ctx's error if it was cancelled.
type job struct {
	kind  string
	round uint32
	cost  time.Duration
	work  func(ctx context.Context)
	done  func(cancelled bool)

	ctx    context.Context
	cancel context.CancelFunc
}

func (q *queue) add(j *job) {
	j.ctx, j.cancel = context.WithCancel(q.node.ctx)
	q.waiting = append(q.waiting, j)
	q.next()
}

func (q *queue) next() {
	if q.running != nil || len(q.waiting) == 0 {
		return
	}
	j := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.running = j
	finish := func() {
		cancelled := j.ctx.Err() != nil
		j.cancel()
		q.running = nil
		if q.node.ctx.Err() == nil {
			j.done(cancelled)
		}
		q.next()
	}
	if j.ctx.Err() != nil {
		finish()
		return
	}
	q.node.cfg.Loop.Work(j.cost, func() { j.work(j.ctx) }, finish)
}

// cancelTraining cancels the training of a round, whether it runs or waits.
func (q *queue) cancelTraining(round uint32) {
	if q.running != nil && q.running.kind == "train" && q.running.round == round {
		q.running.cancel()
	}
	for _, j := range q.waiting {
		if j.kind == "train" && j.round == round {
			j.cancel()
		}
	}
}
