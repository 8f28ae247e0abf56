package blobs

import (
	"fmt"
	"sync"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Version is one blob of floats under its hash: the parameters at the start of a round, or an
// optimizer state. It never changes. The next one is made in another buffer, so that meanwhile
// peers are served, a share is computed and a file is written from this one.
type Version struct {
	Root   wire.Hash
	Leaves []wire.Hash
	Values engine.Vector // nil if only the file has them
	Uses   int           // jobs that read it
}

// Versions are those of one kind that a node holds and serves. Its methods are for the loop, except
// for those about memory.
type Versions struct {
	Current *Version   // the newest parameters, or the state to go on from: it stays in memory
	Held    []*Version // newest first
	blobs   *Store
	disk    *Disk
	engine  engine.Engine
	size    int // elements of a version
	buffers *Buffers
}

// NewVersions returns none of size elements, on an engine, which s serves.
func NewVersions(s *Store, d *Disk, e engine.Engine, b *Buffers, size int) Versions {
	if !d.large(4*size) || b.most[size] == 0 { // of large ones the next that is made
		b.most[size]++
	}
	return Versions{blobs: s, disk: d, engine: e, size: size, buffers: b}
}

// Buffers is memory for versions, which those of a size share. That of dropped ones is reused.
type Buffers struct {
	mu   sync.Mutex
	free map[int][]engine.Vector
	most map[int]int // free ones of a size that are kept
}

// NewBuffers returns none.
func NewBuffers() *Buffers {
	return &Buffers{free: map[int][]engine.Vector{}, most: map[int]int{}}
}

// Len returns the number of elements of a version.
func (s *Versions) Len() int { return s.size }

// Find returns the held version with a hash, nil if there is none.
func (s *Versions) Find(root wire.Hash) *Version {
	for _, v := range s.Held {
		if v.Root == root {
			return v
		}
	}
	return nil
}

// Buffer returns memory for a version, with arbitrary contents.
func (s *Versions) Buffer() engine.Vector {
	s.buffers.mu.Lock()
	defer s.buffers.mu.Unlock()
	list := s.buffers.free[s.size]
	if k := len(list); k > 0 {
		s.buffers.free[s.size] = list[:k-1]
		return list[k-1]
	}
	return s.engine.NewVector(s.size)
}

// Recycle takes back memory that is no longer read, if it is not nil.
func (s *Versions) Recycle(b engine.Vector) {
	if b == nil || b.Len() != s.size {
		return
	}
	s.buffers.mu.Lock()
	defer s.buffers.mu.Unlock()
	if list := s.buffers.free[s.size]; len(list) < s.buffers.most[s.size] {
		s.buffers.free[s.size] = append(list, b)
	} else {
		s.disk.collect(4 * s.size)
	}
}

// Forget takes back the memory of a version that is not kept, if it is not nil.
func (s *Versions) Forget(v *Version) {
	if v != nil {
		s.Recycle(v.Values)
		v.Values = nil
	}
}

// Fill sets b to the values of v, zeros if v is nil. The version is in use meanwhile.
func (s *Versions) Fill(b engine.Vector, v *Version) error {
	if v == nil {
		s.engine.Copy(b, nil)
		return nil
	}
	if v.Values != nil {
		s.engine.Copy(b, v.Values)
		return nil
	}
	err := s.engine.Fill(b, func(data []byte) error { return s.disk.read(v.Root, data) })
	if err == nil && merkle.Root(s.engine.Leaves(b)) != v.Root {
		err = ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", v.Root, err)
	}
	return nil
}

// Vector returns the values of v: its own, or in a buffer that the caller recycles as own.
func (s *Versions) Vector(v *Version) (values, own engine.Vector, err error) {
	if v == nil || v.Values != nil {
		return v.vector(), nil, nil
	}
	own = s.Buffer()
	if err := s.Fill(own, v); err != nil {
		s.Recycle(own)
		return nil, nil, err
	}
	return own, own, nil
}

// Begin returns what a step begins from: the parameters of v, and b with the state that fill sets
// it to. Parameters that only a file has are in b, too, if they fit, until the step needs the
// state. The caller recycles own.
func (s *Versions) Begin(v *Version, b engine.Vector, fill func() error) (params, state, own engine.Vector, err error) {
	if v.Values == nil && b.Len() == s.size {
		return engine.Late{Vector: b, Fill: func() error { return s.Fill(b, v) }}, engine.Late{Vector: b, Fill: fill}, nil, nil
	}
	if params, own, err = s.Vector(v); err == nil {
		if err = fill(); err != nil {
			s.Recycle(own)
		}
	}
	return params, b, own, err
}

func (v *Version) vector() engine.Vector {
	if v == nil {
		return nil
	}
	return v.Values
}

// Measured returns the version of values, which must not change any more.
func (s *Versions) Measured(values engine.Vector) *Version {
	leaves := s.engine.Leaves(values)
	return &Version{Root: merkle.Root(leaves), Leaves: leaves, Values: values}
}

// Recall returns the version that a file has, with its values in memory if it is small or inMemory.
func (s *Versions) Recall(f Files, root wire.Hash, inMemory bool) (*Version, error) {
	b := s.Buffer()
	v := &Version{Root: root}
	err := s.engine.Fill(b, func(data []byte) error { return f.ReadBlob(root, 0, data) })
	if err == nil {
		if v = s.Measured(b); v.Root != root {
			err = ErrDamaged
		}
	}
	if err != nil {
		s.Recycle(b)
		return nil, fmt.Errorf("reading %s: %w", root, err)
	}
	if !inMemory && s.disk.large(4*s.size) {
		v.Values = nil
		s.Recycle(b)
	}
	return v, nil
}

// Keep makes v the newest version, serves it and returns it. If a version with its root is held
// already, Keep recycles v's memory and returns that version.
func (s *Versions) Keep(v *Version) *Version {
	for i, o := range s.Held {
		if o != v && o.Root != v.Root {
			continue
		}
		copy(s.Held[1:i+1], s.Held[:i])
		if o.Values == nil && v.Values != nil && o.Uses == 0 {
			o.Values = v.Values
			s.serve(o)
		} else if o.Values == nil && v.Values != nil {
			s.Held[0] = v // jobs that read o's file do so to the end
			s.serve(v)
			return v
		} else if o != v {
			s.Forget(v)
		}
		s.Held[0] = o
		return o
	}
	s.Held = append([]*Version{v}, s.Held...)
	s.serve(v)
	if s.disk.large(4*s.size) && v.Values != nil {
		s.disk.File(v, func(error) {})
	}
	return v
}

// serve has peers read v where it is.
func (s *Versions) serve(v *Version) { s.blobs.putVersion(v, s.disk, 4*s.size) }

// Prune drops the versions that are neither wanted nor in use, and takes out of memory those that
// have a file, if they are large.
func (s *Versions) Prune(wanted func(age int, v *Version) bool) {
	kept := s.Held[:0]
	for age, v := range s.Held {
		if v.Uses == 0 && v != s.Current && !wanted(age, v) {
			s.blobs.Drop(v.Root)
			s.Forget(v)
			continue
		}
		kept = append(kept, v)
		if v.Uses == 0 && v != s.Current && v.Values != nil && s.disk.large(4*s.size) && s.disk.has(v.Root) {
			values := v.Values
			v.Values = nil
			s.serve(v)
			s.Recycle(values)
		}
	}
	clear(s.Held[len(kept):])
	s.Held = kept
}

// Filed returns what the file with a root has, nil if it is damaged or not there.
func (s *Versions) Filed(root wire.Hash) []float32 {
	values, err := s.Floats(&Version{Root: root})
	if err != nil {
		return nil
	}
	return values
}

// Chunk encodes chunk i of a version in memory.
func (v *Version) Chunk(i uint32) []byte { return chunkOf(v.Values, i) }

// Floats returns the values of v in memory of its own, nil if v is.
func (s *Versions) Floats(v *Version) ([]float32, error) {
	if v == nil {
		return nil, nil
	}
	if v.Values != nil {
		return engine.Values(v.Values), nil
	}
	values := make([]float32, s.size)
	err := tensor.Fill(values, func(b []byte) error { return s.disk.read(v.Root, b) })
	if err == nil && merkle.BlobRoot(tensor.Bytes(values)) != v.Root {
		err = ErrDamaged
	}
	return values, err
}
