// Package merkle commits to a list of byte strings by one hash, and proves that an element is in
// the list.
//
// The tree is that of RFC 6962 (Certificate Transparency), section 2.1, so every list has one root
// and the roots of different lists differ:
//
//	leaf  = sha256(0x00 | data)
//	node  = sha256(0x01 | left | right)
//	Root of no leaves     = sha256("")
//	Root of one leaf      = that leaf
//	Root of n > 1 leaves  = node(Root of the first k, Root of the others),
//	                        where k is the largest power of two below n
//
// For five leaves, a proof for c is [d, ab, e]: the siblings met on the way up, lowest first.
//
//	          root
//	        /      \
//	    abcd        e
//	   /    \
//	  ab     cd
//	 /  \   /  \
//	a    b c    d
//
// Blobs. A blob is a byte string of any size; its name is its BlobRoot: the root over the leaves of
// its chunks of ChunkBytes (the last may be shorter; the empty blob is one empty chunk). A receiver
// that knows the name and the size can check each chunk as it arrives, from any sender. The hash
// of a model's parameters is the BlobRoot of their little-endian float32 bytes, so the transfer of
// a model is the transfer of a blob.
//
// The package is replicated (see package wire).
package merkle

import (
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// Hash is the hash of a leaf, a node or a root.
type Hash = wire.Hash

// Leaf returns the hash of one element: sha256(0x00 | data).
func Leaf(data []byte) Hash {
	return wire.SHA256([]byte{0}, data)
}

// node returns the hash of two subtrees: sha256(0x01 | left | right).
func node(left, right Hash) Hash {
	var b [65]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[33:], right[:])
	return wire.SHA256(b[:])
}

// Root returns the root over the leaves' hashes, in their order.
func Root(leaves []Hash) Hash {
	var t Tree
	for _, l := range leaves {
		t.Add(l)
	}
	return t.Root()
}

// split returns the number of leaves in the left subtree of a tree of n > 1 leaves: the largest
// power of two below n.
func split(n uint64) uint64 {
	return 1 << (bits.Len64(n-1) - 1)
}

// Prove returns the proof that leaf i is in the tree over leaves: the siblings on its way to the
// root, lowest first, at most 64 of them. It hashes every other leaf once. It panics when there is
// no leaf i.
func Prove(leaves []Hash, i uint64) []Hash {
	n := uint64(len(leaves))
	if i >= n {
		panic("merkle: proof of a leaf beyond the tree")
	}
	var proof []Hash // from the root down
	for n > 1 {
		k := split(n)
		if i < k {
			proof = append(proof, Root(leaves[k:]))
			leaves, n = leaves[:k], k
		} else {
			proof = append(proof, Root(leaves[:k]))
			leaves, n, i = leaves[k:], n-k, i-k
		}
	}
	for a, b := 0, len(proof)-1; a < b; a, b = a+1, b-1 {
		proof[a], proof[b] = proof[b], proof[a]
	}
	return proof
}

// Check reports whether proof shows that leaf is number i of the n leaves under root. It follows
// RFC 9162, section 2.1.3.2, and computes at most 64 hashes on any input. The caller must trust n
// as it trusts root: a proof shows where the leaf is in a tree of n leaves, not that the
// tree has n.
func Check(root, leaf Hash, i, n uint64, proof []Hash) bool {
	h, ok := Climb(leaf, i, n, proof)
	return ok && h == root
}

// Climb returns the root to which proof leads from leaf, number i of n. ok is false if proof cannot
// prove such a leaf: it is too short or too long, or i is not below n. Climb computes at most 64
// hashes.
func Climb(leaf Hash, i, n uint64, proof []Hash) (root Hash, ok bool) {
	if i >= n || len(proof) > 64 {
		return Hash{}, false
	}
	h, at, last := leaf, i, n-1
	for _, p := range proof {
		if last == 0 {
			return Hash{}, false // longer than the way to the root
		}
		if at&1 == 1 || at == last {
			h = node(p, h)
			for at&1 == 0 && at != 0 { // a lone right edge rises without a sibling
				at, last = at>>1, last>>1
			}
		} else {
			h = node(h, p)
		}
		at, last = at>>1, last>>1
	}
	return h, last == 0
}
