package blobs

import (
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/wire"
)

// Version is one blob of floats under its hash: the parameters at the start of a round, or an
// optimizer state. It never changes. The next one is made in another buffer, so that meanwhile
// peers are served, a share is computed and a file is written from this one.
type Version struct {
	Root   wire.Hash
	Leaves []wire.Hash
	Values engine.Vector
	Uses   int // jobs that read it
}

// Versions are those of one kind that a node holds and serves. The memory of dropped ones is
// reused.
type Versions struct {
	blobs  *Store
	engine engine.Engine
	size   int        // elements of a version
	Held   []*Version // newest first
	free   []engine.Vector
}

// NewVersions returns none of size elements, on an engine, which s serves.
func NewVersions(s *Store, e engine.Engine, size int) Versions {
	return Versions{blobs: s, engine: e, size: size}
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
	if k := len(s.free); k > 0 {
		b := s.free[k-1]
		s.free = s.free[:k-1]
		return b
	}
	return s.engine.NewVector(s.size)
}

// Recycle takes back memory that is no longer read.
func (s *Versions) Recycle(b engine.Vector) {
	if b.Len() == s.size {
		s.free = append(s.free, b)
	}
}

// Keep makes v the newest version, serves it and returns it. If a version with its root is held
// already, keep recycles v's memory and returns that version.
func (s *Versions) Keep(v *Version) *Version {
	for i, o := range s.Held {
		if o == v || o.Root == v.Root {
			if o != v {
				s.Recycle(v.Values)
			}
			copy(s.Held[1:i+1], s.Held[:i])
			s.Held[0] = o
			return o
		}
	}
	s.Held = append([]*Version{v}, s.Held...)
	s.blobs.PutVersion(v)
	return v
}

// Prune drops the versions that are neither wanted nor in use, and keeps one buffer for the next.
func (s *Versions) Prune(wanted func(age int, v *Version) bool) {
	kept := s.Held[:0]
	for age, v := range s.Held {
		if v.Uses > 0 || wanted(age, v) {
			kept = append(kept, v)
			continue
		}
		s.blobs.Drop(v.Root)
		s.Recycle(v.Values)
	}
	clear(s.Held[len(kept):])
	s.Held = kept
	if len(s.free) > 1 {
		s.free = s.free[:1:1]
	}
}

// Chunk encodes chunk i.
func (v *Version) Chunk(i uint32) []byte { return chunkOf(v.Values, i) }

// Floats are the values of a version, nil if there is none.
func (v *Version) Floats() []float32 {
	if v == nil {
		return nil
	}
	return engine.Values(v.Values)
}
