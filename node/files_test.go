package node

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
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

// slowDisk has a write of a version take a time, which is longer than several rounds.
func slowDisk(takes time.Duration) func(*Config) {
	return func(c *Config) {
		others, first := c.Cost, true
		c.Cost = func(j Job) time.Duration {
			if j.Kind == "save" && first { // what New asks for the disk
				first = false
				return takes
			}
			return others(j)
		}
	}
}

// A disk that takes half a minute for a write, while a round takes a second, holds up no round, and
// costs nobody anything. The user is told once, and what waits for it is what is needed.
func TestASlowDiskCostsNobodyAnything(t *testing.T) {
	w := newWorld(t, 80, 4, verified(1))
	for i := range 4 {
		w.start(i, slowDisk(30*time.Second))
	}
	idle, most := 0, uint8(0)
	w.until(10*time.Minute, func() bool {
		for _, h := range []*testNode{w.hosts[1], w.hosts[3]} {
			more := -len(h.held)
			for _, v := range slices.Concat(h.params.Held, h.optim.Held) {
				if v.Values != nil {
					more++
				}
			}
			idle = max(idle, more)
		}
		most = max(most, w.strikes())
		return w.finished()
	})
	w.agree(0, 1, 2, 3)
	if list := w.offences(); len(list) > 0 || most > 0 {
		t.Errorf("convicted were %s; a member had %d strikes", list, most)
	}
	if idle > 6 { // the current parameters and those before, the agreed ones, a state, a job's, and the disk's
		t.Errorf("a node had %d versions in memory that the machine did not retain", idle)
	}
	for _, i := range []int{1, 3} {
		told := 0
		for _, ev := range w.hosts[i].events {
			if n, ok := ev.(event.Note); ok && strings.Contains(n.Text, "the disk is too slow") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("node %d told its user %d times", i, told)
		}
		if n := w.hosts[i].verdicts("unserved"); n > 0 {
			t.Errorf("node %d said %d times that authors do not serve", i, n)
		}
	}
}
