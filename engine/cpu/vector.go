package cpu

import (
	"fmt"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle/parallel"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Floats is a vector in host memory, the only one that this engine takes. Converting a slice to it
// copies nothing.
type Floats []float32

// Len implements [engine.Vector].
func (f Floats) Len() int { return len(f) }

// Host implements [engine.Vector].
func (f Floats) Host(from, to int) []float32 { return f[from:to] }

// floats returns the elements of a vector that this package made.
func floats(v engine.Vector) []float32 {
	f, ok := v.(Floats)
	if !ok {
		panic(fmt.Sprintf("engine/cpu: a vector of another engine: %T", v))
	}
	return f
}

// NewVector implements [engine.Engine].
func (e *Engine) NewVector(n int) engine.Vector { return make(Floats, n) }

// Load implements [engine.Engine].
func (e *Engine) Load(values []float32) engine.Vector { return Floats(values) }

// SetBytes implements [engine.Engine].
func (e *Engine) SetBytes(v engine.Vector, data []byte) { tensor.SetBytes(floats(v), data) }

// Copy implements [engine.Engine].
func (e *Engine) Copy(to, from engine.Vector) {
	dst := floats(to)
	if from == nil {
		clear(dst)
		return
	}
	src := floats(from)
	if len(src) != len(dst) {
		panic(fmt.Sprintf("engine/cpu: copying %d elements to %d", len(src), len(dst)))
	}
	copy(dst, src)
}

// Leaves implements [engine.Engine].
func (e *Engine) Leaves(v engine.Vector) []wire.Hash {
	return parallel.Leaves(e.pool, tensor.Bytes(floats(v)))
}
