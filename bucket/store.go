package bucket

import (
	"context"
	"io"
)

// Object describes an object in a store.
type Object struct {
	Key   string
	Bytes int64

	// Version is the store's entity tag: the same one means the same bytes. Listings have none, and
	// some stores state none.
	Version string
}

// A Store is one bucket. Its methods may be called from any goroutine; their errors are *[Error]. A
// failed operation may still have taken effect, since the network gives no stronger guarantee. All
// operations can be repeated.
type Store interface {
	// Put writes an object whole or not at all, replacing an existing one. With ifAbsent it fails
	// with ErrExists if the store detects an existing object; a store that cannot detect one
	// replaces it.
	Put(ctx context.Context, key string, body io.ReaderAt, size int64, ifAbsent bool) error

	// Get returns n bytes starting at offset, or fewer if the object ends first, and describes the
	// whole object. It reads at most n bytes, whatever the store sends.
	Get(ctx context.Context, key string, offset, n int64) (b []byte, whole Object, err error)

	// Stat describes one object.
	Stat(ctx context.Context, key string) (Object, error)

	// List returns at most max objects whose keys begin with prefix and sort after the key after,
	// in byte order.
	List(ctx context.Context, prefix, after string, max int) ([]Object, error)

	// Delete removes objects. A missing object is not an error.
	Delete(ctx context.Context, keys ...string) error
}
