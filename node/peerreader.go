package node

import (
	"context"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// PeerReader is somebody who does not take part in a run and wants to look at what its members did: it asks them for commitments and fetches
// blobs, and serves nothing. To be let in by the members it must have announced its addresses on the ledger, as those who join do.
type PeerReader struct {
	run     wire.Hash
	network p2p.Network
}

// Authored is a signed commitment and its author's key, against which the signature was checked.
type Authored struct {
	Author key.Public
	Signed coordinator.Signed
}

// NewPeerReader joins the peers of a run, known by its identity. Close must be called.
func NewPeerReader(run wire.Hash, listen func(p2p.Handler) (p2p.Network, error)) (*PeerReader, error) {
	network, err := listen(absent{})
	if err != nil {
		return nil, err
	}
	return &PeerReader{run: run, network: network}, nil
}

// Addrs are the addresses to announce.
func (p *PeerReader) Addrs() []string { return p.network.Addrs() }

// Connect names the peers to be connected with.
func (p *PeerReader) Connect(peers []p2p.Peer) { p.network.Connect(peers) }

// Close leaves the peers.
func (p *PeerReader) Close() error { return p.network.Close() }

// Commitments asks a peer for all commitments it holds of members to their shares of a round. What it answers is checked: every
// commitment is of the run, of the round and of one of the members, and signed; that the author is the member is for the caller to
// compare. The error says that the peer did not answer, or not in the form.
func (p *PeerReader) Commitments(ctx context.Context, from key.Public, round uint32, members []uint32) ([]Authored, error) {
	type answer struct {
		bytes []byte
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answers := make(chan answer, 1)
	p.network.Ask(ctx, from, appendQuestion(nil, round, members), func(b []byte, err error) { answers <- answer{b, err} })
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
		author, signed, ok := parseAuthored(p.run, b, coordinator.Signed.Verify)
		if !ok || signed.Commitment.Round != round || !slices.Contains(members, signed.Commitment.Member) {
			return nil, p2p.ErrMalformed
		}
		found = append(found, Authored{author, signed})
	}
	return found, nil
}

// Fetch gets a blob from whoever of the peers has it.
func (p *PeerReader) Fetch(ctx context.Context, ref p2p.Ref, from []key.Public) ([]byte, error) {
	type answer struct {
		bytes []byte
		err   error
	}
	answers := make(chan answer, 1)
	p.network.Fetch(ctx, p2p.Fetch{Ref: ref, From: from}, func(b []byte, err error) { answers <- answer{b, err} })
	a := <-answers
	return a.bytes, a.err
}

// absent is a guest as the network sees it: it has nothing to say and passes nothing on.
type absent struct{}

func (absent) Gossip(key.Public, []byte) p2p.Verdict  { return p2p.Ignore }
func (absent) Answer(key.Public, []byte) []byte       { return nil }
func (absent) Leaves(wire.Hash) ([]wire.Hash, bool)   { return nil, false }
func (absent) Chunk(wire.Hash, uint32) ([]byte, bool) { return nil, false }
