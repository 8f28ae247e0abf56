package node

import (
	"context"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// BucketReader gets the parameters of a run of buckets for a program that takes no part in it, such
// as a validator. Its methods are for the loop.
type BucketReader struct{ b *buckets }

// NewBucketReader reads the buckets of the run with this identity. initial and kept are as in
// [Config].
func NewBucketReader(id wire.Hash, l loop.Loop, e engine.Engine, x *bucket.Exchange, initial func() []float32, kept p2p.ChunkStore) *BucketReader {
	n := &Node{cfg: Config{ID: id, Loop: l, Engine: e, Initial: initial, Kept: kept}, machine: client.New(client.Config{})}
	n.slicer, _ = e.Slicer()
	return &BucketReader{newBuckets(n, &Bucket{Exchange: x})}
}

// Connect takes where the members' buckets are.
func (r *BucketReader) Connect(members []host.Peer) { r.b.connect(members) }

// Model gets the parameters that the run, whose state is s, agreed on for the start of a round.
// held returns those of the start of round from, nil if the caller has none. done is called on the
// loop, unless ctx ends before. held and values are called off the loop; the caller compares what
// values returns with the hash.
func (r *BucketReader) Model(ctx context.Context, s coordinator.State, from coordinator.Round, held func() []float32, round coordinator.Round, params wire.Hash, done func(values func() []float32, err error)) {
	r.b.node.state = s
	var have *base
	if held != nil {
		have = &base{round: from, values: held, text: heldParameters(from)}
	}
	r.b.fetchAgreed(ctx, client.Heal{Round: round, Params: params}, have, func(f fetched, err error) {
		if ctx.Err() != nil {
			return
		}
		done(func() []float32 {
			values := f.make()
			if f.safe != nil {
				f.safe()
			}
			return values
		}, err)
	})
}

// Close gives up what is under way.
func (r *BucketReader) Close() error { return r.b.close() }
