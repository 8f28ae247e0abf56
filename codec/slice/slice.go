// Package slice is the codec of runs that exchange by buckets: a member commits to its whole update before anybody knows which part of it will be
// asked for, and sends only that part, the slice, which a seed draws when the window is over. Positions are not sent: they follow from the seed.
//
//	Encode   gradient, private state -> sealed: the whole update, one signed byte a parameter
//	Root     sealed -> the hash that the member commits to
//	Reveal   sealed, seed -> the slice's values, and the proofs that they are the committed ones
//	Open     reveal -> root and seed, for whoever compares them with the commitment and with the chain
//	Apply    parameters, reveals of the accepted members -> the parameters of the next window
//	Settle   private state, seed -> what the slice sent is taken out of the state
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

// StatePerParam is how many float32 a member keeps for each parameter: what was not sent yet, and the mean square of its gradients.
const StatePerParam = 2

// A Config is what a run chooses.
type Config struct {
	Compression uint32  // one in so many values of each tensor is sent in a window, at least; 1 to CompressionMax
	Leaf        uint32  // values that are sent together or not at all, LeafMin to LeafMax
	Decay       float32 // share of what was not sent that is left after a window, 0 to 1
	WeightDecay float32 // share of a weight that a window takes away on average, in units of the learning rate, 0 to 1
	ClipNorm    float32 // Euclidean norm to which a gradient is brought down before it is used; 0 for no limit
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	if c.Compression < 1 || c.Compression > CompressionMax {
		return fmt.Errorf("compression is %d, it must be in 1..%d", c.Compression, CompressionMax)
	}
	if c.Leaf < LeafMin || c.Leaf > LeafMax {
		return fmt.Errorf("leaf is %d, it must be in %d..%d", c.Leaf, LeafMin, LeafMax)
	}
	if err := codec.CheckRange("decay", c.Decay, 1); err != nil {
		return err
	}
	if err := codec.CheckRange("weight decay", c.WeightDecay, 1); err != nil {
		return err
	}
	return codec.CheckRange("clip norm", c.ClipNorm, codec.NormMax)
}

// Codec is a codec.Codec whose Encode makes the sealed form and whose Check and Apply take reveals. It holds no state of a member or a window, and
// may be used by several goroutines at once.
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
