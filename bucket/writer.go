package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Options say how often an operation is repeated; 0 means what the comments say.
type Options struct {
	Attempts int           // 5; 1 for none but the first
	Backoff  time.Duration // before the second, doubled before each further one up to 5 s: 200 ms
}

func (o *Options) fill() {
	if o.Attempts <= 0 {
		o.Attempts = attempts
	}
	if o.Backoff <= 0 {
		o.Backoff = backoff
	}
}

func (o Options) retry(ctx context.Context, again func(error) bool, do func() error) error {
	return retry.Policy{Attempts: o.Attempts, Min: o.Backoff, Max: backoffMax}.Do(ctx, again, do)
}

// Writer publishes one member's objects in its own bucket. Its methods may be called from any goroutine.
type Writer struct {
	store   Store
	key     key.Private
	options Options
	Traffic Traffic // what it has sent
}

// NewWriter returns a writer of the objects of the member whose key is k.
func NewWriter(s Store, k key.Private, o Options) *Writer {
	o.fill()
	return &Writer{store: s, key: k, options: o}
}

// Member is whose objects are written.
func (w *Writer) Member() key.Public { return w.key.Public() }

// Put publishes body under a name, whose member may be left zero. An object is there whole or not at all, and since its name says what is in it,
// one that is there already is as good. A body that is not what the name says is refused, so that no bug of ours looks like a lie.
func (w *Writer) Put(ctx context.Context, n Name, body []byte) error {
	if n.Member.IsZero() {
		n.Member = w.key.Public()
	}
	if n.Member != w.key.Public() || !n.Kind.Valid() {
		return fmt.Errorf("publish %v: the name is another member's, or of no kind", n)
	}
	if len(body) > ObjectBytesMax {
		return fmt.Errorf("publish %v: its %d bytes are more than the %d of an object", n, len(body), ObjectBytesMax)
	}
	if err := checkContent(n, body); err != nil {
		return fmt.Errorf("publish %v: %w", n, err)
	}
	object := Seal(w.key, n, body)
	return w.options.retry(ctx, passing, func() error {
		err := w.store.Put(ctx, n.Path(), bytes.NewReader(object), int64(len(object)), true)
		if errors.Is(err, ErrExists) && !w.same(ctx, n.Path(), object) {
			err = w.store.Put(ctx, n.Path(), bytes.NewReader(object), int64(len(object)), false)
		} else if errors.Is(err, ErrExists) {
			return nil
		}
		if err == nil {
			w.Traffic.add(len(object))
		}
		return err
	})
}

// same tells whether an object is in the bucket as it should be. Names are hashes, but somebody else may have write access, or a process that
// ended may have left something else.
func (w *Writer) same(ctx context.Context, path string, object []byte) bool {
	b, size, err := w.store.Get(ctx, path, 0, int64(len(object)))
	return err == nil && size == int64(len(object)) && bytes.Equal(b, object)
}

// DeleteBefore removes the member's own objects of a run that are of windows before the one given, except those that keep, if it is not nil,
// wants kept. It returns how many it removed. Objects of others, and what is no object at all, stay.
func (w *Writer) DeleteBefore(ctx context.Context, run wire.Hash, window uint32, keep func(Name) bool) (int, error) {
	deleted, after, prefix := 0, "", RunPrefix(run)
	last := WindowPrefix(run, window)
	for {
		var page []Object
		err := w.options.retry(ctx, passing, func() (err error) {
			page, err = w.store.List(ctx, prefix, after, pageMax)
			return err
		})
		if err != nil {
			return deleted, err
		}
		var keys []string
		for _, o := range page {
			after = o.Key
			n, err := ParseName(o.Key)
			if err == nil && n.Window < window && n.Member == w.key.Public() && (keep == nil || !keep(n)) {
				keys = append(keys, o.Key)
			}
		}
		if err := w.options.retry(ctx, passing, func() error { return w.store.Delete(ctx, keys...) }); err != nil {
			return deleted, err
		}
		deleted += len(keys)
		if len(page) < pageMax || strings.Compare(after, last) >= 0 {
			return deleted, nil
		}
	}
}
