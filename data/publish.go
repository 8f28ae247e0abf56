package data

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/wire"
)

// publish uploads the files of the data set in dir, whose manifest is m, to a bucket, for OpenURL
// to read. It uploads the shards first and the manifest last, so that a reader who finds the
// manifest finds the set. If it was called for this set before, it skips files that are present
// with the right size. Publish calls uploaded, unless nil, after each file.
func publish(ctx context.Context, dir string, m Manifest, to bucket.Store, uploaded func(file string, bytes int64, sent bool)) error {
	sets, err := componentsOf(dir, m)
	if err != nil {
		return err
	}
	again, err := begin(ctx, m, to)
	if err != nil {
		return fmt.Errorf("uploading data set %q: %w", m.Name, err)
	}
	one := func(name string, m Manifest) error {
		size, sent, err := publishFile(ctx, filepath.Join(dir, filepath.FromSlash(name)), name, m, to, again)
		if errors.Is(err, os.ErrNotExist) && (path.Base(name) == leavesFile || path.Base(name) == tokenizerFile) {
			return nil // sets of earlier versions, and those of built-in tokenizers, have fewer files
		}
		if err != nil {
			return fmt.Errorf("uploading data set %q: %w", m.Name, err)
		}
		if uploaded != nil {
			uploaded(name, size, sent)
		}
		return nil
	}
	for _, below := range slices.Sorted(maps.Keys(sets)) {
		for _, name := range sets[below].files() {
			if err := one(below+name, sets[below]); err != nil {
				return err
			}
		}
	}
	if m.mix != nil {
		if err := one(manifestFile, m); err != nil {
			return err
		}
	}
	_ = to.Delete(ctx, publishingFile) // credentials need not allow it
	return nil
}

// publishingFile holds the hash of the set that is being uploaded. Shards of two sets usually have
// the same size, so sizes tell nothing about what another set's upload left.
const publishingFile = "publishing"

// begin prepares an upload. It reports whether what is in the bucket comes from an upload of the
// same set, whole or not.
func begin(ctx context.Context, m Manifest, to bucket.Store) (again bool, err error) {
	hash := m.Hash()
	if got, _, err := to.Get(ctx, manifestFile, 0, manifestBytesMax); err == nil {
		if found := wire.SHA256(got); found != hash {
			return false, fmt.Errorf("another data set is there, with the hash %s, on which runs may train: give another prefix", found)
		}
		return true, nil
	}
	mark := hash.String()
	if got, _, err := to.Get(ctx, publishingFile, 0, int64(len(mark))); err == nil && string(got) == mark {
		return true, nil
	}
	return false, to.Put(ctx, publishingFile, strings.NewReader(mark), int64(len(mark)), false)
}

// PublishAt is Publish to the bucket at an s3:// address. Credentials that it lacks are the
// environment's.
func PublishAt(ctx context.Context, dir string, m Manifest, address string, getenv func(string) string, uploaded func(file string, bytes int64, sent bool)) error {
	at, err := bucket.ParseLocation(address)
	if err != nil {
		return err
	}
	if at, err = at.WithEnvironment(getenv); err != nil {
		return err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	store, err := client.Open(at)
	if err != nil {
		return err
	}
	return publish(ctx, dir, m, store, uploaded)
}

func publishFile(ctx context.Context, file, name string, m Manifest, to bucket.Store, again bool) (size int64, sent bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	size = info.Size()
	switch {
	case !again:
	case path.Base(name) == manifestFile: // small, and its size says nothing
		got, _, err := to.Get(ctx, name, 0, manifestBytesMax)
		if err == nil && wire.SHA256(got) == m.Hash() {
			return size, false, nil
		}
	default:
		if o, err := to.Stat(ctx, name); err == nil && o.Bytes == size {
			return size, false, nil
		}
	}
	return size, true, to.Put(ctx, name, f, size, false)
}
