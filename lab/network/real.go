package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/lab/sim"
	"github.com/entrain-network/entrain/ledger"
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/statefile"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// real is a run over libp2p.
type real struct {
	cfg     Config
	setup   *sim.Setup
	loop    *loop.Real // the ledger's
	chain   *ledgermem.Chain
	id      wire.Hash
	count   *Counter
	dir     string
	members []*member
	began   time.Time
	streams *streams // nil: sockets
	moves   []sim.Move
	failed  chan error // of a member that ended by itself
}

// member is one machine: its files and its port, which outlive its process.
type member struct {
	real   *real
	index  int
	engine engine.Engine
	listen []string

	node  *node.Node // nil: it does not run
	peers *lp2p.Network
	loop  *loop.Real
	kill  context.CancelFunc
	ended chan struct{} // closed once the loop and the network have ended
}

// Run runs the members over libp2p, and returns a record for each round.
func Run(ctx context.Context, c Config) (list []Record, err error) {
	r := &real{cfg: c, loop: loop.NewReal(), moves: c.Moves, failed: make(chan error, 1)}
	if r.setup, err = sim.Prepare(ctx, c.Config); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.setup.Close()) }()
	if c.Memory {
		r.streams = newStreams(c.Delay + c.Jitter/2)
	}
	if r.count, err = newCounter(r.setup); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp("", "entrain-network-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	ctx, end := context.WithCancel(ctx)
	r.chain, err = ledgermem.New(r.loop, ledgermem.Options{Genesis: r.setup.Genesis, Block: 250 * time.Millisecond, Delay: c.Delay, Jitter: c.Jitter})
	if err != nil {
		end()
		return nil, err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() { r.loop.Run(ctx) })
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	defer r.stop()
	return r.follow(ctx)
}

// create creates the run on the ledger.
func (r *real) create(ctx context.Context) error {
	created := make(chan error, 1)
	r.chain.Client().As(r.setup.Owner).Submit(ctx, r.setup.Create, func(err error) {
		if v, ok := r.chain.Host().View(sim.RunName); ok && err == nil {
			r.id = v.State.ID()
		}
		created <- err
	})
	select {
	case err := <-created:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow starts the members and makes the moves until the run ends.
func (r *real) follow(ctx context.Context) (list []Record, err error) {
	states := make(chan coordinator.State, 1024)
	r.chain.Client().Watch(ctx, sim.RunName, func(s ledger.Snapshot) { states <- s.State })
	r.began = time.Now()
	var over <-chan time.Time
	if r.cfg.For > 0 {
		over = time.After(r.cfg.For)
	}
	for i := range r.cfg.Clients {
		m := &member{real: r, index: i, listen: []string{"/ip4/127.0.0.1/tcp/0"}}
		if r.streams != nil {
			m.listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 1+i)}
		}
		if m.engine, err = newEngine(r.setup.Run); err != nil {
			return nil, err
		}
		r.members = append(r.members, m)
		if !r.cfg.Later(i) {
			if err := m.begin(ctx); err != nil {
				return nil, err
			}
			if before := i - comeAtOnce; before > 0 {
				if err := r.members[before].connect(ctx, before*9/10); err != nil {
					return nil, err
				}
			}
		}
	}
	for {
		select {
		case <-ctx.Done():
			return list, ctx.Err()
		case <-over:
			return list, nil
		case err := <-r.failed:
			return list, err
		case s := <-states:
			if s.Phase() == coordinator.Finished {
				return list, nil
			}
			if s.Round() > 0 && (len(list) == 0 || s.Round() > list[len(list)-1].Round) {
				now := record(s, time.Since(r.began), r.count)
				now.Carried = r.carried()
				list = append(list, now)
				if r.cfg.Observe != nil {
					r.cfg.Observe(now)
				}
			}
			due, later := sim.Due(r.moves, s)
			r.moves = later
			for _, m := range due {
				if err := r.members[m.Client].do(ctx, m.Do); err != nil {
					return list, err
				}
			}
		}
	}
}

// carried returns Record.Carried, 0 where the system does not tell.
func (r *real) carried() (sent uint64) {
	if r.streams != nil {
		return r.streams.sent.Load()
	}
	b, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if name, counts, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "lo" {
			if f := strings.Fields(counts); len(f) > 8 {
				sent, _ = strconv.ParseUint(f[8], 10, 64)
			}
		}
	}
	return sent
}

// stop ends all members.
func (r *real) stop() {
	for _, m := range r.members {
		m.crash()
	}
	for _, m := range r.members {
		m.await()
		m.engine.Close()
	}
	if r.streams != nil {
		r.streams.open.Wait()
	}
}

func (m *member) do(ctx context.Context, d sim.Doing) error {
	switch d {
	case sim.Come:
		if m.node == nil {
			return m.begin(ctx)
		}
	case sim.Leave:
		m.leave()
	case sim.Crash:
		m.crash()
	}
	return nil
}

// begin starts the member's node, after the one before has ended.
func (m *member) begin(ctx context.Context) error {
	m.await()
	r := m.real
	ctx, m.kill = context.WithCancel(ctx)
	m.loop, m.ended = loop.NewReal(), make(chan struct{})
	dir := filepath.Join(r.dir, fmt.Sprint(m.index))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key := r.setup.Keys[m.index]
	started, err := node.New(ctx, node.Config{
		Run: sim.RunName, ID: r.id, Key: key, Ledger: r.chain.Client().As(key), Loop: slow{m.loop, ctx}, Engine: m.engine,
		Listen: func(h p2p.Handler) (p2p.Network, error) {
			return r.count.Wrap(h, func(h p2p.Handler) (p2p.Network, error) {
				o := lp2p.Options{Key: key, Run: r.id, Handler: h, Listen: m.listen, Reach: lp2p.ReachPublic, Count: r.count.sent}
				if r.streams != nil {
					o.Streams = r.streams
				}
				n, err := lp2p.New(o)
				if err != nil {
					return nil, err
				}
				m.peers = n
				m.listen = nil // as it was: a machine that starts again has the same address
				for _, a := range n.Addrs() {
					m.listen = append(m.listen, a[:strings.Index(a, "/p2p/")])
				}
				return n, nil
			})
		},
		Initial: func() []float32 { return append([]float32(nil), r.setup.Initial...) },
		Store:   statefile.New(filepath.Join(dir, "state"), m.engine.ParamsLen(), m.engine.StateLen()),
		Follow:  r.setup.Spec.Followers(), Aggregators: r.setup.Spec.Aggregators(),
		Cost:   func(j node.Job) time.Duration { return r.cfg.Cost(m.index, j) },
		Failed: m.fail,
	})
	if err != nil {
		m.kill()
		close(m.ended)
		return err
	}
	m.node = started
	m.loop.Post(started.Start)
	loop, peers, ended := m.loop, m.peers, m.ended
	go func() {
		loop.Run(ctx)
		peers.Close()
		close(ended)
	}()
	return nil
}

// fail ends the run: without the member the comparison would be false.
func (m *member) fail(err error) {
	select {
	case m.real.failed <- fmt.Errorf("member %d ended: %w", m.index, err):
	default:
	}
}

// connect waits until the member is connected with others, a number of them, or for settleFor. If
// all came at once to a machine that is busy, most handshakes would take too long and be in vain.
func (m *member) connect(ctx context.Context, others int) error {
	for until := time.Now().Add(settleFor); m.peers.Connected() < others && time.Now().Before(until); {
		if err := retry.Wait(ctx, settleFor/100); err != nil {
			return err
		}
	}
	return nil
}

const (
	comeAtOnce = 8 // members that come while the others wait
	settleFor  = 20 * time.Second
)

// crash ends the node as kill -9 does, but for what its files were given at that time.
func (m *member) crash() {
	if m.node != nil {
		m.kill()
		m.node = nil
	}
}

// leave withdraws the member from the run and ends the node.
func (m *member) leave() {
	if m.node == nil {
		return
	}
	left, kill := m.node, m.kill
	m.loop.Post(func() { left.Stop(leavePatience, kill) })
	m.node = nil
}

const leavePatience = 10 * time.Second

// await waits for what ran before.
func (m *member) await() {
	if m.ended != nil {
		<-m.ended
	}
}

// slow is a loop on which work takes as long as in the simulation, if the machine takes less.
type slow struct {
	*loop.Real
	ctx context.Context // ends the waiting
}

// Work implements loop.Loop.
func (s slow) Work(cost time.Duration, work, done func()) {
	s.Real.Work(cost, func() {
		over := time.Now().Add(cost)
		work()
		_ = retry.Wait(s.ctx, time.Until(over)) // at its end the loop drops done
	}, done)
}
