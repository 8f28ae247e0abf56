package sparseloco

import (
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
)

// Options are a specification's settings: the codec's [Config], and how a member trains between two
// rounds.
type Options struct {
	// Chunk is the number of values in a chunk, 1 to ChunkMax.
	Chunk int `toml:"chunk"`
	// TopK is the number of values sent per chunk, 1 to TopKMax.
	TopK int `toml:"top_k"`
	// Decay is the part of the error feedback kept from round to round, 0 to 1.
	Decay float32 `toml:"decay"`
	// OuterRate scales the mean of the members' changes, 0 to 16.
	OuterRate float32 `toml:"outer_rate"`
	// ClipChunks is the number of consecutive chunks that are clipped together, up to 16384. Above 0
	// it is what exchange.aggregate "followers" and "slices" need; 64 is good. 0: whole payloads.
	ClipChunks int `toml:"clip_chunks,omitempty"`
	// InnerSteps is the number of steps that a member takes on its share, 1 to innerStepsMax.
	InnerSteps int `toml:"inner_steps"`
	// InnerOptimizer is that of these steps: empty for AdamW, or InnerMuon.
	InnerOptimizer string `toml:"inner_optimizer,omitempty"`
	// WeightDecay is the inner steps', in units of the learning rate, 0 to 1.
	WeightDecay float32 `toml:"weight_decay"`
	// ClipNorm is the largest Euclidean norm of an inner step's gradient; 0 means no limit.
	ClipNorm float32 `toml:"clip_norm"`
}

// InnerMuon names optim.Muon.
const InnerMuon = "muon"

// innerStepsMax is far above any useful number, because members drift apart.
const innerStepsMax = 1000

// Kind implements [codec.Options]. Several steps have no trace, so they cannot be disputed.
func (o Options) Kind() codec.Kind {
	return codec.Kind{Name: "sparseloco", Followable: o.ClipChunks > 0, Defaults: Options{
		Chunk: 4096, TopK: 32, Decay: 0.95, OuterRate: 1, InnerSteps: 15, WeightDecay: 0.1, ClipNorm: 1,
	}}
}

// Config returns the codec's part.
func (o Options) Config() Config {
	return Config{Chunk: o.Chunk, TopK: o.TopK, Decay: o.Decay, OuterRate: o.OuterRate, ClipChunks: o.ClipChunks}
}

// Inner returns how a member trains between two rounds.
func (o Options) Inner() *optim.Inner {
	adamw := optim.DefaultAdamW()
	adamw.WeightDecay = o.WeightDecay
	return &optim.Inner{Steps: o.InnerSteps, AdamW: adamw, Muon: o.InnerOptimizer == InnerMuon, ClipNorm: o.ClipNorm}
}

// Check implements [codec.Options].
func (o Options) Check() error {
	if o.InnerSteps < 1 || o.InnerSteps > innerStepsMax {
		return fmt.Errorf("inner_steps is %d, it must be 1 to %d", o.InnerSteps, innerStepsMax)
	}
	if o.InnerOptimizer != "" && o.InnerOptimizer != InnerMuon {
		return fmt.Errorf("inner_optimizer is %.40q, it must be %q, or missing for AdamW", o.InnerOptimizer, InnerMuon)
	}
	if err := codec.CheckRange("weight_decay", o.WeightDecay, 1); err != nil {
		return err
	}
	if err := codec.CheckRange("clip_norm", o.ClipNorm, codec.NormMax); err != nil {
		return err
	}
	return o.Config().Check()
}

// StateLen implements [codec.Options].
func (o Options) StateLen(n int) int { return n + o.Inner().StateLen(n) }

// CheckLR implements [codec.Options].
func (o Options) CheckLR(lr float32) error { return codec.CheckLR(lr, o.WeightDecay) }

// New implements [codec.Options].
func (o Options) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	c, err := New(layout, o.Config(), pool)
	if err == nil && o.ClipChunks > 0 {
		return Followable{c}, nil
	}
	return c, err
}
