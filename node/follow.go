package node

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// askUpdate asks witnesses which update an accepted set makes:
//
//	question: u8 3 | u32 round
//	answer:   Hash root | u64 length, or nothing while the update is not made
func (p *peers) askUpdate(a client.AskUpdate) {
	q := wire.AppendU32(wire.AppendU8(nil, questionUpdate), uint32(a.Round))
	for _, to := range a.To {
		p.question(to, q, func(answer []byte) {
			if u, ok := blobs.ParseNamed(answer); ok {
				p.node.step(client.UpdateNamed{Round: a.Round, By: to, Update: u})
			}
		})
	}
}

// fetchUpdate fetches an update, checks it and serves it.
func (n *Node) fetchUpdate(a client.FetchUpdate) {
	report := func(ok, refused bool) {
		n.step(client.UpdateFetched{Round: a.Round, Root: a.Root, OK: ok, Refused: refused})
	}
	x, ok := n.exchange.(server)
	if !ok || n.follower == nil {
		return
	}
	start := n.cfg.Loop.Now()
	x.fetchBlob(n.within(time.Duration(a.WithinMs)*time.Millisecond), p2p.Fetch{Ref: p2p.Ref{Root: a.Root, Size: a.Bytes}, From: a.From}, func(data []byte, err error) {
		if err != nil || n.ctx.Err() != nil {
			report(false, false)
			return
		}
		n.observe(event.Fetched{Round: a.Round, Update: true, Bytes: a.Bytes, Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
		var b *blobs.Blob
		var bad error
		n.cfg.Loop.Work(0, func() {
			if bad = n.follower.CheckUpdate(data); bad == nil {
				b = blobs.NewUpdate(a.Round, data)
			}
		}, func() {
			if bad != nil {
				n.note(fmt.Sprintf("update of round %d: %v", a.Round, bad))
				report(false, true)
				return
			}
			n.blobs.Put(a.Root, b)
			report(true, false)
		})
	})
}

// makeUpdate makes an update from its payloads, or from slices, and serves it.
func (n *Node) makeUpdate(a client.MakeUpdate) {
	payloads, ok := n.payloads(a.Payloads, wire.Hash{})
	if !ok || n.follower == nil {
		n.cfg.Loop.Post(func() { n.step(client.UpdateMade{Round: a.Round}) })
		return
	}
	var b *blobs.Blob
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "apply"}),
		Work: func(context.Context) {
			var update []byte
			var err error
			if len(a.Slices) > 0 {
				update, err = n.join(a.Slices)
			} else {
				update, err = n.follower.Update(nil, payloads)
			}
			if err == nil {
				b = blobs.NewUpdate(a.Round, update)
			}
		},
		Done: func(bool) {
			ev := client.UpdateMade{Round: a.Round}
			if b != nil {
				ev.Root = n.blobs.PutMade(b)
			}
			n.step(ev)
		}})
}
