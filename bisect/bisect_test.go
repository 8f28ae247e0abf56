package bisect

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

func leaf(i int) wire.Hash { return wire.Sum("test/leaf", fmt.Append(nil, i)) }

func leavesOf(n int) []wire.Hash {
	list := make([]wire.Hash, n)
	for i := range list {
		list[i] = leaf(i)
	}
	return list
}

func TestDepth(t *testing.T) {
	for _, c := range []struct {
		n    uint32
		want uint8
	}{{0, 0}, {1, 0}, {2, 1}, {16, 1}, {17, 2}, {256, 2}, {257, 3}, {1 << 28, 7}, {1<<28 + 1, 8}, {1<<32 - 1, DepthMax}} {
		if got := Depth(c.n); got != c.want {
			t.Errorf("Depth(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

// slowRoot is the definition: pad to 16^d leaves, then halve.
func slowRoot(leaves []wire.Hash) wire.Hash {
	size := 1
	for size < len(leaves) {
		size *= 16
	}
	row := append([]wire.Hash(nil), leaves...)
	row = append(row, make([]wire.Hash, size-len(leaves))...)
	for len(row) > 1 {
		var next []wire.Hash
		for i := 0; i < len(row); i += 2 {
			next = append(next, wire.Sum("entrain/bisect", row[i][:], row[i+1][:]))
		}
		row = next
	}
	return row[0]
}

func TestRootIsThatOfThePaddedTree(t *testing.T) {
	for _, n := range []int{1, 2, 3, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1000} {
		leaves := leavesOf(n)
		if got, want := Root(leaves), slowRoot(leaves); got != want {
			t.Errorf("root of %d leaves is %v, want %v", n, got, want)
		}
		for i, h := range leaves {
			if h != leaf(i) {
				t.Fatalf("root of %d leaves changed leaf %d", n, i)
			}
		}
	}
	if Root(leavesOf(1)) != leaf(0) {
		t.Error("the root of one leaf is not that leaf")
	}
}

// The hashes are those of another implementation, in Python.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		name string
		got  wire.Hash
		want string
	}{
		{"no words", Leaf(nil), "0272a9fec56aeae01bd90738a1e5b56c82aa051fac35e7761b58eee44688f8e7"},
		{"two words", Leaf([]uint32{1, 0x80000000}), "f81c8f5ec6bf4ca884c1d91a9fe6c8a60bc50e99837cd14dcc363a2a2facaf55"},
		{"three leaves", Root([]wire.Hash{{1}, {2}, {3}}), "16c830f73debdf523e965519213c4072aa8ae6683f9cf8095682a51ca0c621bd"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, c.got, c.want)
		}
	}
}

// Whoever goes down from the root by Children arrives at every leaf, and each step hashes to the node above.
func TestDescent(t *testing.T) {
	for _, n := range []int{2, 16, 17, 300} {
		leaves := leavesOf(n)
		top := Depth(uint32(n))
		var down func(node wire.Hash, depth uint8, index uint32)
		down = func(node wire.Hash, depth uint8, index uint32) {
			if depth == 0 {
				want := wire.Hash{}
				if index < uint32(n) {
					want = leaves[index]
				}
				if node != want {
					t.Fatalf("of %d leaves, number %d is %v, want %v", n, index, node, want)
				}
				return
			}
			children := Children(leaves, depth, index)
			if Node(&children) != node {
				t.Fatalf("of %d leaves, the children of node %d at depth %d do not hash to it", n, index, depth)
			}
			for c, child := range children {
				down(child, depth-1, index*Fan+uint32(c))
			}
		}
		down(Root(leaves), top, 0)
	}
}

func TestProofs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "n")
		i := rapid.IntRange(0, n-1).Draw(t, "i")
		leaves := leavesOf(n)
		root, proof := Root(leaves), Prove(leaves, uint32(i))
		if !Check(root, leaves[i], uint32(i), uint32(n), proof) {
			t.Fatalf("proof of leaf %d of %d is refused", i, n)
		}
		if len(proof) != 4*int(Depth(uint32(n))) {
			t.Fatalf("proof of leaf %d of %d has %d siblings", i, n, len(proof))
		}
		if Check(root, leaf(-1), uint32(i), uint32(n), proof) {
			t.Error("another leaf is proven")
		}
		if Check(leaf(-1), leaves[i], uint32(i), uint32(n), proof) {
			t.Error("the leaf is proven under another root")
		}
		if j := rapid.IntRange(0, n-1).Draw(t, "j"); j != i && Check(root, leaves[i], uint32(j), uint32(n), proof) {
			t.Errorf("leaf %d is proven at place %d", i, j)
		}
		if Check(root, leaves[i], uint32(n), uint32(n), proof) {
			t.Error("a place beyond the leaves is proven")
		}
		if Check(root, leaves[i], uint32(i), uint32(n), append(proof, wire.Hash{})) {
			t.Error("a proof that is too long is taken")
		}
		if len(proof) > 0 {
			if Check(root, leaves[i], uint32(i), uint32(n), proof[1:]) {
				t.Error("a proof that is too short is taken")
			}
			k := rapid.IntRange(0, len(proof)-1).Draw(t, "k")
			proof[k][31] ^= 1
			if Check(root, leaves[i], uint32(i), uint32(n), proof) {
				t.Error("a proof with a changed sibling is taken")
			}
		}
	})
}

func TestPanics(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"root of nothing", func() { Root(nil) }},
		{"proof beyond", func() { Prove(leavesOf(3), 3) }},
		{"children of a leaf", func() { Children(leavesOf(3), 0, 0) }},
		{"children above the root", func() { Children(leavesOf(3), 2, 0) }},
		{"children beside the root", func() { Children(leavesOf(3), 1, 1) }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", c.name)
				}
			}()
			c.f()
		}()
	}
}

// FuzzCheck gives rubbish for a proof: it is refused without a panic.
func FuzzCheck(f *testing.F) {
	f.Add(uint32(3), uint32(17), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, i, n uint32, b []byte) {
		proof := make([]wire.Hash, 4*int(Depth(n)))
		for k := range proof {
			proof[k] = wire.Sum("test/fuzz", b, []byte{byte(k)})
		}
		if len(proof) > 0 && len(b) > 0 {
			proof = proof[:len(proof)-int(b[0]&1)]
		}
		if Check(wire.Hash{1}, wire.Hash{2}, i, n, proof) {
			t.Error("rubbish is a proof")
		}
	})
}
