package node

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/merkle"
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
			if u, ok := parseNamed(answer); ok {
				p.node.step(client.UpdateNamed{Round: a.Round, By: to, Update: u})
			}
		})
	}
}

// appendNamed encodes what an update is named by, and parseNamed decodes it.
func appendNamed(u client.Update, ok bool) []byte {
	if !ok {
		return nil
	}
	return wire.AppendU64(wire.AppendHash(nil, u.Root), u.Bytes)
}

func parseNamed(answer []byte) (u client.Update, ok bool) {
	r := wire.NewReader(answer)
	u = client.Update{Root: r.Hash(), Bytes: r.U64()}
	return u, r.Done() == wire.OK && !u.Root.IsZero()
}

// newUpdate returns the blob of the update of a round's accepted set. It may be called off the
// loop.
func newUpdate(round coordinator.Round, update []byte) *blob {
	return &blob{round: round, leaves: merkle.BlobLeaves(update), bytes: update}
}

// putMade serves an update that was made here, and has questions for it answered.
func (s *blobs) putMade(b *blob) (root wire.Hash) {
	root = merkle.Root(b.leaves)
	s.put(root, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates[b.round] = client.Update{Root: root, Bytes: uint64(len(b.bytes))}
	return root
}

// answerUpdate answers a question for an update.
func (s *blobs) answerUpdate(round coordinator.Round) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u, ok := s.updates[round]
	return appendNamed(u, ok)
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
	x.fetchBlob(n.within(time.Duration(a.WithinMs)*time.Millisecond), p2p.Ref{Root: a.Root, Size: a.Bytes}, a.From, func(data []byte, err error) {
		if err != nil || n.ctx.Err() != nil {
			report(false, false)
			return
		}
		n.observe(event.Fetched{Round: a.Round, Update: true, Bytes: a.Bytes, Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
		var b *blob
		var bad error
		n.cfg.Loop.Work(0, func() {
			if bad = n.follower.CheckUpdate(data); bad == nil {
				b = newUpdate(a.Round, data)
			}
		}, func() {
			if bad != nil {
				n.note(fmt.Sprintf("update of round %d: %v", a.Round, bad))
				report(false, true)
				return
			}
			n.blobs.put(a.Root, b)
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
	var b *blob
	n.engine.add(&job{kind: "update", cost: n.cfg.Cost(Job{Kind: "apply"}),
		work: func(context.Context) {
			var update []byte
			var err error
			if len(a.Slices) > 0 {
				update, err = n.join(a.Slices)
			} else {
				update, err = n.follower.Update(nil, payloads)
			}
			if err == nil {
				b = newUpdate(a.Round, update)
			}
		},
		done: func(bool) {
			ev := client.UpdateMade{Round: a.Round}
			if b != nil {
				ev.Root = n.blobs.putMade(b)
			}
			n.step(ev)
		}})
}
