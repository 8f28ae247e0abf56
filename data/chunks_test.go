package data

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/merkle"
)

// newChunks returns chunks in a directory that does not exist yet. Nothing may keep it from keeping.
func newChunks(t *testing.T, dir string, most uint64) *Chunks {
	c := NewChunks(dir, most, func(err error) { t.Error(err) })
	c.free = func(string) uint64 { return math.MaxUint64 }
	return c
}

// kept returns how many files there are in a directory, and their bytes.
func kept(t *testing.T, dir string) (n int, total int64) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n, total = n+1, total+info.Size()
	}
	return n, total
}

// A set that was read is read again without its host's shards, by any process; what is damaged on
// the disk is fetched again.
func TestWhatWasFetchedIsKept(t *testing.T) {
	dir, m := bigSet(t)
	local := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	place := filepath.Join(t.TempDir(), "cache", "data")
	read := func() *counter {
		host := &counter{Handler: http.FileServer(http.Dir(dir))}
		o := quick()
		o.Kept = newChunks(t, place, 1<<30)
		sameSequences(t, mustOpenURL(t, m, o, serve(t, host)), local)
		return host
	}
	shards := slices.Concat(m.Shards, m.HeldOut)
	requests := func(c *counter) (n int) {
		for _, shard := range shards {
			n += c.count(shard.File)
		}
		return n
	}
	all := 0
	for _, shard := range shards {
		all += int(shard.chunks())
	}
	if got := requests(read()); got != all {
		t.Errorf("%d requests for %d chunks", got, all)
	}
	if got := requests(read()); got != 0 {
		t.Errorf("%d chunks are fetched again", got)
	}
	files, err := filepath.Glob(filepath.Join(place, "*"))
	if err != nil || len(files) != all {
		t.Fatalf("%d files, %v", len(files), err)
	}
	damage := []func(path string) error{
		func(path string) error { return os.Truncate(path, 1000) },
		func(path string) error { return os.Truncate(path, 1<<20) },
		func(path string) error { return os.WriteFile(path, nil, 0o600) },
		func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)/2] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
	}
	for i, f := range damage {
		if err := f(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := requests(read()); got != len(damage) {
		t.Errorf("of %d damaged chunks %d are fetched again", len(damage), got)
	}
	if got := requests(read()); got != 0 {
		t.Errorf("%d chunks are fetched again", got)
	}
}

// A host without leaves is read once: what its shards' leaves are learnt from is kept.
func TestShardsWithoutLeavesAreFetchedOnce(t *testing.T) {
	dir, m := bigSet(t)
	if err := os.Remove(filepath.Join(dir, leavesFile)); err != nil {
		t.Fatal(err)
	}
	host := &counter{Handler: http.FileServer(http.Dir(dir))}
	o := quick()
	o.Kept = newChunks(t, filepath.Join(t.TempDir(), "data"), 1<<30)
	sameSequences(t, mustOpenURL(t, m, o, serve(t, host)), mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
	if got, want := host.count(m.Shards[0].File), int(m.Shards[0].chunks()); got != want {
		t.Errorf("%d requests for %d chunks", got, want)
	}
}

// The directory keeps within its bound what was used last, with two processes at work.
func TestChunksAreBounded(t *testing.T) {
	const size, most = 100, 16_000
	dir := filepath.Join(t.TempDir(), "data")
	both := []*Chunks{newChunks(t, dir, most), newChunks(t, dir, most)}
	block := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size/2) }
	favourite := block(1)
	for i := range 500 {
		c := both[i%2]
		b := block(i)
		c.Put(merkle.Leaf(b), b)
		if i > 0 && c.Get(merkle.Leaf(favourite), size) == nil {
			t.Fatalf("what is used all the time has left by %d", i)
		}
		if i%10 == 0 {
			if _, total := kept(t, dir); total > most*17/16 {
				t.Fatalf("after %d there are %d bytes", i, total)
			}
		}
		// Files' times may be coarser than this loop.
		at := time.Unix(1e9+int64(i), 0)
		for _, of := range [][]byte{b, favourite} {
			if err := os.Chtimes(c.path(merkle.Leaf(of)), at, at); err != nil && i > 0 {
				t.Fatal(err)
			}
		}
	}
	if n, _ := kept(t, dir); n < most/size*14/16 {
		t.Errorf("only %d chunks are left", n)
	}
	for i := range 500 {
		got := both[0].Get(merkle.Leaf(block(i)), size)
		if got == nil && i >= 500-most/size*13/16 || got != nil && (!bytes.Equal(got, block(i)) || i < 300 && i != 1) {
			t.Errorf("chunk %d is there: %t", i, got != nil)
		}
	}

	// A model that is larger stays whole while it is fetched, unless the user wants no more.
	for _, fixed := range []bool{false, true} {
		c := newChunks(t, filepath.Join(t.TempDir(), "model"), most)
		c.Fixed = fixed
		c.Fit(3 * most)
		for i := range 3 * most / size {
			c.Put(merkle.Leaf(block(i)), block(i))
		}
		if n, total := kept(t, c.dir); n < 3*most/size != fixed || fixed && total > most {
			t.Errorf("of %d chunks %d are kept, fixed: %t", 3*most/size, n, fixed)
		}
	}

	// When others fill the disk, half of it goes; when it is full, nothing comes.
	both[0].free = func(string) uint64 { return 0 }
	both[0].room = 0
	both[0].Put(merkle.Leaf(block(2000)), block(2000))
	if _, total := kept(t, dir); total > most/2 {
		t.Errorf("on a full disk there are %d bytes", total)
	}
	for i := range 100 {
		both[0].Put(merkle.Leaf(block(3000+i)), block(3000+i))
	}
	if n, _ := kept(t, dir); n > 20 {
		t.Errorf("%d chunks stay on a disk that is full", n)
	}

	// Too small a cache keeps nothing.
	for _, most := range []uint64{0, size, 10 * size} {
		c := newChunks(t, filepath.Join(t.TempDir(), fmt.Sprint(most)), most)
		if c.Put(merkle.Leaf(favourite), favourite); c.Get(merkle.Leaf(favourite), size) != nil {
			t.Errorf("a cache of %d bytes has kept %d", most, size)
		}
	}
}

// What a killed process left goes in time, and what is no chunk stays.
func TestLeftoversOfChunksGo(t *testing.T) {
	dir := t.TempDir()
	c := newChunks(t, dir, 1600)
	past := time.Now().Add(-2 * chunkTempAge)
	old, young, foreign := filepath.Join(dir, atomicfile.TempPrefix+"old"), filepath.Join(dir, atomicfile.TempPrefix+"young"), filepath.Join(dir, "notes")
	for _, path := range []string{old, young, foreign} {
		if err := os.WriteFile(path, make([]byte, 5000), 0o600); err != nil {
			t.Fatal(err)
		}
		if path != young {
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := []byte("a chunk")
	c.Put(merkle.Leaf(b), b)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left stays: %v", err)
	}
	for _, path := range []string{young, foreign, c.path(merkle.Leaf(b))} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// A directory that cannot be written costs nothing but its use, and is told once.
func TestChunksThatCannotBeKept(t *testing.T) {
	dir, m := bigSet(t)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	o := quick()
	o.Kept = NewChunks(filepath.Join(blocked, "data"), 1<<30, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	})
	sameSequences(t, mustOpenURL(t, m, o, serve(t, http.FileServer(http.Dir(dir)))), mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || !strings.Contains(told[0], blocked) {
		t.Errorf("told %q", told)
	}
}
