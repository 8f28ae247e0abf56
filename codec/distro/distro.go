// Package distro is the DisTrO codec (B. Peng, J. Quesnelle and D. Kingma, "DeMo: Decoupled
// Momentum Optimization", 2024). Members send only the positions and signs of the largest
// frequencies of each round's gradient, about 0.02 bits per parameter. They keep the rest as
// momentum until it is large enough to be sent.
//
// # # One round
//
// The last two dimensions of each tensor are cut into blocks; a vector is a matrix of one row. A
// dimension of size s is cut into ceil(s/Block) pieces whose sizes differ by at most one, the
// longer first. Blocks of any size, even a prime, thus have sides between half of Block and Block,
// and exactly Block if Block divides the size. The coefficients of a block of h by w are numbered
// row-major. For each block, with M the private state (the momentum, in binary32) and DCT the
// orthonormal two-dimensional DCT-II, Encode does the following:
//
//	M = Decay*M + lr*clip*DCT(gradient)
//	send the positions and signs of the k largest |M|, k = min(TopK, h*w)
//	M = 0 at the positions sent
//
// with clip = min(1, ClipNorm/|gradient|) for the norm of the whole gradient. Of equal magnitudes
// the lower position is sent, and zeros never.
//
// The momentum is one of coefficients rather than weights. The DCT is linear and orthonormal, so
// the method is the same, but sent coefficients are removed exactly and without a second transform.
// A sent coefficient is removed completely, whatever its size, because receivers do not learn its
// size and step by lr. The rest of it would be sent again and again and displace other
// coefficients. (Nous Research's Psyche removes the unquantised value too.)
//
// Apply sums the signs, transforms them back, and steps every weight x by the learning rate:
//
//	Y = sum over all payloads of +1, -1 or 0 for each coefficient
//	Y = VotesMax*sign(Y) where |Y| > VotesMax, unless that is 0
//	x = x*(1 - lr*WeightDecay) - lr*sign(inverse DCT(Y))          sign(0) = 0
//
// A coefficient is thus averaged over all members, not over those that sent it, so a single member
// never outvotes two. (Division by their number is omitted, because no sign depends on it.) No
// payload moves a weight by more than lr.
//
// VotesMax limits how much agreement counts in runs of strangers: liars gain nothing if all of them
// vote the same way, the strongest attack they have. The medians and trimmed means of other robust
// averages would be 0 almost everywhere, because few members send any one coefficient.
// docs/decisions.md has measurements.
//
// # # Arithmetic
//
// All of it is binary32, with the same bits on every machine for any number of workers. The DCT is
// two matrix products by exact.Gemm: the transform of the columns, then that of the rows; a block
// of one row has only the latter. The bases are correctly rounded. Other operations round each
// product and each sum; the norm is codec.Norm. Y consists of small integers, exact in any order of
// the payloads.
//
// # # Payload
//
//	offset  bytes
//	0       12     header: magic "eDT1", layout and the settings Block and TopK (codec.Header)
//	12      rest   a stream of bits, lowest bit of a byte first: the code of each block, then
//	               zeros to the end of the byte
//
// Blocks follow the order of the tensors, of the matrices in a tensor, and of the rows of blocks in
// a matrix. A block's code has a fixed width, lowest bit first, and names a set of up to k of the
// block's n coefficients, each with a sign, as package codec/internal/subset defines; a minus means
// that the momentum was negative. The width is ceil(log2 T) bits for T = sum of C(n, j) * 2^j over
// j = 0..k, for example 89 bits for n = 4096 and k = 8. A code of T or more is refused. Every
// payload of a layout thus has the same length, each block's code can be found without reading
// others, and no two payloads mean the same update. For example, a block of 4 by 4 with k = 2 has T
// = 1 + 16*2 + 120*4 = 513 and a width of 10. "5 up, 9 down" is 33 + (C(5,1) + C(9,2))*4 + 0b10 =
// 33 + 41*4 + 2 = 199.
package distro

import (
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const magic = "eDT1" // entrain, DisTrO, version 1

// A Config holds a run's settings.
type Config struct {
	// Block is the longest side of a block, 1 to BlockMax.
	Block int `toml:"block"`
	// TopK is the number of coefficients sent per block, 1 to TopKMax.
	TopK int `toml:"top_k"`
	// Decay is the part of the momentum that is kept from round to round, 0 to 1.
	Decay float32 `toml:"decay"`
	// WeightDecay is the part of a weight that a step removes, in units of the learning rate, 0 to
	// 1.
	WeightDecay float32 `toml:"weight_decay"`
	// ClipNorm is the largest Euclidean norm of a gradient; a larger one is scaled down. 0 means no
	// limit.
	ClipNorm float32 `toml:"clip_norm"`
	// VotesMax is the most votes that count for a coefficient in either direction, 0 to
	// codec.PayloadsMax. 0 means no limit.
	VotesMax int `toml:"votes_max,omitempty"`
}

// Kind implements [codec.Options].
func (Config) Kind() codec.Kind {
	return codec.Kind{Name: "distro", Disputable: countBlocks, Followable: true,
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

// Check returns an error that names a setting out of range, or nil.
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

// Codec implements codec.Codec. It holds no state of a member or a round and is safe for concurrent
// use.
type Codec struct {
	cfg    Config
	n      int // elements of the layout
	header codec.Header
	update codec.Header // of updates
	grids  []grid       // in the order of the blocks
	blocks int          // how many
	bits   int          // total length of the codes
	signs  int          // that of the signs of an update, in bytes
	words  int          // length of the longest code
	pool   *exact.Pool
	loop   vec.Kernel
	spare  chan *job // idle jobs
}

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error names a setting that is out of range. New makes
// tables, in time proportional to Block*Block*TopK and to the number of tensors.
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
		update: codec.NewHeader(updateMagic, layout, uint32(cfg.Block)),
		grids:  cut.grids,
		blocks: cut.blocks,
		bits:   cut.end.bit,
		signs:  cut.end.signs,
		pool:   pool,
		loop:   vec.For(pool.Kernel()),
		spare:  make(chan *job, 4), // if more goroutines call at a time, some allocate
	}
	for _, s := range cut.shapes {
		c.words = max(c.words, s.Words)
	}
	return c, nil
}

// StateLen returns the number of float32 of a member's momentum: the number of parameters.
func (c *Codec) StateLen() int { return c.n }

// PayloadMax returns the length in bytes of every payload.
func (c *Codec) PayloadMax() int { return codec.HeaderLen + (c.bits+7)/8 }
