package p2p_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

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

// A blob that one fetch has no time for comes with several. What is remembered of others is bounded, in time and in
// bytes.
func TestAFetchContinuesTheOneThatFailed(t *testing.T) {
	data := blob(20*merkle.ChunkBytes+3, 5)
	ref, now := mem.NewRef(data), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := mem.NewStore(uint64(len(data)))
	if _, err := store.Put(data); err != nil {
		t.Fatal(err)
	}
	var parts p2p.Parts
	fetched := 0
	attempt := func() ([]byte, error) {
		f := p2p.Fetch{Ref: ref, From: keys(1), Keep: func(wire.Hash, []byte) { fetched++ }}
		v, _ := fetchSome(t, store, parts.Continue(f, now), nil, 6)
		v.d.Abort(p2p.ErrClosed)
		got, err := v.d.Result()
		parts.Ended(err, now)
		now = now.Add(time.Minute)
		return got, err
	}
	attempts := 1
	got, err := attempt()
	for ; err != nil && attempts < 10; attempts++ {
		got, err = attempt()
	}
	if !bytes.Equal(got, data) || attempts != 4 || fetched != 21 {
		t.Errorf("%d attempts fetched %d chunks: %v", attempts, fetched, err)
	}

	if _, err := attempt(); err == nil {
		t.Fatal("a fetch that was cut off succeeded")
	}
	if now = now.Add(time.Hour); parts.Continue(p2p.Fetch{Ref: ref}, now).Have == nil {
		t.Error("a blob's own parts are forgotten while it is fetched")
	}
	if _, err := attempt(); err == nil {
		t.Fatal("a fetch that was cut off succeeded")
	}
	now = now.Add(time.Hour)
	parts.Continue(p2p.Fetch{Ref: p2p.Ref{Size: 1}}, now)
	if parts.Continue(p2p.Fetch{Ref: ref}, now).Have != nil {
		t.Error("parts are remembered for an hour")
	}

	half := uint32(1<<30/merkle.ChunkBytes) / 2
	begin := func(chunks uint32) p2p.Ref {
		ref, source := spread(chunks)
		v, _ := fetchSome(t, source, p2p.Fetch{Ref: ref, From: keys(1)}, nil, 1)
		v.d.Abort(p2p.ErrClosed)
		_, err := v.d.Result()
		parts.Ended(err, now)
		return ref
	}
	first, second, third := begin(half-1), begin(half), begin(half-2)
	for _, c := range []struct {
		ref  p2p.Ref
		want bool
	}{{first, false}, {second, true}, {third, true}, {begin(2*half + 1), false}} {
		if got := parts.Continue(p2p.Fetch{Ref: c.ref}, now).Have != nil; got != c.want {
			t.Errorf("of a blob of %d bytes something is remembered: %t", c.ref.Size, got)
		}
	}
}

// brittle is a File that fails from some write on.
type brittle struct {
	mem.File
	left int
}

func (f *brittle) WriteAt(b []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("no room")
	}
	return f.File.WriteAt(b, at)
}

// A blob comes into a file chunk by chunk, with as many fetches as it takes, from a liar too, and
// others are served from there meanwhile. A file that cannot be written ends the fetch, and what it
// has need not come again.
func TestABlobComesIntoAFile(t *testing.T) {
	data := blob(20*merkle.ChunkBytes+3, 5)
	ref := mem.NewRef(data)
	store := mem.NewStore(uint64(len(data)))
	if _, err := store.Put(data); err != nil {
		t.Fatal(err)
	}
	peers := keys(2)
	conducts := map[key.Public]conduct{peers[0]: lies}
	file := &brittle{left: 18}
	part := p2p.NewPartial(ref, file)
	fetched := 0
	attempt := func(f p2p.Fetch, chunks int) ([]byte, error) {
		f.Ref, f.From, f.Keep = ref, peers, func(wire.Hash, []byte) { fetched++ }
		v, _ := fetchSome(t, store, f, conducts, chunks)
		v.d.Abort(p2p.ErrClosed)
		got, err := v.d.Result()
		var parts p2p.Parts
		parts.Ended(err, time.Time{})
		if f.Into != nil && parts.Continue(f, time.Time{}).Have != nil {
			t.Error("it is remembered in memory too")
		}
		return got, err
	}
	for range 2 {
		if _, err := attempt(p2p.Fetch{Into: part}, 6); !errors.Is(err, p2p.ErrClosed) {
			t.Fatal(err)
		}
	}
	if fetched != 12 {
		t.Errorf("%d chunks were fetched", fetched)
	}
	helped := p2p.NewUnderway(mem.NewStore(0))
	d, err := p2p.NewDownload(p2p.Fetch{Ref: ref, From: peers, Into: part})
	if err != nil {
		t.Fatal(err)
	}
	served := func() (n int) {
		end := helped.Begin(d)
		defer end()
		for i := range ref.Chunks() {
			if b, ok := helped.Chunk(ref.Root, i); ok {
				if n++; !bytes.Equal(b, data[i*merkle.ChunkBytes:][:len(b)]) {
					t.Errorf("chunk %d is served wrong", i)
				}
			}
		}
		return n
	}
	if n := served(); n != 12 {
		t.Errorf("%d chunks are served", n)
	}
	last := int64(len(file.Bytes())) - 1 // of a chunk that came
	damage := func(to byte) {
		if _, err := file.File.WriteAt([]byte{to}, last); err != nil {
			t.Fatal(err)
		}
	}
	damage(^data[last])
	if n := served(); n != 11 {
		t.Errorf("%d chunks are served, and one is damaged", n)
	}
	damage(data[last])
	file.left = 5
	if _, err := attempt(p2p.Fetch{Into: part}, 100); !errors.Is(err, p2p.ErrFile) {
		t.Fatalf("a full disk: %v", err)
	}
	before := fetched
	leaves, _ := part.Leaves(ref.Root)
	got, err := attempt(p2p.Fetch{Leaves: leaves, Have: func(i uint32, _ wire.Hash) []byte {
		b, _ := part.Chunk(ref.Root, i)
		return b
	}}, 100)
	if err != nil || !bytes.Equal(got, data) || fetched-before != 21-17 {
		t.Errorf("%d chunks were fetched into memory: %v", fetched-before, err)
	}
	file.left = 100
	if got, err := attempt(p2p.Fetch{Into: part}, 100); err != nil || got != nil || !bytes.Equal(file.Bytes(), data) {
		t.Errorf("with room again: %d bytes in memory, %v", len(got), err)
	}
}
