package spec

import (
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// Disputable reports whether the steps of members can be disputed: all of a step between peers, and
// its gradient in a run of buckets.
func (s Spec) Disputable() bool {
	if s.Buckets() {
		return s.Inner() == nil
	}
	return s.Optimizer.Kind().Disputable != nil
}

// checkOptimizer reports the faults of the codec's options, and of what the run asks of the codec.
func (s Spec) checkOptimizer(fault func(format string, args ...any)) {
	k := s.Optimizer.Kind()
	if s.Trust.VerificationPercent != 0 && !s.Disputable() {
		fault("trust.verification_percent: steps with optimizer.codec = %q cannot be disputed; set it to 0", k.Name)
	}
	if k.Sliceable && !s.Buckets() {
		fault("optimizer.codec: %q needs exchange.kind = %q", k.Name, ExchangeBucket)
	}
	if err := s.Optimizer.Check(); err != nil {
		fault("optimizer.%s.%w", k.Name, err)
	}
}

// Inner returns how members train between two rounds, or nil if a share is a single gradient.
func (s Spec) Inner() *optim.Inner {
	if trains, ok := s.Optimizer.(interface{ Inner() *optim.Inner }); ok {
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
	return uint64(s.Optimizer.StateLen(cfg.Layout().Len())), nil
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
