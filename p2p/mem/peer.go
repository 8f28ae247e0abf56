package mem

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/prng"
)

// A Peer is one participant of a Mesh. It implements p2p.Network, except that what
// Close ends is heard of on the loop, after Close has returned.
type Peer struct {
	// What each message looks at comes first: in a large network most memory is cold. What changes,
	// but for gone, is touched on the loop only.
	mesh     *Mesh
	part     *Part
	gone     atomic.Bool
	here     bool
	plain    bool      // wants are all that it allows, as with most
	side     int       // of a cut network
	wants    *audience // whom Connect named last
	standing p2p.Standing
	number   int // of those that joined before it
	handler  p2p.Handler

	self     key.Public
	addrs    []string
	source   *p2p.Underway
	allowed  []*audience   // whom Connect ever named, without those that others cover
	place    int           // in the mesh's knit
	links    map[int]*link // to others, by their number
	linksMax int           // of which some are forgotten
	requests uint64        // so far
	pending  []*request
}

var _ p2p.Network = (*Peer)(nil)

// message is what a peer has published. All who get it share it.
type message struct {
	author key.Public
	data   []byte

	mu   sync.Mutex // guards seen
	seen []uint64   // a bit for each peer that has it, by number
}

// saw notes that a peer has the message. It reports false if it had it before.
func (m *message) saw(p *Peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	word, bit := p.number/64, uint64(1)<<(p.number%64)
	if n := word + 1 - len(m.seen); n > 0 {
		m.seen = append(m.seen, make([]uint64, n)...)
	}
	before := m.seen[word]
	m.seen[word] |= bit
	return before&bit == 0
}

// Join makes a participant of k, in place of any that is there under this key.
// Its handler is called on the loop.
func (m *Mesh) Join(k key.Public, h p2p.Handler) *Peer { return m.parts[0].Join(k, h) }

// Join is Mesh.Join for a peer of the part, whose handler is called on the part's loop.
func (part *Part) Join(k key.Public, h p2p.Handler) *Peer {
	m := part.mesh
	p := &Peer{
		mesh: m, part: part, self: k, addrs: []string{address(k)}, handler: h, source: p2p.NewUnderway(h),
		wants: &audience{}, links: make(map[int]*link), linksMax: linksLeast,
	}
	part.change(func() {
		if before := m.find(k); before != nil {
			before.gone.Store(true)
			m.remove(before)
			before.abandon()
		}
		if !p.gone.Load() {
			m.add(p)
		}
	})
	return p
}

// Self is the peer's key.
func (p *Peer) Self() key.Public { return p.self }

// Addrs is the peer's one address.
func (p *Peer) Addrs() []string { return p.addrs }

func address(k key.Public) string { return "mem:" + k.String() }

// Connect names the peers to be connected with. See p2p.Network.
func (p *Peer) Connect(peers []p2p.Peer) {
	p.part.change(func() {
		wants := p.mesh.audience(peers)
		if wants == p.wants {
			return
		}
		p.wants = wants
		p.allowed = append(slices.DeleteFunc(p.allowed, wants.covering), wants)
		p.plain = len(p.allowed) == 1 && !p.mesh.config.Open
		p.mesh.version++
	})
}

func (p *Peer) allows(q *Peer) bool {
	if p.mesh.config.Open {
		return true
	}
	for i := len(p.allowed) - 1; i >= 0; i-- {
		if p.mesh.tie(p.allowed[i], q) != unnamed {
			return true
		}
	}
	return false
}

// Publish sends a message to all. See p2p.Network.
func (p *Peer) Publish(data []byte) error {
	if p.gone.Load() {
		return p2p.ErrClosed
	}
	if len(data) == 0 || len(data) > p2p.MaxGossip {
		return fmt.Errorf("publish %d bytes: %w: 1 to %d are allowed", len(data), p2p.ErrTooLarge, p2p.MaxGossip)
	}
	msg := &message{author: p.self, data: bytes.Clone(data)}
	p.part.loop.Post(func() {
		if p.gone.Load() {
			return
		}
		msg.saw(p)
		for near, i := p.neighbours(), 0; i < near.count(); i++ {
			if q := near.at(i); !p.banned(q) {
				p.pass(q, msg)
			}
		}
	})
	return nil
}

// pass sends a gossip message over one hop.
func (p *Peer) pass(q *Peer, msg *message) {
	p.mesh.send(p, q, len(msg.data), false, msg)
}

// open implements letter.
func (msg *message) open(from, at *Peer) { at.receive(from.self, msg) }

// receive judges a message that came via a neighbour and passes it on.
func (p *Peer) receive(via key.Public, msg *message) {
	if !msg.saw(p) {
		return
	}
	switch p.handler.Gossip(msg.author, msg.data) {
	case p2p.Reject:
		p.standing.Charge(via, p2p.Rejected, p.part.loop.Now())
	case p2p.Accept:
		p.passOn(via, msg)
	}
}

// passOn sends a message that came via a neighbour to Config.Fanout others, drawn at random.
func (p *Peer) passOn(via key.Public, msg *message) {
	m, random, passed := p.mesh, &p.part.random, 0
	suits := func(q *Peer) bool { return q.self != via && q.self != msg.author && !p.banned(q) }
	if !p.knits() && len(m.peers) > drawMin {
		// Most living peers are neighbours. To list them all takes longer than to draw some more.
		var memory [drawnMost]*Peer
		drawn := memory[:0]
		for range drawTries * m.config.Fanout {
			q := m.peers[random.Uint64n(uint64(len(m.peers)))]
			if p.nearTo(q) && suits(q) && !slices.Contains(drawn, q) {
				drawn = append(drawn, q)
				p.pass(q, msg)
				if passed++; passed == m.config.Fanout {
					return
				}
			}
		}
		if passed > 0 {
			return
		}
	}
	var memory [drawnMost]moved
	next := drawing{from: p.neighbours(), moved: memory[:0]}
	for next.left = next.from.count(); passed < m.config.Fanout && next.left > 0; {
		if q := next.draw(random); suits(q) {
			p.pass(q, msg)
			passed++
		}
	}
}

// drawMin is the number of peers above which neighbours are drawn among all, and drawTries how many
// are for each that is wanted.
const drawMin, drawTries = 128, 8

// drawnMost is how many may be drawn without other memory than the stack.
const drawnMost = 8

// drawing draws peers from a list, each once. It does not copy the list: that would take time in
// proportion to all peers for each message and receiver, though few are drawn.
type drawing struct {
	from  neighbours
	left  int
	moved []moved // places of the list that another peer has taken
}

type moved struct {
	at   int
	peer *Peer
}

func (d *drawing) draw(random *prng.Source) *Peer {
	i := int(random.Uint64n(uint64(d.left)))
	d.left--
	q := d.at(i)
	d.moved = append(d.moved, moved{i, d.at(d.left)})
	return q
}

func (d *drawing) at(i int) *Peer {
	for k := len(d.moved) - 1; k >= 0; k-- {
		if d.moved[k].at == i {
			return d.moved[k].peer
		}
	}
	return d.from.at(i)
}

// Ask asks one peer. See p2p.Network.
func (p *Peer) Ask(ctx context.Context, to key.Public, question []byte, done func([]byte, error)) {
	a := questions.Get().(*asking)
	a.ctx, a.peer, a.to, a.question, a.done = ctx, p, to, question, done
	p.part.loop.Post(a.begins)
}

// asking is a question to a peer, which is a letter, and its answer.
type asking struct {
	request  request
	ctx      context.Context
	peer     *Peer
	to       key.Public
	question []byte
	answer   []byte // nil: it is refused
	done     func([]byte, error)
	late     timer
	// begin and stalled, which are made once for many questions
	begins, stalls func()
}

// questions has the memory of questions that were answered.
var questions = sync.Pool{New: func() any {
	a := &asking{}
	a.begins, a.stalls = a.begin, a.stalled
	return a
}}

// answered is the letter with the answer.
type answered asking

func (a *asking) begin() {
	p, q := a.peer, a.peer.mesh.find(a.to)
	switch {
	case p.gone.Load():
		a.done(nil, p2p.ErrClosed)
	case a.ctx.Err() != nil:
		a.done(nil, a.ctx.Err())
	case len(a.question) > p2p.MaxRequest:
		a.done(nil, fmt.Errorf("ask %d bytes: %w: the limit is %d", len(a.question), p2p.ErrTooLarge, p2p.MaxRequest))
	case q == nil || !p.connected(q):
		a.done(nil, p2p.ErrUnknownPeer)
	default:
		p.begin(&a.request, a.done, a)
		a.late = p.part.stalled.set(a.stalls)
		p.mesh.send(p, q, len(a.question), true, a)
	}
}

func (a *asking) release(reason error) error {
	a.late.stop()
	return reason
}

func (a *asking) stalled() { a.finish(nil, p2p.ErrStalled) }

func (a *asking) finish(b []byte, err error) {
	if a.ctx.Err() != nil {
		b, err = nil, a.ctx.Err()
	}
	a.request.end(b, err)
}

// open has the question answered.
func (a *asking) open(from, at *Peer) {
	if at.mesh.faults[at.self].Silent {
		return
	}
	size := 1
	if b := at.handler.Answer(from.self, a.question); b != nil && len(b) <= p2p.MaxAnswer {
		a.answer, size = b, p2p.AnswerHeadBytes+len(b)
	}
	at.mesh.send(at, from, size, true, (*answered)(a))
}

// open gives who asked the answer. The memory is free then: no other letter of it is under way.
func (l *answered) open(_, _ *Peer) {
	a := (*asking)(l)
	if a.request.over {
		return
	}
	if a.answer == nil {
		a.finish(nil, p2p.ErrRefused)
	} else {
		a.finish(a.answer, nil)
	}
	*a = asking{begins: a.begins, stalls: a.stalls}
	questions.Put(a)
}

// request is a request of this peer's that has not ended.
type request struct {
	peer   *Peer
	number uint64 // of the peer's requests before it
	place  int    // in pending
	over   bool
	done   func([]byte, error)
	releaser
}

// A releaser holds what a request takes.
type releaser interface {
	// release frees it. It is given the reason if the request is cut short, and returns the error
	// that done is to get.
	release(reason error) error
}

// begin notes a request in r.
func (p *Peer) begin(r *request, done func([]byte, error), of releaser) {
	*r = request{peer: p, number: p.requests, place: len(p.pending), done: done, releaser: of}
	p.requests++
	p.pending = append(p.pending, r)
}

// end ends a request unless it has ended.
func (r *request) end(b []byte, err error) {
	if r.over {
		return
	}
	r.over = true
	p, last := r.peer, len(r.peer.pending)-1
	p.pending[r.place], p.pending[last].place = p.pending[last], r.place
	p.pending[last] = nil
	p.pending = p.pending[:last]
	r.release(err)
	r.done(b, err)
}

// abandon frees all requests and calls no done.
func (p *Peer) abandon() {
	for _, r := range p.cutShort() {
		r.release(p2p.ErrClosed)
	}
}

// cutShort ends the pending requests and returns them in the order in which they began.
func (p *Peer) cutShort() []*request {
	list := p.pending
	p.pending = nil
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	for _, r := range list {
		r.over = true
	}
	return list
}

// Close takes the peer off the network. Its pending requests end with ErrClosed.
func (p *Peer) Close() error {
	if p.gone.Swap(true) {
		return nil
	}
	p.part.change(func() {
		p.mesh.remove(p)
		for _, r := range p.cutShort() {
			r.done(nil, r.release(p2p.ErrClosed))
		}
	})
	return nil
}
