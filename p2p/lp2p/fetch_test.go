package lp2p

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/wire"
)

func TestABlobFromThreeOfWhomOneLiesAndOneDies(t *testing.T) {
	t.Parallel()
	ps := together(t, 4, nil)
	data := blob(32<<20, 1)
	ref := put(t, data, ps[1:]...)
	ps[1].corrupt = true
	dead := make(chan struct{})
	var once sync.Once
	ps[2].gotMu.Lock()
	ps[2].onChunk = func() {
		if ps[2].served() == 10 {
			once.Do(func() { go func() { ps[2].Close(); close(dead) }() })
		}
	}
	ps[2].gotMu.Unlock()
	var blamedMu sync.Mutex
	blamed := map[key.Public]p2p.Offence{}
	var last uint64
	got, err := fetch(t, ps[0], p2p.Fetch{
		Ref: ref, From: []key.Public{ps[1].Self(), ps[2].Self(), ps[3].Self()},
		Penalty: func(k key.Public, o p2p.Offence) {
			blamedMu.Lock()
			defer blamedMu.Unlock()
			blamed[k] = o
		},
		Progress: func(done, total uint64) { last = done },
	})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	<-dead
	if last != uint64(len(data)) {
		t.Errorf("the progress ended at %d of %d bytes", last, len(data))
	}
	if o, ok := blamed[ps[1].Self()]; !ok || o != p2p.Lied || len(blamed) != 1 {
		t.Errorf("blamed: %v", blamed)
	}
	if ps[3].served() < 60 {
		t.Errorf("the honest peer served %d of 128 chunks", ps[3].served())
	}
}

func TestAFetchIsResumedWithOthers(t *testing.T) {
	t.Parallel()
	ps := together(t, 3, nil)
	data := blob(8<<20+1, 2)
	ref := put(t, data, ps[1], ps[2])
	ctx, cancel := context.WithCancel(t.Context())
	_, err := wait(t, func(done func([]byte, error)) {
		ps[0].Fetch(ctx, p2p.Fetch{
			Ref: ref, From: []key.Public{ps[1].Self()},
			Progress: func(n, _ uint64) {
				if n > 4<<20 {
					cancel()
				}
			},
		}, done)
	})
	var fe *p2p.FetchError
	if !errors.As(err, &fe) || !errors.Is(err, context.Canceled) || fe.Held < 17 {
		t.Fatalf("the canceled fetch: %v", err)
	}
	got, err := fetch(t, ps[0], p2p.Fetch{Ref: ref, From: []key.Public{ps[2].Self()}, Have: fe.Chunk, Leaves: fe.Leaves()})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	if n := ps[2].served(); n != 33-int(fe.Held) {
		t.Errorf("%d chunks were fetched again, want %d", n, 33-fe.Held)
	}
}

// Another peer takes over from one that stalls. The one that stalls is given up, which a fetch that
// has no other peer shows: an honest one on a busy machine may stall as long.
func TestAPeerThatStallsIsGivenUp(t *testing.T) {
	t.Parallel()
	quick := beginWith(t, 0, times{late: 50 * time.Millisecond, stall: stallAfter, join: joinPatience}, nil)
	hasty := beginWith(t, 3, times{late: lateAfter, stall: 200 * time.Millisecond, join: joinPatience}, nil)
	ps := []*participant{quick, begin(t, 1, nil), begin(t, 2, nil), hasty}
	introduce(ps)
	data := blob(3<<20, 3)
	ref := put(t, data, ps[1], ps[2])
	release := make(chan struct{})
	defer close(release) // a peer ends after its answers
	ps[1].onChunk = func() { <-release }
	got, err := fetch(t, quick, p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self(), ps[2].Self()}})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	leaves, _ := ps[1].Leaves(ref.Root)
	var blamed p2p.Offence = 99
	_, err = fetch(t, hasty, p2p.Fetch{
		Ref: ref, From: []key.Public{ps[1].Self()}, Leaves: leaves,
		Penalty: func(_ key.Public, o p2p.Offence) { blamed = o },
	})
	if !errors.Is(err, p2p.ErrStalled) || !errors.Is(err, p2p.ErrNoPeers) || blamed != p2p.Stalled {
		t.Errorf("got %v, blamed for %v", err, blamed)
	}
}

func TestABlobNobodyHoldsAndOneTooLarge(t *testing.T) {
	ps := together(t, 3, nil)
	_, err := fetch(t, ps[0], p2p.Fetch{Ref: p2p.Ref{Size: 1 << 20}, From: []key.Public{ps[1].Self(), ps[2].Self(), secret(50).Public()}})
	for _, want := range []error{p2p.ErrNoPeers, p2p.ErrMissing, p2p.ErrUnknownPeer} {
		if !errors.Is(err, want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, err := fetch(t, ps[0], p2p.Fetch{Ref: p2p.Ref{Size: p2p.MaxBlob + 1}}); !errors.Is(err, p2p.ErrTooLarge) {
		t.Errorf("a blob beyond the limit: %v", err)
	}
}

func TestManyFetchesShareOnePeer(t *testing.T) {
	t.Parallel()
	ps := together(t, 2, nil)
	const n = fetchesMax + 64 // some wait
	var all sync.WaitGroup
	for i := range n {
		data := blob(merkle.ChunkBytes+i, byte(i))
		ref := put(t, data, ps[1])
		all.Add(1)
		ps[0].Fetch(t.Context(), p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}, func(b []byte, err error) {
			defer all.Done()
			if err != nil || !bytes.Equal(b, data) {
				t.Errorf("fetch %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if ps[0].gate.weight(ps[1].Self(), time.Now()) != 0 || ps[1].gate.weight(ps[0].Self(), time.Now()) != 0 {
		t.Error("honest peers hold something against each other")
	}
}

// zeros serves a blob of zeros of any size.
type zeros struct {
	p2p.Handler
	ref    p2p.Ref
	leaves []wire.Hash
}

func newZeros(chunks uint64) zeros {
	leaves := slices.Repeat([]wire.Hash{merkle.Leaf(make([]byte, merkle.ChunkBytes))}, int(chunks))
	return zeros{ref: p2p.Ref{Root: merkle.Root(leaves), Size: chunks * merkle.ChunkBytes}, leaves: leaves}
}

func (z zeros) Leaves(root wire.Hash) ([]wire.Hash, bool) { return z.leaves, root == z.ref.Root }

func (z zeros) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	return make([]byte, merkle.ChunkBytes), root == z.ref.Root
}

// The leaves of a blob of 9 GiB come from two peers, and then chunks do, until the fetch is cut off. The blob's
// memory is not touched, but a machine with less has none of it.
func TestTheBeginningOfABlobOf9GiB(t *testing.T) {
	campaign.Only(t)
	large := newZeros(p2p.MaxChunks * 9 / 8)
	ps := together(t, 3, func(o *Options) {
		served := large
		served.Handler = o.Handler
		o.Handler = served
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := wait(t, func(done func([]byte, error)) {
		ps[0].Fetch(ctx, p2p.Fetch{
			Ref: large.ref, From: []key.Public{ps[1].Self(), ps[2].Self()},
			Progress: func(n, _ uint64) {
				if n > 16<<20 {
					cancel()
				}
			},
		}, done)
	})
	var fe *p2p.FetchError
	if !errors.As(err, &fe) || !errors.Is(err, context.Canceled) || fe.Held < 65 || !slices.Equal(fe.Leaves(), large.leaves) {
		t.Errorf("the fetch that was cut off: %v", err)
	}
}
