package node

import (
	"bytes"
	"slices"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Peers talk about commitments in two ways. Gossip carries one signed commitment with its author's key:
//
//	author [32]byte | signed commitment
//
// A question names a round and members, the answer lists what the peer holds of theirs, each as in gossip:
//
//	question: u8 1 | u32 round | u32 n | n × u32 member
//	answer:   n × (u32 length | author | signed commitment)
//
// A question for what was given to somebody, of whom only the hash is on the ledger, is answered by the spans as batch.Append writes them:
//
//	question: u8 2 | batch.Hash of the spans
//	answer:   spans

const (
	questionCommitments = 1
	questionSpans       = 2
	// spansMax bounds the spans of an answer, those of a round.
	spansMax = 64
	// questionMembersMax bounds a question; the machine asks for 256 at a time.
	questionMembersMax = 1024
	// askFor bounds the wait for an answer.
	askFor = 5 * time.Second
)

// handler answers peers. Its methods come from network goroutines, so it touches only the shelf and posts the rest to the loop.
type handler struct {
	node *Node
	*shelf
}

// Gossip judges a gossiped commitment: what is malformed, not signed by its author or for another run is refused, which costs the sender's score.
// What nobody who takes part said is not passed on, so that a stranger cannot flood the run; it is not refused, since who takes
// part is a matter of how new one's state is.
func (h *handler) Gossip(from key.Public, data []byte) p2p.Verdict {
	if h.knows(data) && bytes.HasPrefix(data, from[:]) {
		return p2p.Accept // said again for those who missed it
	}
	author, signed, ok := h.node.parseAuthored(data)
	if !ok || author != from {
		return p2p.Reject
	}
	if !h.takesPart(author) {
		return p2p.Ignore
	}
	h.node.cfg.Loop.Post(func() { h.node.received(author, signed) })
	return p2p.Accept
}

// Answer answers a question for commitments or spans.
func (h *handler) Answer(from key.Public, request []byte) []byte {
	r := wire.NewReader(request)
	switch r.U8() {
	case questionCommitments:
		return h.answerCommitments(&r)
	case questionSpans:
		hash := r.Hash()
		if r.Done() != wire.OK {
			return nil
		}
		h.mu.RLock()
		defer h.mu.RUnlock()
		return h.given[hash]
	}
	return nil
}

func (h *handler) answerCommitments(r *wire.Reader) []byte {
	round, count := r.U32(), r.U32()
	if r.Err() != wire.OK || count > questionMembersMax {
		return nil
	}
	wanted := make(map[uint32]bool, count)
	for range count {
		wanted[r.U32()] = true
	}
	if r.Done() != wire.OK {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []byte
	for _, k := range h.commitments[round] {
		if wanted[k.member] && len(out)+len(k.bytes)+4 <= p2p.MaxAnswer {
			out = wire.AppendVar(out, k.bytes)
		}
	}
	return out
}

// parseAuthored is the function of that name, for the node's run and with its way to check signatures.
func (n *Node) parseAuthored(data []byte) (key.Public, coordinator.Signed, bool) {
	return parseAuthored(n.cfg.ID, data, n.cfg.Verify)
}

// parseAuthored reads author and signed commitment and checks the signature and the run.
func parseAuthored(run wire.Hash, data []byte, verify func(coordinator.Signed, key.Public) bool) (key.Public, coordinator.Signed, bool) {
	var author key.Public
	if len(data) < len(author) {
		return author, coordinator.Signed{}, false
	}
	copy(author[:], data)
	signed, err := coordinator.ParseSigned(data[len(author):])
	if err != nil || signed.Commitment.Run != run || !verify(signed, author) {
		return author, coordinator.Signed{}, false
	}
	return author, signed, true
}

// received takes a commitment whose signature is good. Only commitments of members are kept for others.
func (n *Node) received(author key.Public, signed coordinator.Signed) {
	if n.height == 0 || n.ctx.Err() != nil {
		return
	}
	c := signed.Commitment
	old := c.Round+8 < n.state.Round() && !n.shelf.spares(client.Share{Round: c.Round, Member: c.Member})
	if c.Member >= n.state.Count() || n.state.Member(c.Member).Key != author || c.Round > n.state.Round()+1 || old {
		return
	}
	if n.shelf.putAuthored(author, signed) && author != n.self {
		n.observe(event.Committed{
			Epoch: c.Epoch, Round: c.Round, Member: c.Member,
			Loss: float32(c.Loss) / 1000, Bytes: uint64(c.PayloadBytes), Commitment: c.ID(),
		})
	}
	n.step(client.CommitmentReceived{Signed: signed, Signer: author})
}

// knowMembers tells the shelf who takes part, when that may have changed.
func (n *Node) knowMembers() {
	s := n.state
	now := membership{epoch: s.Epoch(), count: s.Count(), present: s.Present()}
	if now == n.membership {
		return
	}
	n.membership = now
	n.peers.askedAt = time.Time{}
	members := make(map[key.Public]bool, s.Present())
	for i := range s.Count() {
		if s.Status(i).Present() {
			members[s.Key(i)] = true
		}
	}
	n.shelf.setMembers(members)
}

// membership changes whenever somebody joins, leaves, or has left and another came.
type membership struct{ epoch, count, present uint32 }

// commit signs a commitment and gossips it, once it is kept so that a crash cannot make this member sign another one for the round.
func (n *Node) commit(c coordinator.Commitment) {
	signed := c.Sign(n.cfg.Key)
	n.observe(event.Signed{Epoch: c.Epoch, Round: c.Round, Member: c.Member, Commitment: c.ID()})
	n.unsaved = &signed
	n.republish(c.Round)
}

// republish gossips the own commitment of a round. One that could not be saved is tried again and stays here until it is: after a crash
// this member would not know that it had signed it, and two for one round are proof of a cheat.
func (n *Node) republish(round uint32) {
	if s := n.unsaved; s != nil && s.Commitment.Round == round {
		n.saveCommitment(s)
		return
	}
	i, ok := n.state.Find(n.self)
	if !ok {
		return
	}
	if b, ok := n.shelf.own(round, i); ok {
		n.exchange.publish(round, b)
	}
}

// saveCommitment saves a commitment, shows it to peers and gossips it.
func (n *Node) saveCommitment(s *coordinator.Signed) {
	var failed error
	round, update := s.Commitment.Round, n.sealed[s.Commitment.Round]
	n.cfg.Loop.Work(0, func() {
		if failed = n.saveSealed(round, update); failed == nil && n.cfg.Store != nil {
			failed = n.cfg.Store.SaveCommitment(s.Append(nil))
		}
	}, func() {
		switch {
		case n.unsaved != s: // saved by another try, or of a round that is over
		case failed != nil:
			n.note("this round's result is not sent, because its commitment could not be saved: " + failed.Error())
		default:
			n.unsaved = nil
			n.shelf.putAuthored(n.self, *s)
			n.republish(s.Commitment.Round)
		}
	})
}

// answeredSpans takes what a peer says was given to somebody.
func (n *Node) answeredSpans(answer []byte) {
	r := wire.NewReader(answer)
	if spans := batch.Parse(&r, spansMax); r.Done() == wire.OK {
		n.step(client.SpansReceived{Spans: spans})
	}
}

// answered takes the commitments that a peer answers with.
func (n *Node) answered(answer []byte) {
	r := wire.NewReader(answer)
	for r.Len() > 0 {
		b := r.Var(p2p.MaxGossip)
		if r.Err() != wire.OK {
			return
		}
		author, signed, ok := n.parseAuthored(b)
		if !ok {
			return
		}
		n.received(author, signed)
	}
}

// peerbook is whom the network is connected to.
type peerbook struct {
	askedAt time.Time
	known   bool // the network has been told whom to connect with
	count   int  // how many those are
	linked  int  // with how many of them there is a connection
}

// peersEvery is how often addresses are compared with the ledger's.
const peersEvery = 2 * time.Second

// keepPeers announces the own addresses and connects to the other members'.
func (n *Node) keepPeers() {
	now := n.cfg.Loop.Now()
	if n.height == 0 || now.Sub(n.peers.askedAt) < peersEvery {
		return
	}
	n.peers.askedAt = now
	n.cfg.Ledger.Peers(n.ctx, n.cfg.Run, func(peers []host.Peer, err error) {
		n.cfg.Loop.Post(func() {
			if err == nil && n.ctx.Err() == nil {
				n.connect(peers)
			}
		})
	})
}

// connect tells the exchange where the others can be reached, and the ledger where this member can.
func (n *Node) connect(peers []host.Peer) {
	var others []host.Peer
	current := false
	own := n.exchange.addrs()
	own = own[:min(len(own), host.AddrsMax)]
	for _, p := range peers {
		if p.Key == n.self {
			current = slices.Equal(p.Addrs, own)
			continue
		}
		others = append(others, p)
	}
	linked := n.exchange.connect(others)
	if !n.peers.known || n.peers.count != len(others) || n.peers.linked != linked {
		n.observe(event.Peers{Connected: uint32(linked), Known: uint64(len(others))})
	}
	n.peers.known, n.peers.count, n.peers.linked = true, len(others), linked
	if !current && len(own) > 0 {
		n.send(host.Announce{Run: n.cfg.Run, Addrs: own}, func(err error) {
			if err != nil {
				n.observe(event.Refused{Text: "announce addresses: " + err.Error()})
			}
			n.peers.askedAt = time.Time{} // others announced theirs meanwhile, as a rule
		})
	}
}
