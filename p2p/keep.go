package p2p

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A ChunkStore keeps chunks on this machine by their leaves. It may lose any of them, and what it
// returns is verified.
type ChunkStore interface {
	// Get returns the chunk of size bytes with this leaf, nil if it is not there.
	Get(leaf wire.Hash, size uint64) []byte

	// Put keeps a chunk, if it can.
	Put(leaf wire.Hash, chunk []byte)

	// Drop removes a chunk.
	Drop(leaf wire.Hash)
}

// Resume makes f take chunks from a store where f.Have has none, and keep there what peers send. So
// after a crash the next fetch of the same blob continues. drop removes the blob's chunks from the
// store; call it after the fetch, once the blob is safe elsewhere.
func (f *Fetch) Resume(s ChunkStore) (drop func()) {
	have, ref := f.Have, f.Ref
	var kept []wire.Hash
	f.Have = func(i uint32, leaf wire.Hash) []byte {
		if have != nil {
			if b := have(i, leaf); b != nil {
				return b
			}
		}
		from, to := merkle.Chunk(ref.Size, uint64(i))
		b := s.Get(leaf, to-from)
		if b != nil {
			kept = append(kept, leaf)
		}
		return b
	}
	f.Keep = func(leaf wire.Hash, chunk []byte) {
		kept = append(kept, leaf)
		s.Put(leaf, chunk)
	}
	return func() {
		for _, leaf := range kept {
			s.Drop(leaf)
		}
	}
}

// Parts remembers in memory what fetches that failed have verified, for the next ones of the same
// blobs. So a blob that takes longer than the time of one fetch comes with several, and a peer that
// serves slowly holds up none of them for longer than before. It belongs to one goroutine.
type Parts struct {
	failed []failedFetch // oldest first
}

type failedFetch struct {
	*FetchError
	at time.Time
}

// What is remembered is forgotten after partsFor, and when the blobs have more than partsBytes: the
// update of a model of eight billion parameters.
const (
	partsFor   = 10 * time.Minute
	partsBytes = 1 << 30
)

// Continue returns f, which begins with what an earlier fetch has verified, if that is remembered.
func (p *Parts) Continue(f Fetch, now time.Time) Fetch {
	p.failed = slices.DeleteFunc(p.failed, func(e failedFetch) bool {
		if e.Ref != f.Ref {
			return now.Sub(e.at) > partsFor
		}
		have := f.Have
		f.Leaves, f.Have = e.Leaves(), func(i uint32, leaf wire.Hash) []byte {
			if b := e.Chunk(i, leaf); b != nil || have == nil {
				return b
			}
			return have(i, leaf)
		}
		return true
	})
	return f
}

// Fetch gets a blob on a loop, which continues an earlier fetch and is remembered itself.
func (p *Parts) Fetch(ctx context.Context, from Network, l Loop, f Fetch, done func([]byte, error)) {
	from.Fetch(ctx, p.Continue(f, l.Now()), func(data []byte, err error) {
		l.Post(func() {
			p.Ended(err, l.Now())
			done(data, err)
		})
	})
}

// Loop is what Parts needs of a loop.Loop.
type Loop interface {
	Now() time.Time
	Post(func())
}

// Ended takes the error of a fetch.
func (p *Parts) Ended(err error, now time.Time) {
	e, ok := errors.AsType[*FetchError](err)
	if !ok || e.Held == 0 || e.data == nil || e.Ref.Size > partsBytes { // in a file: see Fetch.Into
		return
	}
	p.failed = append(p.failed, failedFetch{e, now})
	total := uint64(0)
	for i := len(p.failed) - 1; i >= 0; i-- {
		if total += p.failed[i].Ref.Size; total > partsBytes {
			p.failed = slices.Delete(p.failed, 0, i+1)
			return
		}
	}
}
