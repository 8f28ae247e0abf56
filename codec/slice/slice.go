// Package slice is the codec of runs that exchange by buckets. A member commits to its whole update
// before anybody knows which part will be sent. When the window is over, a seed draws that part,
// the slice, and the member sends only it. Members therefore cannot train only the values that will
// be seen, and need not send positions, which follow from the seed.
//
//	Encode      gradient, private state -> sealed: the whole update, one signed byte a parameter
//	Root        sealed -> the hash that the member commits to
//	Reveal      sealed, seed -> the slice's values, and proofs that they were committed to
//	Open        reveal -> root and seed, to compare with the commitment and the chain
//	Apply       parameters, reveals of the accepted members -> the next window's parameters
//	Settle      private state, seed -> the state less what the slice sent, for the next Encode
//	StateSlice  parameters, seed -> the agreed values on the slice, for members that missed it
//	PatchState  parameters, state slice -> the parameters with these values
//
// # # The rule
//
// A weight is drawn about once in Compression windows. Meanwhile a member sums its gradients, each
// divided by the root of the sum of recent squares; this is the step of RMSProp and Adam up to a
// constant. With D and V the private state, initially zeros, it computes for each weight
//
//	g = clip*gradient
//	V = 0.95*V + g*g
//	D = Decay*D + g/(sqrt(V) + 2^-60)     the addend never exceeds 1
//	q = D*16, rounded to the nearest of -127..127, ties to even: the committed value
//
// with clip = min(1, ClipNorm/|gradient|) for the norm of the whole gradient. Where the seed draws
// the weight, D = D - q/16: what rounding and the limits left is sent another time. Everyone who
// applies the slice steps by the root of the members' mean, with its sign, at the learning rate lr
// of the window in which the gradients were made:
//
//	m = (w1*q1 + w2*q2 + ... + wn*qn)/(16*n)
//	x = x*(1 - lr*WeightDecay*group) - lr*sign(m)*sqrt(|m|)
//
// where group is the mean number of windows between two draws of the weight, so that decay does not
// depend on the compression. Weights that were not drawn do not change, not even by decay, so a
// state slice holds everything that a window changed. The root is a compromise. With the sum, the
// few weights whose gradients agree for many windows would step too far when drawn; with the sign,
// noise would count as much as they do. docs/decisions.md has measurements.
//
// The w are 1 except for members that send large values. If the norm of a member's values in the
// drawn part of a tensor exceeds twice the median of all members' (the upper one of an even
// number), w scales it down in that tensor to twice the median, rounded down to 1/256. A member
// thus gains no influence by multiplying what it sends, and one that flips the sign cancels at most
// two members. No weight moves by more than 2.8*lr in a window.
//
// # # What is drawn
//
// Each tensor is cut into leaves of Leaf consecutive values, the last one shorter, and its leaves
// into ceil(leaves/Compression) groups of neighbours. The numbers of leaves in groups differ by at
// most one, the larger first. The seed draws one leaf of each group, in the order of the groups and
// tensors, by Uint64n(leaves) of prng.New(seed, "slice"). So every window draws at least one in
// Compression leaves of every tensor, and past draws say nothing about future ones.
//
// The tree that a member commits to has the groups as leaves. Each group is a tree over its leaves'
// values as bytes. Both are trees of package merkle. Because every group is drawn from, no hash of
// the outer tree is sent.
//
// # # Bytes
//
//	sealed       header "eSD1" [12] | q [1] of each parameter, two's complement
//	reveal       header "eSR1" [12] | seed [32] | q [1] of each drawn value
//	             | for each group the proof of its leaf, hashes [32], lowest first | zeros
//	state slice  header "eSS1" [12] | seed [32]
//	             | each drawn parameter [4], IEEE-754 binary32, little endian
//
// The header is codec.Header, with the settings Compression and Leaf. -128 is refused. Zeros pad a
// reveal to the length of the longest that any seed can draw, so that a member can commit to the
// length before. Numbers in a state slice are finite.
//
// # # Arithmetic
//
// All of it is binary32, rounding each operation, with the same bits on every machine for any
// number of workers. The sums of q are integers, exact in any order.
package slice

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const (
	magicSealed = "eSD1" // sealed update, version 1
	magicReveal = "eSR1" // reveal, version 1
	magicState  = "eSS1" // state slice, version 1
)

// Limits of a Config.
const (
	CompressionMax = 1000
	LeafMin        = 16
	LeafMax        = 1 << 14
)

// StatePerParam is the number of float32 of private state for each parameter: D and V of the
// package comment.
const StatePerParam = 2

// A Config holds a run's settings.
type Config struct {
	// Compression is the reciprocal of the part of each tensor that a window sends, rounded up to
	// whole leaves, 1 to CompressionMax.
	Compression uint32 `toml:"compression"`
	// Leaf is the number of values that are drawn together, LeafMin to LeafMax.
	Leaf uint32 `toml:"leaf"`
	// Decay is the part of the unsent update that is kept from window to window, 0 to 1.
	Decay float32 `toml:"decay"`
	// WeightDecay is the part of a weight that a window removes on average, in units of the
	// learning rate, 0 to 1.
	WeightDecay float32 `toml:"weight_decay"`
	// ClipNorm is the largest Euclidean norm of a gradient; a larger one is scaled down. 0 means no
	// limit.
	ClipNorm float32 `toml:"clip_norm"`
}

// Kind implements [codec.Options].
func (Config) Kind() codec.Kind {
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

// Check returns an error that names a setting out of range, or nil.
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

// Codec implements codec.Sliceable. It holds no state of a member or a window and is safe for
// concurrent use.
type Codec struct {
	cfg      Config
	n        int // elements of the layout
	plan     plan
	sealed   codec.Header
	revealed codec.Header
	agreed   codec.Header // header of state slices
	pool     *exact.Pool
	spare    chan *job // idle jobs
}

var _ codec.Codec = (*Codec)(nil)

// New returns the codec of a layout. The error names a setting that is out of range.
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
		spare: make(chan *job, 4), // if more goroutines call at a time, some allocate
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

// PayloadMax returns RevealLen, because Check and Apply take reveals.
func (c *Codec) PayloadMax() int { return c.RevealLen() }

// StateSliceLen returns the length in bytes of the longest state slice.
func (c *Codec) StateSliceLen() int { return codec.HeaderLen + hashLen + 4*c.plan.valuesMax }
