package node

import (
	"context"
	"slices"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
)

// queue runs the engine's jobs one at a time, off the loop. They run in the order given, except
// that jobs for others wait for those of the node's own part in the round.
type queue struct {
	node    *Node
	running *job
	waiting []*job
}

// Job names a computation, for Cost.
type Job struct {
	Kind      string // "train", "apply", "hash", "eval", "inspect", "init", "save", "trace", "move"
	Sequences uint32 // of a train or trace job
}

// job is one computation. work runs off the loop and may look at ctx. done always runs on the loop;
// cancelled reports whether the job was cancelled.
type job struct {
	kind  string
	round coordinator.Round
	share client.Share // of a verify job
	later bool         // it may wait for those that may not
	cost  time.Duration
	work  func(ctx context.Context)
	done  func(cancelled bool)

	ctx    context.Context
	cancel context.CancelFunc
}

func (q *queue) add(j *job) {
	j.ctx, j.cancel = context.WithCancel(q.node.ctx)
	at := len(q.waiting)
	for !j.later && at > 0 && q.waiting[at-1].later {
		at--
	}
	q.waiting = slices.Insert(q.waiting, at, j)
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
func (q *queue) cancelTraining(round coordinator.Round) {
	q.cancel(func(j *job) bool { return j.kind == "train" && j.round == round })
}

// cancelVerify cancels the verification of a share, whether it runs or waits.
func (q *queue) cancelVerify(s client.Share) {
	q.cancel(func(j *job) bool { return j.kind == "verify" && j.share == s })
}

func (q *queue) cancel(which func(*job) bool) {
	if q.running != nil && which(q.running) {
		q.running.cancel()
	}
	for _, j := range q.waiting {
		if which(j) {
			j.cancel()
		}
	}
}
