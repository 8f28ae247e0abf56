package depot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// inBucket is a depot in a bucket.
type inBucket struct {
	at      bucket.Location
	store   bucket.Store
	options Options
}

// String returns the location without its credentials.
func (b *inBucket) String() string { return b.at.String() }

func (b *inBucket) upload(ctx context.Context, u upload) error {
	dir := StepName(u.manifest.Step) + "/"
	if b.has(ctx, dir, u.manifest.Hash()) {
		return nil
	}
	// An existing checkpoint of this step is from a history that was rolled back. Without its
	// manifest it is not a checkpoint while its files are replaced.
	if err := b.options.retry(ctx, func() error { return b.store.Delete(ctx, dir+checkpoint.ManifestFile) }); err != nil {
		return err
	}
	for _, p := range u.parts() {
		if err := b.put(ctx, u, p, dir+p.name); err != nil {
			return err
		}
	}
	return nil
}

func (b *inBucket) put(ctx context.Context, u upload, p part, key string) error {
	f, err := u.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.options.retry(ctx, func() error { return b.store.Put(ctx, key, f, p.size, false) })
}

// has reports whether the checkpoint with a manifest is present.
func (b *inBucket) has(ctx context.Context, dir string, manifest wire.Hash) bool {
	got, _, err := b.store.Get(ctx, dir+checkpoint.ManifestFile, 0, checkpoint.ManifestBytesMax)
	return err == nil && wire.SHA256(got) == manifest
}

// filesMax bounds a listing of a depot: several hundred checkpoints of a few files each.
const filesMax = 1 << 14

// steps returns the files of each stored step, and the files of the complete steps.
func (b *inBucket) steps(ctx context.Context) (files map[uint32][]string, whole []uint32, err error) {
	files = make(map[uint32][]string)
	for after, n := "", 0; n < filesMax; {
		var page []bucket.Object
		err := b.options.retry(ctx, func() (err error) {
			page, err = b.store.List(ctx, stepPrefix, after, 1000)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, o := range page {
			dir, file, _ := strings.Cut(o.Key, "/")
			if step, ok := parseStep(dir); ok {
				files[step] = append(files[step], o.Key)
				if file == checkpoint.ManifestFile {
					whole = append(whole, step)
				}
			}
			after = o.Key
		}
		if n += len(page); len(page) < 1000 {
			break
		}
	}
	slices.Sort(whole)
	return files, whole, nil
}

// prune removes all but the newest complete checkpoints up to a step, and incomplete ones that are
// older. It removes the manifest first, so that the remaining files are not mistaken for a
// checkpoint.
func (b *inBucket) prune(ctx context.Context, keep int, step uint32) error {
	files, whole, err := b.steps(ctx)
	whole = slices.DeleteFunc(whole, func(s uint32) bool { return s > step })
	if err != nil || len(whole) <= keep {
		return err
	}
	oldest := whole[len(whole)-keep]
	for step, keys := range files {
		if step >= oldest {
			continue
		}
		slices.SortFunc(keys, func(x, y string) int {
			return strings.Compare(strings.TrimSuffix(x, checkpoint.ManifestFile), strings.TrimSuffix(y, checkpoint.ManifestFile))
		})
		if err := b.options.retry(ctx, func() error { return b.store.Delete(ctx, keys...) }); err != nil {
			return err
		}
	}
	return nil
}

// source returns the checkpoint at the location, or the newest below it.
func (b *inBucket) source(ctx context.Context, foreign bool) (source, error) {
	_, err := b.store.Stat(ctx, checkpoint.ManifestFile)
	if err == nil {
		return objects{b.store, ""}, nil
	}
	if !errors.Is(err, bucket.ErrMissing) {
		return nil, err
	}
	if b.options.Stranger {
		return nil, permanent{fmt.Errorf("it has no %s", checkpoint.ManifestFile)}
	}
	_, whole, err := b.steps(ctx)
	if err != nil {
		return nil, err
	}
	if len(whole) == 0 && foreign {
		return objects{b.store, ""}, nil
	}
	if len(whole) == 0 {
		return nil, permanent{fmt.Errorf("it has no %s, and no checkpoint below it", checkpoint.ManifestFile)}
	}
	return objects{b.store, StepName(whole[len(whole)-1]) + "/"}, nil
}

// objects is a checkpoint in a bucket.
type objects struct {
	store bucket.Store
	dir   string
}

func (o objects) read(ctx context.Context, file string, offset, n int64) (extent, error) {
	b, whole, err := o.store.Get(ctx, o.dir+file, offset, n)
	if len(whole.Version) > versionBytesMax {
		whole.Version = ""
	}
	return extent{b, whole.Bytes, whole.Version}, err
}

func (objects) close() {}
