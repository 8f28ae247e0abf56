// Package mem is a p2p.Network in memory: many participants on one loop.Loop,
// whose links have delay, jitter, loss and limited bandwidth, may be cut, and
// whose peers may crash and lie. It is for simulations and tests. On a
// loop.Virtual everything that happens is a function of the seed and of what the
// participants do.
//
// What it models:
//
//   - Gossip: a message goes from its author to all its neighbours, and from
//     each that accepts it to Config.Fanout random neighbours of its own. Each hop
//     may be lost (Link.Loss). Nothing is sent again: that is the caller's part.
//   - Streams (Ask and Fetch): messages on a directed link arrive in order, and
//     are not lost unless the link is cut or a peer is gone; then nothing comes,
//     and the request ends by time.
//   - Connections: two peers are neighbours if one was told to connect with the
//     other, at its address ("mem:" and the key), and each allows the other, as
//     p2p.Network's Connect says.
//
// Not modelled: congestion between links, and the time of computation.
//
// A context of a request is looked at whenever something happens to the request,
// and a few times until it times out. On a loop.Virtual a context with a deadline would
// bring the wall clock in; use one that is cancelled from the loop.
package mem

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// A Link is the way from one peer to another. The zero Link is instant and loses
// nothing.
type Link struct {
	// Delay is the delay of every message. Jitter is the most that is added to it, uniformly.
	Delay, Jitter time.Duration
	// Loss is the probability that a gossip message is lost on this hop.
	Loss float64
	// BytesPerSecond is the bandwidth, which the messages of a link share one after
	// the other; 0 means unlimited.
	BytesPerSecond uint64
}

// Faults are the faults of a peer.
type Faults struct {
	// Corrupt is the probability that it flips a bit in a leaf list or a chunk.
	Corrupt float64
	// Silent: it answers no stream.
	Silent bool
}

// Config configures a Mesh. The zero Config is a perfect network.
type Config struct {
	Seed wire.Hash
	// Link is every link for which SetLink was not called.
	Link Link
	// Fanout is to how many neighbours gossip is passed on; 0 means 8.
	Fanout int
	// Late and Stall are how long a fetch waits for the next answer before it asks
	// others too, and before it gives the peer up; 0 means 2 s and 20 s. An Ask waits
	// for Stall.
	Late, Stall time.Duration
	// Open lets peers connect that were never named.
	Open bool
	// Tick, if not 0, rounds the time at which anything arrives up to a multiple of it. All that
	// arrives at a peer at once is one event, which a large network has many fewer of then.
	// Every link is Link then, without limits of bandwidth, and all stream messages on one have
	// the same jitter.
	Tick time.Duration
	// Count, if not nil, is told of all that is sent: the bytes of each gossip message on each hop,
	// and of each stream message. Parts call it side by side.
	Count func(stream bool, bytes int)
}

// A Mesh is a network of peers. Its methods may be called where those of its loop
// may be called; what they change is changed on the loop, in the order of the calls.
type Mesh struct {
	loop   loop.Loop
	config Config

	parts []*Part // one on the loop, unless Divide made others

	// What follows is touched on the loop only.
	peers  []*Peer // living ones, in the order in which they joined
	byKey  map[key.Public]*Peer
	joined []key.Public // all that ever did, by their number
	// version counts the changes of who is near to whom, those of who is there included, which
	// presence counts.
	version   int
	presence  int
	met       int // the version at the last Meet
	knit      knit
	audiences map[*p2p.Peer]*audience // by the lists' first elements
	salt      uint64                  // of links' jitter
	links     map[pair]Link           // those that SetLink was called for
	faults    map[key.Public]Faults
	side      map[key.Public]int // by peer: Peer.side, where it is not 0
}

// pair is a directed link's ends.
type pair struct{ from, to key.Public }

// link is a Link and when it will be free.
type link struct {
	Link
	free time.Time // when the last byte sent so far will have left
	last time.Time // when the last stream message sent so far will arrive
}

// NewMesh returns a network without peers.
func NewMesh(l loop.Loop, c Config) *Mesh {
	if c.Fanout == 0 {
		c.Fanout = 8
	}
	if c.Late == 0 {
		c.Late = 2 * time.Second
	}
	if c.Stall == 0 {
		c.Stall = 20 * time.Second
	}
	m := &Mesh{
		loop: l, config: c,
		byKey:     make(map[key.Public]*Peer),
		links:     make(map[pair]Link),
		audiences: make(map[*p2p.Peer]*audience),
		faults:    make(map[key.Public]Faults),
		side:      make(map[key.Public]int),
	}
	m.salt = binary.LittleEndian.Uint64(c.Seed[:])
	m.parts = []*Part{m.newPart(l, "entrain/p2p/mem")}
	return m
}

// SetLink makes l the link from a to b; the way back is another one.
func (m *Mesh) SetLink(a, b key.Public, l Link) {
	m.loop.Post(func() {
		m.links[pair{a, b}] = l
		if p, q := m.find(a), m.find(b); p != nil && q != nil {
			m.link(p, q).Link = l
		}
	})
}

// SetFaults makes f what peer k does wrong from now on.
func (m *Mesh) SetFaults(k key.Public, f Faults) {
	m.loop.Post(func() { m.faults[k] = f })
}

// Cut divides the network: each group is by itself, and so are all others
// together. A cut takes the place of the one before. What is on its way between
// parts is lost.
func (m *Mesh) Cut(groups ...[]key.Public) {
	m.loop.Post(func() {
		clear(m.side)
		for i, g := range groups {
			for _, k := range g {
				m.side[k] = i + 1
			}
		}
		for _, p := range m.peers {
			p.side = m.side[p.self]
		}
	})
}

// Heal ends the cut.
func (m *Mesh) Heal() { m.Cut() }

// Crash ends a peer as a power failure does: what it has sent arrives, what is on
// its way to it is lost, and its pending requests never call done, since nobody is
// left to hear. It may join again.
func (m *Mesh) Crash(k key.Public) {
	m.loop.Post(func() {
		if p := m.find(k); p != nil {
			p.gone.Store(true)
			m.remove(p)
			p.abandon()
		}
	})
}

func (m *Mesh) find(k key.Public) *Peer { return m.byKey[k] }

func (m *Mesh) add(p *Peer) {
	p.number, p.here, p.side = len(m.joined), true, m.side[p.self]
	m.joined = append(m.joined, p.self)
	m.peers = append(m.peers, p)
	m.byKey[p.self] = p
	m.version++
	m.presence++
}

func (m *Mesh) remove(p *Peer) {
	if m.byKey[p.self] == p {
		delete(m.byKey, p.self)
	}
	m.peers = slices.DeleteFunc(m.peers, func(q *Peer) bool { return q == p })
	p.here = false
	m.version++
	m.presence++
}

// link returns the link from p to q. A link that is free again is forgotten some time later.
func (m *Mesh) link(p, q *Peer) *link {
	if l := p.links[q.number]; l != nil {
		return l
	}
	if now := m.loop.Now(); len(p.links) >= p.linksMax {
		maps.DeleteFunc(p.links, func(_ int, l *link) bool { return l.free.Before(now) && l.last.Before(now) })
		p.linksMax = 2*len(p.links) + linksLeast
	}
	is, set := m.links[pair{p.self, q.self}]
	if !set {
		is = m.config.Link
	}
	l := &link{Link: is}
	p.links[q.number] = l
	return l
}

// linksLeast is the number of links of a peer of which none is forgotten.
const linksLeast = 64

// audience is a list that peers gave to Connect. All that gave the same share it.
type audience struct {
	addressed map[key.Public]bool // whom it names, and whether with an address
	ties      []tie               // the same by the numbers of the first peers that joined
	covers    map[*audience]bool  // others that it names all members of, or not
	everybody bool                // it has addresses of all living peers
	asOf      int                 // with this presence in the mesh
}

// tie is how an audience names a peer. Each pair of peers is asked for it whenever peers come.
type tie uint8

const (
	unnamed tie = iota
	named
	addressed
)

// tie returns how a names q, which has joined.
func (m *Mesh) tie(a *audience, q *Peer) tie {
	if len(a.addressed) == 0 {
		return unnamed
	}
	if q.number >= len(a.ties) {
		a.extend(m.joined)
	}
	return a.ties[q.number]
}

func (a *audience) extend(joined []key.Public) {
	if len(a.addressed) == 0 {
		return // it names nobody
	}
	for _, k := range joined[len(a.ties):] {
		t := unnamed
		if with, ok := a.addressed[k]; ok {
			t = named
			if with {
				t = addressed
			}
		}
		a.ties = append(a.ties, t)
	}
}

// audience returns the audience of a list.
func (m *Mesh) audience(list []p2p.Peer) *audience {
	if len(list) == 0 {
		return &audience{covers: map[*audience]bool{}}
	}
	if a, ok := m.audiences[&list[0]]; ok && len(a.addressed) == len(list) {
		return a
	}
	a := &audience{addressed: make(map[key.Public]bool, len(list)), covers: map[*audience]bool{}}
	for _, q := range list {
		a.addressed[q.Key] = slices.Contains(q.Addrs, address(q.Key))
	}
	if len(m.audiences) >= audiencesMax {
		for _, old := range m.audiences {
			clear(old.covers) // or each would keep the ones before
		}
		clear(m.audiences)
	}
	m.audiences[&list[0]] = a
	return a
}

// audiencesMax bounds the lists that are recognized.
const audiencesMax = 64

// covering reports whether a names all that o names.
func (a *audience) covering(o *audience) bool {
	covers, known := a.covers[o]
	if !known {
		covers = true
		for k := range o.addressed {
			if _, named := a.addressed[k]; !named {
				covers = false
				break
			}
		}
		a.covers[o] = covers
	}
	return covers
}

// connected reports whether two peers are neighbours now, as far as p knows.
func (p *Peer) connected(q *Peer) bool { return p.nearTo(q) && !p.banned(q) }

// banned reports whether one of two peers has banned the other. In a divided mesh, where q may be
// at work, it asks p alone: what q does not want is lost when it arrives.
func (p *Peer) banned(q *Peer) bool {
	now := p.part.loop.Now()
	return p.standing.Banned(q.self, now) || len(p.mesh.parts) == 1 && q.standing.Banned(p.self, now)
}

// nearTo reports whether two peers are neighbours unless banned.
func (p *Peer) nearTo(q *Peer) bool {
	switch {
	case p == q || !p.here || !q.here:
		return false
	case p.knowsAll() && q.knowsAll():
		return true
	}
	return (p.mesh.tie(p.wants, q) == addressed || p.mesh.tie(q.wants, p) == addressed) && p.allows(q) && q.allows(p)
}

// knowsAll reports whether p was last told to connect with all living peers.
func (p *Peer) knowsAll() bool {
	a, m := p.wants, p.mesh
	if a.asOf != m.presence {
		a.asOf, a.everybody = m.presence, true
		for _, q := range m.peers {
			if m.tie(a, q) != addressed {
				a.everybody = false
				break
			}
		}
	}
	return a.everybody
}

// knit is the peers that know all living ones, if every other one has been told of nobody yet.
// They are neighbours of each other and of no other one, so they need no list each.
type knit struct {
	peers []*Peer
	asOf  int // in this version of the mesh
}

// knitted returns the knit, nobody if there is none.
func (m *Mesh) knitted() []*Peer {
	k := &m.knit
	if k.asOf != m.version {
		k.asOf, k.peers = m.version, k.peers[:0]
		for _, p := range m.peers {
			switch {
			case p.knowsAll():
				p.place = len(k.peers)
				k.peers = append(k.peers, p)
			case len(p.allowed) > 0 || m.config.Open:
				k.peers = k.peers[:0]
				return nil
			}
		}
	}
	return k.peers
}

// knits reports whether p is in the mesh's knit.
func (p *Peer) knits() bool {
	k := p.mesh.knitted()
	return p.here && p.knowsAll() && p.place < len(k) && k[p.place] == p
}

// neighbours are the neighbours of a peer: a list without one place.
type neighbours struct {
	list    []*Peer
	without int
}

func (n neighbours) count() int {
	if n.without < len(n.list) {
		return len(n.list) - 1
	}
	return len(n.list)
}

func (n neighbours) at(i int) *Peer {
	if i >= n.without {
		i++
	}
	return n.list[i]
}

// neighbours returns the neighbours of p in the order in which they joined, those too that it has
// banned or that have banned it. It is valid until the next call for any peer.
func (p *Peer) neighbours() neighbours {
	if p.knits() {
		return neighbours{p.mesh.knit.peers, p.place}
	}
	if !p.here {
		return neighbours{}
	}
	n := &p.part.near
	if n.of != p || n.asOf != p.mesh.version {
		n.of, n.asOf, n.list = p, p.mesh.version, n.list[:0]
		for _, q := range p.mesh.peers {
			if p.plain && q.plain {
				ours, theirs := p.mesh.tie(p.wants, q), p.mesh.tie(q.wants, p)
				if p != q && min(ours, theirs) != unnamed && max(ours, theirs) == addressed {
					n.list = append(n.list, q)
				}
			} else if p.nearTo(q) {
				n.list = append(n.list, q)
			}
		}
	}
	return neighbours{n.list, len(n.list)}
}

// near is the neighbours of the peer that was asked for them last. A list for each peer would take
// memory in proportion to the square of the peers.
type near struct {
	of   *Peer
	asOf int // in this version of the mesh
	list []*Peer
}

// send has a letter of size bytes from p opened when it has arrived at q, unless it is lost. Stream
// messages arrive in the order sent.
func (m *Mesh) send(p, q *Peer, size int, stream bool, content letter) {
	if m.config.Count != nil {
		m.config.Count(stream, size)
	}
	if m.config.Tick > 0 {
		m.sendInTicks(p, q, stream, content)
		return
	}
	l, now := m.link(p, q), m.loop.Now()
	if !stream && p.part.chance(l.Loss) {
		return
	}
	at := now
	if l.BytesPerSecond > 0 {
		if l.free.Before(now) {
			l.free = now
		}
		l.free = l.free.Add(time.Duration(float64(size) / float64(l.BytesPerSecond) * float64(time.Second)))
		at = l.free
	}
	at = at.Add(l.Delay)
	if l.Jitter > 0 {
		at = at.Add(time.Duration(p.part.random.Uint64n(uint64(l.Jitter) + 1)))
	}
	if stream {
		if at.Before(l.last) {
			at = l.last
		}
		l.last = at
	}
	m.loop.After(at.Sub(now), arrival{p, q, content}.arrive)
}
