// Package order says where the sequences of a data set are in its text, and checks proofs of them.
// It needs neither JSON nor files, so that any host of a ledger can compile it.
package order

import (
	"encoding/binary"
	"math"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Masked is the bit of a token that is read and not learnt.
const Masked = 1 << 31

// Text is what of a data set's manifest says where its tokens are.
type Text struct {
	Vocab               uint32
	TokenBytes          int // 2 or 4
	ShardTokens, Tokens uint64
	Masked              bool
	Shards              []Shard
}

// Shard is a file of tokens.
type Shard struct {
	Bytes uint64
	Root  wire.Hash // merkle.BlobRoot of the file
}

// Error is why a proof is not valid.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Chunk is a chunk of a shard.
type Chunk struct {
	Shard int
	Chunk uint64
}

// Chunks returns the chunks that hold tokens first to last, in order. Each token lies in one chunk,
// since the size of a token divides the size of a chunk.
func (t Text) Chunks(first, last uint64) (list []Chunk) {
	of := func(token uint64) Chunk {
		return Chunk{int(token / t.ShardTokens), token % t.ShardTokens * uint64(t.TokenBytes) / merkle.ChunkBytes}
	}
	end := of(last)
	for c := of(first); ; c.Chunk++ {
		if c.Chunk == merkle.BlobChunks(t.Shards[c.Shard].Bytes) {
			c = Chunk{c.Shard + 1, 0}
		}
		list = append(list, c)
		if c == end {
			return list
		}
	}
}

// Place returns which of the n sequences of the text is the i-th in training.
func Place(seed wire.Hash, i, n uint64) uint64 { return NewPermutation(seed, i/n, n).At(i % n) }

// Decode sets dst to the tokens in b. It returns the index of the first that is not in the
// vocabulary, or -1.
func (t Text) Decode(dst []uint32, b []byte) (bad int) {
	for i := range dst {
		token := uint32(0)
		if t.TokenBytes == 2 {
			token = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		} else {
			token = binary.LittleEndian.Uint32(b[4*i:])
		}
		if t.Masked && t.TokenBytes == 2 {
			token = token&math.MaxInt16 | token>>15<<31
		}
		dst[i] = token
		if t.Masked {
			token &^= Masked
		}
		if token >= t.Vocab {
			return i
		}
	}
	return -1
}

// Proven sets dst to sequence i of training, in the order of seed, from a proof's chunks, each with
// its path to the shard's root: Var bytes, U32 n, n hashes.
func (t Text) Proven(dst []uint32, seed wire.Hash, i uint64, r *wire.Reader) error {
	if len(dst) < 2 || t.Tokens < uint64(len(dst)) {
		return Error("the data set has too few tokens for a sequence")
	}
	each := uint64(len(dst) - 1)
	at := Place(seed, i, (t.Tokens-1)/each) * each
	for _, c := range t.Chunks(at, at+each) {
		b, err := t.proven(r, c)
		if err != nil {
			return err
		}
		size := uint64(t.TokenBytes)
		b = b[at%t.ShardTokens*size-c.Chunk*merkle.ChunkBytes:]
		n := min(len(dst), len(b)/t.TokenBytes)
		if t.Decode(dst[:n], b) >= 0 {
			return Error("a token is not in the vocabulary")
		}
		dst = dst[n:]
		at += uint64(n)
	}
	return r.Done().OrNil()
}

// proven removes a chunk from a proof and checks it against the shard.
func (t Text) proven(r *wire.Reader, c Chunk) ([]byte, error) {
	s := t.Shards[c.Shard]
	from, to := merkle.Chunk(s.Bytes, c.Chunk)
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
	if uint64(len(b)) != to-from || !merkle.Check(s.Root, merkle.Leaf(b), c.Chunk, merkle.BlobChunks(s.Bytes), path) {
		return nil, Error("the proof holds a chunk that is not the data set's")
	}
	return b, nil
}
