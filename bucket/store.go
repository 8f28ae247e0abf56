package bucket

import (
	"context"
	"io"
)

// Object is what a store tells of an object.
type Object struct {
	Key   string
	Bytes int64
}

// A Store is one bucket. Its methods may be called from any goroutine; their errors are *[Error]. A failed operation may have taken
// place nevertheless, as a network leaves no other promise; all of them can be repeated.
type Store interface {
	// Put writes an object whole or not at all, in place of the one there was. With ifAbsent it fails with ErrExists if the store sees that there
	// is one; stores that cannot tell replace it.
	Put(ctx context.Context, key string, body io.ReaderAt, size int64, ifAbsent bool) error

	// Get returns n bytes from offset on, or fewer if the object ends before, and the size of the whole. It reads no more than n bytes whatever
	// the store sends.
	Get(ctx context.Context, key string, offset, n int64) (b []byte, size int64, err error)

	// Stat tells of one object.
	Stat(ctx context.Context, key string) (Object, error)

	// List returns at most max objects whose keys begin with prefix and come after the key after, in the order of their bytes.
	List(ctx context.Context, prefix, after string, max int) ([]Object, error)

	// Delete removes objects; those that are not there are no error.
	Delete(ctx context.Context, keys ...string) error
}
