package mem

import (
	"fmt"
	"time"

	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/prng"
)

// A Part is peers of a mesh that share a loop. A mesh has one, on its own loop, unless it was
// divided.
type Part struct {
	mesh   *Mesh
	number int
	loop   loop.Loop
	random prng.Source
	near   near
	// With Config.Tick: what is on its way, and memory of what was.
	expected []*due
	past     []*due
	spare    [][]arrival
	// late rings when a fetch waits for Late, lost as many times as looks until it has waited for
	// Stall, and stalled when an Ask has.
	late, lost, stalled *alarms

	// Of a divided mesh: what its peers sent to those of each part since the last Meet, what has been
	// sent to them before it, by part, and changes of the mesh that wait for the next one.
	sent    [][]letters
	came    [][]letters
	changes []func()
}

func (m *Mesh) newPart(l loop.Loop, label string) *Part {
	p := &Part{mesh: m, number: len(m.parts), loop: l, random: prng.New(m.config.Seed, label)}
	p.late = &alarms{part: p, after: m.config.Late}
	p.lost = &alarms{part: p, after: (m.config.Stall - m.config.Late) / looks}
	p.stalled = &alarms{part: p, after: m.config.Stall}
	return p
}

// Divide makes a part on each loop, for peers that join it, in place of the one on the mesh's own
// loop. The parts can run side by side, each on a goroutine, from one call of Meet to the next; the
// mesh's own loop, on which its methods change it, runs while they rest. Divide needs Config.Tick,
// and comes before anybody joins.
//
// The loops' clocks must show the same time at Meet, a multiple of Tick. What happens is then a
// function of the seed, the number of parts and what the participants do, not of how they are
// scheduled.
func (m *Mesh) Divide(loops []loop.Loop) []*Part {
	if m.config.Tick <= 0 || len(m.joined) > 0 {
		panic("mem: a mesh without Tick, or with peers, is divided")
	}
	m.parts = nil
	for i, l := range loops {
		m.parts = append(m.parts, m.newPart(l, fmt.Sprintf("entrain/p2p/mem/%d", i)))
	}
	for _, p := range m.parts {
		p.sent, p.came = make([][]letters, len(loops)), make([][]letters, len(loops))
	}
	return m.parts
}

// Meet hands over what peers of different parts sent each other, for Receive, and makes the changes
// of who is there and who is near to whom. No part runs meanwhile.
func (m *Mesh) Meet() {
	for _, p := range m.parts {
		for i, f := range p.changes {
			f()
			p.changes[i] = nil
		}
		p.changes = p.changes[:0]
		for i, q := range m.parts {
			p.sent[i], q.came[p.number] = q.came[p.number], p.sent[i]
		}
	}
	if m.version == m.met {
		return
	}
	m.met = m.version
	// What peers find out about each other when they need it, and remember in common.
	for _, p := range m.peers {
		p.knowsAll()
		p.wants.extend(m.joined)
		for _, a := range p.allowed {
			a.extend(m.joined)
		}
	}
	m.knitted()
}

// Receive takes what came from other parts before the last Meet. It is the first that a part does
// after it.
func (p *Part) Receive() {
	for i, list := range p.came {
		for _, l := range list {
			d := p.at(l.time)
			d.lists = append(d.lists, l.list)
		}
		clear(list)
		p.came[i] = list[:0]
	}
}

// until returns the time until a time in nanoseconds since 1970.
func (p *Part) until(at int64) time.Duration { return time.Unix(0, at).Sub(p.loop.Now()) }

// change changes the mesh: now, on its loop, or with the next Meet.
func (p *Part) change(f func()) {
	if len(p.mesh.parts) == 1 {
		p.loop.Post(f)
		return
	}
	p.changes = append(p.changes, f)
}

// chance is true with probability c.
func (p *Part) chance(c float64) bool {
	return c > 0 && float64(p.random.Uint64()>>11)/(1<<53) < c
}
