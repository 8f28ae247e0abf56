package node

import (
	"context"
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
	n.heard, n.spare = n.spare, nil // what follows may be heard already while these are acted on
	if len(events) == 0 || n.ctx.Err() != nil || n.instance.refused {
		return
	}
	for _, a := range n.machine.Step(n.clock.Ms(n.cfg.Loop), events...) {
		n.perform(a)
	}
	n.fetchBulk()
	if clear(events); cap(events) <= spareMax {
		n.spare = events[:0]
	}
	if n.steps > 0 {
		n.sleep()
	}
}

// spareMax bounds the memory for events that is kept: a witness hears thousands at once.
const spareMax = 64

// within returns a context that ends with the first tick after d of the loop's time.
func (n *Node) within(d time.Duration) context.Context {
	return n.limits.Within(n.ctx, n.clock.Ms(n.cfg.Loop), d)
}

// wakeEvery is the step of ticks. The machine's own delays are several times as long.
const wakeEvery = 200 * time.Millisecond

func (n *Node) tick() {
	if n.ctx.Err() != nil {
		return
	}
	n.ticked, n.steps = n.cfg.Loop.Now(), 0
	now := n.clock.Ms(n.cfg.Loop)
	n.limits.End(now)
	if n.machine.Wake() <= now { // else a limit has ended, or the addresses are compared
		n.step(client.Tick{})
	}
	if n.onStop != nil {
		n.endIfLeft()
	}
	n.keepConnected()
	n.sleep()
}

// sleep has the next tick come once something waits for it, in whole steps from the last one.
func (n *Node) sleep() {
	now, since := n.clock.Ms(n.cfg.Loop), max(0, n.cfg.Loop.Now().Sub(n.ticked))
	at := min(n.machine.Wake(), n.limits.Next(), now+uint64(n.untilConnecting().Milliseconds()))
	if n.onStop != nil {
		at = now
	}
	steps := max((since+time.Duration(max(at, now)-now)*time.Millisecond+wakeEvery-1)/wakeEvery, since/wakeEvery+1)
	if n.steps > 0 {
		if steps >= n.steps {
			return
		}
		n.stopTick()
	}
	n.steps, n.stopTick = steps, n.cfg.Loop.After(steps*wakeEvery-since, n.tick)
}
