package spec

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// The values of Optimizer.Codec.
const (
	CodecDistro     = "distro"
	CodecSlice      = "slice"
	CodecSparseLoCo = "sparseloco"
)

// What a run with codec slice does unless it says otherwise.
const (
	compressionDefault = 100
	leafDefault        = 512
)

// innerStepsDefault is in how many steps a member with codec sparseloco trains on its share, unless the run says otherwise.
const innerStepsDefault = 15

func (o *Optimizer) fill() {
	if o.Codec == CodecSparseLoCo {
		if o.InnerSteps == 0 {
			o.InnerSteps = innerStepsDefault
		}
		if o.OuterRate == 0 {
			o.OuterRate = 1
		}
	}
	if o.Codec != CodecSlice {
		return
	}
	if o.Compression == 0 {
		o.Compression = compressionDefault
	}
	if o.Leaf == 0 {
		o.Leaf = leafDefault
	}
}

// check reports every fault; each begins with a key.
func (o Optimizer) check(verificationPercent uint8) (faults []error) {
	if o.Codec != CodecSparseLoCo && (o.InnerSteps != 0 || o.OuterRate != 0) {
		faults = append(faults, fmt.Errorf("codec: inner_steps and outer_rate are for codec %q, not %q", CodecSparseLoCo, o.Codec))
	}
	switch o.Codec {
	case CodecDistro:
		if o.Compression != 0 || o.Leaf != 0 {
			faults = append(faults, fmt.Errorf("codec: compression and leaf are for codec %q, not %q", CodecSlice, o.Codec))
		}
		if err := o.distro().Check(); err != nil {
			faults = append(faults, fmt.Errorf("codec distro: %w", err))
		}
	case CodecSlice:
		if o.VotesMax != 0 {
			faults = append(faults, fmt.Errorf("votes_max: votes are for codec %q; leave it out with %q", CodecDistro, o.Codec))
		}
		if verificationPercent != 0 {
			faults = append(faults, errors.New("codec slice: results are scored and not recomputed: set trust.verification_percent = 0"))
		}
		if err := o.slice().Check(); err != nil {
			faults = append(faults, fmt.Errorf("codec slice: %w", err))
		}
	case CodecSparseLoCo:
		faults = append(faults, o.checkSparseLoCo(verificationPercent)...)
	default:
		faults = append(faults, fmt.Errorf("codec: %q is not known; there are %q, %q and %q", o.Codec, CodecDistro, CodecSlice, CodecSparseLoCo))
	}
	return faults
}

func (o Optimizer) checkSparseLoCo(verificationPercent uint8) (faults []error) {
	if o.VotesMax != 0 || o.Compression != 0 || o.Leaf != 0 {
		faults = append(faults, fmt.Errorf("codec: votes_max, compression and leaf are for other codecs; leave them out with %q", o.Codec))
	}
	if verificationPercent != 0 {
		faults = append(faults, errors.New("codec sparseloco: a share of several steps has no trace that a dispute could be about: set trust.verification_percent = 0"))
	}
	if o.InnerSteps < 0 || o.InnerSteps > innerStepsMax {
		faults = append(faults, fmt.Errorf("inner_steps: %d, want 1 to %d", o.InnerSteps, innerStepsMax))
	}
	if err := o.sparseloco().Check(); err != nil {
		faults = append(faults, fmt.Errorf("codec sparseloco: %w", err))
	}
	return faults
}

// innerStepsMax is far above what is of use: members drift apart.
const innerStepsMax = 1000

func (o Optimizer) sparseloco() sparseloco.Config {
	return sparseloco.Config{Chunk: o.Chunk * o.Chunk, TopK: o.TopK, Decay: o.Decay, OuterRate: o.OuterRate}
}

// Inner is how members train between two rounds; nil if a share is one gradient.
func (o Optimizer) Inner() *optim.Inner {
	if o.Codec != CodecSparseLoCo {
		return nil
	}
	adamw := optim.DefaultAdamW()
	adamw.WeightDecay = o.WeightDecay
	return &optim.Inner{Steps: o.InnerSteps, AdamW: adamw, ClipNorm: o.ClipNorm}
}

func (o Optimizer) distro() distro.Config {
	return distro.Config{Chunk: o.Chunk, TopK: o.TopK, Decay: o.Decay, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm,
		VotesMax: o.VotesMax}
}

func (o Optimizer) slice() slice.Config {
	return slice.Config{Compression: o.Compression, Leaf: o.Leaf, Decay: o.Decay, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm}
}

// Codec makes the run's compressor for a layout.
func (s Spec) Codec(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	switch s.Optimizer.Codec {
	case CodecSlice:
		return slice.New(layout, s.Optimizer.slice(), pool)
	case CodecSparseLoCo:
		return sparseloco.New(layout, s.Optimizer.sparseloco(), pool)
	}
	return distro.New(layout, s.Optimizer.distro(), pool)
}

// StateHash is the hash of a member's fresh optimizer state: zeros.
func (s Spec) StateHash() (wire.Hash, error) {
	n, err := s.StateLen()
	if err != nil {
		return wire.Hash{}, err
	}
	return zerosRoot(4 * n), nil
}

// StateLen is of how many numbers a member's optimizer state is: what its codec keeps for the parameters.
func (s Spec) StateLen() (uint64, error) {
	cfg, err := s.Llama()
	if err != nil {
		return 0, err
	}
	n := cfg.Layout().Len()
	size := uint64(n)
	switch s.Optimizer.Codec {
	case CodecSlice:
		size *= slice.StatePerParam
	case CodecSparseLoCo:
		size += uint64(s.Optimizer.Inner().StateLen(n))
	}
	return size, nil
}

// zerosRoot is the merkle.BlobRoot of so many zero bytes, which are not held in memory.
func zerosRoot(size uint64) wire.Hash {
	zeros := make([]byte, min(size, merkle.ChunkBytes))
	whole := merkle.Leaf(zeros)
	var t merkle.Tree
	for i := range merkle.BlobChunks(size) {
		if from, to := merkle.Chunk(size, i); to-from < uint64(len(zeros)) {
			t.Add(merkle.Leaf(zeros[:to-from]))
		} else {
			t.Add(whole)
		}
	}
	return t.Root()
}
