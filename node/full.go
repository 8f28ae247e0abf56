package node

import (
	"errors"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
)

// A member whose bucket is full, or takes no objects for another reason, cannot reveal its results.
// It says so at once and removes what nobody needs any more. Before the run drops it, which takes a
// part of its stake, it leaves the run; it joins again once the bucket takes what it had refused.

// fullBucket is what is known of a bucket that takes no objects.
type fullBucket struct {
	kind    error             // why the last object that was told of was not taken; nil: it was
	tries   int               // to reveal results, since one was revealed
	cleared coordinator.Round // when it was last cleared because it was full
	away    bool              // the member left the run
}

const (
	// fullKept is for how many windows commitments and reveals stay in a bucket that is full.
	fullKept = 4
	// fullTries is how often in a row revealing fails before the member leaves.
	fullTries = 3
	// fullWait is how long a member that left waits before it tries its bucket again.
	fullWait = 30 * time.Second
)

// wrote takes the outcome of writing an own object. It notes each kind of failure once until a
// result is revealed again.
func (b *buckets) wrote(what string, err error) {
	var e *bucket.Error
	if !errors.As(err, &e) {
		return
	}
	if f := &b.full; !errors.Is(err, f.kind) {
		f.kind = e.Kind
		b.node.note(what + ": " + err.Error())
	}
	now := b.node.state.Round()
	if errors.Is(err, bucket.ErrFull) && b.full.cleared < now {
		b.full.cleared = now
		b.tidy(max(fullKept, coordinator.Round(b.node.state.Config().ScoreWindows)+2))
	}
}

// revealed takes the outcome of revealing a result. If it failed, and one more miss would leave the
// member none to spare, the member leaves the run.
func (b *buckets) revealed(a client.Reveal, body []byte, err error) {
	n, f := b.node, &b.full
	if err == nil {
		f.kind, f.tries = nil, 0
		return
	}
	f.tries++
	i, ok := n.place(n.state)
	if !ok || f.away || f.tries < fullTries || n.state.Member(i).Missed+1 < max(1, n.state.Config().MissedMax) {
		return
	}
	f.away = true
	n.note("this member leaves the run before its absence costs a part of its stake, and joins again when its bucket takes objects")
	n.step(client.Stopping{})
	b.comeBack(a, body)
}

// comeBack has the member join again once its bucket takes the reveal that it refused.
func (b *buckets) comeBack(a client.Reveal, body []byte) {
	n := b.node
	n.cfg.Loop.After(fullWait, func() {
		if n.onStop != nil || n.ctx.Err() != nil {
			return
		}
		b.put("revealing", a.Round, bucket.KindReveal, a.Payload, body, func(err error) {
			if err != nil || n.onStop != nil {
				b.comeBack(a, body)
				return
			}
			b.full = fullBucket{}
			n.note("the bucket takes objects: this member joins the run again")
			n.step(client.Stopping{Not: true})
		})
	})
}
