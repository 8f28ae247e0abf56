package demo

import (
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// progress is what a demo knows of its run: the newest state on the chain, what windows show of
// it, and what the clients reported. It starts and stops nothing.
type progress struct {
	set     Settings
	clients []client
	state   coordinator.State
	seen    bool // a state was
	fold    *view.Fold
	payload total // bytes of the clients' results
	// Training of all clients: when the first step that was heard of began, when the last ended, and
	// the tokens of all.
	begin, end time.Time
	tokens     uint64
}

// client is the demo's knowledge of one client.
type client struct {
	name     string
	key      key.Public
	cheats   bool
	params   wire.Hash // of the parameters it holds
	finished bool      // it has reported the final parameters
	sent     total     // bytes that it wrote to its bucket, by window
	tokens   uint64    // that it trained
	training float64   // seconds in which it did
}

type total struct{ sum, count uint64 }

func (t *total) add(n uint64) { t.sum, t.count = t.sum+n, t.count+1 }

func (t total) mean() uint64 { return t.sum / max(1, t.count) }

// client returns the client with a name, or nil.
func (p *progress) client(name string) *client {
	if i := slices.IndexFunc(p.clients, func(c client) bool { return c.name == name }); i >= 0 {
		return &p.clients[i]
	}
	return nil
}

// cheats reports whether a key is that of a client that cheats.
func (p *progress) cheats(k string) bool {
	return slices.ContainsFunc(p.clients, func(c client) bool { return c.cheats && c.key.String() == k })
}

// event takes what a client reports.
func (p *progress) event(c *client, ev event.Event) {
	switch ev := ev.(type) {
	case event.Loaded:
		c.params = ev.Params
	case event.Applied:
		c.params = ev.Params
	case event.Healed:
		c.params = ev.Params
	case event.Finished:
		c.params, c.finished = ev.Params, true
	case event.Trained:
		p.payload.add(ev.Bytes)
		p.end = time.Now()
		if p.begin.IsZero() {
			p.begin = p.end.Add(-time.Duration(ev.Seconds * float64(time.Second)))
		}
		p.tokens, c.tokens, c.training = p.tokens+ev.Tokens, c.tokens+ev.Tokens, c.training+ev.Seconds
	case event.Traffic:
		c.sent.add(ev.Bytes)
	}
}

// joined reports whether all clients are members.
func (p *progress) joined() bool {
	return !slices.ContainsFunc(p.clients, func(c client) bool {
		_, member := p.state.Find(c.key)
		return !member
	})
}

// over reports whether the run has finished.
func (p *progress) over() bool { return p.seen && p.state.Phase() == coordinator.Finished }

// agreed returns the hash of the parameters that the run agreed on last.
func (p *progress) agreed() wire.Hash {
	if !p.seen {
		return wire.Hash{}
	}
	hash, _ := p.state.Params()
	return hash
}

// equal reports whether the run has finished and all honest clients hold its final parameters.
func (p *progress) equal() bool {
	agreed := p.agreed()
	return p.over() && !slices.ContainsFunc(p.clients, func(c client) bool { return !c.cheats && (!c.finished || c.params != agreed) })
}

// undecided reports whether a check of a cheat, or by one, is open.
func (p *progress) undecided() bool {
	return slices.ContainsFunc(p.state.Checks(), func(c dispute.Check) bool {
		return p.cheats(p.state.Key(c.Member).String()) || p.cheats(p.state.Key(c.Verifier).String())
	})
}

// scoring reports whether a period of the finished run is still to be scored.
func (p *progress) scoring() bool { return p.over() && p.state.DeadlineHeight() != 0 }

// speed returns the tokens that the clients trained a second, from their first step to their last,
// and those that they would have trained if they had done nothing but steps, at the speed of these.
func (p *progress) speed() (trained, steps float64) {
	if d := p.end.Sub(p.begin).Seconds(); d > 0 {
		trained = float64(p.tokens) / d
	}
	for _, c := range p.clients {
		if c.training > 0 {
			steps += float64(c.tokens) / c.training
		}
	}
	return trained, steps
}

// run returns what windows show of the run.
func (p *progress) run() view.Run { return p.fold.Run(time.Time{}) }

// convicted reports whether a conviction is of the kind that is asked for.
func (p *progress) convicted(is func(view.Conviction) bool) bool {
	t := p.run().Trust
	return t != nil && slices.ContainsFunc(t.Convictions, is)
}

// caught reports whether a cheat was convicted of what its kind does.
func (p *progress) caught() bool {
	k, _ := p.set.kind()
	return p.convicted(func(v view.Conviction) bool {
		return p.cheats(v.Key) && slices.ContainsFunc(k.Offences, func(o dispute.Offence) bool { return o.String() == v.Offence })
	})
}

// wronged reports whether an honest client was convicted of cheating.
func (p *progress) wronged() bool {
	return p.convicted(func(v view.Conviction) bool { return !p.cheats(v.Key) && !v.Lesser })
}

// Client is a client's place among the members at the end, and what it holds.
type Client struct {
	view.Member
	Params string `json:"params"`              // hash of the parameters it holds
	Cheats bool   `json:"adversary,omitempty"` // it is to be convicted
	// EarnedShare is the part of all clients' rewards that it has.
	EarnedShare float64 `json:"earned_share"`
	// Sent is the mean of the bytes that it wrote to its bucket in a window.
	Sent uint64 `json:"bytes_per_window,omitempty"`
}

// members returns the clients, in their order.
func (p *progress) members() []Client {
	list, all := make([]Client, len(p.clients)), uint64(0)
	for i, c := range p.clients {
		list[i] = Client{Member: view.Member{Key: c.key.String(), Name: c.name, Mark: view.None}, Params: c.params.String(), Cheats: c.cheats, Sent: c.sent.mean()}
		for _, m := range p.run().Members {
			if m.Key == list[i].Key {
				list[i].Member = m
			}
		}
		all += list[i].Earned
	}
	for i := range list {
		list[i].EarnedShare = float64(list[i].Earned) / float64(max(1, all))
	}
	return list
}
