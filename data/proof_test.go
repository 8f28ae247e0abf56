package data

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// provable is a set whose sequences lie across chunks and shards.
func provable(t *testing.T, seq uint32) (*Set, wire.Hash) {
	t.Helper()
	o := options()
	o.ShardTokens = merkle.ChunkBytes/2 + 500 // tokens of two bytes
	dir := t.TempDir()
	m := mustPrepare(t, dir, files(t, text(320000, "proof")), o)
	seed := wire.Sum("data-test", []byte("order"))
	return mustOpen(t, dir, m, Options{SequenceTokens: seq, Seed: seed}), seed
}

func TestProofsShowWhatIsRead(t *testing.T) {
	for _, seq := range []uint32{100, 999, 140000} {
		set, seed := provable(t, seq)
		hash := set.Manifest().Hash()
		chunks := make(map[int]int) // how many proofs hold so many
		most := 0
		for i := range 3 * set.Len() {
			want, got := make([]uint32, seq+1), make([]uint32, seq+1)
			if err := set.Read(i, want); err != nil {
				t.Fatal(err)
			}
			proof, err := set.Prove(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := Proven(got, hash, seed, i, proof); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(proof))
			if !slices.Equal(got, want) {
				t.Fatalf("sequences of %d: the proof shows another sequence %d than is read", seq, i)
			}
			chunks[len(set.Manifest().text().Chunks(set.train.span(order.Place(seed, i, set.Len()))))]++
			if i > 5 && seq < 1000 && chunks[1] > 3 && chunks[2] > 3 {
				break // a proof copies a whole chunk
			}
		}
		if limit := set.ProofMax(); most > limit || most < limit/2 {
			t.Errorf("sequences of %d: the longest of some proofs has %d bytes, all have %d at most", seq, most, limit)
		}
		if seq < 1000 && (chunks[1] == 0 || chunks[2] == 0) || seq > 1000 && chunks[2]+chunks[3]+chunks[4] == 0 {
			t.Errorf("sequences of %d lie in so many chunks: %v", seq, chunks)
		}
	}
}

func TestProofsOfSomethingElseAreRefused(t *testing.T) {
	set, seed := provable(t, 999)
	hash := set.Manifest().Hash()
	proof, err := set.Prove(5)
	if err != nil {
		t.Fatal(err)
	}
	manifest := 4 + len(set.Manifest().Bytes())
	dst := make([]uint32, 1000)
	for name, try := range map[string]func() error{
		"another set":      func() error { return Proven(dst, wire.Hash{1}, seed, 5, proof) },
		"no sequences":     func() error { return Proven(make([]uint32, set.manifest.Tokens+1), hash, seed, 0, proof) },
		"no tokens":        func() error { return Proven(nil, hash, seed, 5, proof) },
		"nothing":          func() error { return Proven(dst, hash, seed, 5, nil) },
		"a manifest alone": func() error { return Proven(dst, hash, seed, 5, proof[:manifest]) },
		"something after":  func() error { return Proven(dst, hash, seed, 5, append(bytes.Clone(proof), 0)) },
	} {
		if try() == nil {
			t.Errorf("%s: the proof was taken", name)
		}
	}
	for at := manifest; at < len(proof); at += 1 + len(proof)/97 {
		flipped := bytes.Clone(proof)
		flipped[at] ^= 1
		if Proven(dst, hash, seed, 5, flipped) == nil {
			t.Errorf("a proof with byte %d changed was taken", at)
		}
	}
	// Another sequence has another place, most likely in another chunk; at least in one case.
	refused := 0
	for i := range set.Len() {
		if Proven(dst, hash, seed, i, proof) != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("one proof was taken for every sequence")
	}
}

func TestTokensBeyondTheVocabularyAreNotProven(t *testing.T) {
	shard := []byte{1, 0, 2, 0, 200, 0, 3, 0}
	m := Manifest{
		Version: Version, Name: "t", Tokenizer: Tokenizer{Name: "bytes"}, Vocab: 200, TokenBytes: 2, ShardTokens: 1024, Tokens: 4,
		Shards: []Shard{{File: "train-00000.bin", Tokens: 4, Bytes: 8, Root: merkle.BlobRoot(shard)}},
	}
	proof := wire.AppendU32(wire.AppendVar(wire.AppendVar(nil, m.Bytes()), shard), 0)
	if Proven(make([]uint32, 4), m.Hash(), wire.Hash{}, 0, proof) == nil {
		t.Error("a sequence with token 200 of a vocabulary of 200 was taken")
	}
	m.Vocab++
	proof = wire.AppendU32(wire.AppendVar(wire.AppendVar(nil, m.Bytes()), shard), 0)
	if err := Proven(make([]uint32, 4), m.Hash(), wire.Hash{}, 0, proof); err != nil {
		t.Error(err)
	}
}

func FuzzProven(f *testing.F) {
	m := Manifest{
		Version: Version, Name: "t", Tokenizer: Tokenizer{Name: "bytes", Hash: tokenizer.Bytes{}.Hash()}, Vocab: 256, TokenBytes: 2, ShardTokens: 1024, Tokens: 4,
		Shards: []Shard{{File: "train-00000.bin", Tokens: 4, Bytes: 8, Root: merkle.BlobRoot(make([]byte, 8))}},
	}
	good := wire.AppendU32(wire.AppendVar(wire.AppendVar(nil, m.Bytes()), make([]byte, 8)), 0)
	if err := Proven(make([]uint32, 3), m.Hash(), wire.Hash{}, 0, good); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(0))
	f.Add(good[:len(good)-5], uint64(7))
	f.Fuzz(func(t *testing.T, proof []byte, i uint64) {
		dst := []uint32{9, 9, 9}
		if Proven(dst, m.Hash(), wire.Hash{}, i, proof) == nil && !slices.Equal(dst, make([]uint32, 3)) {
			t.Errorf("the only data there is are zeros, a proof showed %v", dst)
		}
	})
}
