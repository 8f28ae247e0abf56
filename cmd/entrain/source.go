package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
has it (entrain status), makes it certain that the model is the run's.`

// checkpointSource is where a command has its checkpoint from: a directory or an address.
type checkpointSource struct {
	manifest string // its hash; "" takes any
}

func (s *checkpointSource) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.manifest, "manifest", "", "`hash` that the checkpoint's manifest must have, hex (default: any)")
}

// local returns a directory with the checkpoint that the user names by a directory or an address.
func (s checkpointSource) local(ctx context.Context, c console, name string) (string, error) {
	var want wire.Hash
	if s.manifest != "" {
		var err error
		if want, err = wire.ParseHash(s.manifest); err != nil {
			return "", fmt.Errorf("--manifest %q: want a hash of 64 hexadecimal digits", s.manifest)
		}
	}
	right := func(m checkpoint.Manifest) error {
		if got := m.Hash(); !want.IsZero() && got != want {
			return fmt.Errorf("the checkpoint of step %d at %s has the manifest %s, not %s", m.Step, name, got, want)
		}
		return nil
	}
	if !depot.IsAddress(name) {
		if want.IsZero() {
			return name, nil
		}
		path, saved, err := openCheckpoint(name)
		if err == nil {
			err = right(saved.Manifest)
		}
		return path, err
	}
	d, err := depot.Open(name, depot.Options{Getenv: c.env, Progress: c.progress()})
	if err != nil {
		return "", err
	}
	defer d.Close()
	name = d.String() // without secrets
	m, err := d.Manifest(ctx)
	if err == nil {
		err = right(m)
	}
	if err != nil {
		return "", err
	}
	return c.cached(ctx, d, m)
}

// cached returns the directory in the user's cache that has the checkpoint of a manifest, which is fetched unless it is there.
func (c console) cached(ctx context.Context, d *depot.Depot, m checkpoint.Manifest) (string, error) {
	if c.places.cache == "" {
		return "", errors.New("this system names no directory for what is fetched: set XDG_CACHE_HOME, or fetch the checkpoint's files yourself")
	}
	dir := filepath.Join(c.places.cache, "checkpoints", m.Hash().String())
	if _, err := checkpoint.Open(os.DirFS(dir), m.Hash()); err == nil {
		return dir, nil
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.RemoveAll(dir)); err != nil {
		return "", err
	}
	c.say("fetching the checkpoint of step %d at %s into %s", m.Step, d, dir)
	_, err := d.Fetch(ctx, dir, func(now checkpoint.Manifest) error {
		if now.Hash() != m.Hash() {
			return errors.New("there is a newer one since a moment ago: try again")
		}
		return nil
	})
	if errors.Is(err, fs.ErrExist) { // another process was faster
		_, err = checkpoint.Open(os.DirFS(dir), m.Hash())
	}
	return dir, err
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
