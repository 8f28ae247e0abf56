package sim

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
)

// part is participants that share a clock. A small network has one part, on the clock of the
// ledger. The parts of a crowd run side by side for crowdTick of virtual time; then the ledger
// does, and what they sent each other is handed over. So the history depends on the seed alone, not
// on the number of processors.
type part struct {
	network   *network
	clock     *loop.Virtual
	peers     *p2pmem.Part
	engine    engine.Engine
	disputant node.Disputant // nil without verification

	// What its participants have done since the parts met last:
	chainward []func()       // what they asked of the ledger
	lines     []byte         // of the log
	happened  []Event        // of the log, those that note takes
	touched   []*participant // that took an event, or ended

	bodies map[any][]byte // of events that many report
	worked time.Duration  // for which it ran last
}

// crowd is the number of clients above which there are crowdParts parts, and arrivals are rounded
// to crowdTick: each witness gets thousands of results a second then, which a small network's
// history does not have to bear.
const crowd, crowdTick, crowdParts = 128, 10 * time.Millisecond, 8

func (c Config) crowded() bool { return c.Clients > crowd }

// divide makes the parts.
func (n *network) divide() error {
	clocks := []*loop.Virtual{n.clock}
	if n.cfg.crowded() {
		clocks = nil
		for range crowdParts {
			clocks = append(clocks, loop.NewVirtual(n.start))
		}
	}
	var loops []loop.Loop
	for _, c := range clocks {
		p := &part{network: n, clock: c, bodies: map[any][]byte{}}
		if err := p.makeEngine(); err != nil {
			return err
		}
		n.parts, loops = append(n.parts, p), append(loops, c)
	}
	if n.cfg.crowded() {
		for i, p := range n.mesh.Divide(loops) {
			n.parts[i].peers = p
		}
	}
	return nil
}

// advance runs the next event, or in a crowd all until the next time at which the parts meet. It
// reports false if there is none.
func (n *network) advance() bool {
	if !n.cfg.crowded() {
		return n.clock.Step()
	}
	next, any := n.clock.Next()
	for _, p := range n.parts {
		if at, ok := p.clock.Next(); ok && (!any || at.Before(next)) {
			next, any = at, true
		}
	}
	if !any {
		return false
	}
	until := next.Add(crowdTick - 1).Truncate(crowdTick)
	n.aside(func(p *part) {
		began := time.Now()
		p.peers.Receive()
		p.clock.Run(until)
		p.worked = time.Since(began)
	})
	for _, p := range n.parts {
		for i, f := range p.chainward {
			n.clock.Post(f)
			p.chainward[i] = nil
		}
		p.chainward = p.chainward[:0]
	}
	n.clock.Run(until)
	n.mesh.Meet()
	for _, p := range n.parts {
		p.flush()
	}
	return true
}

// aside calls f for all parts, on as many processors as there are. It begins with those that took
// longest before, so that all processors end at about the same time.
func (n *network) aside(f func(*part)) {
	n.turns = append(n.turns[:0], n.parts...)
	slices.SortStableFunc(n.turns, func(p, q *part) int { return cmp.Compare(q.worked, p.worked) })
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(n.turns); i = int(next.Add(1)) - 1 {
			f(n.turns[i])
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(n.parts)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// ask has f run on the ledger's clock.
func (p *part) ask(f func()) {
	if p.clock == p.network.clock {
		p.clock.Post(f)
		return
	}
	p.chainward = append(p.chainward, f)
}

// touch notes that a participant took an event or ended, so that its parameters are looked at.
func (p *part) touch(of *participant) {
	if !of.touched {
		of.touched = true
		p.touched = append(p.touched, of)
	}
}

// takeTouched returns the participants that were touched.
func (n *network) takeTouched() []*participant {
	n.touched = n.touched[:0]
	for _, p := range n.parts {
		n.touched = append(n.touched, p.touched...)
		p.touched = p.touched[:0]
	}
	for _, p := range n.touched {
		p.touched = false
	}
	return n.touched
}

// record adds an event of a participant to the log.
func (p *part) record(i int, got event.Event) {
	e := Event{At: p.clock.Now().Sub(p.network.start), Client: i, Event: got}
	p.lines = p.appendLine(p.lines, e)
	if p.network.cfg.Observe != nil || noted(got) {
		p.happened = append(p.happened, e)
	}
	if !p.network.cfg.crowded() {
		p.flush()
	}
}

// flush writes the part's lines into the log.
func (p *part) flush() {
	n := p.network
	n.log.Write(p.lines)
	p.lines = p.lines[:0]
	for _, e := range p.happened {
		n.note(e)
	}
	clear(p.happened)
	p.happened = p.happened[:0]
}

// untouched reports whether nothing that the participants did is still to be inspected.
func (n *network) untouched() bool {
	return !slices.ContainsFunc(n.parts, func(p *part) bool { return len(p.touched) > 0 })
}
