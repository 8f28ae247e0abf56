package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Options control how operations are repeated; 0 selects the default given for each field.
type Options struct {
	Attempts int           // default 5; 1 disables retries
	Backoff  time.Duration // before the second attempt, then doubled up to 5 s: default 200 ms
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

// Writer publishes one member's objects in its own bucket. Its methods may be called from any
// goroutine.
type Writer struct {
	store   Store
	key     key.Private
	options Options
	Traffic Traffic // objects sent
}

// NewWriter returns a writer for the member whose key is k.
func NewWriter(s Store, k key.Private, o Options) *Writer {
	o.fill()
	return &Writer{store: s, key: k, options: o}
}

// Member returns the member whose objects are written.
func (w *Writer) Member() key.Public { return w.key.Public() }

// Put publishes body under a name, whose member may be left zero. The object appears whole or not
// at all. Since its name determines its content, an existing object is kept. Put rejects a body
// that does not match the name, so that no local bug looks like dishonesty.
func (w *Writer) Put(ctx context.Context, n Name, body []byte) error {
	if n.Member.IsZero() {
		n.Member = w.key.Public()
	}
	if n.Member != w.key.Public() || !n.Kind.Valid() {
		return fmt.Errorf("publish %v: the name belongs to another member, or its kind is unknown", n)
	}
	if len(body) > ObjectBytesMax {
		return fmt.Errorf("publish %v: it has %d bytes, more than %d", n, len(body), ObjectBytesMax)
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

// same reports whether the bucket holds the object as it should be. Names are hashes, but someone
// else may have write access, or an interrupted process may have left other contents.
func (w *Writer) same(ctx context.Context, path string, object []byte) bool {
	b, whole, err := w.store.Get(ctx, path, 0, int64(len(object)))
	return err == nil && whole.Bytes == int64(len(object)) && bytes.Equal(b, object)
}

// DeleteBefore removes the member's own objects of a run from windows before the given one, except
// those for which keep, if not nil, returns true. It returns the number removed. Other members'
// objects and unrelated keys stay.
func (w *Writer) DeleteBefore(ctx context.Context, run wire.Hash, window coordinator.Round, keep func(Name) bool) (int, error) {
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
