package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/bucket"
)

// s3 is a host in a bucket: the files are objects below the location's prefix.
type s3 struct {
	at    bucket.Location
	store bucket.Store
}

// String returns the location without its credentials.
func (s *s3) String() string { return s.at.String() }

// rangeOf reads a range of an object.
func (s *s3) rangeOf(ctx context.Context, file string, offset, size uint64, b []byte) error {
	got, has, err := s.store.Get(ctx, file, int64(offset), int64(len(b)))
	switch {
	case err != nil:
		return lasting(err)
	case uint64(has.Bytes) != size:
		return permanentError{fmt.Errorf("%s of %s has %d bytes, want %d", file, s, has.Bytes, size)}
	case copy(b, got) < len(b):
		return fmt.Errorf("%s of %s ended after %d of %d bytes", file, s, len(got), len(b))
	}
	return nil
}

// all reads a whole object.
func (s *s3) all(ctx context.Context, file string, most int) ([]byte, error) {
	b, _, err := s.store.Get(ctx, file, 0, int64(most)+1)
	return b, lasting(err)
}

// lasting marks the errors that retrying cannot fix.
func lasting(err error) error {
	if errors.Is(err, bucket.ErrMissing) || errors.Is(err, bucket.ErrRefused) || errors.Is(err, bucket.ErrForbidden) {
		return permanentError{err}
	}
	return err
}
