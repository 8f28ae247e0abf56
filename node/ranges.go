package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// In a run of slices a payload is named by the root over its pieces of codec.PieceBytes. A peer is
// asked for consecutive ones, of one of the parts of partPieces into which a payload is cut:
//
//	question: u8 5 | Hash payload | u32 first piece | u32 pieces
//	answer:   u32 n | n × Hash proof (merkle.ProveRange) | the bytes of the pieces
//
// An aggregator is asked what it holds of a round's payloads, and which slice it has summed:
//
//	question: u8 6 | u32 round
//	answer:   client.ShowHeld.Tags
//	question: u8 7 | u32 round
//	answer:   Hash root | u64 length
//
// There is no answer while it is not known.
const (
	questionRange  = 5
	questionHeld   = 6
	questionSlice  = 7
	partPieces     = 512 // half of an answer
	rangeProofsMax = 64
)

// aggregate performs an action of a run of slices.
func (n *Node) aggregate(a client.Action) {
	x, ok := n.exchange.(server)
	if !ok || n.follower == nil {
		return // in no other run a machine asks for these
	}
	switch a := a.(type) {
	case client.AskSlices:
		x.askSlices(a)
	case client.AskHeld:
		x.askHeld(a)
	case client.ShowHeld:
		n.blobs.showHeld(a.Round, a.Tags)
	case client.SumSlice:
		n.sum(a, true)
	case client.Recount:
		n.recount(x, a)
	case client.FetchSlice:
		n.fetchSlice(x, a)
	}
}

// slices reports whether the run's updates are made in slices.
func (n *Node) slices() bool { return n.cfg.Aggregators > 0 }

// section is consecutive pieces of a payload with their proof.
type section struct {
	bytes []byte
	proof []wire.Hash
}

// rangeOf is the pieces [from, to) of a payload.
type rangeOf struct {
	payload  wire.Hash
	from, to int
}

// pieceCount returns the number of pieces of a payload.
func pieceCount(bytes int) int { return max(1, (bytes+codec.PieceBytes-1)/codec.PieceBytes) }

// sections returns the pieces in which bytes [from, to) of a payload lie, part by part.
func sections(payload wire.Hash, from, to int) (list []rangeOf) {
	for first, end := from/codec.PieceBytes, pieceCount(to); first < end; {
		next := min(end, first-first%partPieces+partPieces)
		list = append(list, rangeOf{payload, first, next})
		first = next
	}
	return list
}

// parseSection reads an answer to a question for pieces of a payload of size bytes. It returns an
// error unless they are proven.
func parseSection(answer []byte, r rangeOf, size int) (s section, err error) {
	in := wire.NewReader(answer)
	n := in.U32()
	if n > rangeProofsMax {
		return s, p2p.ErrMalformed
	}
	for range n {
		s.proof = append(s.proof, in.Hash())
	}
	if in.Err() != wire.OK {
		return s, p2p.ErrMalformed
	}
	s.bytes = answer[len(answer)-in.Len():]
	if len(s.bytes) != min(r.to*codec.PieceBytes, size)-r.from*codec.PieceBytes {
		return s, p2p.ErrMalformed
	}
	leaves := merkle.PieceLeaves(s.bytes, codec.PieceBytes)
	if !merkle.CheckRange(r.payload, leaves, uint64(r.from), uint64(pieceCount(size)), s.proof) {
		return s, p2p.ErrLied
	}
	return s, nil
}

// putPieces keeps the own payload for questions for its pieces.
func (s *blobs) putPieces(round coordinator.Round, payload []byte) {
	pieces := merkle.PieceLeaves(payload, codec.PieceBytes)
	s.put(merkle.Root(pieces), &blob{round: round, pieces: pieces, bytes: payload})
}

// section returns pieces of a payload that are here: of the own one, or those that were asked for
// before.
func (s *blobs) section(r rangeOf) (found section, ok bool) {
	s.mu.RLock()
	found, ok = s.sections[r].section, s.sections[r].round > 0
	own := s.byRoot[r.payload]
	s.mu.RUnlock()
	if ok || own == nil || r.from >= r.to || r.to > len(own.pieces) || r.to-r.from > partPieces {
		return found, ok
	}
	found = section{
		bytes: own.bytes[r.from*codec.PieceBytes : min(r.to*codec.PieceBytes, len(own.bytes))],
		proof: merkle.ProveRange(own.pieces, uint64(r.from), uint64(r.to)),
	}
	if r.from/partPieces == (r.to-1)/partPieces { // a group asks for the same ones
		s.putSection(own.round, r, found)
	}
	return found, true
}

// keptSection is a section and the last round of whose results it is a part.
type keptSection struct {
	section
	round coordinator.Round
}

// sectionsOfOwn bounds the sections of one payload that are kept for others that ask for them.
const sectionsOfOwn = 1 << 12

func (s *blobs) putSection(round coordinator.Round, r rangeOf, found section) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.byRoot[r.payload]; own != nil {
		if own.sections++; own.sections > sectionsOfOwn {
			return
		}
	}
	s.sections[r] = keptSection{found, max(round, s.sections[r].round)}
}

func (h *handler) answerRange(r *wire.Reader) []byte {
	q := rangeOf{payload: r.Hash()}
	from, n := r.U32(), r.U32()
	if r.Done() != wire.OK || n == 0 || n > partPieces || from > 1<<30 {
		return nil
	}
	q.from, q.to = int(from), int(from+n)
	s, ok := h.section(q)
	if !ok {
		return nil
	}
	out := wire.AppendU32(make([]byte, 0, 4+32*len(s.proof)+len(s.bytes)), uint32(len(s.proof)))
	for _, p := range s.proof {
		out = wire.AppendHash(out, p)
	}
	return append(out, s.bytes...)
}

// fetchRange fetches the range of a payload that a slice needs, unless it is here.
func (n *Node) fetchRange(a client.FetchPayload) {
	report := func(ok bool) {
		n.hear(client.PayloadFetched{Round: a.Round, Member: a.Member, ID: a.ID, OK: ok})
	}
	x, ok := n.exchange.(server)
	if !ok || n.follower == nil {
		n.cfg.Loop.Post(func() { report(false) })
		return
	}
	n.fetchSections(x, a.Round, a.Payload, a.Slice, a.Slices, a.From, func(bytes int, took time.Duration, ok bool) {
		if ok && bytes > 0 {
			n.observe(event.Fetched{Round: a.Round, Member: a.Member, Bytes: uint64(bytes), Seconds: took.Seconds()})
		}
		report(ok)
	})
}

// fetchSections fetches the range of a payload that a slice needs, unless it is here, from one peer
// after another. done gets the number of bytes that came.
func (n *Node) fetchSections(x server, round coordinator.Round, payload wire.Hash, slice, of int, peers []key.Public, done func(bytes int, took time.Duration, ok bool)) {
	from, to := n.follower.SliceRange(slice, of)
	ctx := n.within(fetchFor + time.Duration(to-from)*fetchForByte)
	start, bytes := n.cfg.Loop.Now(), 0
	end := func(ok bool) { done(bytes, n.cfg.Loop.Now().Sub(start), ok) }
	var next func(list []rangeOf, left []key.Public)
	next = func(list []rangeOf, left []key.Public) {
		switch {
		case len(list) == 0:
			end(true)
		case n.blobs.keepSection(round, list[0]):
			next(list[1:], peers)
		case len(left) == 0 || ctx.Err() != nil:
			end(false)
		default:
			within := n.within(askFor + time.Duration(list[0].to-list[0].from)*codec.PieceBytes*fetchForByte)
			x.askRange(within, left[0], list[0], func(answer []byte, err error) {
				var s section
				if err == nil {
					s, err = parseSection(answer, list[0], n.cfg.Engine.PayloadMax())
				}
				if err != nil {
					next(list, left[1:])
					return
				}
				bytes += len(answer)
				n.blobs.putSection(round, list[0], s)
				next(list[1:], peers)
			})
		}
	}
	n.cfg.Loop.Post(func() { next(sections(payload, from, to), peers) })
}

// recountAtOnce bounds the ranges that a recount fetches at a time.
const recountAtOnce = 16

// recount fetches the ranges of a slice and sums it.
func (n *Node) recount(x server, a client.Recount) {
	begun, open, failed, bytes := 0, 0, false, 0
	start := n.cfg.Loop.Now()
	var more func()
	more = func() {
		for ; !failed && open < recountAtOnce && begun < len(a.Payloads); begun++ {
			open++
			n.fetchSections(x, a.Round, a.Payloads[begun], a.Slice, a.Slices, append([]key.Public{a.Authors[begun]}, a.Holders...),
				func(b int, _ time.Duration, ok bool) {
					open, bytes, failed = open-1, bytes+b, failed || !ok
					more()
				})
		}
		if open > 0 || n.ctx.Err() != nil {
			return
		}
		n.observe(event.Fetched{Round: a.Round, Bytes: uint64(bytes), Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
		if failed {
			n.step(client.SliceSummed{Round: a.Round, Slice: a.Slice})
			return
		}
		n.sum(a.SumSlice, false)
	}
	n.cfg.Loop.Post(more)
}

// keepSection keeps a section for a later round too. It reports whether it is here.
func (s *blobs) keepSection(round coordinator.Round, r rangeOf) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.sections[r]
	if ok {
		k.round = max(k.round, round)
		s.sections[r] = k
	}
	return ok
}

// ranges returns the bytes of each payload on which a slice depends. ok is false if some are not
// here.
func (n *Node) ranges(payloads []wire.Hash, slice, of int) (list [][]byte, ok bool) {
	from, to := n.follower.SliceRange(slice, of)
	for _, root := range payloads {
		var b []byte
		for _, r := range sections(root, from, to) {
			s, ok := n.blobs.section(r)
			if !ok {
				return nil, false
			}
			b = append(b, s.bytes...)
		}
		skip := from % codec.PieceBytes
		list = append(list, b[skip:skip+to-from])
	}
	return list, true
}

// sum sums a slice and serves it. own says that it is this member's, whose name it answers.
func (n *Node) sum(a client.SumSlice, own bool) {
	ranges, ok := n.ranges(a.Payloads, a.Slice, a.Slices)
	if !ok {
		n.note(fmt.Sprintf("slice %d of round %d is not summed: ranges of payloads that were here are gone", a.Slice, a.Round))
		n.cfg.Loop.Post(func() { n.step(client.SliceSummed{Round: a.Round, Slice: a.Slice}) })
		return
	}
	var b *blob
	var failed error
	n.engine.add(&job{kind: "update", cost: n.cfg.Cost(Job{Kind: "apply"}),
		work: func(context.Context) {
			var slice []byte
			if slice, failed = n.follower.UpdateSlice(nil, ranges, a.Slice, a.Slices); failed == nil {
				b = newUpdate(a.Round, slice)
			}
		},
		done: func(bool) {
			ev := client.SliceSummed{Round: a.Round, Slice: a.Slice}
			if failed != nil {
				n.note("summing a slice: " + failed.Error())
			}
			if b != nil {
				ev.Update = client.Update{Root: merkle.Root(b.leaves), Bytes: uint64(len(b.bytes))}
				n.blobs.put(ev.Root, b)
				if own {
					n.blobs.nameSlice(a.Round, ev.Update)
				}
			}
			n.step(ev)
		}})
}

// nameSlice has questions for the own slice of a round answered, and showHeld those for what is
// held.
func (s *blobs) nameSlice(round coordinator.Round, u client.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[round] = u
}

func (s *blobs) showHeld(round coordinator.Round, tags []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[round] = tags
}

func (s *blobs) answerHeld(round coordinator.Round) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shown[round]
}

func (s *blobs) answerSlice(round coordinator.Round) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u, ok := s.slices[round]
	return appendNamed(u, ok)
}

// fetchSlice fetches a slice of an update that a quorum of its group names, and serves it.
func (n *Node) fetchSlice(x server, a client.FetchSlice) {
	report := func(ok bool) { n.step(client.SliceFetched{Round: a.Round, Slice: a.Slice, OK: ok}) }
	if a.Bytes > uint64(n.follower.UpdateSliceMax(a.Slice, a.Slices)) {
		n.cfg.Loop.Post(func() { report(false) })
		return
	}
	start := n.cfg.Loop.Now()
	x.fetchBlob(n.within(time.Duration(a.WithinMs)*time.Millisecond), p2p.Ref{Root: a.Root, Size: a.Bytes}, a.From, func(data []byte, err error) {
		if err == nil && n.ctx.Err() == nil {
			n.observe(event.Fetched{Round: a.Round, Update: true, Bytes: a.Bytes, Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
			n.blobs.put(a.Root, newUpdate(a.Round, data))
		}
		report(err == nil)
	})
}

// errSlices says that slices of an update are not here.
var errSlices = errors.New("slices of the update are gone")

// join makes an update from its slices. It may be called off the loop.
func (n *Node) join(roots []wire.Hash) ([]byte, error) {
	parts, ok := n.payloads(roots, wire.Hash{})
	if !ok {
		return nil, errSlices
	}
	return n.follower.JoinUpdate(nil, parts)
}

func (p *peers) askRange(ctx context.Context, to key.Public, r rangeOf, done func([]byte, error)) {
	q := wire.AppendHash(wire.AppendU8(nil, questionRange), r.payload)
	q = wire.AppendU32(wire.AppendU32(q, uint32(r.from)), uint32(r.to-r.from))
	p.network.Ask(ctx, to, q, func(answer []byte, err error) {
		p.node.cfg.Loop.Post(func() { done(answer, err) })
	})
}

func (p *peers) askHeld(a client.AskHeld) {
	q := wire.AppendU32(wire.AppendU8(nil, questionHeld), uint32(a.Round))
	for _, to := range a.To {
		p.question(to, q, func(answer []byte) {
			p.node.hear(client.HeldShown{Round: a.Round, By: to, Tags: slices.Clone(answer)})
		})
	}
}

func (p *peers) askSlices(a client.AskSlices) {
	q := wire.AppendU32(wire.AppendU8(nil, questionSlice), uint32(a.Round))
	for _, to := range a.To {
		p.question(to, q, func(answer []byte) {
			if u, ok := parseNamed(answer); ok {
				p.node.hear(client.SliceNamed{Round: a.Round, By: to, Update: u})
			}
		})
	}
}
