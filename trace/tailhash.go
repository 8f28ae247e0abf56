package trace

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// stream is a blob that is read chunk by chunk, and each chunk in slices.
type stream interface {
	slices(chunk uint32) uint32
	reads(chunk, slice uint32) []Read
	bytes(chunk, slice uint32, in [][]uint32) []byte
}

const (
	hashWords  = 8          // a hash, in little-endian words
	stateWords = 8 + 16 + 2 // an unfinished SHA-256: see digest
)

// blob adds the operations that hash a stream of leaves chunks as merkle.Root does, and returns
// that of the root.
//
// The tree is that of RFC 6962, which splits n leaves at a power of two. Above eight leaves, a
// split is therefore at a multiple of eight, and eight leaves from a multiple of eight on are a
// subtree. So each level here computes the roots of groups of eight, which are the leaves of the
// next level.
func (d *codecTail) blob(name string, of func(at tailSite) stream, leaves uint32) uint32 {
	root := d.add(func(at tailSite) Op { return leavesOp(name, of(at), leaves) })
	for n := leaves; n > 1; n = eights(n) {
		below := root
		root = d.add(func(at tailSite) Op { return nodesOp(at, name, below, n) })
	}
	return root
}

// leavesOp hashes each chunk. A tile is the state of SHA-256 and, after the last slice, the leaf.
func leavesOp(name string, s stream, n uint32) Op {
	last := func(tile, slice uint32) bool { return slice+1 == s.slices(tile) }
	return funcOp{
		name: name + ": hash of each chunk", tiles: n, slices: s.slices, reads: s.reads,
		words: func(tile, slice uint32) int {
			if last(tile, slice) {
				return hashWords
			}
			return stateWords
		},
		step: func(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
			var h digest
			if slice == 0 {
				h.begin()
				h.write(w, []byte{0}) // the prefix of merkle.Leaf
			} else {
				h.resume(acc)
			}
			h.write(w, s.bytes(tile, slice, in))
			if !last(tile, slice) {
				return h.suspend()
			}
			return hashToWords(h.sum())
		},
	}
}

// nodesOp makes the root of each group of eight hashes.
func nodesOp(at tailSite, name string, below, count uint32) Op {
	return funcOp{
		name: name + ": tree over the chunks", tiles: eights(count), words: words(hashWords),
		reads: func(tile, _ uint32) []Read {
			from, to := eight(count, tile)
			return at.values(below, from, to)
		},
		step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
			hashes := make([]merkle.Hash, len(in))
			for i := range in {
				hashes[i] = wordsToHash(in[i])
			}
			return hashToWords(merkle.Root(hashes))
		},
	}
}

func hashToWords(h wire.Hash) []uint32 {
	w := make([]uint32, hashWords)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(h[4*i:])
	}
	return w
}

func wordsToHash(words []uint32) (h wire.Hash) {
	for i, w := range words[:hashWords] {
		binary.LittleEndian.PutUint32(h[4*i:], w)
	}
	return h
}
