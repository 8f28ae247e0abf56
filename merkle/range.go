package merkle

// PieceLeaves returns the leaves of the pieces of data of size bytes each, of which the last may be
// shorter; of empty data one empty piece.
func PieceLeaves(data []byte, size uint32) []Hash {
	leaves := make([]Hash, 0, uint64(len(data))/uint64(size)+1)
	for uint64(len(data)) > uint64(size) {
		leaves, data = append(leaves, Leaf(data[:size])), data[size:]
	}
	return append(leaves, Leaf(data))
}

// ProveRange returns the proof that leaves [from, to) are in the tree over leaves: the roots of the
// largest subtrees beside the range, from left to right. It panics unless from < to and there are
// to leaves.
func ProveRange(leaves []Hash, from, to uint64) []Hash {
	if from >= to || to > uint64(len(leaves)) {
		panic("merkle: proof of a range beyond the tree")
	}
	return appendRange(nil, leaves, from, to)
}

func appendRange(proof, leaves []Hash, from, to uint64) []Hash {
	n := uint64(len(leaves))
	switch {
	case from >= to:
		return append(proof, Root(leaves))
	case from == 0 && to == n:
		return proof
	}
	k := split(n)
	proof = appendRange(proof, leaves[:k], min(from, k), min(to, k))
	return appendRange(proof, leaves[k:], max(from, k)-k, max(to, k)-k)
}

// RangeProofLen returns the number of hashes in ProveRange's proof of leaves [from, to) of n.
func RangeProofLen(n, from, to uint64) int {
	switch {
	case from >= to:
		return 1
	case from == 0 && to == n:
		return 0
	}
	k := split(n)
	return RangeProofLen(k, min(from, k), min(to, k)) + RangeProofLen(n-k, max(from, k)-k, max(to, k)-k)
}

// CheckRange reports whether proof shows that leaves are those from number from on of the n leaves
// under root. The caller must trust n as it trusts root: see Check.
func CheckRange(root Hash, leaves []Hash, from, n uint64, proof []Hash) bool {
	to := from + uint64(len(leaves))
	if len(leaves) == 0 || to < from || to > n || len(proof) > 128 {
		return false
	}
	r := ranged{leaves, proof}
	h, ok := r.root(n, from, to)
	return ok && len(r.proof) == 0 && h == root
}

// ranged is what is left of a range and its proof.
type ranged struct{ leaves, proof []Hash }

// root returns the root of a subtree of n leaves, of which [from, to) are in the range.
func (r *ranged) root(n, from, to uint64) (h Hash, ok bool) {
	switch {
	case from >= to:
		if len(r.proof) == 0 {
			return h, false
		}
		h, r.proof = r.proof[0], r.proof[1:]
		return h, true
	case from == 0 && to == n:
		h, r.leaves = Root(r.leaves[:n]), r.leaves[n:]
		return h, true
	}
	k := split(n)
	left, ok := r.root(k, min(from, k), min(to, k))
	if !ok {
		return h, false
	}
	right, ok := r.root(n-k, max(from, k)-k, max(to, k)-k)
	return node(left, right), ok
}
