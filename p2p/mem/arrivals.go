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

// letters are arrivals that peers of one part have sent for one time, in nanoseconds since 1970.
type letters struct {
	time int64
	list []arrival
}

// due is all that arrives at a part's peers at one time, in a list of each part that sent some. So
// an event of the loop is a time, not an arrival.
type due struct {
	part  *Part
	time  int64
	own   []arrival // from the part itself
	lists [][]arrival
	run   func() // arrive
}

// arrive has all arrive, and gives the memory back.
func (d *due) arrive() {
	p := d.part
	p.expected = slices.DeleteFunc(p.expected, func(o *due) bool { return o == d })
	d.lists = append(d.lists, d.own)
	for i, list := range d.lists {
		for _, a := range list {
			a.arrive()
		}
		clear(list)
		p.spare, d.lists[i] = append(p.spare, list[:0]), nil
	}
	d.own, d.lists = nil, d.lists[:0]
	p.past = append(p.past, d)
}

// at returns what arrives at a time.
func (p *Part) at(time int64) *due {
	for _, d := range p.expected {
		if d.time == time {
			return d
		}
	}
	var d *due
	if last := len(p.past) - 1; last >= 0 {
		d, p.past = p.past[last], p.past[:last]
	} else {
		d = &due{part: p}
		d.run = d.arrive
	}
	d.time = time
	p.expected = append(p.expected, d)
	p.loop.After(p.until(time), d.run)
	return d
}

// post has a arrive at a time.
func (p *Part) post(time int64, a arrival) {
	q := a.at.part
	if q == p {
		d := p.at(time)
		d.own = append(p.memory(d.own), a)
		return
	}
	to := p.sent[q.number]
	for i := len(to) - 1; i >= 0; i-- { // there are as many as a link's delay has ticks, and some
		if to[i].time == time {
			to[i].list = append(to[i].list, a)
			return
		}
	}
	p.sent[q.number] = append(to, letters{time, append(p.memory(nil), a)})
}

// memory returns list, or that of a past one if list is nil.
func (p *Part) memory(list []arrival) []arrival {
	if last := len(p.spare) - 1; list == nil && last >= 0 {
		list, p.spare = p.spare[last], p.spare[:last]
	}
	return list
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
	at := part.loop.Now().UnixNano() + int64(d+m.config.Tick-1)
	part.post(at-at%int64(m.config.Tick), arrival{p, q, content})
}

// mix is the finalizer of SplitMix64: equal bits in, unrelated ones out.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
