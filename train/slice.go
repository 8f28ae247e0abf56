package train

import (
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/wire"
)

// Slicer is what the codec of a run that exchanges by buckets can do beside codec.Codec: package codec/slice says what each method does.
type Slicer interface {
	// Root is what a member commits to for a sealed update, the Payload of Step's result.
	Root(sealed []byte) wire.Hash
	// RevealLen is the length of every reveal: the PayloadBytes of a commitment.
	RevealLen() int
	Reveal(dst, sealed []byte, seed wire.Hash) []byte
	Open(reveal []byte) (root, seed wire.Hash, err error)
	// Settle takes what a slice sent out of the member's state, before its next Step.
	Settle(state []float32, seed wire.Hash)
	Ranges(seed wire.Hash) []slice.Range
	Values(dst []float32, reveal []byte) []float32
	StateSlice(params []float32, seed wire.Hash) []byte
	PatchState(params []float32, stateSlice []byte) error
	StateSliceLen() int
}

// Slicer returns what seals and reveals the run's updates; ok is false in a run whose codec sends them whole.
func (e *Engine) Slicer() (s Slicer, ok bool) {
	s, ok = e.cfg.Codec.(Slicer)
	return s, ok
}
