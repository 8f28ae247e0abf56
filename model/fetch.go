package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Fetcher gets checkpoints from directories and, by way of a cache, from addresses.
type Fetcher struct {
	Cache    Cache                            // of checkpoints that were fetched from addresses
	Getenv   func(string) string              // the environment, for credentials
	Progress func(done, total uint64)         // takes the bytes fetched so far, if set
	Say      func(format string, args ...any) // takes what the user is told

	Stranger, Public bool   // of addresses, as in depot.Options
	BytesMax         uint64 // the largest checkpoint to fetch from an address, as in depot.Options
}

// Local returns a directory with the checkpoint at name, a directory or an address, whose manifest
// must be what want demands (see checkpoint.Manifest.Is). The directory stays until the caller
// calls release.
func (f Fetcher) Local(ctx context.Context, name string, want wire.Hash) (dir string, release func(), err error) {
	right := func(m checkpoint.Manifest) error {
		if err := m.Is(want); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if !depot.IsAddress(name) {
		dir, release = name, func() {} // the user's own
		if want.IsZero() {
			return dir, release, nil
		}
		path, saved, err := OpenCheckpoint(name)
		if err == nil {
			err = right(saved.Manifest)
		}
		return path, release, err
	}
	d, err := f.open(name)
	if err != nil {
		return "", nil, err
	}
	defer d.Close()
	name = d.String() // without secrets
	m, err := d.Manifest(ctx)
	if err == nil {
		err = right(m)
	}
	if err != nil {
		return "", nil, err
	}
	return f.cached(ctx, d, m)
}

// open returns the depot at an address. Fetches that are interrupted continue in the cache.
func (f Fetcher) open(address string) (*depot.Depot, error) {
	return depot.Open(address, depot.Options{
		Getenv: f.Getenv, Progress: f.Progress, Say: f.Say, Partial: f.Cache.Dir, Stranger: f.Stranger, Public: f.Public, BytesMax: f.BytesMax,
	})
}

// Import reads the model of other software at place, a directory or an address, as Import does.
func (f Fetcher) Import(ctx context.Context, place, name string) (checkpoint.Model, error) {
	dir, release, err := f.foreign(ctx, place)
	if err != nil {
		return checkpoint.Model{}, err
	}
	defer release()
	return Import(dir, name)
}

// foreign returns a directory with the model of other software at name, a directory or an address.
// The directory stays until the caller calls release.
func (f Fetcher) foreign(ctx context.Context, name string) (dir string, release func(), err error) {
	if !depot.IsAddress(name) {
		return name, func() {}, nil // the user's own
	}
	d, err := f.open(name)
	if err != nil {
		return "", nil, err
	}
	defer d.Close()
	if err := os.MkdirAll(f.Cache.Dir, 0o700); err != nil {
		return "", nil, err
	}
	parent, err := os.MkdirTemp(f.Cache.Dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return "", nil, err
	}
	release = func() { _ = os.RemoveAll(parent) }
	place, _, _ := strings.Cut(d.String(), "?")
	dir = filepath.Join(parent, path.Base(place))
	f.Say("fetching the model at %s", d)
	if err := d.FetchModel(ctx, dir); err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}

// cached returns the cache's directory of the checkpoint with manifest m, and fetches it if
// necessary. The directory stays until the caller calls release.
func (f Fetcher) cached(ctx context.Context, d *depot.Depot, m checkpoint.Manifest) (dir string, release func(), err error) {
	k := f.Cache
	hash := m.Hash()
	dir = k.Path(hash)
	_, missing := os.Lstat(dir)
	if release, err = k.Use(hash); err == nil {
		return dir, release, nil
	}
	if missing == nil { // it is damaged: one that another process has just fetched is whole
		// another process removed or replaced it
		if err := k.remove(hash); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, dirlock.ErrLocked) {
			return "", nil, err
		}
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return "", nil, err
	}
	f.Say("fetching the checkpoint of step %d at %s into %s", m.Step, d, dir)
	_, failed := d.Fetch(ctx, dir, func(now checkpoint.Manifest) error {
		if now.Hash() != hash {
			return errors.New("it was replaced by a newer one meanwhile: try again")
		}
		return nil
	})
	release, err = k.Use(hash)
	switch {
	case err == nil: // if the fetch failed, another process was faster
		f.prune(k)
		return dir, release, nil
	case failed != nil && !errors.Is(failed, fs.ErrExist):
		return "", nil, failed
	}
	return "", nil, fmt.Errorf("the checkpoint in the cache, %s, cannot be used: %w; try again, or remove it", dir, err)
}

// Held returns the directory of a checkpoint that Keep wrote, by its run and its parameters. One
// that was fetched from an address has the manifest that its author liked. The directory stays
// until release is called.
func (f Fetcher) Held(run string, params wire.Hash) (dir string, release func(), ok bool) {
	list, _ := f.Cache.entries() // one that cannot be read holds nothing
	for _, e := range list {
		_, err := os.Stat(f.Cache.Path(e.hash) + keptSuffix)
		if err == nil && e.manifest.Run == run && e.manifest.Params == params {
			if release, err := f.Cache.Use(e.hash); err == nil {
				return f.Cache.Path(e.hash), release, true
			}
		}
	}
	return "", nil, false
}

// Keep writes a checkpoint into the cache and returns its directory, which stays until release is
// called.
func (f Fetcher) Keep(ctx context.Context, m checkpoint.Model) (dir string, release func(), err error) {
	k := f.Cache
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return "", nil, err
	}
	temp, err := os.MkdirTemp(k.Dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(temp)
	made := filepath.Join(temp, "made")
	manifest, err := Write(ctx, made, m, checkpoint.Options{})
	if err != nil {
		return "", nil, err
	}
	dir = k.Path(manifest.Hash())
	failed := os.Rename(made, dir) // another process may have been faster
	if err := os.WriteFile(dir+keptSuffix, nil, 0o600); err != nil {
		return "", nil, err
	}
	if release, err = k.Use(manifest.Hash()); err != nil {
		return "", nil, errors.Join(failed, err)
	}
	f.prune(k)
	return dir, release, nil
}

// prune prunes the cache and reports what it removed. A failure does not keep the caller from using
// what was fetched.
func (f Fetcher) prune(k Cache) {
	removed, err := k.prune()
	var texts []string
	for _, e := range removed {
		texts = append(texts, fmt.Sprintf("step %d of %s (%s)", e.manifest.Step, e.manifest.Run, view.Bytes(e.bytes)))
	}
	if len(texts) > 0 {
		f.Say("removed from the cache, which keeps %s of what was used last: %s", view.Bytes(k.Most), strings.Join(texts, ", "))
	}
	if err != nil {
		f.Say("the cache could not be pruned: %v; remove what you do not need from %s", err, k.Dir)
	}
}
