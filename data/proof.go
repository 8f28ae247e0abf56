package data

import (
	"errors"
	"fmt"
	"math/bits"

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
	first, last := s.train.span(place(s.seed, i, s.Len()))
	for _, c := range s.manifest.chunksOf(first, last) {
		shard := s.train.shards[c.shard]
		leaves, err := shard.verify()
		if err != nil {
			return nil, err
		}
		b, err := s.train.cache.load(chunk{shard, c.chunk})
		if err != nil {
			return nil, err
		}
		path := merkle.Prove(leaves, c.chunk)
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
	text := r.Var(ManifestBytesMax)
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
		if isMix(inner.Var(ManifestBytesMax)) {
			return errors.New("the proof holds a mix of mixes")
		}
		return Proven(dst, c.Manifest, mixSeed(seed, set), k, rest)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return err
	}
	if len(dst) < 2 || m.Tokens < uint64(len(dst)) {
		return fmt.Errorf("the data set has %d tokens, too few for sequences of %d", m.Tokens, len(dst))
	}
	p := part{manifest: m, tokens: m.Tokens, seq: uint64(len(dst) - 1)}
	first, last := p.span(place(seed, i, p.len()))
	at := first
	for _, c := range m.chunksOf(first, last) {
		b, err := m.proven(&r, c)
		if err != nil {
			return err
		}
		size := uint64(m.TokenBytes)
		b = b[at%m.ShardTokens*size-c.chunk*merkle.ChunkBytes:]
		n := min(len(dst), len(b)/int(size))
		if bad := m.decode(dst[:n], b); bad >= 0 {
			return fmt.Errorf("token %d is not in the vocabulary of %d", at+uint64(bad), m.Vocab)
		}
		dst = dst[n:]
		at += uint64(n)
	}
	return r.Done().OrNil()
}

// proven removes a chunk from a proof and checks it against the shard.
func (m Manifest) proven(r *wire.Reader, c shardChunk) ([]byte, error) {
	s := m.Shards[c.shard]
	from, to := merkle.Chunk(s.Bytes, c.chunk)
	b := r.Var(merkle.ChunkBytes)
	n := r.U32()
	if n > 64 {
		r.Fail(wire.ErrTooLong)
	}
	var path []wire.Hash
	for range n {
		if r.Err() != wire.OK {
			break
		}
		path = append(path, r.Hash())
	}
	if err := r.Err().OrNil(); err != nil {
		return nil, err
	}
	if uint64(len(b)) != to-from || !merkle.Check(s.Root, merkle.Leaf(b), c.chunk, s.chunks(), path) {
		return nil, errors.New("the proof holds a chunk that is not the data set's")
	}
	return b, nil
}

// shardChunk identifies a chunk of a shard of the training part.
type shardChunk struct {
	shard int
	chunk uint64
}

// chunksOf returns the chunks that hold tokens first to last, in order. Each token lies in one
// chunk, since the size of a token divides the size of a chunk.
func (m Manifest) chunksOf(first, last uint64) (list []shardChunk) {
	of := func(token uint64) shardChunk {
		return shardChunk{int(token / m.ShardTokens), token % m.ShardTokens * uint64(m.TokenBytes) / merkle.ChunkBytes}
	}
	end := of(last)
	for c := of(first); ; c.chunk++ {
		if c.chunk == m.Shards[c.shard].chunks() {
			c = shardChunk{c.shard + 1, 0}
		}
		list = append(list, c)
		if c == end {
			return list
		}
	}
}

// span returns the first and the last token of sequence k.
func (p part) span(k uint64) (first, last uint64) { return k * p.seq, (k + 1) * p.seq }

// place returns which of the n sequences of the text is the i-th in training.
func place(seed wire.Hash, i, n uint64) uint64 { return NewPermutation(seed, i/n, n).At(i % n) }
