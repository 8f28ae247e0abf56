package merkle

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRangesAreProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := make([]byte, rapid.IntRange(1, 70).Draw(t, "bytes"))
		for i := range data {
			data[i] = byte(i)
		}
		size := rapid.IntRange(1, 9).Draw(t, "size")
		leaves := PieceLeaves(data, uint32(size))
		n := uint64(len(leaves))
		if n != uint64((len(data)+size-1)/size) {
			t.Fatalf("%d bytes have %d pieces of %d", len(data), n, size)
		}
		from := rapid.Uint64Range(0, n-1).Draw(t, "from")
		to := rapid.Uint64Range(from+1, n).Draw(t, "to")
		root, proof := Root(leaves), ProveRange(leaves, from, to)
		if got := RangeProofLen(n, from, to); got != len(proof) {
			t.Fatalf("a proof of [%d, %d) of %d has %d hashes, not %d", from, to, n, len(proof), got)
		}
		part := append([]Hash(nil), leaves[from:to]...)
		if !CheckRange(root, part, from, n, proof) {
			t.Fatalf("[%d, %d) of %d is not proven", from, to, n)
		}
		if to == from+1 && !Check(root, part[0], from, n, Prove(leaves, from)) {
			t.Fatal("Prove and ProveRange prove different trees")
		}
		// Nothing else is proven.
		if from > 0 && CheckRange(root, part, from-1, n, proof) || to < n && CheckRange(root, part, from+1, n, proof) {
			t.Error("a range is proven in another place")
		}
		if CheckRange(root, part, from, n, append(proof[:len(proof):len(proof)], root)) {
			t.Error("a proof that is too long is taken")
		}
		if len(proof) > 0 && CheckRange(root, part, from, n, proof[:len(proof)-1]) {
			t.Error("a proof that is too short is taken")
		}
		part[rapid.IntRange(0, len(part)-1).Draw(t, "changed")][0] ^= 1
		if CheckRange(root, part, from, n, proof) {
			t.Error("another leaf is proven")
		}
	})
}

func TestRangesThatNoTreeHas(t *testing.T) {
	leaves := PieceLeaves([]byte("abcdef"), 1)
	for _, v := range []struct{ from, n uint64 }{{0, 1}, {5, 6}, {1 << 63, 6}, {^uint64(0), 6}, {0, 0}} {
		if CheckRange(Root(leaves), leaves[:2], v.from, v.n, nil) {
			t.Errorf("two leaves from %d of %d are proven", v.from, v.n)
		}
	}
	if CheckRange(Root(leaves), nil, 0, 6, nil) || CheckRange(Root(leaves), leaves, 0, 6, make([]Hash, 200)) {
		t.Error("no leaves, or a proof without end, are taken")
	}
}
