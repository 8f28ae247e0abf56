package node

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// exchange is how a member comes by what the others made, and they by what it made. In a run of peers these talk with each other
// (peers); in a run of buckets everybody writes to a bucket of its own and reads the others' (buckets). All methods are called on the
// loop and return at once; what they call back, they call on the loop, and not before they have returned.
//
// What comes is not believed: a commitment counts by its signature and, in a run of buckets, by its ID on the ledger; a payload by the root
// in its commitment; a model by the hash that the run agreed on.
type exchange interface {
	// publish shows the others the own commitment of a round, as gossip carries it. It may be called again.
	publish(round uint32, authored []byte)

	// askCommitments looks for commitments of others; what is found goes to Node.received.
	askCommitments(a client.AskCommitments)

	// askSpans asks what was given to a member in a round that is no longer in the state.
	askSpans(a client.AskSpans)

	// fetchPayload gets the bytes of a committed payload, from whoever has them.
	fetchPayload(ctx context.Context, a client.FetchPayload, done func(payload []byte, err error))

	// fetchModel gets the parameters with a hash; have is what is held, nil if that is nothing. The model is made off the loop, by make.
	fetchModel(ctx context.Context, a client.Heal, have *version, progress func(done, total uint64), done func(model fetched, err error))

	// fetchBlob gets an optimizer state or parameters for a recomputation.
	fetchBlob(ctx context.Context, ref p2p.Ref, from []key.Public, done func(data []byte, err error))

	// reveal shows the slice of the own result; applied says that v came of an accepted set; putModel shows an epoch's parameters, which stay as
	// they are until done. entered says that a round has opened. Peers serve what they hold and are not told.
	reveal(a client.Reveal, body []byte, done func(error))
	applied(a client.Apply, v *version)
	putModel(round uint32, v *version, within time.Duration, done func(error))
	entered(round uint32)

	// addrs is where this member can be reached, as the ledger announces it; connect is told where the others can, and returns with how
	// many of them there is a connection.
	addrs() []string
	connect(others []host.Peer) (linked int)

	close() error
}

// fetched is a model that came from others. Its hash is not checked yet.
type fetched struct {
	make   func() []float32 // called off the loop
	source string           // for people
}

// peers is the exchange of those who talk with each other.
type peers struct {
	node    *Node
	network p2p.Network
}

func (p *peers) publish(_ uint32, authored []byte) {
	if err := p.network.Publish(authored); err != nil {
		p.node.note("gossip: " + err.Error())
	}
}

func (p *peers) askCommitments(a client.AskCommitments) {
	p.question(a.To, appendQuestion(nil, a.Round, a.Of), p.node.answered)
}

func (p *peers) askSpans(a client.AskSpans) {
	p.question(a.To, wire.AppendHash(wire.AppendU8(nil, questionSpans), a.Hash), p.node.answeredSpans)
}

// question asks a peer; answered is not called if nothing comes back: the machine asks another one in time.
func (p *peers) question(to key.Public, q []byte, answered func([]byte)) {
	ctx, cancel := p.node.within(askFor)
	p.network.Ask(ctx, to, q, func(answer []byte, err error) {
		p.node.cfg.Loop.Post(func() {
			cancel()
			if err == nil {
				answered(answer)
			}
		})
	})
}

func (p *peers) fetchPayload(ctx context.Context, a client.FetchPayload, done func([]byte, error)) {
	p.fetch(ctx, p2p.Fetch{Ref: p2p.Ref{Root: a.Payload, Size: uint64(a.PayloadBytes)}, From: a.From}, done)
}

func (p *peers) fetchBlob(ctx context.Context, ref p2p.Ref, from []key.Public, done func([]byte, error)) {
	p.fetch(ctx, p2p.Fetch{Ref: ref, From: from}, done)
}

func (p *peers) fetch(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	p.network.Fetch(ctx, f, func(data []byte, err error) {
		p.node.cfg.Loop.Post(func() { done(data, err) })
	})
}

// fetchModel fetches only the chunks that differ from those held.
func (p *peers) fetchModel(ctx context.Context, a client.Heal, have *version, progress func(done, total uint64), done func(fetched, error)) {
	n := p.node.cfg.Engine.ParamsLen()
	f := p2p.Fetch{
		Ref:  p2p.Ref{Root: a.Params, Size: uint64(n) * 4},
		From: a.From,
		Have: func(i uint32, leaf wire.Hash) []byte {
			if have == nil || int(i) >= len(have.leaves) || have.leaves[i] != leaf {
				return nil
			}
			return chunkOf(have.values, i)
		},
		Progress: progress,
	}
	p.fetch(ctx, f, func(data []byte, err error) {
		if err != nil {
			done(fetched{}, err)
			return
		}
		done(fetched{source: "the peers' model, verified", make: func() []float32 {
			values := make([]float32, n)
			tensor.SetBytes(values, data)
			return values
		}}, nil)
	})
}

func (p *peers) reveal(_ client.Reveal, _ []byte, done func(error)) {
	p.node.cfg.Loop.Post(func() { done(nil) })
}

func (p *peers) applied(client.Apply, *version) {}

func (p *peers) putModel(_ uint32, _ *version, _ time.Duration, done func(error)) {
	p.node.cfg.Loop.Post(func() { done(nil) })
}

func (p *peers) entered(uint32) {}

func (p *peers) addrs() []string { return p.network.Addrs() }

// connected is a network that has connections: it tells with how many of those that it was told of.
type connected interface{ Connected() int }

func (p *peers) connect(others []host.Peer) (linked int) {
	list := make([]p2p.Peer, len(others))
	for i, o := range others {
		list[i] = p2p.Peer{Key: o.Key, Addrs: o.Addrs}
	}
	p.network.Connect(list)
	if c, ok := p.network.(connected); ok {
		return c.Connected()
	}
	return len(others)
}

func (p *peers) close() error { return p.network.Close() }

// chunkOf encodes chunk i of a blob of numbers.
func chunkOf(values engine.Vector, i uint32) []byte {
	const floats = merkle.ChunkBytes / 4
	from := int(i) * floats
	return tensor.AppendBytes(nil, values.Host(from, min(from+floats, values.Len())))
}
