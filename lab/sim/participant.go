package sim

import (
	"context"
	"errors"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/disk"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// participant is one machine: its disk, which survives crashes, and its node while it runs.
type participant struct {
	network  *network
	part     *part
	index    int
	key      key.Private
	slowness time.Duration
	skew     time.Duration // by which its clock is wrong
	disk     disk.Disk
	crashed  bool // at some time
	emptied  bool // its disk was, or was exchanged for an older one
	comes    bool // once it has left

	node   *node.Node
	scope  *loop.Scope
	cancel context.CancelFunc
	chain  *ledgermem.Client
	cut    bool

	// The last observation of inspectParams.
	seenRound    coordinator.Round
	seenRollback uint32
	seenHash     wire.Hash
	counted      bool // among invariants.holders
	touched      bool // among part.touched

	impairedAt time.Time // see impaired
	impairedIn coordinator.Round
	agreedAt   time.Time // when the run had agreed on parameters of a later round
	conduct    conduct
}

// begin starts the node.
func (p *participant) begin(ctx context.Context) {
	n := p.network
	p.impaired()
	ctx, p.cancel = context.WithCancel(ctx)
	p.scope = loop.NewScope(p.part.clock)
	p.chain = p.part.client()
	p.chain.Cut(p.cut)
	cfg, err := n.corrupt(p.index, node.Config{
		Run: runName, ID: n.state().ID(), Key: p.key, Ledger: p.chain.As(p.key), Loop: wrongClock{p.scope, p}, Engine: p.part.engine,
		Listen:  p.listen,
		Initial: func() []float32 { return append([]float32(nil), n.initial...) },
		Store:   &p.disk,
		Follow:  n.spec.Followers(), Aggregators: n.spec.Aggregators(),
		Stake: n.spec.Trust.Stake, Restake: !n.cfg.restarts(),
		Disputant: p.part.disputant,
		// The first participants measure the final parameters.
		EvalRounds: n.cfg.Steps * uint32(max(0, min(1, evaluators-p.index))),
		Observe:    func(ev event.Event) { p.part.record(p.index, ev) },
		Cost:       func(j node.Job) time.Duration { return n.cfg.Cost(p.index, j) * p.slowness },
		Read:       n.common.read,
		Common:     n.common,
	})
	if err != nil {
		n.fail("client %d does not start: %v", p.index, err)
		return
	}
	if n.cfg.restarts() {
		cfg.Failed = func(err error) { p.leave(err, restartAfter) }
	}
	started, err := node.New(ctx, cfg)
	if err != nil {
		n.fail("client %d does not start: %v", p.index, err)
		return
	}
	p.node = started
	p.node.Start()
}

// restarts reports whether people start participants again that ended with an error.
func (c Config) restarts() bool { return c.Leaves+c.Restores+c.FullDisks > 0 }

func (p *participant) listen(h p2p.Handler) (p2p.Network, error) {
	join := func(h p2p.Handler) (p2p.Network, error) { return p.join(h), nil }
	if wrap := p.network.cfg.Wrap; wrap != nil {
		return wrap(h, join)
	}
	return join(h)
}

// join joins the peer network.
func (p *participant) join(h p2p.Handler) p2p.Network {
	if peers := p.part.peers; peers != nil {
		return peers.Join(p.key.Public(), h)
	}
	return p.network.mesh.Join(p.key.Public(), h)
}

// wrongClock is the loop of a participant whose clock may be wrong.
type wrongClock struct {
	loop.Loop
	p *participant
}

// Now implements loop.Loop. A node asks for the time whenever it gives its machine an event, so its
// parameters are looked at after that.
func (w wrongClock) Now() time.Time {
	w.p.part.touch(w.p)
	return w.Loop.Now().Add(w.p.skew)
}

// evaluators is the number of participants that measure the final loss, because one may be healing
// then.
const evaluators = 2

// crash ends the node as kill -9 does: nothing under way completes. The disk stays.
func (p *participant) crash() {
	if p.node == nil {
		return
	}
	p.crashed = true
	p.network.report.Crashes++
	p.network.mesh.Crash(p.key.Public())
	p.end()
}

// leave ends the node as its owner does, because of an error or nil, and begins it again later.
func (p *participant) leave(because error, later time.Duration) {
	left := p.node
	if left == nil {
		return
	}
	p.impaired()
	done := func() {
		if p.node == left {
			p.end()
		}
		p.network.clock.After(later, p.again)
	}
	if _, elsewhere := errors.AsType[*node.ElsewhereError](because); elsewhere {
		left.Abandon(done)
		return
	}
	left.Stop(leavePatience, done)
}

// again begins the node unless it runs.
func (p *participant) again() {
	if p.node == nil {
		p.network.check.movedAt = p.network.clock.Now()
		p.begin(context.Background())
	}
}

// leavePatience is how long a participant that leaves waits for the ledger, and restartAfter how
// long it is away after an error.
const (
	leavePatience = 10 * time.Second
	restartAfter  = 20 * time.Second
)

func (p *participant) end() {
	if p.node == nil {
		return
	}
	p.scope.End()
	p.chain.Cut(true)
	p.cancel()
	p.node = nil
	p.part.touch(p)
}

// scheduleFaults draws which participants crash and when, which are slow, and when the network
// splits.
func (n *network) scheduleFaults() {
	at := func(from, to time.Duration) time.Duration {
		return from + time.Duration(n.random.Uint64n(uint64(to-from)))
	}
	order := make([]int, len(n.members))
	for i := range order {
		order[i] = i
	}
	n.random.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	next := func() *participant {
		p := n.members[order[0]]
		order = append(order[1:], order[0])
		return p
	}
	for range n.cfg.Stragglers {
		next().slowness = 10
	}
	for range n.cfg.Crashes {
		p := next()
		down := at(10*time.Second, 60*time.Second)
		n.after(down, p.crash)
		n.after(down+at(time.Second, 30*time.Second), p.again)
	}
	for range n.cfg.Partitions {
		from := at(15*time.Second, 70*time.Second)
		size := 1 + int(n.random.Uint64n(uint64(max(1, len(n.members)/3))))
		n.after(from, func() { n.split(size) })
		n.after(from+at(5*time.Second, 25*time.Second), n.mend)
	}
	for range n.cfg.Jumps {
		p := next()
		skew := at(-time.Hour, time.Hour)
		n.after(at(5*time.Second, 60*time.Second), func() { p.skew = skew })
	}
	n.scheduleSlips(at, next)
	for range n.cfg.Outages {
		from := at(15*time.Second, 70*time.Second)
		n.after(from, func() { n.chain.Outage(true) })
		n.after(from+at(2*time.Second, 15*time.Second), func() { n.chain.Outage(false) })
	}
}

// after has a fault begin or end later. From then the run has its time to take a step.
func (n *network) after(d time.Duration, f func()) {
	n.clock.After(d, func() {
		n.check.movedAt = n.clock.Now()
		f()
	})
}

// scheduleSlips draws what operators and the owner do: who leaves and comes back, restores an old
// disk or has a full one, and when the run pauses.
func (n *network) scheduleSlips(at func(from, to time.Duration) time.Duration, next func() *participant) {
	for range n.cfg.Leaves {
		p := next()
		away := at(time.Second, 40*time.Second)
		n.after(at(5*time.Second, 80*time.Second), func() { p.leave(nil, away) })
	}
	for k := range n.cfg.Restores {
		p := next()
		backup := disk.Disk{Shares: p.disk.Shares}
		down := at(10*time.Second, 60*time.Second)
		if k%2 == 0 {
			n.after(at(0, down), func() { backup = p.disk.Backup() })
		}
		n.after(down, p.crash)
		n.after(down+at(50*time.Millisecond, 5*time.Second), func() { // at times within the round
			if p.node == nil {
				p.disk, p.emptied = backup, true
				p.again()
			}
		})
	}
	for range n.cfg.FullDisks {
		p := next()
		from := at(5*time.Second, 70*time.Second)
		n.after(from, func() { p.disk.Full = true })
		n.after(from+at(time.Second, 40*time.Second), func() { p.disk.Full = false; p.impaired() })
	}
	for range n.cfg.Pauses {
		from := at(5*time.Second, 70*time.Second)
		n.after(from, func() { n.order(coordinator.Pause{}) })
		n.after(from+at(time.Second, 30*time.Second), func() { n.order(coordinator.Resume{}) })
	}
}

// split separates a part of the participants from the rest and from the ledger.
func (n *network) split(size int) {
	var group []key.Public
	for _, p := range n.members[:size] {
		group = append(group, p.key.Public())
		p.setCut(true)
	}
	n.mesh.Cut(group)
}

func (n *network) mend() {
	n.mesh.Heal()
	for _, p := range n.members {
		p.setCut(false)
	}
}

func (p *participant) setCut(on bool) {
	if p.cut {
		p.impaired()
	}
	p.cut = on
	if p.chain != nil && p.node != nil {
		p.chain.Cut(on)
	}
}
