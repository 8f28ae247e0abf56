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

// Kinds lists the codecs that a specification can name. The first is the default; the first
// sliceable one is the default for runs that exchange by buckets.
var Kinds = []codec.Kind{distro.Kind(), slice.Kind(), sparseloco.Kind()}

// optimizerFor returns a kind's default optimizer.
func optimizerFor(k codec.Kind) Optimizer { return Optimizer{Codec: k.Name, Options: k.Defaults} }

// sliceKind returns the default codec for runs that exchange by buckets.
func sliceKind() codec.Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k codec.Kind) bool { return k.Sliceable })]
}

// Kind returns the run's codec. ok is false if the codec is unknown.
func (o Optimizer) Kind() (k codec.Kind, ok bool) { return codec.Find(Kinds, o.Codec) }

// Disputable reports whether the steps of members can be disputed: all of a step between peers, and
// its gradient in a run of buckets.
func (s Spec) Disputable() bool {
	if s.Buckets() {
		return s.Optimizer.Inner() == nil
	}
	k, ok := s.Optimizer.Kind()
	return ok && k.Disputable != nil
}

// check returns all faults, each starting with a key.
func (o Optimizer) check(verified, disputable bool) (faults []error) {
	if _, ok := o.Kind(); !ok {
		return []error{fmt.Errorf("optimizer.codec: %q is unknown; choose one of %s", o.Codec, codec.Names(Kinds))}
	}
	if verified && !disputable {
		faults = append(faults, fmt.Errorf(
			"trust.verification_percent: steps with optimizer.codec = %q cannot be disputed; set it to 0", o.Codec))
	}
	if err := o.Options.Check(); err != nil {
		faults = append(faults, fmt.Errorf("optimizer.%s.%w", o.Codec, err))
	}
	return faults
}

// Inner returns how members train between two rounds, or nil if a share is a single gradient.
func (o Optimizer) Inner() *optim.Inner {
	if trains, ok := o.Options.(interface{ Inner() *optim.Inner }); ok {
		return trains.Inner()
	}
	return nil
}

// StateHash returns the hash of a member's fresh optimizer state, all zeros.
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
		return 0, fmt.Errorf("optimizer.codec: %q is unknown", s.Optimizer.Codec)
	}
	return uint64(s.Optimizer.Options.StateLen(cfg.Layout().Len())), nil
}

// zerosRoot returns the merkle.BlobRoot of n zero bytes without holding them in memory.
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
