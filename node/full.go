package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
)

// A member whose bucket is full, or takes no objects for another reason, cannot reveal its results.
// It says so at once and removes what nobody needs any more. Before the run drops it, which takes a
// part of its stake, it leaves the run; it joins again once the bucket takes what it had refused.
// So does a member that cannot read its own results as others do: with what it announced. It tries
// that once a result was missed, because each try costs as much as another reader. A member whose
// results only others cannot read leaves for good, because it cannot see when they can again.

// An UnreadError says that the member left the run because others do not get its results.
type UnreadError struct {
	Windows int // in a row
	At      string
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("others did not get this member's results of %d windows in a row, though this machine reads them at %s in time: the member left the run, because absence costs a part of the stake; see from another network whether that address answers, and whether uploads end well before the window does, then join again", e.Windows, e.At)
}

// fullBucket is what is known of a bucket that takes no objects.
type fullBucket struct {
	kind    error             // why the last object that was told of was not taken; nil: it was
	tries   int               // to reveal results, since one was revealed
	cleared coordinator.Round // when it was last cleared because it was full
	away    bool              // the member left the run
	shown   coordinator.Round // the last one whose result this member revealed
	unread  int               // results in a row that were revealed and not accepted
}

const (
	fullKept  = 4                // windows of which commitments and reveals stay in a full bucket
	fullTries = 3                // attempts to reveal that fail in a row before the member leaves
	fullWait  = 30 * time.Second // until a member that left tries its bucket again
)

// wrote takes the outcome of writing an object of this member. It notes each kind of failure once
// until a result is revealed again.
func (b *buckets) wrote(what string, err error) {
	var e *bucket.Error
	if !errors.As(err, &e) {
		return
	}
	if f := &b.full; !errors.Is(err, f.kind) {
		f.kind = e.Kind
		b.node.note(what + ": " + err.Error())
	}
	if now := b.node.state.Round(); errors.Is(err, bucket.ErrFull) && b.full.cleared < now {
		b.full.cleared = now
		b.tidy(max(fullKept, coordinator.Round(b.node.state.Config().ScoreWindows)+2))
	}
}

// show writes a reveal. If a result was missed, it reads the reveal as others do.
func (b *buckets) show(a client.Reveal, body []byte, done func(error)) {
	n := b.node
	b.put("revealing", a.Round, bucket.KindReveal, a.Payload, body, func(err error) {
		i, ok := n.place(n.state)
		if at, known := b.where[n.self]; err == nil && ok && known && n.state.Member(i).Missed >= min(1, n.state.Config().MissedMax) {
			b.get(bucket.Want{Location: at, Name: b.x.Name(b.run(), a.Round, bucket.KindReveal, a.Payload), Max: len(body)}, func(_ []byte, err error) {
				if errors.Is(err, bucket.ErrForbidden) {
					err = nil // its name leads to a private address here, and elsewhere to another
				}
				b.wrote("reading this member's result as others do, with what --bucket-read announced", err)
				done(err)
			})
		} else {
			done(err)
		}
	})
}

// revealed takes the outcome of revealing a result. If it failed, or others do not get what is
// revealed, and one more miss would leave the member none to spare, the member leaves the run.
func (b *buckets) revealed(a client.Reveal, body []byte, err error) {
	n, f := b.node, &b.full
	i, ok := n.place(n.state)
	most := max(1, n.state.Config().MissedMax)
	last := ok && n.state.Member(i).Missed+1 >= most
	if err == nil {
		f.kind, f.tries = nil, 0
		if r, known := n.state.At(a.Round - 1); f.shown+1 != a.Round || known && r.Accepted(i) {
			f.unread = 0
		} else if known && r.Final() {
			f.unread++
		}
		f.shown = a.Round
		if last && n.state.Member(i).Missed > 0 && f.unread >= min(2, int(most)) {
			at, _ := bucket.ParseLocation(b.registered)
			n.fail(&UnreadError{f.unread, at.String()})
		}
		return
	}
	if f.tries++; !last || f.away || f.tries < fullTries {
		return
	}
	f.away = true
	n.note("this member leaves the run before its absence costs a part of its stake, and joins again when its bucket works")
	n.step(client.Stopping{})
	b.comeBack(a, body)
}

// comeBack has the member join again once its bucket takes the reveal that it refused, and others
// can read it.
func (b *buckets) comeBack(a client.Reveal, body []byte) {
	n := b.node
	n.cfg.Loop.After(fullWait, func() {
		if n.onStop != nil || n.ctx.Err() != nil {
			return
		}
		b.show(a, body, func(err error) {
			if err != nil || n.onStop != nil {
				b.comeBack(a, body)
				return
			}
			b.full = fullBucket{}
			n.note("the bucket works: this member joins the run again")
			n.step(client.Stopping{Not: true})
		})
	})
}
