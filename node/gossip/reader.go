package gossip

import (
	"context"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Reader reads what the members of a run made, for a program that takes no part in it. It asks
// them for commitments, fetches blobs and serves at most one. Members let it in once it has
// announced its addresses on the ledger, as those who join do.
type Reader struct {
	run     wire.Hash
	network p2p.Network
}

// A Listener takes the commitments that members gossip. Network goroutines call it.
type Listener interface {
	// Wants reports whether a commitment may matter, before its signature is checked.
	Wants(author key.Public, c *dispute.Commitment) bool
	// Heard takes one that was wanted and is signed by its author.
	Heard(Authored)
}

// NewReader joins the peers of the run with this identity. With a Listener it takes their
// gossip too, and it serves gift, if that is not nil. Close must be called.
func NewReader(run wire.Hash, to Listener, gift []byte, listen func(p2p.Handler) (p2p.Network, error)) (*Reader, error) {
	given := blobs.New()
	if gift != nil {
		given.PutPayload(0, gift)
	}
	network, err := listen(absent{run, to, given})
	if err != nil {
		return nil, err
	}
	return &Reader{run: run, network: network}, nil
}

// Addrs returns the addresses to announce.
func (p *Reader) Addrs() []string { return p.network.Addrs() }

// Connect names the peers to connect to.
func (p *Reader) Connect(peers []p2p.Peer) { p.network.Connect(peers) }

// Close leaves the peers.
func (p *Reader) Close() error { return p.network.Close() }

// Commitments asks a peer for the commitments that it holds of members in a round. Each is checked
// to be of the run, the round and one of the members, and signed; the caller compares its author
// with the member. The error says that the peer did not answer, or not in the right form.
func (p *Reader) Commitments(ctx context.Context, from key.Public, round coordinator.Round, members []coordinator.Member) ([]Authored, error) {
	type answer struct {
		bytes []byte
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	answers := make(chan answer, 1)
	p.network.Ask(ctx, from, AppendQuestion(nil, round, members), func(b []byte, err error) { answers <- answer{b, err} })
	a := <-answers
	if a.err != nil {
		return nil, a.err
	}
	var found []Authored
	for r := wire.NewReader(a.bytes); r.Len() > 0; {
		b := r.Var(p2p.MaxGossip)
		if r.Err() != wire.OK {
			return nil, p2p.ErrMalformed
		}
		c, ok := Read(b)
		if !ok || c.Signed.Commitment.Run != p.run || !c.Verify() || c.Signed.Commitment.Round != round ||
			!slices.Contains(members, c.Signed.Commitment.Member) {
			return nil, p2p.ErrMalformed
		}
		found = append(found, *c)
	}
	return found, nil
}

// Fetch gets a blob from peers that have it.
func (p *Reader) Fetch(ctx context.Context, f p2p.Fetch) ([]byte, error) {
	type answer struct {
		bytes []byte
		err   error
	}
	answers := make(chan answer, 1)
	p.network.Fetch(ctx, f, func(b []byte, err error) { answers <- answer{b, err} })
	a := <-answers
	return a.bytes, a.err
}

// absent is a peer that made nothing: it serves what it was given, and passes on only what it
// listens to.
type absent struct {
	run wire.Hash
	to  Listener
	*blobs.Store
}

func (a absent) Gossip(from key.Public, data []byte) p2p.Verdict {
	if a.to == nil {
		return p2p.Ignore
	}
	c, ok := Read(data)
	switch {
	case !ok || c.Signed.Commitment.Run != a.run || c.Author != from:
		return p2p.Reject
	case !a.to.Wants(c.Author, &c.Signed.Commitment):
		return p2p.Ignore
	case !c.Verify():
		return p2p.Reject
	}
	a.to.Heard(*c)
	return p2p.Accept
}

func (absent) Answer(key.Public, []byte) []byte { return nil }
