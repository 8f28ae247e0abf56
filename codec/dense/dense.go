// Package dense is a codec that compresses nothing: the payload is the gradient, and the update its
// mean. It serves as a baseline for compressors and in tests. Over a network it costs 32 bits per
// parameter and member.
//
// A payload is
//
//	offset  bytes
//	0       12     header: magic "eDN1" and layout (codec.Header)
//	12      4*n    the n elements of the gradient, IEEE-754 binary32, little-endian
//
// Elements are finite, of magnitude at most 2^60, and never -0, so that no two payloads mean the
// same update. For the layout of one tensor "w" of shape [4] and the gradient {1, -2.5, 0, 0}:
//
//	65 44 4e 31   76 37 8f 1a 7d aa 61 db   00 00 80 3f   00 00 20 c0   00 00 00 00   00 00 00 00
//	e  D  N  1    layout                    1             -2.5          0             0
//
// Apply sums the payloads' elements in the order of the payloads, starting with +0, divides by
// their number, and takes a step of gradient descent with decoupled weight decay, rounding each
// operation to binary32:
//
//	x = x*(1 - lr*decay) - lr*(g1 + g2 + ... + gn)/n
package dense

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

const magic = "eDN1" // entrain, dense, version 1

// span is the number of elements in one task of Apply. It does not affect results.
const span = 1 << 14

// A Config holds a run's settings.
type Config struct {
	// WeightDecay is the part of a weight that a step removes, in units of the learning rate, 0 to
	// 1.
	WeightDecay float32
	// ClipNorm is the largest Euclidean norm of a gradient; a larger one is scaled down before it
	// is sent. 0 means no limit.
	ClipNorm float32
}

// Check implements [codec.Options].
func (c Config) Check() error {
	if err := codec.CheckRange("weight_decay", c.WeightDecay, 1); err != nil {
		return err
	}
	return codec.CheckRange("clip_norm", c.ClipNorm, codec.NormMax)
}

// Kind implements [codec.Options].
func (Config) Kind() codec.Kind { return codec.Kind{Name: "dense", Defaults: Config{}} }

// StateLen implements [codec.Options].
func (c Config) StateLen(int) int { return 0 }

// CheckLR implements [codec.Options].
func (c Config) CheckLR(lr float32) error { return codec.CheckLR(lr, c.WeightDecay) }

// New implements [codec.Options].
func (c Config) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	return New(layout, c, pool)
}

// Codec implements codec.Codec. It has no state and is safe for concurrent use.
type Codec struct {
	cfg    Config
	n      int
	header codec.Header
	pool   *exact.Pool
}

var _ codec.Codec = (*Codec)(nil)

// New returns the dense codec of a layout. The error names a setting that is out of range.
func New(layout tensor.Layout, cfg Config, pool *exact.Pool) (*Codec, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("dense: %w", err)
	}
	if layout.Len() > (math.MaxInt-codec.HeaderLen)/4 {
		return nil, fmt.Errorf("dense: a layout of %d elements makes payloads longer than this machine can address", layout.Len())
	}
	return &Codec{cfg: cfg, n: layout.Len(), header: codec.NewHeader(magic, layout), pool: pool}, nil
}

// StateLen returns 0: everything is sent.
func (c *Codec) StateLen() int { return 0 }

// PayloadMax returns the length in bytes of every payload.
func (c *Codec) PayloadMax() int { return codec.HeaderLen + 4*c.n }

// Encode appends the payload of the clipped grad. See codec.Codec.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != 0 || len(grad) != c.n {
		panic(fmt.Sprintf("dense: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("dense: %w", err)
	}
	scale, err := codec.Clip(c.pool, grad, c.cfg.ClipNorm)
	if err != nil {
		return dst, fmt.Errorf("dense: %w", err)
	}
	dst = append(dst, c.header[:]...)
	for _, g := range grad {
		v := float32(g*scale) + 0 // the sum turns -0 into +0
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst, nil
}

// Check returns an error unless payload is canonical. See codec.Codec.
func (c *Codec) Check(payload []byte) error {
	if err := c.check(payload); err != nil {
		return fmt.Errorf("dense: %w", err)
	}
	return nil
}

func (c *Codec) check(payload []byte) error {
	if err := c.header.Check(payload, c.PayloadMax()); err != nil {
		return err
	}
	const limit, negativeZero = (127 + 60) << 23, 1 << 31 // the bits of codec.NormMax and of -0
	for i := range c.n {
		if bits := element(payload, i); bits&0x7fffffff > limit || bits == negativeZero {
			return fmt.Errorf("element %d is %v, not a finite number up to 2^60 other than -0", i, math.Float32frombits(bits))
		}
	}
	return nil
}

// Apply updates params by the mean of the payloads. See codec.Codec.
func (c *Codec) Apply(params []float32, payloads [][]byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("dense: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckSet(c.check, payloads, lr, c.cfg.WeightDecay); err != nil {
		return fmt.Errorf("dense: %w", err)
	}
	if len(payloads) == 0 {
		return nil
	}
	keep, count := codec.Keep(lr, c.cfg.WeightDecay), float32(len(payloads))
	c.pool.Run((c.n+span-1)/span, func(task int) {
		for i := task * span; i < min((task+1)*span, c.n); i++ {
			var sum float32
			for _, p := range payloads {
				sum += math.Float32frombits(element(p, i))
			}
			params[i] = float32(params[i]*keep) - float32(lr*float32(sum/count))
		}
	})
	return nil
}

// element returns the bits of element i of a payload.
func element(payload []byte, i int) uint32 {
	return binary.LittleEndian.Uint32(payload[codec.HeaderLen+4*i:])
}
