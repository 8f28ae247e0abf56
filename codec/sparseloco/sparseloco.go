// Package sparseloco is the SparseLoCo codec (A. Sarfi, B. Thérien, J. Lidin and E. Belilovsky,
// "Communication Efficient LLM Pre-training with SparseLoCo", 2025). Members take several steps on
// their own and send the largest changes, in two bits each.
//
// # # One round
//
// The gradient that Encode takes is a member's pseudo-gradient: the parameters at the round's start
// minus those that it reached on its own (optim.Inner). Each tensor, as a flat vector, is cut into
// ceil(size/Chunk) chunks whose sizes differ by at most one, the longer first. For each chunk, with
// E the private state (the error feedback, in binary32), Encode does the following:
//
//	E = Decay*E + pseudo-gradient
//	choose the positions of the k largest |E|, k = min(TopK, size)
//	a chosen value is large if its magnitude exceeds their mean, else small
//	low, high = mean magnitude of the small and the large values, rounded to bfloat16
//	Q = the sign of each chosen value, times low or high; 0 elsewhere
//	E = E - Q
//
// Of equal magnitudes the lower position is chosen, and zeros never. high = low if no value is
// large. If low is below 2^-126 the chunk sends nothing, and E stays. Sums are in the order of
// positions, from +0. Encode subtracts exactly what it sends, so rounding errors are sent later,
// which is why two bits suffice. (The paper has four quantization bins by standard deviation; two
// means of magnitudes need as many bits and no tuned range.)
//
// Apply steps by the mean over all members. Updates longer than the median count less:
//
//	c = min(1, m/|Q|) for each payload, m the lower median of all |Q|, in binary32; 1 if |Q| is 0
//	S = sum of c*Q over the payloads in canonical order, starting with +0
//	x = x - OuterRate*(S/count)
//
// With ClipChunks above 0, each group of that many consecutive chunks is clipped by itself (the
// last group has the rest), and sums are integers. So an update can be made group by group, from
// the payloads in any order, and be written down (Followable):
//
//	c = min(1, m/|Q|) as above, with |Q| and m those of the group
//	u = 2^-44 times the greatest power of two that is at most m
//	S = sum of c*Q/u, each product rounded to the nearest integer, ties to even
//	y = S/count, in binary64
//	M = y to four significant bits, ties to even; 0 if |y| is below 2^-14 times the greatest power
//	    of two up to the greatest |y| of the chunk
//	x = x - OuterRate*(M*u)
//
// If m is 0, or that least mean, times u, below 2^-126, nothing moves. A payload without values in
// a group has |Q| = 0 there: where most members send nothing, nobody moves anything.
//
// A value is thus averaged over all members, not over those that sent it. Templar averages over the
// latter, which gives full weight to a member that sends what no other sends. Weights decay in the
// inner steps.
//
// # # Arithmetic
//
// Operations are binary32, each product and each sum rounded. Norms are binary64, where squares of
// bfloat16 numbers and their multiples up to 64 are exact, summed in the order of chunks. All of it
// has the same bits on every machine for any number of workers.
//
// # # Payload
//
//	offset  bytes
//	0       12     header: magic "eSL1", layout and the settings Chunk and TopK (codec.Header)
//	12      rest   a stream of bits, lowest bit of a byte first: the message of each chunk in the
//	               order of the tensors, then zeros to the end of the byte
//
// The message of a chunk is, lowest bit first: the code of the positions and signs of the chosen
// values (package codec/internal/subset; a minus is a negative change, by which x rises); k bits,
// of which bit i is 1 if the value at the i-th chosen position is large; and low and high, 16 bits
// each, as the upper half of a binary32. Every payload of a layout thus has the same length, and a
// chunk can be found without reading others.
//
// No two payloads mean the same update. Without positions all else is zero. Low and high are
// positive normal numbers up to 2^100. Bits of positions that do not exist are 0. Either high
// exceeds low and some, but not all, values are large, or both are equal and none is.
//
// With chunks of 4096 and 64 values each this is 0.154 bits per parameter.
package sparseloco

import (
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const magic = "eSL1" // entrain, SparseLoCo, version 1

// Limits of a Config. Together they bound the tables of a Codec to 50 MB.
const (
	ChunkMax = 1 << 14     // values in a chunk; published runs use 4096
	TopKMax  = subset.KMax // values sent per chunk; published runs use 64
	stateMax = 1 << 99     // magnitude of an element of the state; low and high are then at most 2^100
	rateMax  = 16          // outer rate; published runs use 0.9 to 1
	clipMax  = 1 << 14     // chunks clipped together
)

// A Config holds a run's settings.
type Config struct {
	Chunk     int     // values in a chunk, 1 to ChunkMax
	TopK      int     // values sent per chunk, 1 to TopKMax
	Decay     float32 // part of the error feedback kept from round to round, 0 to 1
	OuterRate float32 // factor of the mean of the members' changes, 0 to 16; usually 1
	// ClipChunks is the number of consecutive chunks that are clipped together, whose sums are
	// integers, up to 2^14. 0 clips whole payloads.
	ClipChunks int
}

// Check returns an error that names a setting out of range, or nil.
func (c Config) Check() error {
	if c.Chunk < 1 || c.Chunk > ChunkMax {
		return fmt.Errorf("chunk is %d, it must be 1 to %d", c.Chunk, ChunkMax)
	}
	if c.TopK < 1 || c.TopK > TopKMax {
		return fmt.Errorf("top_k is %d, it must be 1 to %d", c.TopK, TopKMax)
	}
	if c.ClipChunks < 0 || c.ClipChunks > clipMax {
		return fmt.Errorf("clip_chunks is %d, it must be 0 to %d", c.ClipChunks, clipMax)
	}
	if err := codec.CheckRange("decay", c.Decay, 1); err != nil {
		return err
	}
	return codec.CheckRange("outer_rate", c.OuterRate, rateMax)
}

// Codec implements codec.Codec. It holds no state of a member or a round and is safe for concurrent
// use.
type Codec struct {
	cfg    Config
	n      int // elements of the layout
	header codec.Header
	update codec.Header // of an update
	chunks []chunk
	bits   int // total length of the messages
	means  int // of their means in an update, in bytes
	pool   *exact.Pool
	loop   vec.Kernel
	spare  chan *job // idle jobs
}

// A chunk is a piece of a tensor.
type chunk struct {
	from, n int // in the flat parameters
	bit     int // offset of its message after the header, in bits
	at      int // of its means in an update
	space   *subset.Space
}

// bits returns the length of the chunk's message.
func (c *chunk) bits() int { return c.space.Bits + c.space.K + scaleBits }

// scaleBits is the length of low and high.
const scaleBits = 32

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error names a setting that is out of range. New makes
// tables, in time proportional to Chunk*TopK and to the number of chunks.
func New(layout tensor.Layout, cfg Config, pool *exact.Pool) (*Codec, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("sparseloco: %w", err)
	}
	c := &Codec{
		cfg: cfg, n: layout.Len(), header: codec.NewHeader(magic, layout, uint32(cfg.Chunk), uint32(cfg.TopK)),
		update: codec.NewHeader(updateMagic, layout, uint32(cfg.Chunk), uint32(cfg.TopK)),
		pool:   pool, loop: vec.For(pool.Kernel()),
		spare: make(chan *job, 4), // if more goroutines call at a time, some allocate
	}
	table := subset.NewTable(cfg.Chunk, min(cfg.TopK, cfg.Chunk))
	spaces := map[int]*subset.Space{} // by size of chunk
	for _, t := range layout.Tensors() {
		size := t.Len
		count := (size + cfg.Chunk - 1) / cfg.Chunk
		from := t.Offset
		for i := range count {
			n := size / count
			if i < size%count {
				n++
			}
			if spaces[n] == nil {
				s := subset.NewSpace(n, cfg.TopK, table)
				spaces[n] = &s
			}
			c.chunks = append(c.chunks, chunk{from: from, n: n, bit: c.bits, at: c.means, space: spaces[n]})
			last := &c.chunks[len(c.chunks)-1]
			c.bits, c.means = c.bits+last.bits(), c.means+last.meansLen()
			from += n
		}
	}
	return c, nil
}

// StateLen returns the number of float32 of a member's error feedback: the number of parameters.
func (c *Codec) StateLen() int { return c.n }

// PayloadMax returns the length in bytes of every payload.
func (c *Codec) PayloadMax() int { return codec.HeaderLen + (c.bits+7)/8 }
