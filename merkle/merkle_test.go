package merkle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// The leaves and roots of the reference implementation of Certificate Transparency (google/certificate-transparency,
// cpp/merkletree/merkle_tree_test.cc).
var (
	referenceData  = []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	referenceRoots = []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", // of no leaves
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	referenceProofs = []struct {
		i, n  uint64
		proof []string
	}{
		{0, 1, nil},
		{0, 8, []string{
			"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
			"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
			"6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
		}},
		{5, 8, []string{
			"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
			"ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
			"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		}},
		{2, 3, []string{"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"}},
	}
)

func referenceLeaves(t *testing.T) []Hash {
	t.Helper()
	var leaves []Hash
	for _, s := range referenceData {
		data, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, Leaf(data))
	}
	return leaves
}

func TestReferenceVectors(t *testing.T) {
	leaves := referenceLeaves(t)
	var tree Tree
	for n, want := range referenceRoots {
		if n > 0 {
			tree.Add(leaves[n-1])
		}
		if got := Root(leaves[:n]).String(); got != want {
			t.Errorf("root of %d leaves is %s, want %s", n, got, want)
		}
		if got := tree.Root().String(); got != want || tree.Len() != uint64(n) {
			t.Errorf("tree of %d leaves (it says %d) has root %s, want %s", n, tree.Len(), got, want)
		}
	}
	for _, c := range referenceProofs {
		var got []string
		proof := Prove(leaves[:c.n], c.i)
		for _, h := range proof {
			got = append(got, h.String())
		}
		if !slices.Equal(got, c.proof) {
			t.Errorf("proof of leaf %d of %d is %s, want %s", c.i, c.n, got, c.proof)
		}
		if !Check(Root(leaves[:c.n]), leaves[c.i], c.i, c.n, proof) {
			t.Errorf("proof of leaf %d of %d is refused", c.i, c.n)
		}
	}
}

// numbered returns n leaves, all different.
func numbered(n int) []Hash {
	leaves := make([]Hash, n)
	for i := range leaves {
		leaves[i] = Leaf(fmt.Appendf(nil, "leaf %d", i))
	}
	return leaves
}

// definition is the root as RFC 6962, section 2.1, words it.
func definition(leaves []Hash) Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	left, right := definition(leaves[:k]), definition(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func TestRootsAreAsDefined(t *testing.T) {
	leaves := numbered(140)
	for n := range len(leaves) + 1 {
		if got, want := Root(leaves[:n]), definition(leaves[:n]); got != want {
			t.Errorf("root of %d leaves is %v, want %v", n, got, want)
		}
	}
}

func TestEveryLeafIsProven(t *testing.T) {
	leaves := numbered(70)
	for n := uint64(1); n <= uint64(len(leaves)); n++ {
		root := Root(leaves[:n])
		for i := range n {
			proof := Prove(leaves[:n], i)
			if !Check(root, leaves[i], i, n, proof) {
				t.Fatalf("the proof of leaf %d of %d is refused", i, n)
			}
			for other := range n {
				if other != i && (Check(root, leaves[other], i, n, proof) || Check(root, leaves[i], other, n, proof)) {
					t.Fatalf("the proof of leaf %d of %d also shows leaf %d", i, n, other)
				}
			}
		}
	}
}

func TestBrokenProofsAreRefused(t *testing.T) {
	leaves := numbered(21)
	root := Root(leaves)
	for i := range uint64(len(leaves)) {
		n := uint64(len(leaves))
		proof := Prove(leaves, i)
		refuse := func(what string, root, leaf Hash, i, n uint64, proof []Hash) {
			t.Helper()
			if Check(root, leaf, i, n, proof) {
				t.Errorf("leaf %d: %s is accepted", i, what)
			}
		}
		refuse("another root", leaves[0], leaves[i], i, n, proof)
		refuse("a proof cut short", root, leaves[i], i, n, proof[:len(proof)-1])
		refuse("a proof without its first hash", root, leaves[i], i, n, proof[1:])
		refuse("a proof that goes on", root, leaves[i], i, n, append(slices.Clone(proof), root))
		refuse("no proof", root, leaves[i], i, n, nil)
		refuse("a leaf beyond the tree", root, leaves[i], n, n, proof)
		refuse("a tree of no leaves", root, leaves[i], 0, 0, proof)
		refuse("the root as its own proof", root, root, i, n, nil)
		refuse("a proof of 65 hashes", root, leaves[i], i, 1<<63, make([]Hash, 65))
		for at := range proof {
			for _, bit := range []byte{0, 100, 255} {
				broken := slices.Clone(proof)
				broken[at][bit/8] ^= 1 << (bit % 8)
				refuse("a changed hash", root, leaves[i], i, n, broken)
			}
		}
	}
}

func TestLeavesAreNotNodes(t *testing.T) {
	a, b := Leaf([]byte("a")), Leaf([]byte("b"))
	inner := slices.Concat(a[:], b[:])
	if Leaf(inner) == Root([]Hash{a, b}) {
		t.Error("data made of two hashes is a leaf with the hash of their node")
	}
}

func TestLongTrees(t *testing.T) {
	var tree Tree
	const n = 5000
	leaves := numbered(n)
	for _, l := range leaves {
		tree.Add(l)
	}
	root := tree.Root()
	if root != definition(leaves) {
		t.Error("root of a long tree is not as defined")
	}
	for _, i := range []uint64{0, 1, 4095, 4096, 4999} {
		if !Check(root, leaves[i], i, n, Prove(leaves, i)) {
			t.Errorf("the proof of leaf %d is refused", i)
		}
	}
}

func TestBlobs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 4*ChunkBytes+17)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for _, c := range []struct {
		size   int
		chunks uint64
	}{
		{0, 1}, {1, 1}, {ChunkBytes - 1, 1}, {ChunkBytes, 1}, {ChunkBytes + 1, 2}, {2 * ChunkBytes, 2}, {4*ChunkBytes + 17, 5},
	} {
		blob, size := data[:c.size], uint64(c.size)
		if got := BlobChunks(size); got != c.chunks {
			t.Errorf("%d bytes have %d chunks, want %d", size, got, c.chunks)
		}
		var leaves []Hash
		var joined []byte
		for i := range c.chunks {
			from, to := Chunk(size, i)
			leaves = append(leaves, Leaf(blob[from:to]))
			joined = append(joined, blob[from:to]...)
		}
		if !bytes.Equal(joined, blob) {
			t.Errorf("the chunks of %d bytes are not the bytes", size)
		}
		if got := BlobLeaves(blob); !slices.Equal(got, leaves) {
			t.Errorf("BlobLeaves of %d bytes differs from the leaves of its chunks", size)
		}
		if got, want := BlobRoot(blob), definition(leaves); got != want {
			t.Errorf("BlobRoot of %d bytes is %v, want %v", size, got, want)
		}
	}
}

func TestBlobWrittenInPieces(t *testing.T) {
	data := []byte(strings.Repeat("0123456789abcdef!", 3*ChunkBytes/16))
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, len(data)).Draw(t, "size")
		rest := data[:size]
		var b Blob
		for len(rest) > 0 {
			n := min(len(rest), rapid.SampledFrom([]int{1, 1000, 100_000, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, 600_000}).Draw(t, "piece"))
			if n < 100_000 { // small pieces only at the edges of chunks, or the test takes long
				n = min(len(rest), max(n, ChunkBytes-(size-len(rest))%ChunkBytes-1))
			}
			if wrote, err := b.Write(rest[:n]); wrote != n || err != nil {
				t.Fatalf("Write of %d bytes returns %d, %v", n, wrote, err)
			}
			rest = rest[n:]
			if got, want := b.Root(), BlobRoot(data[:size-len(rest)]); got != want {
				t.Fatalf("after %d bytes the root is %v, want %v", size-len(rest), got, want)
			}
		}
		if got, want := b.Root(), BlobRoot(data[:size]); got != want {
			t.Errorf("the root of %d bytes is %v, want %v", size, got, want)
		}
	})
}

func TestImpossiblePartsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"proof beyond the tree":     func() { Prove(numbered(3), 3) },
		"proof in an empty tree":    func() { Prove(nil, 0) },
		"chunk beyond the blob":     func() { Chunk(ChunkBytes, 1) },
		"chunk beyond an empty one": func() { Chunk(0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

// FuzzCheck gives Check proofs from outside: it never fails, and for the right number of leaves only the true proof of the
// true leaf is accepted.
func FuzzCheck(f *testing.F) {
	leaves := numbered(11)
	for _, i := range []uint64{0, 7, 10} {
		var flat []byte
		for _, h := range Prove(leaves, i) {
			flat = append(flat, h[:]...)
		}
		f.Add(leaves[i][:], i, uint64(11), flat)
	}
	f.Fuzz(func(t *testing.T, leaf []byte, i, n uint64, flat []byte) {
		var h Hash
		copy(h[:], leaf)
		var proof []Hash
		for ; len(flat) >= 32; flat = flat[32:] {
			proof = append(proof, Hash(flat[:32]))
		}
		if !Check(Root(leaves), h, i, n, proof) || n != uint64(len(leaves)) {
			return
		}
		if i >= n || h != leaves[i] || !slices.Equal(proof, Prove(leaves, i)) {
			t.Errorf("leaf %v is accepted as number %d of %d with proof %v", h, i, n, proof)
		}
	})
}

// A list is continued from at most 64 hashes, which are written in one way, however long it says it is.
func FuzzReadTree(f *testing.F) {
	var t Tree
	for _, h := range numbered(11) {
		t.Add(h)
	}
	f.Add(t.Append(nil))
	f.Add(bytes.Repeat([]byte{255}, 8+64*32))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(b)
		tree := ReadTree(&r)
		if r.Err() != wire.OK {
			return
		}
		if again := tree.Append(nil); !bytes.HasPrefix(b, again) || len(again)+r.Len() != len(b) {
			t.Errorf("%x is read as what is written as %x", b, again)
		}
		before := tree.Root()
		more := tree
		if more.Add(Hash{1}); tree.Root() != before || more.Root() == before {
			t.Error("a copy is not independent")
		}
	})
}

func ExampleProve() {
	leaves := []Hash{Leaf([]byte("a")), Leaf([]byte("b")), Leaf([]byte("c")), Leaf([]byte("d")), Leaf([]byte("e"))}
	root := Root(leaves)
	proof := Prove(leaves, 2)
	fmt.Println(len(proof), "hashes show c:", Check(root, Leaf([]byte("c")), 2, 5, proof))
	fmt.Println("and not x:", Check(root, Leaf([]byte("x")), 2, 5, proof))
	// Output:
	// 3 hashes show c: true
	// and not x: false
}

func BenchmarkBlobRoot(b *testing.B) {
	data := make([]byte, 16<<20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		BlobRoot(data)
	}
}

// Full subtrees added at once make the tree that their leaves make.
func TestAddFull(t *testing.T) {
	leaves := make([]Hash, 41)
	for i := range leaves {
		leaves[i] = Leaf([]byte{byte(i)})
	}
	for n := range leaves {
		var got Tree
		for at := 0; at < n; {
			h := min(bits.TrailingZeros(uint(at)), 3)
			for at+1<<h > n { // TrailingZeros(0) is 64
				h--
			}
			got.AddFull(h, Root(leaves[at:at+1<<h]))
			at += 1 << h
		}
		if got.Len() != uint64(n) || got.Root() != Root(leaves[:n]) {
			t.Errorf("%d leaves: another tree", n)
		}
	}
}
