package cpu

import (
	"fmt"
	"slices"
	"sync/atomic"

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

// vector is Floats that a device may have too. It is complete in host memory whatever a device has,
// because peers, judges and the state file read it there, and a device may be lost.
type vector struct {
	Floats
	// version is the same only in vectors with the same elements. 0 is not a version.
	version uint64
	leaves  []wire.Hash // if a device has computed them
}

// versions counts the versions of all vectors.
var versions atomic.Uint64

// changed gives v, whose elements have changed, a version and the leaves that are known.
func (v *vector) changed(version uint64, leaves []wire.Hash) { v.version, v.leaves = version, leaves }

// vectorOf returns a vector that this package made. One of Floats has no version.
func vectorOf(v engine.Vector) *vector {
	switch v := v.(type) {
	case *vector:
		return v
	case Floats:
		return &vector{Floats: v}
	}
	panic(fmt.Sprintf("engine/cpu: a vector of another engine: %T", v))
}

// ready returns a vector for Step, filled if it is late.
func ready(v engine.Vector) (*vector, error) {
	v, err := engine.Ready(v)
	return vectorOf(v), err
}

func floats(v engine.Vector) []float32 { return vectorOf(v).Floats }

// NewVector implements [engine.Engine].
func (e *Engine) NewVector(n int) engine.Vector { return e.Load(make([]float32, n)) }

// Load implements [engine.Engine].
func (e *Engine) Load(values []float32) engine.Vector {
	return &vector{Floats: values, version: versions.Add(1)}
}

// Fill implements [engine.Engine].
func (e *Engine) Fill(v engine.Vector, read func([]byte) error) error {
	dst := vectorOf(v)
	dst.changed(versions.Add(1), nil)
	return tensor.Fill(dst.Floats, read)
}

// Copy implements [engine.Engine].
func (e *Engine) Copy(to, from engine.Vector) {
	dst := vectorOf(to)
	if from == nil {
		clear(dst.Floats)
		dst.changed(versions.Add(1), nil)
		return
	}
	src := vectorOf(from)
	if len(src.Floats) != len(dst.Floats) {
		panic(fmt.Sprintf("engine/cpu: copying %d elements to %d", len(src.Floats), len(dst.Floats)))
	}
	copy(dst.Floats, src.Floats)
	dst.changed(src.version, src.leaves)
}

// Leaves implements [engine.Engine].
func (e *Engine) Leaves(v engine.Vector) []wire.Hash {
	x := vectorOf(v)
	if x.leaves != nil {
		return slices.Clone(x.leaves)
	}
	return parallel.Leaves(e.pool, tensor.Bytes(x.Floats))
}
