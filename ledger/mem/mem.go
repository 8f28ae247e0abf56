// Package mem is a ledger in memory, on a loop: the same host.Host that a chain replicates, with
// blocks made by a timer. It is for simulation and tests. Under a loop.Virtual it is deterministic:
// the same Options and the same calls at the same times give the same blocks.
//
// A Chain is the ledger; a Client is one participant's connection to it:
//
//	chain, err := mem.New(loop, mem.Options{Genesis: host.Genesis{Chain: "test"}})
//	l := chain.Client().As(key)
//	l.Watch(ctx, "run", func(s ledger.Snapshot) { ... })
//
// The faults of a real ledger can be simulated. Every message between a client and the chain
// takes Options.Delay and some jitter. Submissions and their answers get lost with a given
// probability, and clients send them again. Chain.Outage stops the blocks and loses pending
// transactions. Client.Cut separates one client from the chain.
package mem

import (
	"time"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Options configure a Chain. The zero value of each field except Genesis means its default.
type Options struct {
	Genesis host.Genesis // a TimeMs of 0 becomes the loop's time
	Seed    wire.Hash    // determines the seeds of blocks, jitter and loss

	Block  time.Duration // between blocks; default 200 ms
	Delay  time.Duration // from a client to the chain, and from the chain to a client; default 0
	Jitter time.Duration // most additional delay, drawn for each message; default 0
	Retry  time.Duration // time until a client without an answer asks again; default 1 s

	LossPerMille uint32 // of submissions and of answers to them; default 0

	Referees host.Referees // for runs with verification; nil: there can be none

	Light bool // ledgers are a ledger.Lighter
}

// Chain is a ledger in memory. Its methods may be called wherever its loop's may: from any
// goroutine for a loop.Real, by the stepping goroutine for a loop.Virtual. Their effects happen
// on the loop.
type Chain struct {
	loop    loop.Loop
	opts    Options
	chance  prng.Source
	host    *host.Host
	seed    wire.Hash // the last block's
	height  uint64
	outage  bool
	stopped bool
	pending []*submission      // transactions for the next block, in order of arrival
	waits   map[wire.Hash]bool // the IDs of the pending ones
	clients []*Client
	lines   map[string]*line // by run
	// open are the submissions without an answer, by the transaction's ID.
	open map[wire.Hash][]*submission
}

// mempoolMax bounds the transactions that wait for a block. More are lost, as in an overloaded
// node.
const mempoolMax = 10_000

// New returns a chain that makes its first block after one interval. The error is that of an
// invalid genesis.
func New(l loop.Loop, o Options) (*Chain, error) {
	if o.Genesis.TimeMs == 0 {
		o.Genesis.TimeMs = uint64(l.Now().UnixMilli())
	}
	if o.Block <= 0 {
		o.Block = 200 * time.Millisecond
	}
	if o.Retry <= 0 {
		o.Retry = time.Second
	}
	host, err := host.NewHost(o.Genesis, host.Rules{Referees: o.Referees, ChanceKey: chance.ValidKey})
	if err != nil {
		return nil, err
	}
	c := &Chain{loop: l, opts: o, chance: prng.New(o.Seed, "entrain/ledger/mem"), host: host, seed: o.Seed, waits: map[wire.Hash]bool{}, open: map[wire.Hash][]*submission{}, lines: map[string]*line{}}
	l.After(o.Block, c.block)
	return c, nil
}

// Outage stops the making of blocks, or resumes it. Transactions that wait for a block when it
// begins are lost, as in a node that crashes; clients send them again.
func (c *Chain) Outage(on bool) {
	c.loop.Post(func() {
		c.outage = on
		if on {
			c.pending, c.waits = nil, map[wire.Hash]bool{}
		}
	})
}

// Stop stops the making of blocks permanently, so that a virtual loop can run out of events.
func (c *Chain) Stop() { c.loop.Post(func() { c.stopped = true }) }

// Host returns the state machine. Use it on the loop only.
func (c *Chain) Host() *host.Host { return c.host }

// block makes a block of the pending transactions, tells the watchers, and schedules the next
// block.
func (c *Chain) block() {
	if c.stopped {
		return
	}
	defer func() { c.loop.After(c.opts.Block, c.block) }()
	if c.outage {
		return
	}
	c.height++
	now := uint64(c.loop.Now().UnixMilli())
	parts := [][]byte{c.seed[:], wire.AppendU64(nil, c.height), wire.AppendU64(nil, now)}
	for _, s := range c.pending {
		parts = append(parts, wire.AppendVar(nil, s.bytes))
	}
	c.seed = wire.Sum("entrain/ledger/mem/block", parts...)

	c.host.Begin(host.Block{Height: c.height, TimeMs: now, Seed: c.seed})
	delivered := c.pending
	c.pending, c.waits = nil, map[wire.Hash]bool{}
	outcomes := make([]error, len(delivered))
	for i, s := range delivered {
		outcomes[i] = c.host.DeliverVerified(s.tx)
	}
	c.host.Commit()
	c.look()

	for i, s := range delivered {
		c.answer(s.id, outcomes[i])
	}
	for _, client := range c.clients {
		client.tell()
	}
}

// arrive takes a submission to the chain. It answers at once if it can, and otherwise leaves the
// answer to the next block.
func (c *Chain) arrive(s *submission) {
	if c.outage {
		return
	}
	err := s.wrong
	if err == nil {
		if code, ok := c.host.Outcome(s.tx); ok {
			s.reply(code.Err())
			return
		}
		err = c.host.Admit(s.tx, c.host.TimeMs())
	}
	switch {
	case err != nil:
		s.reply(err)
	case !c.waits[s.id] && len(c.pending) < mempoolMax:
		c.pending, c.waits[s.id] = append(c.pending, s), true
	}
}

// answer replies to the clients that submitted the transaction.
func (c *Chain) answer(id wire.Hash, err error) {
	for _, s := range c.open[id] {
		s.reply(err)
	}
}

// travel runs f after the time that a message takes between a client and the chain.
func (c *Chain) travel(f func()) {
	d := c.opts.Delay
	if c.opts.Jitter > 0 {
		d += time.Duration(c.chance.Uint64n(uint64(c.opts.Jitter)))
	}
	c.loop.After(d, f)
}

func (c *Chain) lost() bool {
	return c.opts.LossPerMille > 0 && c.chance.Uint64n(1000) < uint64(c.opts.LossPerMille)
}
