package node

import (
	"context"
	"slices"
	"time"

	"github.com/entrain-network/entrain/client"
)

// hear feeds one event to the machine as step does, but with all that are heard by the time that
// the loop has run what it has to run now: in a large run results and commitments come faster than
// the machine decides about each.
func (n *Node) hear(ev client.Event) {
	n.heard = append(n.heard, ev)
	if len(n.heard) == 1 {
		n.cfg.Loop.Post(n.heed)
	}
}

// step feeds one event to the machine, after those heard, and performs what it asks for.
func (n *Node) step(ev client.Event) {
	n.heard = append(n.heard, ev)
	n.heed()
}

func (n *Node) heed() {
	events := n.heard
	n.heard = nil
	if len(events) == 0 || n.ctx.Err() != nil || n.instance.refused {
		return
	}
	for _, a := range n.machine.Step(n.clock.Ms(n.cfg.Loop), events...) {
		n.perform(a)
	}
}

// limit bounds the time of requests.
type limit struct {
	tick   uint64 // with which it ends, in wakeEvery of the clock
	ctx    context.Context
	cancel func()
}

// within returns a context that ends with the first tick after d of the loop's time. Thousands
// of requests are under way in a large run, and nearly all end before; so those that would end
// with the same tick share one.
func (n *Node) within(d time.Duration) context.Context {
	tick := (n.clock.Ms(n.cfg.Loop) + uint64((d + wakeEvery).Milliseconds())) / uint64(wakeEvery.Milliseconds())
	for i := len(n.limits) - 1; i >= 0; i-- {
		if n.limits[i].tick == tick {
			return n.limits[i].ctx
		}
	}
	ctx, cancel := context.WithCancel(n.ctx)
	n.limits = append(n.limits, limit{tick, ctx, cancel})
	return ctx
}

// endLate ends the contexts whose time is over.
func (n *Node) endLate() {
	now := n.clock.Ms(n.cfg.Loop) / uint64(wakeEvery.Milliseconds())
	n.limits = slices.DeleteFunc(n.limits, func(l limit) bool {
		if l.tick > now {
			return false
		}
		l.cancel()
		return true
	})
}
