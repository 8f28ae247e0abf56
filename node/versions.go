package node

import (
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/wire"
)

// version is one blob of floats under its hash: the parameters at the start of a round, or an
// optimizer state. It never changes. The next one is made in another buffer, so that meanwhile
// peers are served, a share is computed and a file is written from this one.
type version struct {
	root   wire.Hash
	leaves []wire.Hash
	values engine.Vector
	uses   int // jobs that read it
}

// versions are those of one kind that a node holds and serves. The memory of dropped ones is
// reused.
type versions struct {
	blobs  *blobs
	engine engine.Engine
	size   int        // elements of a version
	held   []*version // newest first
	free   []engine.Vector
}

// find returns the held version with a hash, nil if there is none.
func (s *versions) find(root wire.Hash) *version {
	for _, v := range s.held {
		if v.root == root {
			return v
		}
	}
	return nil
}

// buffer returns memory for a version, with arbitrary contents.
func (s *versions) buffer() engine.Vector {
	if k := len(s.free); k > 0 {
		b := s.free[k-1]
		s.free = s.free[:k-1]
		return b
	}
	return s.engine.NewVector(s.size)
}

// recycle takes back memory that is no longer read.
func (s *versions) recycle(b engine.Vector) {
	if b.Len() == s.size {
		s.free = append(s.free, b)
	}
}

// keep makes v the newest version, serves it and returns it. If a version with its root is held
// already, keep recycles v's memory and returns that version.
func (s *versions) keep(v *version) *version {
	for i, o := range s.held {
		if o == v || o.root == v.root {
			if o != v {
				s.recycle(v.values)
			}
			copy(s.held[1:i+1], s.held[:i])
			s.held[0] = o
			return o
		}
	}
	s.held = append([]*version{v}, s.held...)
	s.blobs.putFloats(v.root, v.leaves, v.values)
	return v
}

// prune drops the versions that are neither wanted nor in use, and keeps one buffer for the next.
func (s *versions) prune(wanted func(age int, v *version) bool) {
	kept := s.held[:0]
	for age, v := range s.held {
		if v.uses > 0 || wanted(age, v) {
			kept = append(kept, v)
			continue
		}
		s.blobs.drop(v.root)
		s.recycle(v.values)
	}
	clear(s.held[len(kept):])
	s.held = kept
	if len(s.free) > 1 {
		s.free = s.free[:1:1]
	}
}
