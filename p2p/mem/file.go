package mem

import (
	"bytes"
	"sync"
)

// File is a p2p.File in memory. Its zero value is empty.
type File struct {
	mu   sync.Mutex // guards data
	data []byte
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if more := int(at) + len(b) - len(f.data); more > 0 {
		f.data = append(f.data, make([]byte, more)...)
	}
	return copy(f.data[at:], b), nil
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.NewReader(f.data).ReadAt(b, at)
}

// Bytes returns what is in it.
func (f *File) Bytes() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.data)
}
