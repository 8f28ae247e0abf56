package adversary

import (
	"context"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
)

// chain is the ledger as the kind uses it.
type chain struct {
	ledger.Ledger
	m *member
}

// Watch is part of ledger.Ledger: the member sees every state before its node does.
func (c chain) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	c.Ledger.Watch(ctx, run, func(s ledger.Snapshot) {
		c.m.mu.Lock()
		c.m.state, c.m.timeMs, c.m.hasState = s.State, s.TimeMs, true
		c.m.mu.Unlock()
		c.m.look()
		c.m.fight(ctx)
		f(s)
	})
}

// Submit is part of ledger.Ledger: what the node tells the coordinator is replaced by what the kind says.
func (c chain) Submit(ctx context.Context, tx []byte, done func(error)) {
	t, err := ledger.ParseTx(tx)
	if err != nil {
		c.Ledger.Submit(ctx, tx, done)
		return
	}
	body, ok := t.Body.(ledger.RunMessage)
	if !ok {
		c.Ledger.Submit(ctx, tx, done)
		return
	}
	said, err := coordinator.ParseMessage(body.Message)
	if err != nil {
		c.Ledger.Submit(ctx, tx, done)
		return
	}
	c.m.mu.Lock()
	c.m.nonce = max(c.m.nonce, t.Nonce)
	says, speaks := c.m.says(said)
	c.m.mu.Unlock()
	if !speaks {
		// The node is told nothing; its own timeout says that the message was lost.
		return
	}
	body.Message = coordinator.Append(nil, says)
	t.Body = body
	signed, err := t.Sign(c.m.signer) // the same nonce: the node's transaction is never sent
	if err != nil {
		c.Ledger.Submit(ctx, tx, done)
		return
	}
	c.Ledger.Submit(ctx, signed, done)
}

// says is what the kind says in place of a message. No kind denounces itself, and one that fights makes its moves itself.
func (m *member) says(said coordinator.Message) (coordinator.Message, bool) {
	if e, ok := said.(coordinator.Equivocation); ok {
		if self, known := m.index(); known && e.A.Commitment.Member == self {
			return nil, false
		}
	}
	if d, ok := m.disputeOf(said); ok && m.fights(d) {
		return nil, false
	}
	if m.hooks.say == nil {
		return said, true
	}
	return m.hooks.say(said)
}

// disputeOf returns the dispute in which a message is a move.
func (m *member) disputeOf(said coordinator.Message) (coordinator.Dispute, bool) {
	id := uint32(0)
	switch said := said.(type) {
	case coordinator.Defend:
		id = said.Dispute
	case coordinator.Reveal:
		id = said.Dispute
	case coordinator.Evidence:
		id = said.Dispute
	case coordinator.Concede:
		id = said.Dispute
	default:
		return coordinator.Dispute{}, false
	}
	return m.state.Dispute(id)
}

// send submits a message of the member's own making.
func (m *member) send(ctx context.Context, said coordinator.Message, failed func()) {
	m.mu.Lock()
	m.nonce++
	t := ledger.Tx{Chain: m.ledger.ChainID(), Nonce: m.nonce, ExpiresMs: m.timeMs + ledger.TxLifetimeMs/2,
		Body: ledger.RunMessage{Run: m.run, Message: coordinator.Append(nil, said)}}
	m.mu.Unlock()
	tx, err := t.Sign(m.signer)
	if err != nil {
		failed()
		return
	}
	m.ledger.Submit(ctx, tx, func(err error) {
		if err != nil {
			failed()
		}
	})
}
