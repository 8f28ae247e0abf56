package spec

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// Kinds are the codecs that a specification can name. The first is the default, and the first that
// is sliceable the default of runs that exchange by buckets.
var Kinds = []codec.Kind{distro.Kind(), slice.Kind(), sparseloco.Kind()}

// optimizerFor returns the defaults of a kind.
func optimizerFor(k codec.Kind) Optimizer { return Optimizer{Codec: k.Name, Options: k.Defaults} }

// sliceKind returns the default codec of runs that exchange by buckets.
func sliceKind() codec.Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k codec.Kind) bool { return k.Sliceable })]
}

// Kind returns the run's codec. ok is false if it is not known.
func (o Optimizer) Kind() (k codec.Kind, ok bool) { return codec.Find(Kinds, o.Codec) }

// check reports every fault; each begins with a key.
func (o Optimizer) check(verificationPercent uint8) (faults []error) {
	k, ok := o.Kind()
	if !ok {
		return []error{fmt.Errorf("optimizer.codec: %q is not known; there are %s", o.Codec, codec.Names(Kinds))}
	}
	if verificationPercent != 0 && k.Disputable == nil {
		faults = append(faults, fmt.Errorf(
			"trust.verification_percent: steps with optimizer.codec = %q cannot be disputed; set it to 0", o.Codec))
	}
	if err := o.Options.Check(); err != nil {
		faults = append(faults, fmt.Errorf("optimizer.%s.%w", o.Codec, err))
	}
	return faults
}

// Inner returns how members train between two rounds. It is nil if a share is one gradient.
func (o Optimizer) Inner() *optim.Inner {
	if trains, ok := o.Options.(interface{ Inner() *optim.Inner }); ok {
		return trains.Inner()
	}
	return nil
}

// StateHash is the hash of a member's fresh optimizer state: zeros.
func (s Spec) StateHash() (wire.Hash, error) {
	n, err := s.StateLen()
	if err != nil {
		return wire.Hash{}, err
	}
	return zerosRoot(4 * n), nil
}

// StateLen returns the number of floats in a member's optimizer state.
func (s Spec) StateLen() (uint64, error) {
	cfg, err := s.Llama()
	if err != nil {
		return 0, err
	}
	if s.Optimizer.Options == nil {
		return 0, fmt.Errorf("optimizer.codec: %q is not known", s.Optimizer.Codec)
	}
	return uint64(s.Optimizer.Options.StateLen(cfg.Layout().Len())), nil
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
