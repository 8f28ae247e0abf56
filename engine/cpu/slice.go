package cpu

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/wire"
)

// slicer adapts a codec that seals and reveals.
type slicer struct{ codec.Sliceable }

// Settle implements [engine.Slicer].
func (s slicer) Settle(state engine.Vector, seed wire.Hash) {
	v := vectorOf(state)
	s.Sliceable.Settle(v.Floats, seed)
	v.changed(versions.Add(1), nil)
}

// StateSlice implements [engine.Slicer].
func (s slicer) StateSlice(params engine.Vector, seed wire.Hash) []byte {
	return s.Sliceable.StateSlice(floats(params), seed)
}

// NewSlicer returns the slicer of a codec for vectors in host memory.
func NewSlicer(c codec.Sliceable) engine.Slicer { return slicer{c} }

// Slicer implements [engine.Engine].
func (e *Engine) Slicer() (s engine.Slicer, ok bool) {
	if c, ok := e.codec.(codec.Sliceable); ok {
		return NewSlicer(c), true
	}
	return nil, false
}
