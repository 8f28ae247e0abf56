package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A Download is the machine of one fetch. It decides what to ask of whom; a
// network performs the [Request]s of [Download.Next] and reports the outcome of
// each: any number of calls of Chunk and Late, then one of Leaves or End. After
// each event it asks Next again, until Done.
//
// Every chunk that is missing belongs to at most one request. An idle peer takes
// over the further half of the longest request of another one, and all of a
// request that is late. Peers that fail are not asked again in this fetch, unless
// they had delivered something in between, so that a fetch always ends.
//
// It belongs to one goroutine. It calls the functions of its Fetch from within
// its methods.
type Download struct {
	fetch  Fetch
	peers  []provider
	leaves []wire.Hash // nil until known
	data   []byte      // nil until the leaves are known, and with Fetch.Into

	// Of a leaf list that comes in parts: the leaves, nil until the first part came; whether each
	// part did, and how many.
	list   []wire.Hash
	listed []bool
	parts  uint32

	owner     []uint64 // by chunk: id of the request it is expected from, 0 for none
	held      []bool   // by chunk
	heldCount uint32
	heldBytes uint64
	vacant    chunkSet // chunks that are neither held nor owned
	unowned   uint32   // how many those are
	// partial is nil for a blob of one chunk that comes into memory: there is nothing to show before
	// all is there.
	partial *Partial

	open     []*flight
	lastID   uint64
	err      error // what ended the fetch
	troubles []PeerError

	one single
}

// single is the memory of a fetch of one chunk from a few peers, as most are.
type single struct {
	peers  [activeMax + 1]provider
	leaf   [1]wire.Hash
	owner  [1]uint64
	held   [1]bool
	vacant [1]uint64
	first  flight
	asked  [1]Request
}

// provider is a peer as one fetch sees it: see Download.key.
type provider struct {
	dropped bool
	late    bool  // it has a late request, and gets no other
	shaky   bool  // its last request failed on the way; the next counts as late from the start
	open    uint8 // requests in flight, at most requestsPerPeer
	// A peer that lacks what it was asked for may be fetching it itself: it is asked again once
	// rests chunks are held, up to missesMax times.
	missed uint8
	rests  uint32
}

// flight is a request in flight.
type flight struct {
	Request
	peer  int // index of the provider
	late  bool
	fresh uint32 // chunks that came and were not held yet
}

// NewDownload begins a fetch. The error is that of [Fetch.Check].
func NewDownload(f Fetch) (*Download, error) {
	d := &Download{}
	if err := d.Begin(f); err != nil {
		return nil, err
	}
	return d, nil
}

// Begin begins a fetch in the memory of one that succeeded, or in new memory. The error is that of
// [Fetch.Check].
func (d *Download) Begin(f Fetch) error {
	if err := f.Check(); err != nil {
		return err
	}
	*d = Download{}
	d.fetch, d.fetch.From = f, distinct(f.From, f.First)
	n := len(d.fetch.From)
	if !f.First.IsZero() {
		n++
	}
	if d.peers = d.one.peers[:]; n > len(d.peers) {
		d.peers = make([]provider, n)
	}
	d.peers = d.peers[:n]
	if d.partial = f.Into; d.partial == nil && f.Ref.Chunks() > 1 {
		d.partial = &Partial{ref: f.Ref}
	}
	return nil
}

// key returns the key of peer p.
func (d *Download) key(p int) key.Public {
	switch {
	case d.fetch.First.IsZero():
		return d.fetch.From[p]
	case p == 0:
		return d.fetch.First
	}
	return d.fetch.From[p-1]
}

// distinct returns the list without the later ones of equal keys, and without one.
func distinct(list []key.Public, without key.Public) []key.Public {
	var seen map[key.Public]bool // of many; few are compared
	if len(list) > 2*activeMax {
		seen = make(map[key.Public]bool, len(list))
	}
	kept, whole := list, true // list is not changed
	for i, k := range list {
		again := k == without || seen[k]
		if seen == nil {
			again = again || slices.Contains(list[:i], k)
		} else {
			seen[k] = true
		}
		switch {
		case again && whole:
			kept, whole = slices.Clone(list[:i]), false
		case !again && !whole:
			kept = append(kept, k)
		}
	}
	return kept
}

// Done is true when no more requests will come, and those in flight are of no use.
func (d *Download) Done() bool { return d.err != nil || d.complete() }

func (d *Download) complete() bool {
	return d.leaves != nil && d.heldCount == d.fetch.Ref.Chunks()
}

// Result is the blob, nil with Fetch.Into, or a *FetchError. The Download must be done.
func (d *Download) Result() ([]byte, error) {
	switch {
	case d.complete():
		return d.data, nil
	case d.err == nil:
		panic("p2p: result of a download that is not done")
	}
	return nil, &FetchError{
		Ref: d.fetch.Ref, Err: d.err, Held: d.heldCount, Troubles: d.troubles,
		leaves: d.leaves, held: d.held, data: d.data,
	}
}

// Abort ends the fetch with err unless it is done.
func (d *Download) Abort(err error) {
	if !d.Done() {
		d.err = err
	}
}

// Next returns the requests to send now. They are valid until it is called again.
func (d *Download) Next() []Request {
	d.knownLeaves()
	if d.Done() {
		return nil
	}
	requests := d.one.asked[:0]
	var memory [activeMax]int
	active := d.active(memory[:0])
	for range requestsPerPeer {
		for _, p := range active {
			if d.peers[p].open >= requestsPerPeer || d.peers[p].late {
				continue
			}
			if r := d.choose(p, len(active)); r != nil {
				d.open = append(d.open, r)
				d.peers[p].open++
				d.refreshLate(p)
				requests = append(requests, r.Request)
			}
		}
	}
	if len(requests) == 0 && len(d.open) == 0 {
		d.err = ErrNoPeers
		for i := range d.peers {
			if p := &d.peers[i]; p.missed > 0 && !p.dropped {
				d.drop(i, ErrMissing)
			}
		}
	}
	return requests
}

// first returns the first chunk to ask peer p for, of those that no peer was asked for; there is
// one. Peers that fetch the same blob at the same time begin in different places, so that each soon
// has what others lack. A peer that is fetching it too is asked first for the chunks it began with.
func (d *Download) first(p int) uint32 {
	begin := d.beginning(d.fetch.Self)
	if d.peers[p].missed > 0 {
		begin = d.beginning(d.key(p))
	}
	if i, ok := d.vacant.next(begin); ok {
		return i
	}
	i, _ := d.vacant.next(0)
	return i
}

// beginning is the chunk with which a peer begins to fetch the blob.
func (d *Download) beginning(k key.Public) uint32 {
	if d.fetch.Self.IsZero() || d.fetch.Ref.Chunks() == 1 {
		return 0
	}
	h := wire.Sum("entrain/p2p/beginning", k[:], d.fetch.Ref.Root[:])
	return binary.LittleEndian.Uint32(h[:]) % d.fetch.Ref.Chunks()
}

// active appends the peers to ask: the first that are neither dropped nor late.
func (d *Download) active(active []int) []int {
	for i := range d.peers {
		if p := &d.peers[i]; !p.dropped && !p.late && (p.missed == 0 || d.heldCount >= p.rests) && len(active) < activeMax {
			active = append(active, i)
		}
	}
	return active
}

// choose makes a request for peer p, one of a number of active peers, or returns nil if p has
// nothing to do.
func (d *Download) choose(p, active int) *flight {
	switch {
	case d.leaves == nil:
		return d.askLeaves(p)
	case d.unowned > 0:
		from := d.first(p)
		// Half of an equal share, so that all end at about the same time.
		limit := min(max(d.unowned/uint32(2*active), 1), MaxCount)
		count := uint32(0)
		for i := from; count < limit && i < d.fetch.Ref.Chunks() && d.vacant.has(i); i++ {
			count++
		}
		d.unowned -= count
		return d.request(p, from, count)
	}
	return d.steal(p)
}

// request makes the chunks peer p's.
func (d *Download) request(p int, from, count uint32) *flight {
	d.lastID++
	for i := from; i < from+count; i++ {
		d.owner[i] = d.lastID
		d.vacant.clear(i)
	}
	f := &d.one.first
	if d.lastID > 1 {
		f = &flight{}
	}
	*f = flight{peer: p, late: d.peers[p].shaky, Request: Request{
		To: d.key(p), Ref: d.fetch.Ref, From: from, Count: count,
		id: d.lastID, leaves: d.leaves,
	}}
	return f
}

// steal takes over chunks from the request of another peer that has most left.
func (d *Download) steal(p int) *flight {
	var from, count uint32
	for _, r := range d.open {
		first, n := d.left(r)
		if r.peer == p || n == 0 || (!r.late && n < stealMin) {
			continue
		}
		if !r.late {
			first, n = first+n-n/2, n/2
		}
		if n > count {
			from, count = first, n
		}
	}
	if count == 0 {
		return nil
	}
	return d.request(p, from, count)
}

// left is the run of chunks still expected from r. It is one run, because chunks
// arrive in order and only its end is ever taken over.
func (d *Download) left(r *flight) (first, n uint32) {
	for i := r.From; i < r.From+r.Count; i++ {
		if d.owner[i] == r.id && !d.held[i] {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	return first, n
}

// Chunk takes a verified chunk that came in answer to r. It is false when nothing
// more is wanted from r, whose stream may then be cut.
func (d *Download) Chunk(r Request, c Chunk) (more bool) {
	if c.root != d.fetch.Ref.Root {
		panic("p2p: chunk of another blob")
	}
	f := d.find(r)
	if f == nil || d.Done() {
		return false
	}
	f.late, d.peers[f.peer].shaky = false, false
	if !d.held[c.index] {
		f.fresh++
		if d.fetch.Keep != nil {
			d.fetch.Keep(d.leaves[c.index], c.data)
		}
	}
	d.refreshLate(f.peer)
	d.keep(c)
	_, n := d.left(f)
	return n > 0 && d.err == nil
}

// keep copies a chunk to its place unless it is there.
func (d *Download) keep(c Chunk) {
	if d.held[c.index] {
		return
	}
	if d.partial == nil {
		d.data = c.whole()
	} else if err := d.partial.keep(c, d.data); err != nil {
		d.err = fmt.Errorf("%w: %w", ErrFile, err)
		return
	}
	if d.owner[c.index] == 0 {
		d.unowned--
		d.vacant.clear(c.index)
	}
	d.held[c.index] = true
	d.heldCount++
	d.heldBytes += uint64(len(c.data))
	if d.fetch.Progress != nil {
		d.fetch.Progress(d.heldBytes, d.fetch.Ref.Size)
	}
}

// Late reports that r has brought nothing for a while. Others may take over.
func (d *Download) Late(r Request) {
	if f := d.find(r); f != nil {
		f.late = true
		d.refreshLate(f.peer)
	}
}

func (d *Download) refreshLate(p int) {
	d.peers[p].late = slices.ContainsFunc(d.open, func(f *flight) bool { return f.peer == p && f.late })
}

// End reports that r has ended: with nil if everything asked for and still wanted
// came, else with the reason, one of this package's errors or any other for a
// connection that failed. What it did not bring is asked of others.
func (d *Download) End(r Request, err error) {
	f := d.find(r)
	if f == nil {
		return
	}
	d.open = slices.DeleteFunc(d.open, func(g *flight) bool { return g == f })
	d.peers[f.peer].open--
	d.refreshLate(f.peer)
	d.release(f)
	if err == nil || d.Done() || d.peers[f.peer].dropped {
		return
	}
	if errors.Is(err, ErrWrongSize) && r.Count > 0 {
		d.err = ErrWrongSize // proven: see Request.Verify
		return
	}
	if o, ok := offence(err); ok {
		d.drop(f.peer, err)
		if d.fetch.Penalty != nil {
			d.fetch.Penalty(f.To, o)
		}
	} else if p := &d.peers[f.peer]; errors.Is(err, ErrMissing) && p.missed < missesMax {
		p.missed++
		p.rests = d.heldCount + max(1, d.fetch.Ref.Chunks()/missesMax)
	} else if f.fresh == 0 {
		d.drop(f.peer, err)
	} else {
		d.peers[f.peer].shaky = true
	}
}

// release gives back the chunks still expected from f.
func (d *Download) release(f *flight) {
	first, n := d.left(f)
	if n == 0 {
		return
	}
	for i := first; i < first+n; i++ {
		d.owner[i] = 0
		d.vacant.set(i)
	}
	d.unowned += n
}

// drop gives a peer up. Its other requests go on, but what they were to bring is
// now asked of others too.
func (d *Download) drop(p int, err error) {
	d.peers[p].dropped = true
	if len(d.troubles) < troublesMax {
		d.troubles = append(d.troubles, PeerError{Peer: d.key(p), Err: err})
	}
	for _, f := range d.open {
		if f.peer == p {
			d.release(f)
		}
	}
}

func (d *Download) find(r Request) *flight {
	for _, f := range d.open {
		if f.id == r.id {
			return f
		}
	}
	return nil
}
