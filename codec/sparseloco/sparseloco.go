// Package sparseloco is the SparseLoCo codec (A. Sarfi, B. Thérien, J. Lidin and E. Belilovsky,
// "Communication Efficient LLM Pre-training with SparseLoCo", 2025): members train for several
// steps on their own, and share the largest few of the changes in two bits each.
//
// # One round
//
// What Encode takes for a gradient is a member's pseudo-gradient: the parameters at the round's
// start less those that it came to on its own (package train, Inner). Each tensor, taken as a flat
// vector, is cut into ceil(size/Chunk) chunks whose sizes differ by at most one, the longer first.
// Encode does, per chunk, with E the private state (the error feedback, in binary32):
//
//	E = Decay*E + pseudo-gradient
//	choose the positions of the k largest |E|, k = min(TopK, size); of equal ones the lower position; none that is zero
//	a value is large if it is of magnitude above the mean of those chosen, else small
//	low = mean magnitude of the small ones, high = of the large ones, each rounded to bfloat16 (high = low if none is large)
//	Q = the sign of each chosen value, times low or high; 0 elsewhere
//	E = E - Q
//
// If low is below 2^-126 the chunk sends nothing, and E stays. Sums are in the order of positions,
// from +0. What is sent is taken out as it was sent, so what rounding left away is sent later; that
// is what lets two bits do. (The paper has four quantization bins by standard deviation; two means
// of magnitudes carry as many bits and need no tuned range.)
//
// Apply steps by the mean over all members, of whom those with a longer update than the median
// count for less:
//
//	c = min(1, m/|Q|) for each payload, m the lower median of all |Q|, rounded to binary32; 1 if |Q| is 0
//	S = sum of c*Q over the payloads in canonical order, beginning with +0
//	x = x - OuterRate*(S/count)
//
// A value is thus averaged over all members and not over those who sent it (Templar's rule, which
// lets a single member that sends what no other sends move it with full weight). There is no weight
// decay here: the inner steps have it.
//
// # Arithmetic
//
// Everything multiplies and adds in binary32 with separate roundings, norms in binary64: squares of
// bfloat16 numbers and their multiples up to 64 are exact there, and are added in the order of
// chunks. So all of it has the same bits on every machine for any number of workers.
//
// # Payload
//
//	offset  bytes
//	0       12     header: magic "eSL1", layout and the settings Chunk and TopK (codec.Header)
//	12      rest   a stream of bits, the lowest bit of a byte first: what is said of each chunk, in the order of the tensors; then zeros to the end
//	               of the byte
//
// Of a chunk it says, lowest bit first: the code of the positions and signs of what was chosen
// (package codec/internal/subset: minus is a negative change, by which x rises); a bit for each of
// k places, 1 if the value at that place of the ascending positions is large; low and high, 16 bits
// each, as the upper half of a binary32. So every payload of a layout has the same length, and a
// chunk is found without reading others. No two payloads mean the same: with no positions all else
// is zero; low is a positive normal number up to 2^100, and so is high, not below low; places that
// have no position are 0; either high is above low and some, not all, of the values are large, or
// the two are equal and none is.
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
	TopKMax  = subset.KMax // values sent of a chunk; published runs use 64
	stateMax = 1 << 99     // magnitude of a state's element: a state beyond is broken, one below gives magnitudes up to 2^100
	rateMax  = 16          // outer rate; published runs use 0.9 to 1
)

// A Config is what a run chooses.
type Config struct {
	Chunk     int     // values in a chunk, 1 to ChunkMax
	TopK      int     // values sent of a chunk, 1 to TopKMax
	Decay     float32 // share of the error feedback that is left after a round, 0 to 1
	OuterRate float32 // by which the mean of the members' changes is followed, 0 to 16; usually 1
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	if c.Chunk < 1 || c.Chunk > ChunkMax {
		return fmt.Errorf("chunk is %d, it must be 1 to %d", c.Chunk, ChunkMax)
	}
	if c.TopK < 1 || c.TopK > TopKMax {
		return fmt.Errorf("top_k is %d, it must be 1 to %d", c.TopK, TopKMax)
	}
	if err := codec.CheckRange("decay", c.Decay, 1); err != nil {
		return err
	}
	return codec.CheckRange("outer_rate", c.OuterRate, rateMax)
}

// Codec is a codec.Codec. It holds no state of a member or a round and may be used by several
// goroutines at once.
type Codec struct {
	cfg    Config
	n      int // elements of the layout
	header codec.Header
	chunks []chunk
	bits   int // of all chunks
	pool   *exact.Pool
	loop   vec.Kernel
	spare  chan *job // not in use
}

// A chunk is a piece of a tensor.
type chunk struct {
	from, n int // in the flat parameters
	bit     int // where what is said of it begins, after the header
	space   *subset.Space
}

// bits is the length of what is said of the chunk.
func (c *chunk) bits() int { return c.space.Bits + c.space.K + scaleBits }

// scaleBits is the length of low and high.
const scaleBits = 32

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error says which setting is out of range. The tables are
// made here, in time proportional to Chunk*TopK and to the number of chunks.
func New(layout tensor.Layout, cfg Config, pool *exact.Pool) (*Codec, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("sparseloco: %w", err)
	}
	c := &Codec{
		cfg: cfg, n: layout.Len(), header: codec.NewHeader(magic, layout, uint32(cfg.Chunk), uint32(cfg.TopK)),
		pool: pool, loop: vec.For(pool.Kernel()),
		spare: make(chan *job, 4), // of more goroutines than that, some allocate at each call
	}
	table := subset.NewTable(cfg.Chunk, min(cfg.TopK, cfg.Chunk))
	spaces := map[int]*subset.Space{} // by the number of values
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
			c.chunks = append(c.chunks, chunk{from: from, n: n, bit: c.bits, space: spaces[n]})
			c.bits += c.chunks[len(c.chunks)-1].bits()
			from += n
		}
	}
	return c, nil
}

// StateLen returns the number of float32 of a member's error feedback, that of the parameters.
func (c *Codec) StateLen() int { return c.n }

// PayloadMax returns the length in bytes of every payload.
func (c *Codec) PayloadMax() int { return codec.HeaderLen + (c.bits+7)/8 }
