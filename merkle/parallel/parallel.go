// Package parallel computes the leaves of large blobs at the speed of the machine. It uses all
// workers of a pool, and with AVX-512 each worker hashes 16 chunks at once.
//
// SHA-256 is a chain of dependent steps, which leaves most of a core idle. Chunks do not depend on
// each other, so each vector register holds the same word of 16 of them (S. Gueron and V. Krasnov,
// "Simultaneous hashing of multiple messages", 2012). Other processors hash one chunk at a time,
// with their SHA-256 instructions if they have them.
//
// The leaves are exactly those of package merkle.
package parallel

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
)

//go:generate sh -c "go run ./internal/gen > lanes_amd64.s"

// Lanes is the number of chunks hashed at once.
const Lanes = 16

// lanesMin is the least number of chunks for which hashing 16 lanes at once, some of them twice, is
// faster than hashing one chunk after another.
const lanesMin = 5

// Leaves returns the leaves of the blob's chunks, like merkle.BlobLeaves.
func Leaves(pool *exact.Pool, data []byte) []merkle.Hash {
	size := uint64(len(data))
	leaves := make([]merkle.Hash, merkle.BlobChunks(size))
	if !hasBlocks(pool.Kernel()) {
		pool.Run(len(leaves), func(i int) { leaves[i] = leaf(data, uint64(i)) })
		return leaves
	}
	whole := size / merkle.ChunkBytes // full chunks
	pool.Run((len(leaves)+Lanes-1)/Lanes, func(task int) {
		i, to := uint64(task*Lanes), uint64(min((task+1)*Lanes, len(leaves)))
		if n := min(to, whole) - min(i, whole); n >= lanesMin {
			from, _ := merkle.Chunk(size, i)
			wholeLeaves(leaves[i:i+n], data[from:from+n*merkle.ChunkBytes])
			i += n
		}
		for ; i < to; i++ {
			leaves[i] = leaf(data, i)
		}
	})
	return leaves
}

// leaf returns the leaf of one chunk.
func leaf(data []byte, i uint64) merkle.Hash {
	from, to := merkle.Chunk(uint64(len(data)), i)
	return merkle.Leaf(data[from:to])
}

// initial returns the initial state of SHA-256 (FIPS 180-4, 5.3.3).
func initial() [8]uint32 {
	return [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
}

// wholeLeaves computes the leaves of up to Lanes full chunks, which make up data. Lanes without a
// chunk hash the last one again.
//
// A leaf is the hash of a zero byte and the chunk. The first block of a message is therefore that
// byte and the first 63 bytes of the chunk. The blocks after it lie in the chunk from its byte 63
// on. The last block is the last byte of the chunk and the padding of SHA-256.
func wholeLeaves(leaves []merkle.Hash, data []byte) {
	const block = 64
	var state [8][Lanes]uint32
	for i, v := range initial() {
		for lane := range state[i] {
			state[i][lane] = v
		}
	}
	n := len(leaves)
	var edge [Lanes][block]byte
	for lane := range edge {
		copy(edge[lane][1:], data[min(lane, n-1)*merkle.ChunkBytes:])
	}
	blocks(&state, &edge[0][0], block, 1)
	if n == Lanes {
		blocks(&state, &data[block-1], merkle.ChunkBytes, merkle.ChunkBytes/block-1)
	} else {
		gathered(&state, data, n)
	}
	edge = [Lanes][block]byte{}
	for lane := range edge {
		edge[lane][0] = data[(min(lane, n-1)+1)*merkle.ChunkBytes-1]
		edge[lane][1] = 0x80
		binary.BigEndian.PutUint64(edge[lane][block-8:], 8*(1+merkle.ChunkBytes)) // length in bits
	}
	blocks(&state, &edge[0][0], block, 1)
	for lane := range leaves {
		for i := range state {
			binary.BigEndian.PutUint32(leaves[lane][4*i:], state[i][lane])
		}
	}
}

// gathered hashes the blocks within n < Lanes chunks from copies, because lanes must lie at equal
// distances.
func gathered(state *[8][Lanes]uint32, data []byte, n int) {
	const block, piece = 64, 1024
	var copies [Lanes][piece]byte
	for at := block - 1; at < merkle.ChunkBytes-1; at += piece {
		size := min(piece, merkle.ChunkBytes-1-at)
		for lane := range n {
			copy(copies[lane][:size], data[lane*merkle.ChunkBytes+at:])
		}
		blocks(state, &copies[0][0], piece, size/block)
	}
}
