package data

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A CorruptError says that a shard is not what the manifest says.
type CorruptError struct {
	File   string // the shard's file, with its directory
	Reason string // what is wrong with it
}

// Error says which shard is corrupt and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("shard %q is not what the manifest says: %s; prepare the data again into the same directory, or fetch the file again", e.File, e.Reason)
}

// chunk is the number of a chunk of one shard.
type chunk struct {
	shard *shard
	i     uint64
}

// shard is the file of a Shard and what is known of it.
type shard struct {
	Shard
	path string

	// verifying guards leaves. It is held while the file is read for the first time: all who need the shard wait for the same answer.
	verifying sync.Mutex
	leaves    []wire.Hash // of the file's chunks, once they have led to Root; nil before
}

// verify reads the shard and compares its root, unless that has been done, and returns its leaves.
func (s *shard) verify() ([]wire.Hash, error) {
	s.verifying.Lock()
	defer s.verifying.Unlock()
	if s.leaves != nil {
		return s.leaves, nil
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	leaves := make([]wire.Hash, s.chunks())
	buf := make([]byte, min(s.Bytes, merkle.ChunkBytes))
	for i := range leaves {
		b, err := s.readChunk(f, uint64(i), buf)
		if err != nil {
			return nil, err
		}
		leaves[i] = merkle.Leaf(b)
	}
	if got := merkle.Root(leaves); got != s.Root {
		return nil, &CorruptError{s.path, fmt.Sprintf("its root is %s instead of %s", got, s.Root)}
	}
	s.leaves = leaves
	return leaves, nil
}

// open opens the shard's file, which must have the right size.
func (s *shard) open() (*os.File, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{s.path, "the file is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("open shard: %w", err)
	}
	info, err := f.Stat()
	if err == nil && uint64(info.Size()) != s.Bytes {
		err = &CorruptError{s.path, fmt.Sprintf("it has %d bytes instead of %d", info.Size(), s.Bytes)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readChunk reads chunk i into buf and returns its part of buf.
func (s *shard) readChunk(f *os.File, i uint64, buf []byte) ([]byte, error) {
	from, to := merkle.Chunk(s.Bytes, i)
	b := buf[:to-from]
	_, err := f.ReadAt(b, int64(from))
	if errors.Is(err, io.EOF) {
		return nil, &CorruptError{s.path, fmt.Sprintf("it ends before byte %d", to)}
	}
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	return b, nil
}

// load reads chunk i and compares it with its leaf, so that a file which changes after it was verified is noticed too.
func (s *shard) load(i uint64) ([]byte, error) {
	leaves, err := s.verify()
	if err != nil {
		return nil, err
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from, to := merkle.Chunk(s.Bytes, i)
	b, err := s.readChunk(f, i, make([]byte, to-from))
	if err != nil {
		return nil, err
	}
	if merkle.Leaf(b) != leaves[i] {
		return nil, &CorruptError{s.path, fmt.Sprintf("bytes %d to %d changed since it was verified", from, to)}
	}
	return b, nil
}

// cache keeps the verified chunks used last. It is safe for concurrent use.
type cache struct {
	max int // chunks kept

	mu    sync.Mutex // guards what follows; not held while a chunk is read
	order *list.List // of cached, the last used first
	at    map[chunk]*list.Element
}

// cached is what the cache's list holds.
type cached struct {
	key   chunk
	bytes []byte
}

func newCache(max int) *cache {
	return &cache{max: max, order: list.New(), at: make(map[chunk]*list.Element)}
}

// load returns a chunk, from memory or from its file. Two callers that miss the same chunk at once both read it, which costs less than
// making one wait. The bytes must not be changed.
func (c *cache) load(key chunk) ([]byte, error) {
	if b := c.find(key); b != nil {
		return b, nil
	}
	b, err := key.shard.load(key.i)
	if err != nil {
		return nil, err
	}
	c.keep(key, b)
	return b, nil
}

func (c *cache) find(key chunk) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(cached).bytes
}

func (c *cache) keep(key chunk, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[key]; ok {
		return
	}
	c.at[key] = c.order.PushFront(cached{key, b})
	for len(c.at) > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.at, last.Value.(cached).key)
	}
}

// newShards are the shards of one part of a manifest, in dir.
func newShards(dir string, list []Shard) []*shard {
	out := make([]*shard, len(list))
	for i, s := range list {
		out[i] = &shard{Shard: s, path: filepath.Join(dir, s.File)}
	}
	return out
}
