package trace

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// ErrEvidence is wrapped by the errors of Judge: the bytes prove nothing.
var ErrEvidence = errors.New("no evidence")

// appendWords appends words, little endian.
func appendWords(dst []byte, words []uint32) []byte {
	for _, w := range words {
		dst = wire.AppendU32(dst, w)
	}
	return dst
}

// appendPath appends the path from the hash of a slice to the root of a trace: the proof that it is
// under its tile, the tile's leaf and the proof that it is under its operation, the operation's
// leaf and the proof that it is under the root.
func appendPath(dst []byte, slice, tiles []wire.Hash, tile uint32, ops []wire.Hash, op uint32) []byte {
	dst = appendHashes(dst, slice)
	dst = appendHashes(wire.AppendHash(dst, tiles[tile]), bisect.Prove(tiles, tile))
	return appendHashes(wire.AppendHash(dst, ops[op]), bisect.Prove(ops, op))
}

func appendHashes(dst []byte, hashes []wire.Hash) []byte {
	for _, h := range hashes {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

// Judge computes slice number slice of a tile of an operation of p and returns the hash of its true
// words, bisect.Leaf unless the operation is a Leafer. The evidence must prove the words that the
// slice continues from and reads: they are under the root trace, which a party claims, or, for
// external inputs, open accepts them. Any error wraps ErrEvidence and means that the evidence
// proves nothing.
//
// Judge computes in plain Go, which is the definition. It depends only on its arguments, on every
// machine, and takes a bounded time.
func Judge(p Program, open Opener, op, tile, slice uint32, trace wire.Hash, evidence []byte) (wire.Hash, error) {
	kernels := exact.Kernels() // the last is plain Go, which is the definition
	h, bad := JudgeOn(exact.NewWorker(kernels[len(kernels)-1]), p, open, op, tile, slice, trace, evidence)
	switch {
	case bad == nil:
		return h, nil
	case bad.Err != nil:
		return wire.Hash{}, fmt.Errorf("%w: operation %d: %w", ErrEvidence, op, bad.Err)
	case bad.Op < p.Len():
		return wire.Hash{}, fmt.Errorf("%w: operation %d: %s: tile %d of operation %d, %s", ErrEvidence, op, bad.What, bad.Tile, bad.Op, p.Op(bad.Op).Name())
	}
	return wire.Hash{}, fmt.Errorf("%w: operation %d: %s", ErrEvidence, op, bad.What)
}

// ProveChunk proves a chunk of a blob of floats with the given leaves (merkle.BlobLeaves): it
// returns the chunk's bytes, then the proof that it is under the blob's root.
func ProveChunk(blob []float32, leaves []wire.Hash, i uint32) []byte {
	return appendHashes(appendWords(nil, chunk(blob, i)), merkle.Prove(leaves, uint64(i)))
}
