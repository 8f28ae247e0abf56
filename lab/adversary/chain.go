package adversary

import (
	"context"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// chain is the ledger as the kind uses it.
type chain struct {
	ledger.Ledger
	m *member
}

// lightChain is a chain that knows light states.
type lightChain struct {
	chain
	lighter ledger.Lighter
}

// chain returns what the node gets in place of a ledger.
func (m *member) chain(l ledger.Ledger) ledger.Ledger {
	c := chain{Ledger: l, m: m}
	if lighter, ok := l.(ledger.Lighter); ok {
		return lightChain{c, lighter}
	}
	return c
}

// Watch implements ledger.Ledger.
func (c chain) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	c.Ledger.Watch(ctx, run, c.first(f))
}

// WatchLightly implements ledger.Lighter.
func (c lightChain) WatchLightly(ctx context.Context, run string, f func(ledger.Snapshot)) func(light, reports bool) {
	return c.lighter.WatchLightly(ctx, run, c.first(f))
}

// first has the member see every state before its node does.
func (c chain) first(f func(ledger.Snapshot)) func(ledger.Snapshot) {
	return func(s ledger.Snapshot) {
		c.m.mu.Lock()
		if !c.m.hasState || s.State.Round() > c.m.state.Round() {
			c.m.forget(s.State.Round())
		}
		c.m.state, c.m.hasState = s.State, true
		c.m.news++
		c.m.mu.Unlock()
		c.m.look()
		f(s)
	}
}

// Submit implements ledger.Ledger: the kind replaces the node's messages to the coordinator.
func (c chain) Submit(ctx context.Context, body host.Body, done func(error)) {
	message, ok := body.(host.RunMessage)
	if !ok {
		c.Ledger.Submit(ctx, body, done)
		return
	}
	said, err := coordinator.ParseMessage(message.Message)
	if err != nil {
		c.Ledger.Submit(ctx, body, done)
		return
	}
	c.m.mu.Lock()
	says, speaks := c.m.says(said)
	wait := c.m.hooks.waits(says)
	c.m.mu.Unlock()
	if !speaks {
		// The node gets no answer; its own timeout reports the loss of the message.
		return
	}
	message.Message = coordinator.Append(nil, says)
	if wait > 0 {
		c.m.loop.After(wait, func() { c.Ledger.Submit(context.WithoutCancel(ctx), message, func(error) {}) })
		return
	}
	c.Ledger.Submit(ctx, message, done)
}

// says returns the message that the kind sends in place of m. No kind denounces itself.
func (m *member) says(said coordinator.Message) (coordinator.Message, bool) {
	if e, ok := said.(coordinator.Equivocation); ok {
		if self, known := m.index(); known && e.A.Commitment.Member == self {
			return nil, false
		}
	}
	if m.hooks.say == nil {
		return said, true
	}
	return m.hooks.say(said)
}
