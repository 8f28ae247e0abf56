package trace

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// stream is a blob read chunk by chunk, a chunk in slices.
type stream interface {
	slices(chunk uint32) uint32
	reads(chunk, slice uint32) []Read
	bytes(chunk, slice uint32, in [][]uint32) []byte
}

const (
	hashWords  = 8          // a hash, in little-endian words
	stateWords = 8 + 16 + 2 // a SHA-256 that goes on: see words of a digest
)

// blob adds the operations that hash a stream of so many bytes as merkle.BlobRoot does, and returns
// that of the root.
//
// The tree is that of RFC 6962. Eight neighbours, from a multiple of eight on, are a subtree in it,
// and the roots of these are the leaves of a tree whose root is the same: each split is at a power
// of two, and above eight leaves at a multiple of eight. So the tree is made in levels of eight.
func (d *codecTail) blob(name string, of func(at tailSite) stream, size int) uint32 {
	leaves := chunks(size)
	root := d.add(func(at tailSite) Op { return leavesOp(name, of(at), leaves) })
	for n := leaves; n > 1; n = eights(n) {
		below := root
		root = d.add(func(at tailSite) Op { return nodesOp(at, name, below, n) })
	}
	return root
}

// leavesOp hashes each chunk: a tile is the state of SHA-256, in the end the leaf.
func leavesOp(name string, s stream, n uint32) Op {
	last := func(tile, slice uint32) bool { return slice+1 == s.slices(tile) }
	return made{
		name: name + ": hash of each chunk", tiles: n, slices: s.slices, reads: s.reads,
		words: func(tile, slice uint32) int {
			if last(tile, slice) {
				return hashWords
			}
			return stateWords
		},
		step: func(_ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
			h := sha256.New()
			if slice == 0 {
				h.Write([]byte{0}) // what merkle.Leaf begins with
			} else {
				goOn(h, acc)
			}
			h.Write(s.bytes(tile, slice, in))
			if !last(tile, slice) {
				return suspended(h)
			}
			var leaf wire.Hash
			h.Sum(leaf[:0])
			return hashToWords(leaf)
		},
	}
}

// nodesOp makes of each eight hashes the root over them.
func nodesOp(at tailSite, name string, below, count uint32) Op {
	return made{
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

// digestMagic is what the state of a SHA-256 begins with when crypto/sha256 writes it: then come
// the 8 words of the state, the 64 bytes of the block that is not full, and how many bytes there
// were, big-endian.
const digestMagic = "sha\x03"

// suspended returns a SHA-256 that goes on later, as words: what crypto/sha256 writes of it after
// the magic, each four bytes a big-endian word.
func suspended(h hash.Hash) []uint32 {
	b, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil || len(b) != len(digestMagic)+4*stateWords || string(b[:len(digestMagic)]) != digestMagic {
		panic("trace: crypto/sha256 writes its state in another form than it did")
	}
	w := make([]uint32, stateWords)
	for i := range w {
		w[i] = binary.BigEndian.Uint32(b[len(digestMagic)+4*i:])
	}
	return w
}

// goOn is the inverse of suspended. It takes all words: whatever they are, they are the state of
// some hash.
func goOn(h hash.Hash, words []uint32) {
	b := []byte(digestMagic)
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(b); err != nil {
		panic("trace: crypto/sha256 reads its state in another form than it did: " + err.Error())
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
