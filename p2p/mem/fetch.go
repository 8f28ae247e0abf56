package mem

import (
	"bytes"
	"context"
	"sync"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// fetching drives one p2p.Download.
type fetching struct {
	ctx     context.Context
	peer    *Peer
	penalty func(key.Public, p2p.Offence) // of who fetches
	done    func([]byte, error)
	machine p2p.Download
	streams []*stream
	first   [1]*stream // memory of streams
	one     stream
	request request
	hide    func() // from others, in the end
	got     bool   // the blob
	// begin and charge, which are made once for many fetches
	begins  func()
	charges func(key.Public, p2p.Offence)
}

// stream is a request in flight, which is a letter.
type stream struct {
	p2p.Request
	of     *fetching
	next   uint32 // the chunk expected next
	over   bool
	looked uint8 // since it is late
	timer  timer
	answer answer // memory of the first one
	served bool   // that is taken, by who answers
	lates  func() // late, which is made once
}

// answer is the letter with an answer to a request.
type answer struct {
	to     *stream
	status p2p.Status
	data   []byte
}

// fetches has the memory of fetches of one chunk that are over: a witness of a large run has
// thousands.
var fetches = sync.Pool{New: func() any {
	d := &fetching{}
	d.begins, d.charges, d.one.lates = d.begin, d.charge, d.one.late
	return d
}}

// Fetch gets a blob. See p2p.Network.
func (p *Peer) Fetch(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	d := fetches.Get().(*fetching)
	d.ctx, d.peer, d.penalty, d.done = ctx, p, f.Penalty, done
	f.Self, f.Penalty = p.self, d.charges
	if err := d.machine.Begin(f); err != nil {
		p.part.loop.Post(func() { done(nil, err) })
		return
	}
	p.part.loop.Post(d.begins)
}

func (d *fetching) begin() {
	p := d.peer
	if p.gone.Load() {
		d.done(nil, p2p.ErrClosed)
		return
	}
	d.hide, d.streams = p.source.Begin(&d.machine), d.first[:0]
	p.begin(&d.request, d.done, d)
	d.advance()
}

// charge is the download's Penalty.
func (d *fetching) charge(k key.Public, o p2p.Offence) {
	d.peer.standing.Charge(k, o, d.peer.part.loop.Now())
	if d.penalty != nil {
		d.penalty(k, o)
	}
}

// release cuts the streams still open.
func (d *fetching) release(reason error) error {
	for _, s := range d.streams {
		s.close()
	}
	d.hide()
	d.machine.Abort(reason)
	_, err := d.machine.Result()
	return err
}

// advance does what the machine wants done, after every event.
func (d *fetching) advance() {
	if d.request.over {
		return
	}
	if err := d.ctx.Err(); err != nil {
		d.machine.Abort(err)
	}
	for {
		requests := d.machine.Next()
		for _, r := range requests {
			d.open(r)
		}
		if len(requests) == 0 {
			break
		}
	}
	if d.machine.Done() {
		b, err := d.machine.Result()
		d.got = err == nil
		d.request.end(b, err)
	}
}

// open sends a request.
func (d *fetching) open(r p2p.Request) {
	s := &d.one
	if len(d.streams) > 0 {
		s = &stream{}
		s.lates = s.late
	}
	*s = stream{Request: r, of: d, next: r.From, lates: s.lates}
	d.streams = append(d.streams, s)
	p, m := d.peer, d.peer.mesh
	q := m.find(r.To)
	if q == nil || !p.connected(q) {
		s.over = true
		d.machine.End(r, p2p.ErrUnknownPeer)
		return
	}
	d.watch(s)
	m.send(p, q, p2p.QueryBytes, true, s)
}

// open has a query answered that has arrived at a peer.
func (s *stream) open(from, at *Peer) {
	m := at.mesh
	faults := m.faults[at.self]
	if faults.Silent {
		return
	}
	send := func(status p2p.Status, data []byte) error {
		if len(data) > 0 && at.part.chance(faults.Corrupt) {
			data = bytes.Clone(data)
			data[at.part.random.Uint64n(uint64(len(data)))] ^= 1 << at.part.random.Uint64n(8)
		}
		a := &s.answer
		if s.served {
			a = &answer{}
		}
		s.served = true
		*a = answer{s, status, data}
		m.send(at, from, p2p.AnswerHeadBytes+len(data), true, a)
		return nil
	}
	if err := p2p.Serve(at.source, wire.Hash{}, s.Query(wire.Hash{}), send); err != nil {
		panic("mem: serving failed without a send that fails: " + err.Error())
	}
}

// open takes an answer. The memory of a fetch of one chunk is free then: no other letter of it is
// under way.
func (a *answer) open(_, _ *Peer) {
	s := a.to
	d := s.of
	d.take(s, a.status, a.data)
	if d.got && len(d.streams) == 1 && s.Count == 1 {
		d.ctx, d.penalty, d.done, d.hide, d.request, d.got = nil, nil, nil, nil, request{}, false
		d.one.answer.data = nil
		fetches.Put(d)
	}
}

// take takes an answer that has arrived.
func (d *fetching) take(s *stream, status p2p.Status, data []byte) {
	if s.over {
		return
	}
	switch {
	case status != p2p.StatusOK:
		d.finish(s, status.Err())
	case s.Count == 0:
		leaves, err := p2p.ParseLeaves(data)
		if err != nil {
			d.finish(s, err)
			return
		}
		s.close()
		d.machine.Leaves(s.Request, leaves)
		d.advance()
	default:
		c, err := s.Verify(s.next, data)
		if err != nil {
			d.finish(s, err)
			return
		}
		s.next++
		if more := d.machine.Chunk(s.Request, c); !more || s.next == s.From+s.Count {
			d.finish(s, nil)
			return
		}
		d.watch(s)
		d.advance()
	}
}

// finish ends a stream and tells the machine why.
func (d *fetching) finish(s *stream, err error) {
	s.close()
	d.machine.End(s.Request, err)
	d.advance()
}

func (s *stream) close() {
	s.over = true
	s.timer.stop()
}

// watch waits for the next answer: first the time after which it is late,
// then the rest of the time after which the peer has stalled.
func (d *fetching) watch(s *stream) {
	s.timer.stop()
	part := d.peer.part
	s.timer, s.looked = part.late.set(s.lates), 0
}

// looks is how often a request that is late looks at its context until the peer has stalled.
const looks = 9

func (s *stream) late() {
	d := s.of
	s.timer = d.peer.part.lost.set(s.lost)
	d.machine.Late(s.Request)
	d.advance()
}

func (s *stream) lost() {
	d := s.of
	if s.looked++; d.ctx.Err() != nil {
		d.advance()
	} else if s.looked == looks {
		d.finish(s, p2p.ErrStalled)
	} else {
		s.timer = d.peer.part.lost.set(s.lost)
	}
}
