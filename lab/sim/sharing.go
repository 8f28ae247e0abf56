package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// sharedEngine is an engine whose vectors are copied when one changes, not before. Nearly all
// participants hold the same parameters: they share memory. What depends on parameters and bytes
// alone is computed once for all of them: the effect of an accepted set, and the update of results.
type sharedEngine struct {
	engine.Engine
	all *sharing
}

func (n *network) newEngine(run engine.Run) (engine.Engine, error) {
	e, err := cpu.New(run, cpu.Options{Workers: 1, Micro: 4})
	if err != nil {
		return nil, err
	}
	return sharedEngine{e, n.sharing}, nil
}

// sharing is what the engines of all participants have in common.
type sharing struct {
	codec   codec.Codec           // of adversaries, nil until there is one
	mu      sync.RWMutex          // guards what follows
	zeros   map[int]*values       // by length
	byRoot  map[wire.Hash]*values // parameters, and states that were loaded
	applied map[wire.Hash]*values // by what was applied to what
	updates map[wire.Hash][]byte  // by what they were made of
}

// sharedMax bounds the vectors of a kind, and the updates, that are remembered.
const sharedMax = 64

func newSharing() *sharing {
	return &sharing{zeros: map[int]*values{}, byRoot: map[wire.Hash]*values{}, applied: map[wire.Hash]*values{}, updates: map[wire.Hash][]byte{}}
}

// values are those of vectors that were measured. They never change.
type values struct {
	engine.Vector
	leaves []wire.Hash
}

// vector is a vector of a sharedEngine: of the values that it shares, or of its own.
type vector struct {
	of   *values
	own  engine.Vector
	kept bool // its own are a state that a step made, which no other participant has
}

func (v *vector) at() engine.Vector {
	if v.of != nil {
		return v.of.Vector
	}
	return v.own
}

// Len implements engine.Vector.
func (v *vector) Len() int { return v.at().Len() }

// Host implements engine.Vector.
func (v *vector) Host(from, to int) []float32 { return v.at().Host(from, to) }

// plain returns the vector of the engine below.
func plain(v engine.Vector) engine.Vector {
	if v, ok := v.(*vector); ok {
		return v.at()
	}
	return v
}

// alone returns the vector of the engine below that v alone has, so that it may change.
func (e sharedEngine) alone(v engine.Vector) engine.Vector {
	x, ok := v.(*vector)
	if !ok {
		return v
	}
	if x.of != nil {
		x.own = e.Engine.NewVector(x.of.Len())
		e.Engine.Copy(x.own, x.of.Vector)
		x.of = nil
	}
	return x.own
}

// NewVector implements engine.Engine.
func (e sharedEngine) NewVector(n int) engine.Vector { return &vector{of: e.none(n)} }

// none returns n zeros.
func (e sharedEngine) none(n int) *values {
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	if e.all.zeros[n] == nil {
		e.all.zeros[n] = e.measure(e.Engine.NewVector(n))
	}
	return e.all.zeros[n]
}

func (e sharedEngine) measure(v engine.Vector) *values { return &values{v, e.Engine.Leaves(v)} }

// Load implements engine.Engine.
func (e sharedEngine) Load(list []float32) engine.Vector { return &vector{own: e.Engine.Load(list)} }

// Fill implements engine.Engine.
func (e sharedEngine) Fill(v engine.Vector, read func([]byte) error) error {
	return e.Engine.Fill(e.alone(v), read)
}

// Copy implements engine.Engine.
func (e sharedEngine) Copy(to, from engine.Vector) {
	x, ok := to.(*vector)
	y, shares := from.(*vector)
	switch {
	case ok && from == nil:
		x.of, x.own = e.none(x.Len()), nil
	case ok && shares && y.of != nil && x.Len() == y.Len():
		x.of, x.own = y.of, nil
	default:
		e.Engine.Copy(e.alone(to), plain(from))
	}
}

// Leaves implements engine.Engine. A vector that was measured does not change its values, but gets
// others.
func (e sharedEngine) Leaves(v engine.Vector) []wire.Hash {
	x, ok := v.(*vector)
	if !ok {
		return e.Engine.Leaves(v)
	}
	if x.of == nil {
		x.of = e.measure(x.own)
		if !x.kept {
			x.of = e.all.first(e.all.byRoot, merkle.Root(x.of.leaves), x.of)
		}
		x.own, x.kept = nil, false
	}
	return x.of.leaves
}

// first remembers v under a name, unless there is one already, which it returns.
func (s *sharing) first(among map[wire.Hash]*values, name wire.Hash, v *values) *values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := among[name]; before != nil {
		return before
	}
	if len(among) >= sharedMax {
		clear(among)
	}
	among[name] = v
	return v
}

// Step implements engine.Engine.
func (e sharedEngine) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	own := e.alone(state)
	if x, ok := state.(*vector); ok {
		x.kept = true
	}
	return e.Engine.Step(ctx, plain(params), own, spans, step)
}

// Gradient implements engine.Engine.
func (e sharedEngine) Gradient(ctx context.Context, params engine.Vector, spans []batch.Span) (engine.Gradient, error) {
	return e.Engine.Gradient(ctx, plain(params), spans)
}

// Loss implements engine.Engine.
func (e sharedEngine) Loss(ctx context.Context, params engine.Vector, spans []batch.Span) (float64, error) {
	return e.Engine.Loss(ctx, plain(params), spans)
}

// HeldOut implements engine.Engine.
func (e sharedEngine) HeldOut(ctx context.Context, params engine.Vector) (float32, error) {
	return e.Engine.HeldOut(ctx, plain(params))
}

// Apply implements engine.Engine.
func (e sharedEngine) Apply(params engine.Vector, payloads [][]byte, step uint32) error {
	return e.apply(params, name("set", uint64(step), payloads), func(own engine.Vector) error { return e.Engine.Apply(own, payloads, step) })
}

// apply changes params as was done to equal ones before under this name, or as do does.
func (e sharedEngine) apply(params engine.Vector, name wire.Hash, do func(engine.Vector) error) error {
	x, ok := params.(*vector)
	if !ok || x.of == nil {
		return do(plain(params))
	}
	root := merkle.Root(x.of.leaves)
	name = wire.Sum("entrain/sim/applied", root[:], name[:])
	e.all.mu.RLock()
	made := e.all.applied[name]
	e.all.mu.RUnlock()
	if made == nil {
		before := x.of
		if err := do(e.alone(x)); err != nil {
			x.of, x.own = before, nil
			return err
		}
		made = e.all.first(e.all.applied, name, e.measure(x.own))
	}
	x.of, x.own = made, nil
	return nil
}

// name is the hash of what something is computed from.
func name(what string, number uint64, parts [][]byte) (h wire.Hash) {
	sum := sha256.New()
	sum.Write([]byte(what))
	word := binary.LittleEndian.AppendUint64(nil, number)
	sum.Write(word)
	for _, p := range parts {
		sum.Write(binary.LittleEndian.AppendUint64(word[:0], uint64(len(p))))
		sum.Write(p)
	}
	sum.Sum(h[:0])
	return h
}

// Slicer implements engine.Engine.
func (e sharedEngine) Slicer() (engine.Slicer, bool) {
	if s, ok := e.Engine.Slicer(); ok {
		return sharedSlicer{s, e}, true
	}
	return nil, false
}

type sharedSlicer struct {
	engine.Slicer
	engine sharedEngine
}

// Settle implements engine.Slicer.
func (s sharedSlicer) Settle(state engine.Vector, seed wire.Hash) {
	s.Slicer.Settle(s.engine.alone(state), seed)
}

// StateSlice implements engine.Slicer.
func (s sharedSlicer) StateSlice(params engine.Vector, seed wire.Hash) []byte {
	return s.Slicer.StateSlice(plain(params), seed)
}

// Follower implements engine.Engine.
func (e sharedEngine) Follower() (engine.Follower, bool) {
	if f, ok := e.Engine.Follower(); ok {
		return sharedFollower{f, e}, true
	}
	return nil, false
}

type sharedFollower struct {
	engine.Follower
	engine sharedEngine
}

// Follow implements engine.Follower.
func (f sharedFollower) Follow(params engine.Vector, update []byte, step uint32) error {
	return f.engine.apply(params, name("update", uint64(step), [][]byte{update}), func(own engine.Vector) error { return f.Follower.Follow(own, update, step) })
}

// Update implements engine.Follower.
func (f sharedFollower) Update(dst []byte, payloads [][]byte) ([]byte, error) {
	return f.engine.all.update(dst, name("update of", 0, payloads), func() ([]byte, error) { return f.Follower.Update(nil, payloads) })
}

// UpdateSlice implements engine.Follower.
func (f sharedFollower) UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error) {
	name := name("slice of", uint64(i)<<32|uint64(n), ranges)
	return f.engine.all.update(dst, name, func() ([]byte, error) { return f.Follower.UpdateSlice(nil, ranges, i, n) })
}

// update appends the update of a name, which it makes if it does not remember it.
func (s *sharing) update(dst []byte, name wire.Hash, make func() ([]byte, error)) ([]byte, error) {
	s.mu.RLock()
	made, known := s.updates[name]
	s.mu.RUnlock()
	if !known {
		var err error
		if made, err = make(); err != nil {
			return dst, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.updates) >= sharedMax {
			clear(s.updates)
		}
		s.updates[name] = made
	}
	return append(dst, made...), nil
}
