package adversary

import (
	"bytes"
	"context"
	"slices"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// peers is the network as the kind uses it.
type peers struct {
	p2p.Network
	m *member
}

// Publish implements p2p.Network: the kind handles the member's own commitments.
func (n peers) Publish(data []byte) error {
	author, s, ok := parseAuthored(data)
	if !ok || author != n.m.self || n.m.hooks.commit == nil {
		return n.Network.Publish(data)
	}
	n.m.mu.Lock()
	out := n.m.hooks.commit(s)
	n.m.mu.Unlock()
	for _, s := range out {
		if err := n.Network.Publish(authored(author, s)); err != nil {
			return err
		}
	}
	return nil
}

// Ask implements p2p.Network: the member reads the answers too.
func (n peers) Ask(ctx context.Context, to key.Public, request []byte, done func([]byte, error)) {
	if len(request) > 0 && request[0] == questionOffer && n.m.hooks.commit != nil {
		if author, s, ok := parseAuthored(request[1:]); ok && author == n.m.self {
			n.m.mu.Lock()
			out := n.m.hooks.commit(s)
			n.m.mu.Unlock()
			request = request[:1] // nothing, if the kind shows nothing
			for k, s := range out {
				offer := append([]byte{questionOffer}, authored(author, s)...)
				if k < len(out)-1 {
					n.Network.Ask(ctx, to, offer, func([]byte, error) {})
				}
				request = offer
			}
		}
	}
	n.Network.Ask(ctx, to, request, func(answer []byte, err error) {
		for _, b := range items(answer) {
			n.m.learn(b)
		}
		done(answer, err)
		n.m.look()
	})
}

// Fetch implements p2p.Network: the member records what its node holds, if the kind looks at that.
func (n peers) Fetch(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	if n.m.hooks.see == nil {
		n.Network.Fetch(ctx, f, done)
		return
	}
	n.Network.Fetch(ctx, f, func(data []byte, err error) {
		if err == nil {
			n.m.mu.Lock()
			if len(n.m.held) > heldMax {
				clear(n.m.held)
			}
			n.m.held[f.Ref.Root] = true
			n.m.news++
			n.m.mu.Unlock()
		}
		done(data, err)
		n.m.look()
	})
}

// heldMax is the number of blobs that a member remembers. It needs those of the last round or two.
const heldMax = 1 << 12

// handler is the member as its peers see it.
type handler struct {
	p2p.Handler
	m *member
}

// Gossip implements p2p.Handler: the member reads the messages too.
func (h handler) Gossip(from key.Public, data []byte) p2p.Verdict {
	if bytes.HasPrefix(data, from[:]) {
		h.m.learn(data)
	}
	v := h.Handler.Gossip(from, data)
	h.m.look()
	return v
}

// Answer implements p2p.Handler. It leaves out the member's own commitments that it did not
// publish.
func (h handler) Answer(from key.Public, request []byte) []byte {
	answer := h.Handler.Answer(from, request)
	if h.m.hooks.update != nil && len(request) > 0 && request[0] == questionUpdate {
		return h.answerUpdate(answer)
	}
	if h.m.hooks.aggregates != nil && len(request) > 0 && request[0] >= questionRange && request[0] <= questionSlice {
		h.m.mu.Lock()
		defer h.m.mu.Unlock()
		return h.m.hooks.aggregates(request[0], from, answer)
	}
	if h.m.hooks.commit == nil || len(request) == 0 || request[0] != questionCommitments {
		return answer
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.m.asker = &from
	defer func() { h.m.asker = nil }()
	var out []byte
	for _, b := range items(answer) {
		author, s, ok := parseAuthored(b)
		if !ok || author != h.m.self {
			out = wire.AppendVar(out, b)
			continue
		}
		for _, s := range h.m.hooks.commit(s) {
			if b := authored(author, s); len(out)+len(b)+4 <= p2p.MaxAnswer {
				out = wire.AppendVar(out, b)
			}
		}
	}
	return out
}

// Kinds of requests: see package node.
const (
	questionCommitments = 1
	questionUpdate      = 3
	questionOffer       = 4
	questionRange       = 5
	questionHeld        = 6
	questionSlice       = 7
)

// Leaves implements p2p.Source.
func (h handler) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	if payload, ok := h.m.alsoServes(root); ok {
		return merkle.BlobLeaves(payload), true
	}
	if h.m.hidden(root) {
		return nil, false
	}
	return h.Handler.Leaves(root)
}

// Chunk implements p2p.Source.
func (h handler) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	if payload, ok := h.m.alsoServes(root); ok {
		if from := uint64(i) * merkle.ChunkBytes; from < uint64(len(payload)) {
			return slices.Clone(payload[from:min(from+merkle.ChunkBytes, uint64(len(payload)))]), true
		}
		return nil, false
	}
	if h.m.hidden(root) {
		return nil, false
	}
	return h.Handler.Chunk(root, i)
}

// alsoServes returns a payload of a second commitment.
func (m *member) alsoServes(root wire.Hash) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	payload, ok := m.second[root]
	return payload, ok
}

func (m *member) hidden(root wire.Hash) bool {
	if m.hooks.hides == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hooks.hides(root)
}

// learn records a commitment as gossip carries it, if it is one.
func (m *member) learn(data []byte) {
	a, ok := m.read(data)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remember(a.Author, &a.Signed)
}

// look lets the kind react to news.
func (m *member) look() {
	if m.hooks.see == nil || m.network == nil && m.bucket == nil {
		return
	}
	m.mu.Lock()
	out := m.hooks.see()
	m.mu.Unlock()
	for _, s := range out {
		b := authored(m.self, s)
		// The node learns of it like any other commitment, or its own model would diverge.
		m.inner.Gossip(m.self, b)
		// gossip may get lost anyway; the next request sends it again
		_ = m.network.Publish(b)
	}
}

// authored encodes a commitment as gossip: see package node.
func authored(author key.Public, s dispute.Signed) []byte {
	return s.Append(append([]byte(nil), author[:]...))
}

// parseAuthored is the inverse of authored. The node checks signatures.
func parseAuthored(b []byte) (author key.Public, s dispute.Signed, ok bool) {
	if len(b) != len(author)+dispute.SignedBytes {
		return author, s, false
	}
	copy(author[:], b)
	s, err := dispute.ParseSigned(b[len(author):])
	return author, s, err == nil
}

// items returns the parts of an answer to a request for commitments.
func items(answer []byte) [][]byte {
	var out [][]byte
	r := wire.NewReader(answer)
	for r.Len() > 0 {
		b := r.Var(p2p.MaxGossip)
		if r.Err() != wire.OK {
			return nil
		}
		out = append(out, b)
	}
	return out
}
