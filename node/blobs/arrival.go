package blobs

import (
	"errors"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Arrival is a version that comes from peers, with as many fetches as that takes. A large one goes
// to its file chunk by chunk. So however many come at once, and however slowly, none takes memory,
// and none waits for another. If its file cannot be written, it comes into memory.
//
// Its methods are for the loop, except for Take.
type Arrival struct {
	of   *Versions
	ref  p2p.Ref
	part *p2p.Partial // of file
	file NewFile      // nil if it comes into memory from the start
	lost bool         // the file
}

// Arrive returns the arrival of a version, which ends with Settle or Discard.
func (s *Versions) Arrive(root wire.Hash) *Arrival {
	a := &Arrival{of: s, ref: p2p.Ref{Root: root, Size: uint64(s.size) * 4}}
	if s.disk.large(4*s.size) && !s.disk.full {
		a.file = s.disk.files.NewBlob()
		a.part = p2p.NewPartial(a.ref, a.file)
	}
	return a
}

// Fetch returns what to fetch.
func (a *Arrival) Fetch(from []key.Public) p2p.Fetch {
	f := p2p.Fetch{Ref: a.ref, From: from}
	switch {
	case a.file == nil:
	case a.lost: // what it still has need not come again
		f.Leaves, _ = a.part.Leaves(a.ref.Root)
		f.Have = func(i uint32, _ wire.Hash) []byte {
			b, _ := a.part.Chunk(a.ref.Root, i)
			return b
		}
	default:
		f.Into = a.part
	}
	return f
}

// Failed takes the error of a fetch. The next one continues it.
func (a *Arrival) Failed(err error) {
	if errors.Is(err, p2p.ErrFile) {
		a.lost = true
		a.of.disk.told(err)
	}
}

// Take makes a version of what a fetch brought: data, or nil if that is in the file. It may be
// called off the loop.
func (a *Arrival) Take(data []byte) *Version {
	if a.file != nil && !a.lost {
		leaves, _ := a.part.Leaves(a.ref.Root)
		return &Version{Root: a.ref.Root, Leaves: leaves}
	}
	v := &Version{Root: a.ref.Root, Leaves: merkle.BlobLeaves(data), Values: a.of.Buffer()}
	_ = a.of.engine.Fill(v.Values, func(b []byte) error { copy(b, data); return nil }) // cannot fail
	return v
}

// Settle keeps what was taken, and calls done once its file is there, if it came to one. If that
// cannot be written, which the user is told, Settle calls again: it needs another fetch.
func (a *Arrival) Settle(v *Version, done func(*Version), again func()) {
	s, d := a.of, a.of.disk
	if v.Values != nil || d.has(v.Root) {
		a.Discard()
		done(s.Keep(v))
		return
	}
	wrote := false
	d.write(v.Root, nil, 4*s.size, func(*Version) error {
		wrote = true
		return a.file.Commit(v.Root)
	}, func(err error) {
		if err != nil && !wrote { // as from memory
			a.Settle(v, done, again)
			return
		}
		if err != nil {
			a.lost = true
			again()
			return
		}
		if !wrote { // it was being written from memory
			a.Discard()
		}
		done(s.Keep(v))
	})
}

// Discard ends it.
func (a *Arrival) Discard() {
	if a.file != nil {
		a.of.disk.add(task{work: a.file.Discard, done: func() {}})
	}
}
