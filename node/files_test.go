package node

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/wire"
)

// strikes returns the most strikes that a member has.
func (w *world) strikes() (most uint8) {
	for i := range w.state().Count() {
		most = max(most, w.state().Member(i).Strikes)
	}
	return most
}

// damage changes every file of a version on a node's disk.
func (w *world) damage(i int, change func([]byte) []byte) {
	m := w.hosts[i].store
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, root := range slices.SortedFunc(maps.Keys(m.blobs), wire.Hash.Compare) {
		m.blobs[root] = change(slices.Clone(m.blobs[root]))
	}
}

// Faults of the disks on which members keep parameters and states convict nobody, and the run goes
// on. Nodes 1 and 3 have all their versions in files.
func TestFaultsOfFilesConvictNobody(t *testing.T) {
	flip := func(b []byte) []byte {
		b[len(b)/2] ^= 4
		return b
	}
	halve := func(b []byte) []byte { return b[:len(b)/2] }
	for _, c := range []struct {
		name  string
		fault func(w *world, step uint32)
	}{
		{"no room for versions most of the time", func(w *world, step uint32) {
			for _, i := range []int{1, 3} {
				w.hosts[i].store.narrow = nil
				if step%40 < 30 {
					w.hosts[i].store.narrow = syscall.ENOSPC
				}
			}
		}},
		{"flipped bits", func(w *world, step uint32) {
			if step%20 == 0 {
				w.damage(1, flip)
			}
		}},
		{"a crash in the middle of writes, and truncated files", func(w *world, step uint32) {
			if step%40 == 0 {
				w.crash(1)
				w.damage(1, halve)
				w.start(1)
			}
		}},
		{"crashes in the middle of writes", func(w *world, step uint32) {
			if step%20 == 0 {
				w.crash(3)
				w.start(3)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 160, 4, verified(1))
			for i := range 4 {
				w.start(i)
			}
			last, most := uint32(0), uint8(0)
			w.until(40*time.Minute, func() bool {
				if step := uint32(w.state().Step()); step > last && !w.finished() {
					last = step
					c.fault(w, step)
				}
				most = max(most, w.strikes())
				return w.finished()
			})
			w.agree(0, 1, 2, 3)
			drawn, passed := w.state().ChecksDrawn()
			if drawn < 160 || passed < drawn*9/10 || most > 1 {
				t.Errorf("%d checks were drawn and %d passed; a member had %d strikes", drawn, passed, most)
			}
			if list := w.offences(); len(list) > 0 {
				t.Errorf("convicted were %s", list)
			}
		})
	}
}
