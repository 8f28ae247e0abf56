package participant

import (
	"context"
	"errors"
	"sync"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A BucketGuest reads what members of a run publish in their buckets, and checks all of it. It
// takes no part in the run, and nobody knows of it.
type BucketGuest struct {
	client  ledger.Chain
	run     string
	buckets *bucket.Client
	reader  *bucket.Reader
	loop    *loop.Real
	params  *node.BucketReader
	stop    context.CancelFunc
	ended   chan error
}

// VisitBuckets returns a guest of the run with that name and identity. initial and kept are as in
// [node.Config]. The caller closes it, and then the engine.
func VisitBuckets(client ledger.Chain, run string, id wire.Hash, e engine.Engine, initial func() []float32, kept p2p.ChunkStore) *BucketGuest {
	buckets := bucket.NewClient(bucket.S3Options{Public: !onchain.AllPrivate(client.Endpoints())})
	g := &BucketGuest{client: client, run: run, buckets: buckets, reader: bucket.NewReader(buckets.Open, bucket.Options{}), loop: loop.NewReal(), ended: make(chan error, 1)}
	g.params = node.NewBucketReader(id, g.loop, e, bucket.NewExchange(g.loop, nil, g.reader, bucket.ExchangeOptions{}), initial, kept)
	working, stop := context.WithCancel(context.Background())
	g.stop = stop
	go func() { g.ended <- g.loop.Run(working) }()
	return g
}

// Close gives up what is under way.
func (g *BucketGuest) Close() error {
	g.stop()
	<-g.ended
	err := g.params.Close()
	g.buckets.Close()
	return err
}

// Params returns the parameters with the given hash, which the run in state s agreed on for the
// start of a round. If held is not nil, they are patched from those of the start of round from.
func (g *BucketGuest) Params(ctx context.Context, s coordinator.State, round coordinator.Round, root wire.Hash, from coordinator.Round, held []float32) ([]float32, error) {
	members, err := peersOf(ctx, g.client, g.run)
	if err != nil {
		return nil, err
	}
	var have func() []float32
	if held != nil {
		have = func() []float32 { return held }
	}
	type answer struct {
		values func() []float32
		err    error
	}
	answers := make(chan answer, 1)
	g.loop.Post(func() {
		g.params.Connect(members)
		g.params.Model(ctx, s, from, have, round, root, func(values func() []float32, err error) { answers <- answer{values, err} })
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		values := a.values()
		if merkle.BlobRoot(tensor.Bytes(values)) != root {
			return nil, errors.New("what the members' buckets have does not lead to the agreed parameters")
		}
		return values, nil
	}
}

// Commitments calls each with the commitment of each of the members to a window, of which the
// chain has the identity, or with why there is none; never concurrently. It waits little for a
// bucket, and asks many at once: a gang whose buckets do not answer could have an auditor come too
// late for the results of the others.
func (g *BucketGuest) Commitments(ctx context.Context, s coordinator.State, r coordinator.RoundState, members []coordinator.Member, each func(coordinator.Member, dispute.Signed, error)) {
	var at map[key.Public]bucket.Location
	asking, cancel := context.WithTimeout(ctx, readFor)
	peers, err := peersOf(asking, g.client, g.run)
	cancel()
	if err == nil {
		at = bucketsOf(peers)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, guestParallel)
	for _, m := range members {
		slots <- struct{}{}
		work.Go(func() {
			signed, err := dispute.Signed{}, err
			if err == nil {
				signed, err = g.commitment(ctx, s, r, m, at)
			}
			<-slots
			mu.Lock()
			defer mu.Unlock()
			each(m, signed, err)
		})
	}
	work.Wait()
}

// guestParallel is how many buckets a guest asks for a commitment at once.
const guestParallel = 64

// commitment returns the commitment of a member to a window from its bucket, one of those at.
func (g *BucketGuest) commitment(ctx context.Context, s coordinator.State, r coordinator.RoundState, member coordinator.Member, at map[key.Public]bucket.Location) (dispute.Signed, error) {
	id, ok := r.Committed(member)
	if !ok {
		return dispute.Signed{}, errors.New("it committed to no result")
	}
	author := s.Key(member)
	where, ok := at[author]
	if !ok {
		return dispute.Signed{}, errors.New("it has announced no bucket")
	}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	name := bucket.Name{Run: s.ID(), Window: r.Number(), Kind: bucket.KindCommitment, Member: author, Content: id}
	body, err := g.reader.Get(ctx, bucket.Want{Location: where, Name: name, Max: dispute.SignedBytes})
	if err != nil {
		return dispute.Signed{}, err
	}
	signed, err := dispute.ParseSigned(body)
	if err == nil && (signed.Commitment.ID() != id || !signed.Verify(author)) {
		err = errors.New("its bucket has a different commitment than the chain")
	}
	return signed, err
}

// peersOf returns what members of a run have announced.
func peersOf(ctx context.Context, client ledger.Chain, run string) ([]host.Peer, error) {
	type answer struct {
		peers []host.Peer
		err   error
	}
	answers := make(chan answer, 1)
	client.Peers(ctx, run, func(found []host.Peer, err error) { answers <- answer{found, err} })
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case a := <-answers:
		return a.peers, a.err
	}
}

// bucketsOf returns where peers say that their buckets are.
func bucketsOf(peers []host.Peer) map[key.Public]bucket.Location {
	found := make(map[key.Public]bucket.Location)
	for _, p := range peers {
		for _, addr := range p.Addrs {
			if at, err := bucket.ParseLocation(addr); err == nil {
				found[p.Key] = at
				break
			}
		}
	}
	return found
}
