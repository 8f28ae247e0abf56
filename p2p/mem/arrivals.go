package mem

import (
	"slices"
	"time"
)

// arrival is what arrives at a peer from another one, unless it is lost.
type arrival struct {
	from, at *Peer
	letter
}

// letter is what travels. A large network has millions on their way, which cost no memory of their
// own: they are parts of what they are about.
type letter interface {
	open(from, at *Peer)
}

func (a arrival) arrive() {
	p, q := a.from, a.at
	if !q.gone.Load() && p.side == q.side && q.connected(p) {
		a.open(p, q)
	}
}

// arrivals are those at a peer at one time, in the order sent.
type arrivals struct {
	part *Part
	at   *Peer
	list []arrival
	run  func() // arrive
}

// due is arrivals at a peer, beside their time: of a large network's peers most memory is cold.
type due struct {
	time int64 // in nanoseconds since 1970
	*arrivals
}

// arrive has all arrive, and gives the memory back.
func (e *arrivals) arrive() {
	q := e.at
	q.expected = slices.DeleteFunc(q.expected, func(o due) bool { return o.arrivals == e })
	for _, a := range e.list {
		a.arrive()
	}
	clear(e.list)
	e.at, e.list = nil, e.list[:0]
	e.part.spare = append(e.part.spare, e)
}

// takeSpare returns memory for arrivals.
func (p *Part) takeSpare() *arrivals {
	last := len(p.spare) - 1
	if last < 0 {
		e := &arrivals{part: p}
		e.run = e.arrive
		return e
	}
	e := p.spare[last]
	p.spare = p.spare[:last]
	return e
}

// expect has a arrive at a time, together with all that arrives at the same peer then.
func (p *Part) expect(at time.Time, a arrival) {
	q, time := a.at, at.UnixNano()
	for i := len(q.expected) - 1; i >= 0; i-- {
		if e := q.expected[i]; e.time == time {
			e.list = append(e.list, a)
			return
		}
	}
	e := p.takeSpare()
	e.at, e.list = q, append(e.list, a)
	q.expected = append(q.expected, due{time, e})
	p.loop.After(at.Sub(p.loop.Now()), e.run)
}

// sendInTicks is send with Config.Tick. It keeps nothing of a link.
func (m *Mesh) sendInTicks(p, q *Peer, stream bool, content letter) {
	l, part := m.config.Link, p.part
	if !stream && part.chance(l.Loss) {
		return
	}
	d := l.Delay
	switch {
	case l.Jitter <= 0:
	case stream:
		d += time.Duration(mix(m.salt^uint64(p.number)<<32^uint64(q.number)) % uint64(l.Jitter+1))
	default:
		d += time.Duration(part.random.Uint64n(uint64(l.Jitter) + 1))
	}
	part.expectAt(part.loop.Now().Add(d+m.config.Tick-1).Truncate(m.config.Tick), arrival{p, q, content})
}

// mix is the finalizer of SplitMix64: equal bits in, unrelated ones out.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
