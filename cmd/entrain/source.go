package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/wire"
)

// aboutAddresses is what helps say of checkpoints that are elsewhere.
const aboutAddresses = `CHECKPOINT may also be an address, as join --upload takes it: s3://host/bucket/prefix, hf://owner/name or
https://host/directory. The newest checkpoint there is fetched into the user's cache directory, compared with
its manifest, and used from there the next time. --manifest says which one it must be: its hash, as the chain
has it (entrain status), makes it certain that the model is the run's. The cache keeps the checkpoints used
last, 20 GB in all, or as many bytes as ENTRAIN_CACHE_MAX says, such as 100GB; a fetch removes the others.`

// checkpointSource is where a command has its checkpoint from: a directory or an address.
type checkpointSource struct {
	manifest string // its hash; "" takes any
}

func (s *checkpointSource) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.manifest, "manifest", "", "`hash` that the checkpoint's manifest must have, hex (default: any)")
}

// local returns a directory with the checkpoint that the user names by a directory or an address. It is there until release is called.
func (s checkpointSource) local(ctx context.Context, c console, name string) (dir string, release func(), err error) {
	var want wire.Hash
	if s.manifest != "" {
		if want, err = wire.ParseHash(s.manifest); err != nil {
			return "", nil, fmt.Errorf("--manifest %q: want a hash of 64 hexadecimal digits", s.manifest)
		}
	}
	right := func(m checkpoint.Manifest) error {
		if got := m.Hash(); !want.IsZero() && got != want {
			return fmt.Errorf("the checkpoint of step %d at %s has the manifest %s, not %s", m.Step, name, got, want)
		}
		return nil
	}
	if !depot.IsAddress(name) {
		dir, release = name, func() {} // the user's own
		if want.IsZero() {
			return dir, release, nil
		}
		path, saved, err := openCheckpoint(name)
		if err == nil {
			err = right(saved.Manifest)
		}
		return path, release, err
	}
	d, err := depot.Open(name, depot.Options{Getenv: c.env, Progress: c.progress()})
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
	return c.cached(ctx, d, m)
}

// cached returns the directory in the user's cache that has the checkpoint of a manifest, which is fetched unless it is there. It is there until release
// is called.
func (c console) cached(ctx context.Context, d *depot.Depot, m checkpoint.Manifest) (dir string, release func(), err error) {
	k, err := c.cache()
	if err != nil {
		return "", nil, err
	}
	hash := m.Hash()
	dir = k.path(hash)
	_, missing := os.Lstat(dir)
	if release, err = k.use(hash); err == nil {
		return dir, release, nil
	}
	if missing == nil { // it is damaged; had it come since, it would be whole
		if err := k.remove(hash); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errLocked) { // removed, or made anew, by others
			return "", nil, err
		}
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return "", nil, err
	}
	c.say("fetching the checkpoint of step %d at %s into %s", m.Step, d, dir)
	_, failed := d.Fetch(ctx, dir, func(now checkpoint.Manifest) error {
		if now.Hash() != hash {
			return errors.New("there is a newer one since a moment ago: try again")
		}
		return nil
	})
	release, err = k.use(hash)
	switch {
	case err == nil: // if the fetch failed, another process was faster
		c.pruneCache(k)
		return dir, release, nil
	case failed != nil && !errors.Is(failed, fs.ErrExist):
		return "", nil, failed
	}
	return "", nil, fmt.Errorf("the checkpoint in the cache, %s, cannot be used: %w; try again, or remove it", dir, err)
}

// progress tells now and then how many bytes have come.
func (c console) progress() func(done, total uint64) {
	last := time.Now()
	return func(done, total uint64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			c.say("%s of %s", bytesText(done), bytesText(total))
		}
	}
}
