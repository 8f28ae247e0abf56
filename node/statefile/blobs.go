package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/wire"
)

// Parameters and optimizer states have a file each beside the state, named after the root of what
// is in it: the little-endian floats, no more. The state, a case and a result of this member name
// them by their roots, so that what several of them need is written once.

const blobPrefix = ".blob-"

func (s *Store) blobPath(root wire.Hash) string { return s.path + blobPrefix + root.String() }

// SaveBlob writes the file of a blob.
func (s *Store) SaveBlob(root wire.Hash, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("file of a blob: %w", err)
	}
	return atomicfile.Write(s.blobPath(root), 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// NewBlob begins the file of a blob, which is made with the first write.
func (s *Store) NewBlob() blobs.NewFile { return &newBlob{store: s} }

type newBlob struct {
	store *Store
	mu    sync.Mutex // guards what follows
	file  *os.File   // nil before the first write
}

func (b *newBlob) WriteAt(data []byte, at int64) (int, error) {
	b.mu.Lock()
	f, err := b.file, error(nil)
	if f == nil {
		dir := filepath.Dir(b.store.path)
		if err = os.MkdirAll(dir, 0o700); err == nil {
			f, err = atomicfile.Begin(dir)
		}
		b.file = f
	}
	b.mu.Unlock()
	if err != nil {
		return 0, fmt.Errorf("file of a blob: %w", err)
	}
	return f.WriteAt(data, at)
}

func (b *newBlob) ReadAt(dst []byte, at int64) (int, error) {
	b.mu.Lock()
	f := b.file
	b.mu.Unlock()
	if f == nil {
		return 0, fs.ErrNotExist
	}
	return f.ReadAt(dst, at)
}

func (b *newBlob) Commit(root wire.Hash) error {
	return atomicfile.Commit(b.file, b.store.blobPath(root), 0o600)
}

func (b *newBlob) Discard() {
	if b.file != nil {
		atomicfile.Discard(b.file)
	}
}

// ReadBlob fills dst with bytes of a blob.
func (s *Store) ReadBlob(root wire.Hash, from int64, dst []byte) error {
	f, err := os.Open(s.blobPath(root))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadFull(io.NewSectionReader(f, from, int64(len(dst))), dst)
	return err
}

// DropBlob deletes the file of a blob, if there is one.
func (s *Store) DropBlob(root wire.Hash) error {
	if err := os.Remove(s.blobPath(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file of a blob: %w", err)
	}
	return nil
}

// Blobs lists the blobs that have a file.
func (s *Store) Blobs() (list []wire.Hash, err error) {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("files of blobs: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), filepath.Base(s.path)+blobPrefix)
		if root, err := wire.ParseHash(name); ok && err == nil {
			list = append(list, root)
		}
	}
	return list, nil
}
