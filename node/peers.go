package node

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Peers gossip commitments and ask for them (package gossip). The ledger has only the hash of the
// spans that a member was given. A question for them is answered by the spans as batch.Append
// writes them:
//
//	question: u8 2 | batch.Hash of the spans
//	answer:   spans
//
// In a run of followers, a third question is for an update (askUpdate). In place of gossip, a
// commitment comes as a question from its author, and the answer says that it was taken:
//
//	question: u8 4 | author | signed commitment
//	answer:   u8 1
//
// A question for many payloads begins with u8 8 (blobs.Store.AnswerBulk). Questions of a run of
// slices are in ranges.go.

const (
	questionSpans  = 2
	questionUpdate = 3
	questionOffer  = 4
	questionBulk   = 8
)

// peers is the exchange of members that talk to each other.
type peers struct {
	node    *Node
	network p2p.Network
	listed  []host.Peer    // what the network was told last
	roster  *client.Roster // likewise
	// taken are those that took this member's commitment of a round.
	taken map[key.Public]coordinator.Round
}

func (p *peers) publish(round coordinator.Round, a *gossip.Authored, to []key.Public) {
	if to == nil {
		if err := p.network.Publish(a.Bytes); err != nil {
			p.node.note("gossip: " + err.Error())
		}
		return
	}
	maps.DeleteFunc(p.taken, func(_ key.Public, of coordinator.Round) bool { return of+1 < round })
	q := append(wire.AppendU8(nil, questionOffer), a.Bytes...)
	for _, k := range to {
		if p.taken[k] < round {
			p.question(k, q, func([]byte) { p.taken[k] = max(p.taken[k], round) })
		}
	}
}

func (p *peers) askCommitments(a client.AskCommitments) {
	p.question(a.To, gossip.AppendQuestion(nil, a.Round, a.Of), func(answer []byte) { p.answered(a.To, answer) })
}

// answered takes an answer to a question for commitments.
func (p *peers) answered(from key.Public, answer []byte) {
	gossip.Answered(answer, p.node.checked, func(a *gossip.Authored) { p.node.take(a, from, false) })
}

// askOwn asks all at once: the one that holds a commitment may be among those slow to answer.
func (p *peers) askOwn(round coordinator.Round, member coordinator.Member, to []key.Public, done func(heard bool)) {
	q := gossip.AppendQuestion(nil, round, []coordinator.Member{member})
	ctx, cancel := context.WithCancel(p.node.ctx)
	open, heard, ended := len(to), false, false
	end := func() {
		if !ended {
			ended = true
			cancel()
			done(heard)
		}
	}
	stop := p.node.cfg.Loop.After(ownFor, end)
	for _, k := range to {
		p.ask(ctx, k, q, func(answer []byte, err error) {
			if err == nil {
				p.answered(k, answer)
			}
			heard = heard || err == nil || errors.Is(err, p2p.ErrRefused) // that it holds none
			if open--; open == 0 {
				stop()
				end()
			}
		})
	}
}

func (p *peers) askSpans(a client.AskSpans) {
	p.question(a.To, wire.AppendHash(wire.AppendU8(nil, questionSpans), a.Hash), func(answer []byte) {
		if spans, ok := gossip.AnsweredSpans(answer); ok {
			p.node.step(client.SpansReceived{Spans: spans})
		}
	})
}

// question asks a peer. It does not call answered if no answer comes: the machine asks another peer
// in time.
func (p *peers) question(to key.Public, q []byte, answered func([]byte)) {
	p.ask(p.node.within(gossip.AskFor), to, q, func(answer []byte, err error) {
		if err == nil {
			answered(answer)
		}
	})
}

func (p *peers) fetchPayload(ctx context.Context, c *coming) {
	ref := p2p.Ref{Root: c.Payload, Size: uint64(c.PayloadBytes)}
	p.network.Fetch(ctx, p.node.parts.Continue(p2p.Fetch{Ref: ref, First: c.Author, From: c.From}, c.start), c.arrives)
}

func (p *peers) fetchBlob(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	p.node.parts.Fetch(ctx, p.network, p.node.cfg.Loop, f, done)
}

// fetchModel fetches only the chunks that differ from those held. The model that the run begins
// with may be at peers that are no members, such as the run's owner.
func (p *peers) fetchModel(ctx context.Context, a client.Heal, have *blobs.Version, progress func(done, total uint64), done func(fetched, error)) {
	n := p.node.cfg.Engine.ParamsLen()
	f := p2p.Fetch{
		Ref:  p2p.Ref{Root: a.Params, Size: uint64(n) * 4},
		From: a.From,
		Have: func(i uint32, leaf wire.Hash) []byte {
			if have == nil || int(i) >= len(have.Leaves) || have.Leaves[i] != leaf {
				return nil
			}
			return have.Chunk(i)
		},
		Progress: progress,
	}
	if a.Params == p.node.state.Config().ModelHash {
		f.From = slices.Clone(a.From)
		named := map[key.Public]bool{p.node.self: true}
		for _, k := range a.From {
			named[k] = true
		}
		for _, o := range p.listed {
			if !named[o.Key] {
				f.From = append(f.From, o.Key)
			}
		}
	}
	var safe func()
	if kept := p.node.cfg.Kept; kept != nil {
		safe = f.Resume(kept)
	}
	p.node.parts.Fetch(ctx, p.network, p.node.cfg.Loop, f, func(data []byte, err error) {
		if err != nil {
			done(fetched{}, err)
			return
		}
		done(fetched{source: "the peers' model, verified", safe: safe, make: func() []float32 {
			values := make([]float32, n)
			tensor.SetBytes(values, data)
			return values
		}}, nil)
	})
}

func (p *peers) addrs() []string { return p.network.Addrs() }

// connected is a network of connections, which knows to how many peers there is one, and favours
// those that take part in the run.
type connected interface {
	Connected() int
	Members(is func(key.Public) bool)
}

func (p *peers) connect(all []host.Peer) (linked int) {
	if len(all) != len(p.listed) || len(all) > 0 && &all[0] != &p.listed[0] {
		p.listed = all
		p.network.Connect(all)
	}
	if c, ok := p.network.(connected); ok {
		p.favour(c)
		return c.Connected()
	}
	linked = len(all)
	if i := p.node.connections.place; i < len(all) && all[i].Key == p.node.self {
		linked--
	}
	return linked
}

// favour tells the network who the members are, when that may have changed.
func (p *peers) favour(c connected) {
	if p.roster == p.node.roster {
		return
	}
	p.roster = p.node.roster
	index := p.roster.Index // nobody changes it
	c.Members(func(k key.Public) bool {
		_, ok := index[k]
		return ok
	})
}

// owes allows for the deadlines of a check and of a dispute's moves. They bound the wait where a
// run that stands still never draws its checks.
func (p *peers) owes() (text string, most time.Duration) {
	c := p.node.state.Config()
	return "leaving, once the last results of this member cannot be checked any more",
		time.Duration(2*c.VerifyMs+10*c.DisputeMs) * time.Millisecond
}

func (p *peers) close() error { return p.network.Close() }

// handler returns what answers peers. A frozen model is served too: who joins needs it.
func (n *Node) handler() *handler {
	if base := n.cfg.Engine.Base(); base != nil {
		v := n.params.Measured(n.cfg.Engine.Load(base))
		n.blobs.PutVersion(v)
	}
	return &handler{node: n, Store: n.blobs, Commitments: n.commitments}
}

// handler answers peers. Its methods are called from network goroutines, so it touches only what
// the node serves and posts the rest to the loop.
type handler struct {
	node *Node
	*blobs.Store
	*gossip.Commitments
}

// Gossip judges a gossiped commitment. One that is malformed, for another run or not signed by its
// author is rejected, which costs the sender's score. One that cannot matter is not passed on: its
// author does not take part, its round is not open, or its author has several in the round. So
// neither a stranger nor a member can flood the run. It is not rejected, since the sender's view of
// members and rounds may be newer. What costs little is looked at first.
func (h *handler) Gossip(from key.Public, data []byte) p2p.Verdict {
	if h.Knows(data) && bytes.HasPrefix(data, from[:]) {
		return p2p.Accept // repeated for peers that missed it
	}
	a, ok := h.node.cfg.Read(data)
	if !ok || a.Signed.Commitment.Run != h.node.cfg.ID || a.Author != from {
		return p2p.Reject
	}
	if !h.Wants(a.Author, &a.Signed.Commitment) {
		return p2p.Ignore
	}
	if !a.Verify() {
		return p2p.Reject
	}
	if !h.Commitments.Put(a) {
		return p2p.Ignore
	}
	h.node.cfg.Loop.Post(func() { h.node.take(a, key.Public{}, true) })
	return p2p.Accept
}

// Answer answers a question for commitments, spans or an update, and takes a commitment.
func (h *handler) Answer(from key.Public, request []byte) []byte {
	r := wire.NewReader(request)
	switch r.U8() {
	case gossip.QuestionCommitments:
		return h.AnswerQuestion(&r)
	case questionSpans:
		if hash := r.Hash(); r.Done() == wire.OK {
			return h.Spans(hash)
		}
	case questionUpdate:
		if round := r.U32(); r.Done() == wire.OK {
			return h.AnswerUpdate(coordinator.Round(round))
		}
	case questionRange:
		return h.AnswerRange(&r)
	case questionHeld:
		return h.AnswerHeld(&r)
	case questionSlice:
		if round := r.U32(); r.Done() == wire.OK {
			return h.AnswerSlice(coordinator.Round(round))
		}
	case questionBulk:
		return h.AnswerBulk(&r)
	case questionOffer:
		if h.Gossip(from, request[1:]) == p2p.Accept {
			return []byte{1}
		}
	}
	return nil
}
