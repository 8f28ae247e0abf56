package node

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/merkle"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// A member that cannot make the run's first parameters, because the run goes on from a checkpoint that it does not have, gets them from one
// that does; so does one whose checkpoint is another.
func TestTheFirstParametersComeFromWhoHasThem(t *testing.T) {
	w := newLargeWorld(t, 60, 3)
	w.start(0)
	none := w.start(1, func(c *Config) { c.Initial = func() []float32 { return nil } })
	wrong := w.start(2, func(c *Config) {
		c.Initial = func() []float32 {
			p := w.initial()
			p[7]++
			return p
		}
	})
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	for i, h := range []*testNode{none, wrong} {
		ev, ok := first[event.Healed](h)
		if !ok || !strings.Contains(ev.Source, "peers' model") || ev.Round != 0 {
			t.Errorf("node %d came to the model by %+v", i+1, ev)
		}
		if _, ok := first[event.Trained](h); !ok {
			t.Errorf("node %d trained nothing", i+1)
		}
	}
	if w.state().Rollbacks() != 0 {
		t.Error("the run went back")
	}
}

// chunkShelf is a p2p.ChunkStore in memory, which a crash leaves.
type chunkShelf struct {
	chunks map[wire.Hash][]byte
	puts   int
}

func (s *chunkShelf) Get(leaf wire.Hash, size uint64) []byte { return s.chunks[leaf] }
func (s *chunkShelf) Drop(leaf wire.Hash)                    { delete(s.chunks, leaf) }
func (s *chunkShelf) Put(leaf wire.Hash, chunk []byte) {
	s.chunks[leaf], s.puts = bytes.Clone(chunk), s.puts+1
}

// A member that is killed in the middle of its model goes on there when it starts again, and leaves no chunks once
// its state is saved.
func TestAModelIsFetchedOnceHoweverOftenItsMemberIsKilled(t *testing.T) {
	const chunks = 24
	w := newWorldOf(t, chunks*merkle.ChunkBytes/4-5, 40, 1, func(c *coordinator.Config) { c.WarmupMs = 120_000 })
	w.mesh.SetLink(w.key(0).Public(), w.key(1).Public(), p2pmem.Link{BytesPerSecond: merkle.ChunkBytes})
	w.start(0)
	kept := &chunkShelf{chunks: map[wire.Hash][]byte{}}
	newcomer := func() *testNode {
		return w.start(1, func(c *Config) { c.Initial, c.Kept = func() []float32 { return nil }, kept })
	}
	newcomer()
	for _, killed := range []int{5, 11, 20} {
		w.until(10*time.Minute, func() bool { return kept.puts >= killed })
		w.crash(1)
		newcomer()
	}
	w.until(10*time.Minute, func() bool { return w.hosts[1].store.saves > 0 && len(kept.chunks) == 0 })
	if _, ok := first[event.Healed](w.hosts[1]); !ok || kept.puts != chunks {
		t.Errorf("%d chunks were kept, of a model of %d", kept.puts, chunks)
	}
}
