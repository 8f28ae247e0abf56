package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A CorruptError reports that a shard does not match the manifest.
type CorruptError struct {
	File   string // the shard's file, with its directory
	Reason string // what is wrong with it
}

// Error returns which shard is corrupt and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("shard %q is not what the manifest says: %s; prepare the data again into the same directory, or fetch the file again", e.File, e.Reason)
}

// chunk is the number of a chunk of one shard.
type chunk struct {
	shard *shard
	i     uint64
}

// shard is the file of a Shard with its verification state.
type shard struct {
	Shard
	path   string
	remote *remote // nil if path is a file here

	// The position and length of the leaves in leavesFile, in bytes.
	leafOffset, leavesSize uint64

	// verifying guards leaves. It is held during the first read of the file, so concurrent callers
	// wait for the same result.
	verifying sync.Mutex
	leaves    []wire.Hash // of the file's chunks, verified against Root; nil before
}

// verify returns the leaves of the shard. On first use it reads the shard and compares its root;
// for a remote shard it may fetch the leaves alone.
func (s *shard) verify() ([]wire.Hash, error) {
	s.verifying.Lock()
	defer s.verifying.Unlock()
	if s.leaves != nil {
		return s.leaves, nil
	}
	leaves, err := s.learnLeaves()
	if err == nil {
		s.leaves = leaves
	}
	return leaves, err
}

func (s *shard) learnLeaves() ([]wire.Hash, error) {
	if s.remote != nil {
		return s.remote.leavesOf(s)
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
		return nil, &CorruptError{s.path, fmt.Sprintf("its root is %s, want %s", got, s.Root)}
	}
	return leaves, nil
}

// open opens the shard's file and checks its size.
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
		err = &CorruptError{s.path, fmt.Sprintf("it has %d bytes, want %d", info.Size(), s.Bytes)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readChunk reads chunk i into buf and returns the bytes read.
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

// load reads chunk i and compares it with its leaf, to detect a file that changes after
// verification.
func (s *shard) load(i uint64) ([]byte, error) {
	leaves, err := s.verify()
	if err != nil {
		return nil, err
	}
	if s.remote != nil {
		return s.remote.fetch(s, i, leaves[i])
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

// newShards returns the shards of both parts of a manifest, in dir or at a remote place.
func newShards(dir string, m Manifest, r *remote) (train, heldOut []*shard) {
	var all []*shard
	var leaves uint64
	for _, s := range append(append([]Shard{}, m.Shards...), m.HeldOut...) {
		path := filepath.Join(dir, s.File)
		if r != nil {
			path = strings.TrimSuffix(r.hosts.list[0].String(), "/") + "/" + s.File
		}
		all = append(all, &shard{Shard: s, path: path, remote: r, leafOffset: leaves})
		leaves += s.chunks() * uint64(len(wire.Hash{}))
	}
	for _, s := range all {
		s.leavesSize = leaves
	}
	return all[:len(m.Shards)], all[len(m.Shards):]
}
