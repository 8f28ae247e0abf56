package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// cache is the directory of the checkpoints that were fetched to look at. Each is a directory whose name is its manifest's hash. When a checkpoint was
// used last is the time of its manifest; who uses it holds that file, so that nobody removes it meanwhile. After a fetch those that were not used
// for longest are removed, until the rest has no more bytes than most.
type cache struct {
	dir  string
	most uint64
}

// cacheBytes is how large the cache may be, unless the environment says otherwise: a model of five billion parameters, or many small ones.
const cacheBytes = 20_000_000_000

// cacheVariable is the environment's word on it.
const cacheVariable = "ENTRAIN_CACHE_MAX"

// cacheGrace is for how long what was used is left alone in any case: between the end of a fetch and holding what was fetched others may look.
const cacheGrace = time.Minute

// cacheTempAge is for how long nothing was written to a fetch that was interrupted.
const cacheTempAge = 24 * time.Hour

// cache is the user's.
func (c console) cache() (cache, error) {
	if c.places.cache == "" {
		return cache{}, errors.New("this system names no directory for what is fetched: set XDG_CACHE_HOME, or fetch the checkpoint's files yourself")
	}
	most := byteCount(cacheBytes)
	if text := c.env(cacheVariable); text != "" {
		if err := most.Set(text); err != nil {
			return cache{}, fmt.Errorf("%s: %w", cacheVariable, err)
		}
	}
	return cache{filepath.Join(c.places.cache, "checkpoints"), uint64(most)}, nil
}

// path is where the checkpoint of a manifest lies.
func (k cache) path(manifest wire.Hash) string { return filepath.Join(k.dir, manifest.String()) }

// use opens a checkpoint that is there: until release is called or the process ends, nobody removes it.
func (k cache) use(manifest wire.Hash) (release func(), err error) {
	dir := k.path(manifest)
	held, err := holdFile(filepath.Join(dir, checkpoint.ManifestFile))
	if err != nil {
		return nil, err
	}
	if _, err := checkpoint.Open(os.DirFS(dir), manifest); err != nil {
		held.Close()
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(held.Name(), now, now) // in a cache that may only be read nothing is removed either
	return func() { held.Close() }, nil
}

// remove removes what is there in the place of a checkpoint, unless it is in use.
func (k cache) remove(manifest wire.Hash) error {
	path := k.path(manifest)
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	// Under a temporary name it is nobody's, whenever this process ends.
	temp, err := os.MkdirTemp(k.dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return err
	}
	err = moveUnused(path, filepath.Join(temp, "removed"), checkpoint.ManifestFile)
	return errors.Join(err, os.RemoveAll(temp))
}

// cacheEntry is a checkpoint in the cache.
type cacheEntry struct {
	manifest checkpoint.Manifest
	hash     wire.Hash
	bytes    uint64
	used     time.Time
}

// entries are the checkpoints in the cache, those first that were not used for longest. What else lies there is not the cache's.
func (k cache) entries() (list []cacheEntry, err error) {
	found, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		hash, err := wire.ParseHash(e.Name())
		if err != nil || hash.String() != e.Name() || !e.IsDir() {
			continue
		}
		path := filepath.Join(k.dir, e.Name(), checkpoint.ManifestFile)
		b, err := readBounded(path, checkpoint.ManifestBytesMax)
		if err != nil || wire.SHA256(b) != hash {
			continue
		}
		m, err := checkpoint.ParseManifest(b)
		info, fault := os.Stat(path)
		if err != nil || fault != nil {
			continue
		}
		c := cacheEntry{manifest: m, hash: hash, bytes: uint64(len(b)), used: info.ModTime()}
		for _, f := range m.Files {
			c.bytes += f.Bytes
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b cacheEntry) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.hash.String(), b.hash.String()))
	})
	return list, nil
}

// prune removes the checkpoints that were not used for longest until the others have at most k.most bytes, but none that is in use or was a
// moment ago, such as the one just fetched; and what fetches left that were interrupted. It returns what it removed.
func (k cache) prune() (removed []cacheEntry, err error) {
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
		if total <= k.most {
			break
		}
		if time.Since(e.used).Abs() < cacheGrace {
			continue
		}
		switch err := k.remove(e.hash); {
		case err == nil:
			removed = append(removed, e)
			total -= e.bytes
		case errors.Is(err, errLocked):
		case errors.Is(err, fs.ErrNotExist): // another process removed it
			total -= e.bytes
		default:
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(append(errs, atomicfile.RemoveTemps(k.dir, cacheTempAge))...)
}

// pruneCache prunes and says what was removed. A cache that cannot be pruned is no reason to do without what was fetched.
func (c console) pruneCache(k cache) {
	removed, err := k.prune()
	var texts []string
	for _, e := range removed {
		texts = append(texts, fmt.Sprintf("step %d of %s (%s)", e.manifest.Step, e.manifest.Run, bytesText(e.bytes)))
	}
	if len(texts) > 0 {
		c.say("removed from the cache, which keeps %s of what was used last: %s", bytesText(k.most), strings.Join(texts, ", "))
	}
	if err != nil {
		c.say("the cache could not be pruned: %v; remove what you do not need from %s", err, k.dir)
	}
}
