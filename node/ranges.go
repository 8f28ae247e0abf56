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
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Questions of a run of slices: for pieces of a payload (blobs.ParseSection), and to an aggregator
// for what it holds of a round's payloads, and for the slice that it has summed:
//
//	question: u8 5 | Hash payload | u32 first piece | u32 pieces
//	question: u8 6 | see blobs.AppendHeld
//	answer:   client.ShowHeld.Tags
//	question: u8 7 | u32 round
//	answer:   Hash root | u64 length
//
// There is no answer while it is not known.
const (
	questionRange = 5
	questionHeld  = 6
	questionSlice = 7
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
		n.blobs.ShowHeld(a.Round, a.Tags)
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
	n.fetchSections(x, a.Round, a.Payload, a.Slice, a.Slices, append([]key.Public{a.Author}, a.From...), func(bytes int, took time.Duration, ok bool) {
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
	var next func(list []blobs.Range, left []key.Public)
	next = func(list []blobs.Range, left []key.Public) {
		switch {
		case len(list) == 0:
			end(true)
		case n.blobs.KeepSection(round, list[0]):
			next(list[1:], peers)
		case len(left) == 0 || ctx.Err() != nil:
			end(false)
		default:
			within := n.within(gossip.AskFor + time.Duration(list[0].To-list[0].From)*codec.PieceBytes*fetchForByte)
			x.ask(within, left[0], list[0].AppendQuestion(wire.AppendU8(nil, questionRange)), func(answer []byte, err error) {
				var s blobs.Section
				if err == nil {
					s, err = blobs.ParseSection(answer, list[0], n.cfg.Engine.PayloadMax())
				}
				if err != nil {
					next(list, left[1:])
					return
				}
				bytes += len(answer)
				n.blobs.PutSection(round, list[0], s)
				next(list[1:], peers)
			})
		}
	}
	n.cfg.Loop.Post(func() { next(blobs.Ranges(payload, from, to), peers) })
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

// ranges returns the bytes of each payload on which a slice depends. ok is false if some are not
// here.
func (n *Node) ranges(payloads []wire.Hash, slice, of int) (list [][]byte, ok bool) {
	from, to := n.follower.SliceRange(slice, of)
	for _, root := range payloads {
		var b []byte
		for _, r := range blobs.Ranges(root, from, to) {
			s, ok := n.blobs.Section(r)
			if !ok {
				return nil, false
			}
			b = append(b, s.Bytes...)
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
	var b *blobs.Blob
	var failed error
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "apply"}),
		Work: func(context.Context) {
			var slice []byte
			if slice, failed = n.follower.UpdateSlice(nil, ranges, a.Slice, a.Slices); failed == nil {
				b = blobs.NewUpdate(a.Round, slice)
			}
		},
		Done: func(bool) {
			ev := client.SliceSummed{Round: a.Round, Slice: a.Slice}
			if failed != nil {
				n.note("summing a slice: " + failed.Error())
			}
			if b != nil {
				ev.Update = b.Name()
				n.blobs.Put(ev.Root, b)
				if own {
					n.blobs.NameSlice(a.Round, ev.Update)
				}
			}
			n.step(ev)
		}})
}

// fetchSlice fetches a slice of an update that a quorum of its group names, and serves it.
func (n *Node) fetchSlice(x server, a client.FetchSlice) {
	report := func(ok bool) { n.step(client.SliceFetched{Round: a.Round, Slice: a.Slice, OK: ok}) }
	if a.Bytes > uint64(n.follower.UpdateSliceMax(a.Slice, a.Slices)) {
		n.cfg.Loop.Post(func() { report(false) })
		return
	}
	start := n.cfg.Loop.Now()
	x.fetchBlob(n.within(time.Duration(a.WithinMs)*time.Millisecond), p2p.Fetch{Ref: p2p.Ref{Root: a.Root, Size: a.Bytes}, From: a.From}, func(data []byte, err error) {
		if err == nil && n.ctx.Err() == nil {
			n.observe(event.Fetched{Round: a.Round, Update: true, Bytes: a.Bytes, Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
			n.blobs.Put(a.Root, blobs.NewUpdate(a.Round, data))
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

func (p *peers) ask(ctx context.Context, to key.Public, question []byte, done func([]byte, error)) {
	p.network.Ask(ctx, to, question, func(answer []byte, err error) {
		p.node.cfg.Loop.Post(func() { done(answer, err) })
	})
}

func (p *peers) askHeld(a client.AskHeld) {
	for i, to := range a.To {
		q := blobs.AppendHeld([]byte{questionHeld}, a.Round, a.Shown[i])
		p.question(to, q, func(answer []byte) {
			p.node.hear(client.HeldShown{Round: a.Round, By: to, Tags: slices.Clone(answer)})
		})
	}
}

func (p *peers) askSlices(a client.AskSlices) {
	q := wire.AppendU32(wire.AppendU8(nil, questionSlice), uint32(a.Round))
	for _, to := range a.To {
		p.question(to, q, func(answer []byte) {
			if u, ok := blobs.ParseNamed(answer); ok {
				p.node.hear(client.SliceNamed{Round: a.Round, By: to, Update: u})
			}
		})
	}
}
