package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/client/docket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Disputant argues for this member in disputes. It computes a share once more, as a trace of small
// operations, and later opens the places of the trace that the dispute asks for. It is called off
// the loop, beside the engine, for one case at a time.
type Disputant interface {
	// Open traces the share of a case, which begins from params and state (nil for the fresh one);
	// neither changes while the Player lives.
	Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (Player, error)
}

// Player argues about one share.
type Player interface {
	// Root returns the root of its trace.
	Root() wire.Hash
	// Agrees reports whether the trace ends in what was committed to.
	Agrees() bool
	// Move returns the next move of member self in the dispute, nil if it has none to make.
	Move(ctx context.Context, d dispute.Dispute, self coordinator.Member) (coordinator.Message, error)
}

// argument is what this node argues about a share with.
type argument struct {
	input   input
	own     [2]engine.Vector // memory of the parameters and the state, if they are in files
	player  Player           // nil until it is made
	waiting []func(*argument, error)
	ctx     context.Context
	cancel  context.CancelFunc
	busy    int  // jobs that use it
	moving  bool // one of them makes a move
	over    bool // the dispute is; it ends when it is not busy
}

var (
	errNoDisputant = errors.New("this node has nothing to argue with")
	errOver        = errors.New("the dispute is over")
)

// open makes the argument about a share from what the share begins from, which is in use and
// belongs to the argument from now on. If there is an argument already, or one is being made, open
// uses that. A new one is given up when ctx ends while it is made. done may be called at once.
func (n *Node) open(ctx context.Context, t client.Task, in input, done func(*argument, error)) {
	if arg := n.arguments[t.Share]; arg != nil {
		n.release(in)
		arg.await(done)
		return
	}
	if n.cfg.Disputant == nil {
		n.release(in)
		done(nil, errNoDisputant)
		return
	}
	arg := &argument{input: in, waiting: []func(*argument, error){done}, busy: 1}
	arg.ctx, arg.cancel = context.WithCancel(n.ctx)
	n.arguments[t.Share] = arg
	stop := context.AfterFunc(ctx, arg.cancel)
	var player Player
	var failed error
	n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "trace", Sequences: batch.Total(t.Spans)}), func() {
		var params, state engine.Vector
		if params, arg.own[0], failed = n.params.Vector(in.params); failed == nil {
			state, arg.own[1], failed = n.optim.Vector(in.state)
		}
		if failed == nil {
			player, failed = n.cfg.Disputant.Open(arg.ctx, t.Case(), t.Spans, params, state)
		}
	}, func() {
		stop()
		if failed == nil && arg.over {
			failed = errOver
		}
		waiting := arg.waiting
		if arg.waiting = nil; failed == nil {
			arg.player = player
		} else if arg.over = true; n.arguments[t.Share] == arg {
			delete(n.arguments, t.Share)
		}
		for _, f := range waiting {
			f(arg, failed)
		}
		n.idle(arg)
	})
}

// await calls done when the argument is made, or could not be.
func (a *argument) await(done func(*argument, error)) {
	if a.player != nil {
		done(a, nil)
		return
	}
	a.waiting = append(a.waiting, done)
}

// close releases what an argument was made from.
func (n *Node) close(arg *argument) {
	arg.cancel()
	n.params.Recycle(arg.own[0])
	n.optim.Recycle(arg.own[1])
	n.release(arg.input)
}

// closeArguments ends the arguments about shares in which this member has no part any more.
func (n *Node) closeArguments(mine []client.Share) {
	for s, arg := range n.arguments {
		keep := false
		for _, m := range mine {
			keep = keep || m == s
		}
		if keep {
			continue
		}
		delete(n.arguments, s)
		arg.over = true
		if arg.busy == 0 {
			n.close(arg)
		}
	}
}

// idle notes that a job of an argument has ended, and closes the argument if it is over.
func (n *Node) idle(arg *argument) {
	if arg.busy--; arg.busy == 0 && arg.over {
		n.close(arg)
	}
}

// disputePatience bounds fetching what an argument begins from. The machine asks again.
const disputePatience = 10 * time.Second

// prepare makes the argument about an accused share before the first move is due: tracing a step
// takes longer than computing it.
func (n *Node) prepare(a client.Prepare) {
	n.withArgument(a.Task, a.From, func(*argument, error) {})
}

// argue makes a move in a dispute, from the argument that is there or, as after a restart, from a
// new one.
func (n *Node) argue(a client.Argue) {
	n.withArgument(a.Task, a.From, func(arg *argument, err error) {
		if err != nil {
			n.step(client.Argued{Share: a.Share, At: docket.PositionOf(&a.Dispute), Failed: err.Error()})
			return
		}
		n.move(arg, a)
	})
}

// withArgument passes on the argument about a share, which it makes if need be. It calls done
// before it returns only if the argument is there.
func (n *Node) withArgument(t client.Task, from []key.Public, done func(*argument, error)) {
	if arg := n.arguments[t.Share]; arg != nil {
		arg.await(done)
		return
	}
	if n.cfg.Disputant == nil {
		n.cfg.Loop.Post(func() { done(nil, errNoDisputant) })
		return
	}
	n.gather(n.ctx, t, from, n.cfg.Loop.Now().Add(disputePatience), func(in input, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		n.open(n.ctx, t, in, done)
	})
}

func (n *Node) move(arg *argument, a client.Argue) {
	if arg.moving {
		n.cfg.Loop.Post(func() {
			n.step(client.Argued{Share: a.Share, At: docket.PositionOf(&a.Dispute), Failed: "the move before is still being made"})
		})
		return
	}
	self, _ := n.place(n.state)
	var msg coordinator.Message
	var failed error
	arg.busy++
	arg.moving = true
	n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "move"}), func() { msg, failed = arg.player.Move(arg.ctx, a.Dispute, self) }, func() {
		arg.moving = false
		n.idle(arg)
		ev := client.Argued{Share: a.Share, At: docket.PositionOf(&a.Dispute), Message: msg}
		if failed != nil {
			ev.Message, ev.Failed = nil, failed.Error()
		}
		n.step(ev)
	})
}

// watchDisputes reports what the ledger shows of disputes and convictions. A process with many
// members lists once for all what is new in a state.
func (n *Node) watchDisputes() {
	before, convicted := n.docket, n.convicted
	n.docket, n.convicted = n.cfg.Common.Docket(n.state), n.state.ConvictionsTotal()
	list := func() []event.Event { return n.news(before, convicted) }
	if once, ok := n.cfg.Common.(interface {
		News(before, now *client.Docket, convicted uint32, list func() []event.Event) []event.Event
	}); ok {
		shared := once.News(before, n.docket, convicted, list)
		list = func() []event.Event { return shared }
	}
	for _, ev := range list() {
		n.observe(ev)
	}
}

// news lists the disputes and convictions of the state that an earlier one did not have so.
func (n *Node) news(before *client.Docket, convicted uint32) (list []event.Event) {
	for i := range n.docket.Disputes {
		d := &n.docket.Disputes[i]
		if last, ok := before.Positions[d.ID]; !ok || last != n.docket.Positions[d.ID] {
			list = append(list, event.Dispute{Epoch: d.Epoch, Round: d.Round, Step: d.Step, Member: d.Accused, Stage: d.Stage.String(), Text: n.disputeText(*d)})
		}
	}
	if convicted == n.convicted {
		return list
	}
	for _, c := range n.state.Convictions() {
		if c.Number > convicted {
			list = append(list, event.Convicted{Round: c.Round, Member: c.Member, Offence: c.Offence.String(), Slashed: c.Slashed, Text: convictionText(c)})
		}
	}
	return list
}

// disputeText describes the stage of a dispute in one line.
func (n *Node) disputeText(d dispute.Dispute) string {
	text := fmt.Sprintf("dispute %d: round %d of member %s", d.ID, d.Round, n.memberName(d.Accused))
	if d.Accuser != dispute.NoMember {
		text += ", accused by " + n.memberName(d.Accuser)
	}
	text += ": " + d.Stage.String()
	if d.Stage == dispute.StageDescending || d.Stage == dispute.StageEvidence {
		text += fmt.Sprintf(" (%s: operation %d, tile %d, slice %d, %d levels to go)", d.Level, d.Op, d.Tile, d.Slice, d.Depth)
	}
	return text
}

// convictionText describes a conviction in one line.
func convictionText(c dispute.Conviction) string {
	text := fmt.Sprintf("member %s convicted of %s in round %d", c.Key, c.Offence, c.Round)
	if !c.ByKey.IsZero() {
		text += ", shown by " + c.ByKey.String()
	}
	if c.Slashed > 0 {
		text += fmt.Sprintf("; it loses %d tokens", c.Slashed)
	}
	if !c.Evidence.IsZero() {
		text += "; evidence " + c.Evidence.String()
	}
	return text
}

// ExpelledError ends a node whose member was convicted.
type ExpelledError struct{ Conviction dispute.Conviction }

func (e *ExpelledError) Error() string {
	if e.Conviction.Number == 0 {
		return "this member was expelled from the run, and may not come back"
	}
	return "this member was expelled from the run, and may not come back: " + convictionText(e.Conviction)
}

// expelled ends the node.
func (n *Node) expelled(a client.Expelled) {
	err := &ExpelledError{Conviction: a.Conviction}
	n.note(err.Error())
	if n.cfg.Expelled != nil {
		n.cfg.Expelled(err)
	}
}
