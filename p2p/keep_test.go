package p2p_test

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// shelf is a ChunkStore in memory.
type shelf struct {
	chunks map[wire.Hash][]byte
	puts   int
}

func (s *shelf) Get(leaf wire.Hash, size uint64) []byte { return s.chunks[leaf] }
func (s *shelf) Drop(leaf wire.Hash)                    { delete(s.chunks, leaf) }
func (s *shelf) Put(leaf wire.Hash, chunk []byte) {
	s.chunks[leaf], s.puts = bytes.Clone(chunk), s.puts+1
}

// What a fetch got before the process was killed is not fetched again, and what lies in the store instead of it is. Nothing that a peer
// invents gets into the store, and nothing of a blob that is safe stays there.
func TestAFetchGoesOnAfterACrash(t *testing.T) {
	data := blob(40*merkle.ChunkBytes+17, 3)
	peers := keys(2)
	conducts := map[key.Public]conduct{peers[0]: lies}
	kept := &shelf{chunks: map[wire.Hash][]byte{}}
	fetch := func() (*driver, func()) {
		f := p2p.Fetch{Ref: mem.NewRef(data), From: peers}
		drop := f.Resume(kept)
		return newDriver(t, data, f, conducts), drop
	}
	v, _ := fetch()
	for kept.puts < 25 { // and then kill -9
		v.pump()
		v.advance(v.open[len(v.open)-1])
	}
	for leaf, chunk := range kept.chunks {
		if merkle.Leaf(chunk) != leaf {
			t.Error("the store holds what a liar sent")
		}
	}
	damaged := 0
	for leaf := range kept.chunks { // a stranger, or the disk, changes some
		if damaged++; damaged <= 3 {
			kept.chunks[leaf] = bytes.Repeat([]byte{7}, merkle.ChunkBytes)
		}
	}
	before := kept.puts
	v, drop := fetch()
	got, err := v.run(func(int) int { return 0 })
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	if again, want := kept.puts-before, 41-before+3; again != want {
		t.Errorf("%d chunks were fetched, want %d", again, want)
	}
	if drop(); len(kept.chunks) != 0 {
		t.Errorf("%d chunks are left", len(kept.chunks))
	}
}
