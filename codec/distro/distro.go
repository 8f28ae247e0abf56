// Package distro is the DisTrO codec: members share of each round's gradient only where its largest
// frequencies are and which way they point, about 0.02 bits per parameter, and keep the rest as
// momentum until it is large enough to be sent.
//
// # One round
//
// The last two dimensions of each tensor are cut into blocks (a vector is a matrix of one row): a
// dimension of size s into ceil(s/Chunk) pieces whose sizes differ by at most one, the longer
// first. So every size, primes too, has blocks between half of Chunk and Chunk, and sizes that
// Chunk divides have blocks of Chunk. A block of h by w coefficients is numbered row-major. Encode
// does, per block, with M the private state (the momentum, in binary32) and DCT the orthonormal
// two-dimensional DCT-II:
//
//	M = Decay*M + lr*clip*DCT(gradient)          clip = min(1, ClipNorm/|gradient|), the norm of all of the gradient
//	send the positions and signs of the k largest |M|, k = min(TopK, h*w); of equal ones the lower position; none that is zero
//	M = 0 at the positions sent
//
// The momentum lives among the coefficients and not among the weights: the DCT is linear and
// orthonormal, so the two are the same method, but here what was sent is taken out exactly, and
// without a second transform. All of a sent coefficient is taken out, not the sign times some size,
// because receivers get no size: they step by lr whatever it was. The method's unit of sending is
// the coefficient; what remained of it would be sent again and again and crowd out others. (Nous
// Research's Psyche takes out the unquantised value too.)
//
// Apply adds up the signs, transforms back, and steps every weight x by the learning rate:
//
//	Y = sum over all payloads of +1, -1 or 0 for each coefficient
//	Y = VotesMax*sign(Y) where |Y| > VotesMax, unless that is 0
//	x = x*(1 - lr*WeightDecay) - lr*sign(inverse DCT(Y))          sign(0) = 0
//
// A coefficient is thus averaged over all members and not over those who sent it (the division by
// their number is left out, as no sign depends on it): a single member never outvotes two. Whatever
// is sent, no weight moves by more than lr.
//
// VotesMax is for runs of strangers: however many members agree on a coefficient, they count as so
// many there, so that liars gain nothing by all saying the same, which is the strongest thing they
// can do. The medians and trimmed means that other robust averages are made of would be 0 nearly
// everywhere: most coefficients are sent by few. docs/decisions.md has what was measured.
//
// # Arithmetic
//
// All of it is in binary32 and has the same bits on every machine for any number of workers. The
// DCT is two products of matrices by exact.Gemm, that is, each element is one chain of fused
// multiply-adds in ascending order of the inner index, beginning with +0: first the transform of
// the columns, then that of the rows; in a block of one row only the latter. The bases are rounded
// correctly from the real numbers. Everything else multiplies and adds with separate roundings; the
// norm is codec.Norm. Y is made of small integers, exact in any order of the payloads.
//
// # Payload
//
//	offset  bytes
//	0       12     header: magic "eDT1", layout and the settings Chunk and TopK (codec.Header)
//	12      rest   a stream of bits, the lowest bit of a byte first: the code of each block, in the order of the tensors, in a tensor of its
//	               matrices, and in a matrix row by row of blocks; then zeros to the end of the byte
//
// The code of a block is a number of fixed width, lowest bit first. What can be said about a block
// of n coefficients is: j of them move, for some j from 0 to k; which; each up or down. That makes
// T = sum of C(n, j) * 2^j for j = 0..k different things to say. They are numbered
//
//	code = F(j) + rank * 2^j + signs
//
// where F(j) is the number of things to say with fewer than j; rank is C(p1, 1) + C(p2, 2) + ... +
// C(pj, j) for the positions p1 < p2 < ...; and bit i-1 of signs is 1 if pi moves down (its
// momentum was negative; the gradient is followed downhill later). The width is ceil(log2 T) bits,
// less than one bit above what an ideal coder needs when all sets are equally likely: 89 bits for n
// = 4096 and k = 8. A code that is not below T is refused. So every payload of a layout has the
// same length, every block's code is found without reading others, and no two payloads mean the
// same. For example, in a block of 4 by 4 with k = 2, T = 1 + 16*2 + 120*4 = 513 and the width 10;
// "5 up, 9 down" is 33 + (C(5,1) + C(9,2))*4 + 0b10 = 33 + 41*4 + 2 = 199.
package distro

import (
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const magic = "eDT1" // entrain, DisTrO, version 1

// A Config is what a run chooses.
type Config struct {
	// Block is the longest side of a block, 1 to BlockMax.
	Block int `toml:"block"`
	// TopK is the number of coefficients sent of a block, 1 to TopKMax.
	TopK int `toml:"top_k"`
	// Decay is the share of the momentum that is left after a round, 0 to 1.
	Decay float32 `toml:"decay"`
	// WeightDecay is the share of a weight that a step takes away, in units of the learning rate,
	// 0 to 1.
	WeightDecay float32 `toml:"weight_decay"`
	// ClipNorm is the largest Euclidean norm of a gradient; a larger one is scaled down. 0 means no
	// limit.
	ClipNorm float32 `toml:"clip_norm"`
	// VotesMax is the surplus of votes beyond which more change nothing, 0 to codec.PayloadsMax.
	// 0 means no limit.
	VotesMax int `toml:"votes_max,omitempty"`
}

// Kind describes the codec to specifications.
func Kind() codec.Kind {
	return codec.Kind{Name: "distro", Disputable: countBlocks,
		Defaults: Config{Block: 64, TopK: 32, Decay: 0.95, WeightDecay: 0.1, ClipNorm: 1}}
}

// StateLen implements [codec.Options].
func (c Config) StateLen(n int) int { return n }

// CheckLR implements [codec.Options].
func (c Config) CheckLR(lr float32) error { return codec.CheckLR(lr, c.WeightDecay) }

// New implements [codec.Options].
func (c Config) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	return New(layout, c, pool)
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	if c.Block < 1 || c.Block > BlockMax {
		return fmt.Errorf("block is %d, it must be 1 to %d", c.Block, BlockMax)
	}
	if c.TopK < 1 || c.TopK > TopKMax {
		return fmt.Errorf("top_k is %d, it must be 1 to %d", c.TopK, TopKMax)
	}
	if err := codec.CheckRange("decay", c.Decay, 1); err != nil {
		return err
	}
	if err := codec.CheckRange("weight_decay", c.WeightDecay, 1); err != nil {
		return err
	}
	if c.VotesMax < 0 || c.VotesMax > codec.PayloadsMax {
		return fmt.Errorf("votes_max is %d, it must be 0 to %d", c.VotesMax, codec.PayloadsMax)
	}
	return codec.CheckRange("clip_norm", c.ClipNorm, codec.NormMax)
}

// Codec is a codec.Codec. It holds no state of a member or a round and may be used by several
// goroutines at once.
type Codec struct {
	cfg    Config
	n      int // elements of the layout
	header codec.Header
	blocks []block
	bits   int // of all codes
	words  int // of the longest code
	pool   *exact.Pool
	loop   vec.Kernel
	spare  chan *job // not in use
}

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error says which setting is out of range. The tables are
// made here, in time proportional to Chunk*Chunk*TopK and to the number of blocks.
func New(layout tensor.Layout, cfg Config, pool *exact.Pool) (*Codec, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("distro: %w", err)
	}
	cut := newCutter(layout, cfg, exact.NewWorker(pool.Kernel()))
	for _, t := range layout.Tensors() {
		cut.cut(t)
	}
	c := &Codec{
		cfg:    cfg,
		n:      layout.Len(),
		header: codec.NewHeader(magic, layout, uint32(cfg.Block), uint32(cfg.TopK)),
		blocks: cut.blocks,
		bits:   cut.bit,
		pool:   pool,
		loop:   vec.For(pool.Kernel()),
		spare:  make(chan *job, 4), // of more goroutines than that, some allocate at each call
	}
	for _, s := range cut.shapes {
		c.words = max(c.words, s.Words)
	}
	return c, nil
}

// StateLen returns the number of float32 of a member's momentum, that of the parameters.
func (c *Codec) StateLen() int { return c.n }

// PayloadMax returns the length in bytes of every payload.
func (c *Codec) PayloadMax() int { return codec.HeaderLen + (c.bits+7)/8 }

// BitsIdeal returns the bits that an ideal coder needs for a payload when all payloads are equally
// likely: the logarithm to base 2 of their number. The wire format is judged by it.
func (c *Codec) BitsIdeal() float64 {
	var bits float64
	for i := range c.blocks {
		bits += c.blocks[i].shape.BitsIdeal()
	}
	return bits
}
