package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Client is one participant's connection to the chain, a ledger.Sender. It calls functions on the
// chain's loop.
type Client struct {
	chain   *Chain
	post    func(func()) // of the chain's loop
	tells   func(func()) // runs what watches and answers call
	now     func() time.Time
	cut     bool
	watches []*watch
}

var _ ledger.Sender = (*Client)(nil)

// Client returns a new connection to the chain.
func (c *Chain) Client() *Client {
	client := &Client{chain: c, post: c.loop.Post, tells: func(f func()) { f() }, now: c.loop.Now}
	c.loop.Post(func() { c.clients = append(c.clients, client) })
	return client
}

// Via has all that the client is asked to do begin with post, which runs a function on the chain's
// loop, and all that it tells go through tells, which is called there: for a participant on another
// loop.Virtual, beside which the chain's runs. now is the time with which it signs.
func (c *Client) Via(post, tells func(func()), now func() time.Time) *Client {
	c.post, c.tells, c.now = post, tells, now
	return c
}

// Cut separates the client from the chain, or reconnects them. While cut, nothing passes in
// either direction, and messages on the way are lost.
func (c *Client) Cut(on bool) {
	c.post(func() {
		c.cut = on
		if !on {
			c.tell()
		}
	})
}

// As returns a ledger that acts for the key of k through this connection.
func (c *Client) As(k key.Private) ledger.Ledger {
	if c.chain.opts.Light {
		return ledger.As(lighter{c}, k, c.now)
	}
	return ledger.As(c, k, c.now)
}

// ChainID implements ledger.Reader.
func (c *Client) ChainID() string { return c.chain.opts.Genesis.Chain }

// watch is one call of Watch.
type watch struct {
	ctx    context.Context
	run    string
	f      func(ledger.Snapshot)
	light  bool   // light states suffice
	sent   bool   // a snapshot is on its way, or was
	height uint64 // of the change that was sent last
	got    bool   // a snapshot has arrived
	newest uint64 // of the newest snapshot that has arrived

	// Whether the last snapshot that was sent is a light one, and the newest that has arrived.
	sentLight, gotLight bool
}

// Watch implements ledger.Reader.
func (c *Client) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	c.watch(&watch{ctx: ctx, run: run, f: f})
}

func (c *Client) watch(w *watch) {
	c.post(func() {
		c.watches = append(c.watches, w)
		c.tell()
	})
}

// tell sends the watchers what they lack.
func (c *Client) tell() {
	if c.cut {
		return
	}
	c.watches = slices.DeleteFunc(c.watches, func(w *watch) bool { return w.ctx.Err() != nil })
	for _, w := range c.watches {
		s, changed, ok := c.chain.show(w)
		if !ok || w.sent && w.height >= changed {
			continue
		}
		w.sent, w.height, w.sentLight = true, changed, s.Light
		c.chain.travel(func() { c.arrived(w, changed, s) })
	}
}

// show returns what a watcher is to see, and the height of the change that it shows.
func (c *Chain) show(w *watch) (s ledger.Snapshot, changed uint64, ok bool) {
	if l := c.lines[w.run]; w.light && l != nil && l.changed > 0 {
		return l.shown, l.changed, true
	}
	v, ok := c.host.View(w.run)
	return ledger.Snapshot{Height: c.host.Height(), TimeMs: c.host.TimeMs(), State: v.State}, v.Changed, ok
}

// arrived hands a snapshot to its watcher, unless a newer one overtook it or a cut lost it.
func (c *Client) arrived(w *watch, changed uint64, s ledger.Snapshot) {
	switch {
	case c.cut:
		w.sent = false // lost: sent again when the cut ends
	case w.ctx.Err() != nil || w.got && (changed < w.newest || changed == w.newest && (s.Light || !w.gotLight)):
	default:
		w.got, w.newest, w.gotLight = true, changed, s.Light
		c.tells(func() { w.f(s) })
	}
}

// submission is one call of Send.
type submission struct {
	client *Client
	ctx    context.Context
	id     wire.Hash // of the bytes
	bytes  []byte
	tx     host.Tx
	wrong  error // what Tx.Verify finds wrong with it
	done   func(error)
	ended  bool
	cancel func() // cancels the next attempt
}

// Send implements ledger.Sender. It checks what each replica would check, which takes most of a
// transaction's time: the chain's loop may run beside the participants'.
func (c *Client) Send(ctx context.Context, tx []byte, done func(error)) {
	s := &submission{client: c, ctx: ctx, id: wire.Sum("entrain/ledger/mem/tx", tx), bytes: bytes.Clone(tx), done: done, cancel: func() {}}
	if s.tx, s.wrong = host.ParseTx(s.bytes); s.wrong == nil {
		s.wrong = s.tx.Verify(c.ChainID())
	}
	c.post(func() {
		c.chain.open[s.id] = append(c.chain.open[s.id], s)
		s.try()
	})
}

// try sends the transaction, and schedules the next attempt for the case that no answer comes.
func (s *submission) try() {
	c := s.client
	if s.ctx.Err() != nil {
		s.end()
		return
	}
	if !c.cut && !c.chain.lost() {
		c.chain.travel(func() {
			if !s.ended && !c.cut {
				c.chain.arrive(s)
			}
		})
	}
	s.cancel = c.chain.loop.After(c.chain.opts.Retry, s.try)
}

// reply sends the outcome back to the client.
func (s *submission) reply(err error) {
	c := s.client
	if c.cut || c.chain.lost() {
		return
	}
	c.chain.travel(func() {
		if s.ended || c.cut {
			return
		}
		s.end()
		if s.ctx.Err() == nil {
			c.tells(func() { s.done(err) })
		}
	})
}

func (s *submission) end() {
	s.ended = true
	s.cancel()
	c := s.client.chain
	if c.open[s.id] = slices.DeleteFunc(c.open[s.id], func(o *submission) bool { return o == s }); len(c.open[s.id]) == 0 {
		delete(c.open, s.id)
	}
}

// Spec implements ledger.Reader.
func (c *Client) Spec(ctx context.Context, run string, done func([]byte, error)) {
	ask(ctx, c, run, c.chain.host.Spec, done)
}

// Peers implements ledger.Reader.
func (c *Client) Peers(ctx context.Context, run string, done func([]host.Peer, error)) {
	ask(ctx, c, run, c.chain.host.Peers, done)
}

// ask asks the chain a question until the answer gets through.
func ask[T any](ctx context.Context, c *Client, run string, question func(run string) (T, bool), done func(T, error)) {
	ended, stop := false, func() {}
	var try func()
	try = func() {
		if ended || ctx.Err() != nil {
			return
		}
		stop = c.chain.loop.After(c.chain.opts.Retry, try)
		c.chain.travel(func() {
			if c.cut || c.chain.outage {
				return
			}
			answer, ok := question(run)
			var err error
			if !ok {
				err = fmt.Errorf("run %q: %w", run, ledger.ErrUnknownRun)
			}
			c.chain.travel(func() {
				if ended || c.cut || ctx.Err() != nil {
					return
				}
				ended = true
				stop()
				c.tells(func() { done(answer, err) })
			})
		})
	}
	c.post(try)
}
