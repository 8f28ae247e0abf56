package p2p

import (
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
