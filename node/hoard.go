package node

import (
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/wire"
)

// version is one blob of numbers under its hash: the parameters at some round's start, or an optimizer state. It is never changed: what
// comes next is made in another buffer, so that peers can be served, a share computed and a file written from this one meanwhile.
type version struct {
	root   wire.Hash
	leaves []wire.Hash
	values engine.Vector
	uses   int // jobs that read it
}

// hoard is the versions of one kind that a node holds and serves. Memory of those let go of is used again.
type hoard struct {
	shelf  *shelf
	engine engine.Engine
	size   int        // elements of a version
	held   []*version // newest first
	free   []engine.Vector
}

// find returns the held version with a hash, nil if there is none.
func (h *hoard) find(root wire.Hash) *version {
	for _, v := range h.held {
		if v.root == root {
			return v
		}
	}
	return nil
}

// buffer returns memory for a version, recycled if there is some; what it holds is anything.
func (h *hoard) buffer() engine.Vector {
	if k := len(h.free); k > 0 {
		b := h.free[k-1]
		h.free = h.free[:k-1]
		return b
	}
	return h.engine.NewVector(h.size)
}

// recycle takes back memory that nothing reads any more.
func (h *hoard) recycle(b engine.Vector) {
	if b.Len() == h.size {
		h.free = append(h.free, b)
	}
}

// keep makes v the newest version, and serves it. If its like is held already, v's memory is taken back; the version to use is returned.
func (h *hoard) keep(v *version) *version {
	for i, o := range h.held {
		if o == v || o.root == v.root {
			if o != v {
				h.recycle(v.values)
			}
			copy(h.held[1:i+1], h.held[:i])
			h.held[0] = o
			return o
		}
	}
	h.held = append([]*version{v}, h.held...)
	h.shelf.putFloats(v.root, v.leaves, v.values)
	return v
}

// prune lets go of the versions that are neither wanted nor in use. One buffer is kept for the next version.
func (h *hoard) prune(wanted func(age int, v *version) bool) {
	kept := h.held[:0]
	for age, v := range h.held {
		if v.uses > 0 || wanted(age, v) {
			kept = append(kept, v)
			continue
		}
		h.shelf.drop(v.root)
		h.recycle(v.values)
	}
	clear(h.held[len(kept):])
	h.held = kept
	if len(h.free) > 1 {
		h.free = h.free[:1:1]
	}
}
