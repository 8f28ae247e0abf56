package data

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Prove returns a proof of the contents of training sequence i. Its inverse Proven needs only the
// set's hash, and counts from the first sequence of all (Options.First). The proof holds the
// manifest, and each chunk of a shard that overlaps the sequence with its path to the shard's root:
//
//	Var manifest; for each chunk: Var bytes, U32 n, n hashes
//
// A proof of a mix begins with the mix's manifest, in the same form.
func (s *Set) Prove(i uint64) ([]byte, error) {
	i += s.first
	if s.mixed != nil {
		return s.mixed.prove(s.seed, i)
	}
	proof := wire.AppendVar(nil, s.manifest.Bytes())
	first, last := s.train.span(order.Place(s.seed, i, s.Len()))
	for _, c := range s.manifest.text().Chunks(first, last) {
		shard := s.train.shards[c.Shard]
		leaves, err := shard.verify()
		if err != nil {
			return nil, err
		}
		b, err := s.train.cache.load(chunk{shard, c.Chunk})
		if err != nil {
			return nil, err
		}
		path := merkle.Prove(leaves, c.Chunk)
		proof = wire.AppendU32(wire.AppendVar(proof, b), uint32(len(path)))
		for _, h := range path {
			proof = wire.AppendHash(proof, h)
		}
	}
	return proof, nil
}

// ProofMax bounds the size of any proof in bytes. A run that sends proofs in messages of limited
// size needs it to be below that limit.
func (s *Set) ProofMax() int {
	if s.mixed != nil {
		most := 0
		for _, set := range s.mixed.sets {
			most = max(most, set.ProofMax())
		}
		return 4 + len(s.mixed.mix.Bytes()) + most
	}
	m := s.manifest
	size := s.train.seq * uint64(m.TokenBytes)
	shard := min(m.ShardTokens, m.Tokens) * uint64(m.TokenBytes)
	n := merkle.BlobChunks(shard)
	unit := min(shard, merkle.ChunkBytes)
	around := 4 + 4 + 32*uint64(bits.Len64(n)) // the overhead of a chunk
	touched := min(n*uint64(len(m.Shards)), size/unit+2) * (unit + around)
	if len(m.Shards) > 1 && n > 1 { // the last chunk of a shard may be shorter than a sequence
		touched += (size/shard + 1) * (shard%merkle.ChunkBytes + around)
	}
	return 4 + len(m.Bytes()) + int(touched)
}

// Proven sets dst to sequence i of training if proof is valid for the data set with hash want, in
// the order of seed. Its time and memory are proportional to the length of proof, whatever the
// contents.
func Proven(dst []uint32, want, seed wire.Hash, i uint64, proof []byte) error {
	r := wire.NewReader(proof)
	text := r.Var(manifestBytesMax)
	if got := wire.SHA256(text); r.Err() != wire.OK || got != want {
		return fmt.Errorf("the proof is of data set %s, want %s", got, want)
	}
	if isMix(text) {
		m, err := ParseMix(text)
		if err != nil {
			return err
		}
		set, k := m.pick(seed, i)
		c := m.Components[set]
		rest := r.Rest()
		inner := wire.NewReader(rest)
		if isMix(inner.Var(manifestBytesMax)) {
			return errors.New("the proof holds a mix of mixes")
		}
		return Proven(dst, c.Manifest, order.MixSeed(seed, set), k, rest)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return err
	}
	return m.text().Proven(dst, seed, i, &r)
}

// text returns what package order needs of m.
func (m Manifest) text() order.Text {
	t := order.Text{Vocab: m.Vocab, TokenBytes: m.TokenBytes, ShardTokens: m.ShardTokens, Tokens: m.Tokens, Masked: m.Masked}
	for _, s := range m.Shards {
		t.Shards = append(t.Shards, order.Shard{Bytes: s.Bytes, Root: s.Root})
	}
	return t
}

// span returns the first and the last token of sequence k.
func (p part) span(k uint64) (first, last uint64) { return k * p.seq, (k + 1) * p.seq }
