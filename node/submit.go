package node

import (
	"context"
	"errors"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
)

// submit signs a coordinator's message and sends it until it is in a block or refused. Join carries
// the stake and the cost of registering.
func (n *Node) submit(m coordinator.Message) { n.submitThen(m, func(error) {}) }

// submitThen calls then with the fate of the message before it reports that to the machine.
func (n *Node) submitThen(m coordinator.Message, then func(error)) {
	body := host.RunMessage{Run: n.cfg.Run, Message: coordinator.Append(nil, m)}
	if _, joins := m.(coordinator.Join); joins {
		if err := n.deposit(&body); err != nil {
			n.fail(err)
			return
		}
	}
	n.sendWithin(n.patience(m), body, func(err error) {
		then(err)
		n.submitted(m, err)
	})
}

// errSubmitTimeout is the outcome of a submission that was in no block in time.
var errSubmitTimeout = errors.New("the chain does not answer")

// send submits body, and gives up after submitFor. It calls done once, on the loop.
func (n *Node) send(body host.Body, done func(error)) { n.sendWithin(submitFor, body, done) }

// sendWithin is send with another bound.
func (n *Node) sendWithin(bound time.Duration, body host.Body, done func(error)) {
	ctx, cancel := context.WithCancel(n.ctx)
	ended := false
	end := func(err error) {
		if !ended {
			ended = true
			cancel()
			done(err)
		}
	}
	stop := n.cfg.Loop.After(bound, func() { end(errSubmitTimeout) })
	n.cfg.Ledger.Submit(ctx, body, func(err error) {
		n.cfg.Loop.Post(func() {
			stop()
			end(err)
		})
	})
}

// submitFor bounds one submission; what is still due is asked for again by the machine.
const submitFor = 20 * time.Second

// patience returns the bound of a message. A ledger on which evidence takes many transactions says
// how long; to begin again in the middle would lose the dispute.
func (n *Node) patience(m coordinator.Message) time.Duration {
	slow, ok := n.cfg.Ledger.(interface{ Patience() time.Duration })
	if _, evidence := m.(coordinator.Evidence); ok && evidence {
		return max(submitFor, slow.Patience())
	}
	return submitFor
}

func (n *Node) submitted(m coordinator.Message, err error) {
	silent := errors.Is(err, errSubmitTimeout)
	if !silent {
		n.silentSince = time.Time{}
	} else if n.silentSince.IsZero() {
		n.silentSince = n.cfg.Loop.Now().Add(-submitFor)
		n.note("the chain does not answer: trying until it does")
	}
	if err != nil && !silent && !n.late(m, err) {
		n.observe(event.Refused{Text: coordinator.Name(m) + ": " + err.Error()})
	}
	n.step(client.Submitted{Message: m, Err: err})
}

// late reports whether a message was refused only because the run had moved on, as happens to all
// members but the first.
func (n *Node) late(m coordinator.Message, err error) bool {
	var refused *host.TxError
	if !errors.As(err, &refused) {
		return false
	}
	code, ok := refused.Code.Coordinator()
	if !ok {
		return false
	}
	switch code {
	case coordinator.ErrPhase, coordinator.ErrEpoch, coordinator.ErrRound, coordinator.ErrStage, coordinator.ErrDispute,
		// It was in a block before this node saw it there.
		coordinator.ErrDuplicate, coordinator.ErrAlreadyMember:
		return true
	case coordinator.ErrNotMember:
		return n.was // it has left
	case coordinator.ErrEjected:
		_, fraud := m.(coordinator.Equivocation)
		return fraud // another member proved it first
	}
	return false
}
