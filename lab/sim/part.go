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
	ledgermem "github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
)

// part is participants that share a clock. A small network has one part, on the clock of the
// ledger. The parts of a crowd and the ledger run side by side for a window of virtual time; then
// faults happen, and what they sent each other is handed over. So the history depends on the seed
// alone, not on the number of processors.
type part struct {
	network   *network
	clock     *loop.Virtual
	peers     *p2pmem.Part
	engine    engine.Engine
	disputant node.Disputant // nil without verification

	// What its participants have done since the parts met last:
	chainward []func()       // what they asked of the ledger
	lines     []byte         // of the log
	told      []func()       // what the ledger tells them, which ran beside them
	happened  []Event        // of the log, those that note takes
	touched   []*participant // that took an event, or ended

	// What they had by then, which is looked at beside what they do next:
	logged []byte
	heard  []func()

	bodies map[any][]byte // of events that many report
}

// turn is what one goroutine does at a time, beside the others.
type turn struct {
	run    func()
	worked time.Duration // for which it runs, of late
}

// crowd is the number of clients above which there are crowdParts parts, and arrivals are rounded
// to crowdTick: each witness gets thousands of results a second then, which a small network's
// history does not have to bear. With more parts two processors end sooner together, and there is
// more to hand over.
const crowd, crowdTick, crowdParts = 128, 10 * time.Millisecond, 16

func (c Config) crowded() bool { return c.Clients > crowd }

// window is the time for which parts run side by side. What they send each other takes as long, so
// the parts are to meet no sooner: in a short time one often has all the work.
func (c Config) window() time.Duration {
	return min(crowdWindow, max(crowdTick, c.Delay.Truncate(crowdTick)))
}

// crowdWindow is the longest window: what is asked of the ledger waits for its end.
const crowdWindow = 3 * crowdTick

// divide makes the parts.
func (n *network) divide() error {
	clocks := []*loop.Virtual{n.clock}
	if n.cfg.crowded() {
		n.turns = []*turn{{run: n.runLedger}, {run: n.writeLog}}
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
			n.turns = append(n.turns, &turn{run: n.parts[i].run})
		}
	}
	return nil
}

// run runs the part until the parts meet.
func (p *part) run() {
	for i, f := range p.heard {
		f()
		p.heard[i] = nil
	}
	p.heard = p.heard[:0]
	p.peers.Receive()
	p.clock.Run(p.network.until)
	p.passUnchanged()
}

// runLedger runs the ledger until the parts meet, and looks at what it has come to.
func (n *network) runLedger() {
	n.ledger.Run(n.until)
	n.inspectRun() // the newest state never changes
}

// advance runs the next event, or in a crowd all until the next time at which the parts meet. It
// reports false if there is none.
func (n *network) advance() bool {
	if !n.cfg.crowded() {
		return n.clock.Step()
	}
	next, any := n.clock.Next()
	least := func(at time.Time, ok bool) {
		if ok && (!any || at.Before(next)) {
			next, any = at, true
		}
	}
	least(n.ledger.Next())
	for _, p := range n.parts {
		least(p.clock.Next())
		least(p.clock.Now(), len(p.heard) > 0)
	}
	if !any {
		return false
	}
	// What was handed over when the parts met last is for that time, which has been, and there is
	// nearly always some: a step of no time for it would double the number of steps.
	if !next.After(n.met) {
		next = n.met.Add(1)
	}
	n.until = next.Add(crowdTick - 1).Truncate(crowdTick).Add(n.cfg.window() - crowdTick)
	n.aside()
	for _, p := range n.parts {
		for i, f := range p.chainward {
			n.ledger.Post(f)
			p.chainward[i] = nil
		}
		p.chainward = p.chainward[:0]
	}
	for _, f := range n.owed {
		f()
	}
	n.owed = n.owed[:0]
	n.clock.Run(n.until)
	n.mesh.Meet()
	for _, p := range n.parts {
		p.told, p.heard = p.heard, p.told
		p.flush()
	}
	n.met = n.until
	return true
}

// aside runs the parts, and what else there is to do beside them, on as many processors as there
// are. It begins with the ledger, which now and then makes a block, and continues with what took
// longest before, so that all processors end at about the same time.
func (n *network) aside() {
	slices.SortStableFunc(n.turns[1:], func(a, b *turn) int { return cmp.Compare(b.worked, a.worked) })
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(n.turns); i = int(next.Add(1)) - 1 {
			began := time.Now()
			n.turns[i].run()
			n.turns[i].worked += (time.Since(began) - n.turns[i].worked) / workedOver
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(n.turns)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// workedOver is over how many of its last turns what a turn takes is averaged. One tells little of
// the next.
const workedOver = 5

// client returns a connection to the ledger for the part's participants.
func (p *part) client() *ledgermem.Client {
	c, n := p.network.chain.Client(), p.network
	if n.cfg.crowded() {
		c.Via(func(f func()) { p.chainward = append(p.chainward, f) }, func(f func()) { p.told = append(p.told, f) }, func() time.Time { return n.met })
	}
	return c
}

// touch notes that a participant took an event or ended, so that its parameters are looked at.
func (p *part) touch(of *participant) {
	if !of.touched {
		of.touched = true
		p.touched = append(p.touched, of)
	}
}

// passUnchanged forgets those touched whose parameters inspect has seen, which are most: beside
// the other parts. At the run's end inspect looks at all.
func (p *part) passUnchanged() {
	if p.network.check.finished {
		return
	}
	p.touched = slices.DeleteFunc(p.touched, func(of *participant) bool {
		_, _, unseen := of.unseen()
		of.touched = unseen
		return !unseen
	})
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

// flush writes the part's lines into the log: in a crowd, beside what the parts do next.
func (p *part) flush() {
	n := p.network
	p.lines, p.logged = p.logged, p.lines
	if !n.cfg.crowded() {
		p.writeLog()
	}
	for _, e := range p.happened {
		n.note(e)
	}
	clear(p.happened)
	p.happened = p.happened[:0]
}

func (n *network) writeLog() {
	for _, p := range n.parts {
		p.writeLog()
	}
}

func (p *part) writeLog() {
	p.network.log.Write(p.logged)
	p.logged = p.logged[:0]
}

// untouched reports whether nothing that the participants did is still to be inspected.
func (n *network) untouched() bool {
	return !slices.ContainsFunc(n.parts, func(p *part) bool { return len(p.touched) > 0 })
}
