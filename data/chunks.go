package data

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Chunks is a directory that keeps chunks of data sets on other machines, each in a file named by
// its leaf, so that a set is fetched once however often it is read; and chunks of models that are
// being fetched, from peers, or larger parts from buckets, each named by its root, so that a fetch
// goes on after a crash. Several processes may share it.
// It keeps what was used last: at most a given number of bytes, and of the disk at most as much as
// it leaves free, because a member must also save. The bounds may be exceeded by a sixteenth
// for each further process.
//
// Nobody trusts the files: a chunk is compared with its leaf when it is read. So files are renamed
// when they are complete, but not synced. Nil keeps nothing.
type Chunks struct {
	Fixed bool // its user said how many bytes: Fit adds none

	dir  string
	tell func(error)
	free func(dir string) uint64 // Free, but for tests

	failed sync.Once
	mu     sync.Mutex
	most   uint64
	room   int64 // bytes to add before the directory is looked through again
}

const (
	chunksShare = 16 // a 16th is made free at a time
	// chunkTempAge is the age at which what an interrupted process left is removed.
	chunkTempAge = time.Hour
)

// NewChunks returns the chunks in dir, which is made when it is needed. tell is told the first
// reason why something cannot be kept; the set is read nevertheless.
func NewChunks(dir string, most uint64, tell func(error)) *Chunks {
	return &Chunks{dir: dir, most: most, tell: tell, free: Free}
}

func (c *Chunks) path(leaf wire.Hash) string { return filepath.Join(c.dir, leaf.String()) }

// Get returns the chunk of size bytes with the given leaf, or nil if there is none.
func (c *Chunks) Get(leaf wire.Hash, size uint64) []byte {
	if c == nil {
		return nil
	}
	path := c.path(leaf)
	b, err := atomicfile.ReadBounded(path, int64(size))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || uint64(len(b)) != size || merkle.BlobRoot(b) != leaf {
		_ = os.Remove(path) // it is damaged
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // fails where nothing can be added, or removed, either
	return b
}

// Put keeps a chunk, if it can.
func (c *Chunks) Put(leaf wire.Hash, b []byte) {
	if c == nil {
		return
	}
	if err := c.write(leaf, b); err != nil {
		c.failed.Do(func() { c.tell(err) })
	}
}

// Fit raises the limit, unless that is fixed, so that a model of that size in bytes stays whole
// until it has been fetched.
func (c *Chunks) Fit(model uint64) {
	if c == nil || c.Fixed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, model+2*model/chunksShare)
}

// Drop removes a chunk.
func (c *Chunks) Drop(leaf wire.Hash) {
	if c != nil {
		_ = os.Remove(c.path(leaf)) // else it goes when the directory is full
	}
}

func (c *Chunks) write(leaf wire.Hash, b []byte) error {
	if fits, err := c.take(len(b)); err != nil || !fits {
		return err
	}
	f, err := os.CreateTemp(c.dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path(leaf))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		c.mu.Lock()
		c.room = 0 // the disk may be full
		c.mu.Unlock()
	}
	return err
}

// take reserves n bytes, and makes room for them if necessary. It reports whether they fit.
func (c *Chunks) take(n int) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == 0 {
		return false, nil
	}
	if c.room < int64(n) {
		var err error
		if c.room, err = c.prune(); err != nil || c.room < int64(n) {
			return false, err
		}
	}
	c.room -= int64(n)
	return true, nil
}

// prune removes the chunks unused for longest, and returns the bytes that may be added before the
// next call.
func (c *Chunks) prune() (int64, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return 0, err
	}
	var kept []fs.FileInfo
	var total uint64
	for _, e := range entries {
		if hash, err := wire.ParseHash(e.Name()); err != nil || hash.String() != e.Name() {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			kept, total = append(kept, info), total+uint64(info.Size())
		}
	}
	limit := min(c.most, total/2+c.free(c.dir)/2)
	share := limit / chunksShare
	sort.Slice(kept, func(i, j int) bool { return kept[i].ModTime().Before(kept[j].ModTime()) })
	for _, info := range kept {
		if total+share <= limit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		total -= uint64(info.Size())
	}
	return int64(min(share, math.MaxInt64)), atomicfile.RemoveTemps(c.dir, chunkTempAge)
}
