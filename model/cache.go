package model

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// Cache is a directory of fetched checkpoints, each in a directory named by its manifest's hash.
// Beside those that were made of what a run's members gave is a file whose name ends in keptSuffix.
// The modification time of a manifest is when its checkpoint was last used. A process that uses a
// checkpoint holds the manifest's file, so that no other removes it. Pruning removes the
// checkpoints unused for longest, until the others have at most most bytes.
type Cache struct {
	Dir  string
	Most uint64
}

const keptSuffix = ".kept"

// cacheGrace is the time for which a checkpoint is safe from removal after its last use, so that a
// process that has fetched it can get hold of it.
const cacheGrace = time.Minute

// CacheTempAge is the age at which what an interrupted fetch left is removed.
const CacheTempAge = 24 * time.Hour

// Path returns the directory of the checkpoint with the given manifest.
func (k Cache) Path(manifest wire.Hash) string { return filepath.Join(k.Dir, manifest.String()) }

// Use opens a checkpoint in the cache. It is not removed until release is called or the process
// ends.
func (k Cache) Use(manifest wire.Hash) (release func(), err error) {
	dir := k.Path(manifest)
	held, err := dirlock.Hold(filepath.Join(dir, checkpoint.ManifestFile))
	if err != nil {
		return nil, err
	}
	if _, err := checkpoint.Open(os.DirFS(dir), manifest); err != nil {
		held.Close()
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(held.Name(), now, now) // fails in a read-only cache, which is never pruned
	return func() { held.Close() }, nil
}

// remove removes a checkpoint, unless it is in use.
func (k Cache) remove(manifest wire.Hash) error {
	path := k.Path(manifest)
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	// Under a temporary name it is in no process's way, even if this one ends now.
	temp, err := os.MkdirTemp(k.Dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return err
	}
	if err = dirlock.MoveUnused(path, filepath.Join(temp, "removed"), checkpoint.ManifestFile); err == nil {
		_ = os.Remove(path + keptSuffix) // most have none
	}
	return errors.Join(err, os.RemoveAll(temp))
}

// CacheEntry is a checkpoint in the cache.
type CacheEntry struct {
	manifest checkpoint.Manifest
	hash     wire.Hash
	bytes    uint64
	used     time.Time
}

// entries returns the checkpoints in the cache, the ones unused for longest first. It ignores other
// files.
func (k Cache) entries() (list []CacheEntry, err error) {
	found, err := os.ReadDir(k.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		hash, err := wire.ParseHash(e.Name())
		if err != nil || hash.String() != e.Name() || !e.IsDir() {
			continue
		}
		path := filepath.Join(k.Dir, e.Name(), checkpoint.ManifestFile)
		b, err := atomicfile.ReadBounded(path, checkpoint.ManifestBytesMax)
		if err != nil || wire.SHA256(b) != hash {
			continue
		}
		m, err := checkpoint.ParseManifest(b)
		info, fault := os.Stat(path)
		if err != nil || fault != nil {
			continue
		}
		c := CacheEntry{manifest: m, hash: hash, bytes: uint64(len(b)), used: info.ModTime()}
		for _, f := range m.Files {
			c.bytes += f.Bytes
		}
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.hash.String(), b.hash.String())) < 0
	})
	return list, nil
}

// prune removes the checkpoints unused for longest until the others have at most k.most bytes, and
// returns them. It keeps those in use or used within cacheGrace. It also removes what interrupted
// fetches left.
func (k Cache) prune() (removed []CacheEntry, err error) {
	list, err := k.entries()
	if err != nil {
		return nil, err
	}
	var total uint64
	for _, e := range list {
		total += e.bytes
	}
	var errs []error
	for _, e := range list {
		if total <= k.Most {
			break
		}
		if time.Since(e.used).Abs() < cacheGrace {
			continue
		}
		switch err := k.remove(e.hash); {
		case err == nil:
			removed = append(removed, e)
			total -= e.bytes
		case errors.Is(err, dirlock.ErrLocked):
		case errors.Is(err, fs.ErrNotExist): // another process removed it
			total -= e.bytes
		default:
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(append(errs, atomicfile.RemoveTemps(k.Dir, CacheTempAge))...)
}
