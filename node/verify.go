package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Computing a share again takes what its author committed to: the parameters at the round's start,
// which this node usually held itself, and the author's optimizer state before the step, which the
// author serves. Both are fetched by their hashes from any member that has them.
//
// In a run of buckets members serve each other neither. There a share is computed up to its
// gradient, which needs no state, on parameters that this node has kept.

// stateless reports whether shares are computed again up to their gradient only.
func (n *Node) stateless() bool {
	_, serves := n.exchange.(server)
	return !serves
}

// input is what a share begins from.
type input struct {
	params, state *blobs.Version // state is nil for the fresh one
}

// use keeps both versions from being dropped until release.
func (in input) use() {
	in.params.Uses++
	if in.state != nil {
		in.state.Uses++
	}
}

func (n *Node) release(in input) {
	in.params.Uses--
	if in.state != nil {
		in.state.Uses--
	}
	n.prune()
}

// gather gets what a share begins from, and passes it on in use. It asks peers until the deadline;
// the error says what is missing, and the input has what was there. It has no parameters if peers
// had less than half of the time to serve the state.
func (n *Node) gather(ctx context.Context, t client.Task, from []key.Public, until time.Time, done func(input, error)) {
	var in input
	finish := func(err error) {
		if err == nil {
			in.use()
		}
		done(in, err)
	}
	c, began := t.Commitment, n.cfg.Loop.Now()
	n.obtain(ctx, &n.params, "the parameters of round "+fmt.Sprint(t.Round), c.Params, from, until, func(v *blobs.Version, err error) {
		if in.params = v; err != nil || n.stateless() || c.Prev == n.state.Config().StateHash {
			finish(err)
			return
		}
		late := n.cfg.Loop.Now().Sub(began) > until.Sub(began)/2
		n.obtain(ctx, &n.optim, "the optimizer state that member "+n.memberName(t.Member)+" began from", c.Prev, from, until, func(s *blobs.Version, err error) {
			in.state = s
			switch {
			case err != nil && late:
				in.params, err = nil, fmt.Errorf("this machine had the parameters too late: %w", err)
			case err == nil: // the machine retained the parameters meanwhile, or the check is over
				if in.params = n.params.Find(c.Params); in.params == nil {
					err = fmt.Errorf("this machine no longer has the parameters of round %d", t.Round)
				}
			}
			finish(err)
		})
	})
}

// refetch is the pause before fetching again what no peer had.
const refetch = 500 * time.Millisecond

// obtain returns one version: the one that is held, or else one from peers, which it asks until the
// deadline. Each fetch continues the one before.
func (n *Node) obtain(ctx context.Context, h *blobs.Versions, what string, root wire.Hash, from []key.Public, until time.Time, done func(*blobs.Version, error)) {
	x, ok := n.exchange.(server)
	coming := h.Arrive(root)
	each := until.Sub(n.cfg.Loop.Now()) / 4 // a fetch asks nobody twice that was cut off
	var try func()
	try = func() {
		left, v := until.Sub(n.cfg.Loop.Now()), h.Find(root)
		switch {
		case v != nil:
			coming.Discard()
			done(v, nil)
			return
		case left <= 0 || ctx.Err() != nil:
			coming.Discard()
			done(nil, fmt.Errorf("no member served %s, %s", what, root))
			return
		case !ok:
			done(nil, fmt.Errorf("this node no longer has %s, %s", what, root))
			return
		}
		attempt, cancel := context.WithCancel(ctx)
		stop := n.cfg.Loop.After(min(left, each), cancel)
		x.fetchBlob(attempt, coming.Fetch(from), func(data []byte, err error) {
			stop()
			cancel()
			if err != nil {
				coming.Failed(err)
				n.cfg.Loop.After(refetch, try)
				return
			}
			n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "hash"}), func() { v = coming.Take(data) }, func() {
				coming.Settle(v, func(v *blobs.Version) { done(v, nil) }, try)
			})
		})
	}
	try()
}

// verify computes a share again and reports the outcome.
func (n *Node) verify(a client.Verify) {
	n.observe(event.Check{
		Epoch: a.Commitment.Epoch, Round: a.Round, Step: a.Step, Member: a.Member, Sequences: uint64(batch.Total(a.Spans)),
		Text: fmt.Sprintf("computing round %d of member %s again", a.Round, n.memberName(a.Member)),
	})
	ctx, cancel := context.WithCancel(n.ctx)
	n.checking[a.Share] = cancel
	until := n.cfg.Loop.Now().Add(time.Duration(a.UntilMs-n.clock.Ms(n.cfg.Loop)) * time.Millisecond)
	n.gather(ctx, a.Task, a.From, until, func(in input, err error) {
		switch {
		case ctx.Err() != nil:
			if err == nil {
				n.release(in)
			}
			n.verdict(a, client.Verified{Verdict: client.Unable, Text: "its check is over"})
		case err != nil && in.params == nil: // the author is not the only one to have them
			n.verdict(a, client.Verified{Verdict: client.Unable, Text: err.Error()})
		case err != nil:
			n.verdict(a, client.Verified{Verdict: client.Missing, Text: err.Error()})
		default:
			n.recompute(ctx, a, in)
		}
	})
}

// cancelVerify stops computing a share again.
func (n *Node) cancelVerify(s client.Share) {
	if cancel := n.checking[s]; cancel != nil {
		cancel()
		n.engine.Cancel(s)
	}
}

// recompute computes a share on the engine, and a second time if it differs from what was committed
// to.
func (n *Node) recompute(ctx context.Context, a client.Verify, in input) {
	compute := n.gradient
	if !n.stateless() {
		compute = func(job context.Context, a client.Verify, in input) share {
			s := n.compute(job, in, a.Spans, a.Step, wire.Hash{})
			n.optim.Forget(s.state)
			return s
		}
	}
	var first, second share
	var differs string
	n.engine.Add(&queue.Task{Of: a.Share, Later: !a.Urgent, Cost: n.cfg.Cost(Job{Kind: "train", Sequences: batch.Total(a.Spans)}),
		Work: func(job context.Context) {
			first = compute(job, a, in)
			if differs = n.difference(a.Commitment, first); differs != "" {
				second = compute(job, a, in)
			}
		},
		Done: func(cancelled bool) {
			failed := errors.Join(trouble(first.failed), trouble(second.failed))
			switch {
			case ctx.Err() != nil:
				n.release(in)
				n.verdict(a, client.Verified{Verdict: client.Unable, Text: "its check is over"})
			case cancelled || failed != nil:
				n.release(in)
				n.verdict(a, client.Verified{Verdict: client.Unable, Text: fmt.Sprint(failed)})
			case differs == "" && !a.Trace:
				n.release(in)
				n.verdict(a, client.Verified{Verdict: client.Same, Gradient: first.Gradient})
			case differs == "":
				n.trace(ctx, a, in, client.Verified{Verdict: client.Same, Gradient: first.Gradient})
			case n.claim(a.Commitment, first) != n.claim(a.Commitment, second):
				n.release(in)
				n.verdict(a, client.Verified{Verdict: client.Unable,
					Text: "this machine computed the same share twice with two results; it is faulty, and makes no accusation"})
			default:
				n.trace(ctx, a, in, client.Verified{Verdict: client.Different, Text: differs})
			}
		}})
}

// gradient computes a share up to its gradient. It runs off the loop.
func (n *Node) gradient(ctx context.Context, a client.Verify, in input) (s share) {
	params, own, err := n.params.Vector(in.params)
	defer n.params.Recycle(own)
	if s.failed = err; err == nil {
		var g engine.Gradient
		g, s.failed = n.cfg.Engine.Gradient(ctx, params, a.Spans)
		s.Gradient = g.Root
	}
	return s
}

// claim returns the commitment c as it would be to a computed share: of one computed up to its
// gradient, only the work differs.
func (n *Node) claim(c dispute.Commitment, s share) dispute.Commitment {
	if !n.stateless() {
		return verify.Claim(c, s.Result, s.stateRoot(), n.slices())
	}
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, s.Gradient)
	return c
}

// trouble returns an error that is not about the share, such as unreadable data, and nil for any
// other.
func trouble(err error) error {
	if verify.NoResult(err) {
		return nil
	}
	return err
}

// difference names the parts in which a computed share differs from what was committed to; "" means
// none, or that the share is not known.
func (n *Node) difference(c dispute.Commitment, s share) string {
	switch {
	case trouble(s.failed) != nil:
		return ""
	case s.failed != nil:
		return "a result where there is none: " + s.failed.Error()
	}
	return verify.Difference(c, n.claim(c, s))
}

// trace adds to a verdict the root of the trace to argue from. Without a trace there is no
// accusation.
func (n *Node) trace(ctx context.Context, a client.Verify, in input, v client.Verified) {
	n.open(ctx, a.Task, in, func(arg *argument, err error) {
		switch {
		case ctx.Err() != nil:
			v = client.Verified{Verdict: client.Unable, Text: "its check is over"}
		case err != nil:
			v = client.Verified{Verdict: client.Unable, Text: "there is no trace to prove what was found: " + err.Error()}
		default:
			v.Trace = arg.player.Root()
			if arg.player.Agrees() != (v.Verdict == client.Same) {
				v = client.Verified{Verdict: client.Unable, Text: "the engine and the trace of this machine come to two results; it is faulty, and makes no accusation"}
			}
		}
		if v.Verdict == client.Different {
			arg.busy++ // the input stays in use while it is written
			n.saveCase(client.Kept{Task: a.Task, Signature: a.Signature}, arg.input, func() { n.idle(arg) })
		}
		n.verdict(a, v)
	})
}

// verdict reports the outcome of computing a share again.
func (n *Node) verdict(a client.Verify, v client.Verified) {
	if cancel := n.checking[a.Share]; cancel != nil {
		cancel()
		delete(n.checking, a.Share)
	}
	v.Share = a.Share
	who := fmt.Sprintf("round %d of member %s: ", a.Round, n.memberName(a.Member))
	ev := event.Verdict{Epoch: a.Commitment.Epoch, Round: a.Round, Step: a.Step, Member: a.Member, Sequences: uint64(batch.Total(a.Spans))}
	switch v.Verdict {
	case client.Same:
		ev.Status, ev.Text = event.Passed, who+"computed again, the same bits"
	case client.Different:
		ev.Status, ev.Text = event.Wrong, who+"computed again twice, and it committed to "+v.Text
	case client.Missing:
		ev.Status, ev.Text = event.Unserved, who+v.Text
	default:
		ev.Status, ev.Text = event.None, who+v.Text
	}
	n.observe(ev)
	n.step(v)
}
