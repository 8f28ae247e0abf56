// Package slice is the codec of runs that exchange by buckets: a member commits to its whole update
// before anybody knows which part of it will be asked for, and sends only that part, the slice,
// which a seed draws when the window is over. So nobody can train only what will be looked at, and
// positions are not sent: they follow from the seed.
//
//	Encode      gradient, private state -> sealed: the whole update, one signed byte a parameter
//	Root        sealed -> the hash that the member commits to
//	Reveal      sealed, seed -> the slice's values, and the proofs that they are the committed ones
//	Open        reveal -> root and seed, for whoever compares them with the commitment and with the chain
//	Apply       parameters, reveals of the accepted members -> the parameters of the next window
//	Settle      private state, seed -> what the slice sent is taken out of the state, before the next Encode
//	StateSlice  parameters, seed -> the agreed values on the slice, for who missed the window; PatchState puts them in
//
// # The rule
//
// A weight is drawn once in Compression windows, so its gradients are gathered meanwhile, each
// divided by the root of the sum of the recent ones' squares: the step of RMSProp and Adam but for
// a constant. With D and V the private state, zeros in the beginning, a member does for each weight
//
//	g = clip*gradient                     clip = min(1, ClipNorm/|gradient|), the norm of all of the gradient
//	V = 0.95*V + g*g
//	D = Decay*D + g/(sqrt(V) + 2^-60)     what is added is never above 1
//	q = D*16, rounded to the nearest of -127..127, ties to even: what it commits to
//
// and where the seed drew it, D = D - q/16: what rounding and the limits held back is sent another
// time. All who apply step by the root of the members' mean, with its sign, at the learning rate lr
// of the window in which the gradients were made:
//
//	m = (w1*q1 + w2*q2 + ... + wn*qn)/(16*n)
//	x = x*(1 - lr*WeightDecay*group) - lr*sign(m)*sqrt(|m|)
//
// where group is the number of windows between two draws of the weight on average, so that decay
// does not depend on the compression. Where nothing was drawn nothing changes, not even by decay:
// so a state slice carries all that a window did. The root is between the sum, by which the few
// weights whose gradients agree for many windows step too far when they are drawn at last, and the
// sign, by which noise counts as much as they do; docs/decisions.md has what was measured.
//
// The w are 1 but for members that send large values: whose values' norm, in the drawn part of a
// tensor, is more than twice the median of all members' (of an even number the upper one) counts in
// that tensor as if it were twice the median, rounded down to 1/256. So a member gains no say by
// multiplying what it sends, and one that flips it takes away the say of two. No weight moves by
// more than 2.8*lr in a window.
//
// # What is drawn
//
// Each tensor is cut into leaves of Leaf values in a row, the last of them shorter, and its leaves
// into ceil(leaves/Compression) groups of neighbours, whose numbers of leaves differ by at most
// one, the larger first. The seed draws one leaf of each group: group after group, in the order of
// the tensors, Uint64n(leaves) of prng.New(seed, "slice"). So at least one in Compression leaves of
// every tensor is drawn, a tensor of one leaf always, and what was drawn before says nothing about
// what will be.
//
// The tree that a member commits to has the groups as its leaves, and each group is a tree of its
// own, both as in package merkle, in which an element is the bytes of a leaf's values. As every
// group is drawn from, no hash of the outer tree has to be sent.
//
// # Bytes
//
//	sealed       header "eSD1" [12] | q [1] of each parameter, two's complement
//	reveal       header "eSR1" [12] | seed [32] | q [1] of each drawn value | for each group the proof of its leaf, hashes [32], lowest first | zeros
//	state slice  header "eSS1" [12] | seed [32] | each drawn parameter [4], IEEE-754 binary32, little endian
//
// The header is codec.Header, with the settings Compression and Leaf. -128 is refused. A reveal is
// as long as the longest that any seed can draw, so that the length can be committed to before:
// where leaves or proofs are shorter, zeros fill the end. Numbers in a state slice are finite.
//
// # Arithmetic
//
// All of it is binary32, each operation rounded, and the same bits on every machine for any number
// of workers; the sums of q are integers, exact in any order.
package slice

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const (
	magicSealed = "eSD1" // entrain, slice, the whole delta, version 1
	magicReveal = "eSR1" // entrain, slice, the reveal of one, version 1
	magicState  = "eSS1" // entrain, slice, the agreed values of one, version 1
)

// Limits of a Config.
const (
	CompressionMax = 1000
	LeafMin        = 16
	LeafMax        = 1 << 14
)

// StatePerParam is how many float32 a member keeps for each parameter: what was not sent yet, and
// the mean square of its gradients.
const StatePerParam = 2

// A Config is what a run chooses.
type Config struct {
	// Compression c means that one in c values of each tensor, at least, is sent in a window; 1 to
	// CompressionMax.
	Compression uint32 `toml:"compression"`
	// Leaf is the number of values that are sent together or not at all, LeafMin to LeafMax.
	Leaf uint32 `toml:"leaf"`
	// Decay is the share of what was not sent that is left after a window, 0 to 1.
	Decay float32 `toml:"decay"`
	// WeightDecay is the share of a weight that a window takes away on average, in units of the
	// learning rate, 0 to 1.
	WeightDecay float32 `toml:"weight_decay"`
	// ClipNorm is the largest Euclidean norm of a gradient; a larger one is scaled down. 0 means no
	// limit.
	ClipNorm float32 `toml:"clip_norm"`
}

// Kind describes the codec to specifications.
func Kind() codec.Kind {
	return codec.Kind{Name: "slice", Sliceable: true,
		Defaults: Config{Compression: 100, Leaf: 512, Decay: 1, WeightDecay: 0.1, ClipNorm: 1}}
}

// StateLen implements [codec.Options].
func (c Config) StateLen(n int) int { return StatePerParam * n }

// CheckLR implements [codec.Options].
func (c Config) CheckLR(lr float32) error { return codec.CheckLR(lr, c.WeightDecay) }

// New implements [codec.Options].
func (c Config) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	return New(layout, c, pool)
}

var _ codec.Sliceable = (*Codec)(nil)

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	if c.Compression < 1 || c.Compression > CompressionMax {
		return fmt.Errorf("compression is %d, it must be 1 to %d", c.Compression, CompressionMax)
	}
	if c.Leaf < LeafMin || c.Leaf > LeafMax {
		return fmt.Errorf("leaf is %d, it must be %d to %d", c.Leaf, LeafMin, LeafMax)
	}
	if err := codec.CheckRange("decay", c.Decay, 1); err != nil {
		return err
	}
	if err := codec.CheckRange("weight_decay", c.WeightDecay, 1); err != nil {
		return err
	}
	return codec.CheckRange("clip_norm", c.ClipNorm, codec.NormMax)
}

// Codec is a codec.Codec whose Encode makes the sealed form and whose Check and Apply take reveals.
// It holds no state of a member or a window, and may be used by several goroutines at once.
type Codec struct {
	cfg      Config
	n        int // elements of the layout
	plan     plan
	sealed   codec.Header
	revealed codec.Header
	agreed   codec.Header // of state slices
	pool     *exact.Pool
	spare    chan *job // not in use
}

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error says which setting is out of range.
func New(layout tensor.Layout, cfg Config, pool *exact.Pool) (*Codec, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("slice: %w", err)
	}
	if layout.Len() > math.MaxInt/16 {
		return nil, fmt.Errorf("slice: a layout of %d elements is more than this machine can address", layout.Len())
	}
	header := func(magic string) codec.Header { return codec.NewHeader(magic, layout, cfg.Compression, cfg.Leaf) }
	return &Codec{
		cfg: cfg, n: layout.Len(), plan: newPlan(layout, cfg), pool: pool,
		sealed: header(magicSealed), revealed: header(magicReveal), agreed: header(magicState),
		spare: make(chan *job, 4), // of more goroutines than that, some allocate at each call
	}, nil
}

// StateLen returns the number of float32 of a member's private state.
func (c *Codec) StateLen() int { return StatePerParam * c.n }

// SealedLen returns the length in bytes of every sealed update.
func (c *Codec) SealedLen() int { return codec.HeaderLen + c.n }

// RevealLen returns the length in bytes of every reveal.
func (c *Codec) RevealLen() int {
	return codec.HeaderLen + hashLen + c.plan.valuesMax + hashLen*c.plan.proofMax
}

// PayloadMax returns RevealLen: reveals are what Check passes and Apply takes.
func (c *Codec) PayloadMax() int { return c.RevealLen() }

// StateSliceLen returns the length in bytes of the longest state slice.
func (c *Codec) StateSliceLen() int { return codec.HeaderLen + hashLen + 4*c.plan.valuesMax }

// Config is what the codec was made with.
func (c *Codec) Config() Config { return c.cfg }
