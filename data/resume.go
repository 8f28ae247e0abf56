package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/wire"
)

// resumeFile records the progress of an interrupted Prepare, in the directory of its set. It is
// deleted when the set is complete.
//
// It is a line of JSON, progressJSON, then the tokens of the two shards that are not full yet, then
// the SHA-256 of all this. It is not part of the set. Its finished shards are verified, and a hash
// binds its position to the options and to the names, sizes and modification times of the sources.
// If anything differs, the work starts over.
const resumeFile = ".entrain-prepare"

// resumeShards is the number of finished shards after which the file is rewritten, and so bounds
// the work lost when the process is killed.
const resumeShards = 4

// progressJSON is the first line of the file.
type progressJSON struct {
	Plan    wire.Hash       `json:"plan"` // of sources and options
	Source  int             `json:"source"`
	At      source.Position `json:"at"`
	Train   partJSON        `json:"train"`
	HeldOut partJSON        `json:"held_out"`
}

type partJSON struct {
	Shards []Shard `json:"shards"` // all full
	Open   int     `json:"open"`   // bytes of the next one
	Learnt uint64  `json:"learnt,omitempty"`
}

// planOf identifies the work: a resumed Prepare must have the same plan as the interrupted one.
func planOf(m Manifest, sources []source.File) wire.Hash {
	b := m.Bytes() // without shards
	for _, s := range sources {
		b = s.AppendIdentity(b)
	}
	return wire.SHA256(b)
}

// save records the progress of w: everything before position at of source i. It waits for shards
// that are being written.
func (w *shardWriter) save(ctx context.Context, plan wire.Hash, i int, at source.Position) error {
	w.pending.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	p := progressJSON{plan, i, at, w.train.json(), w.heldOut.json()}
	w.mu.Unlock()
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	for _, part := range []*partWriter{&w.train, &w.heldOut} {
		if part.open != nil {
			b = append(b, *part.open...)
		}
	}
	sum := wire.SHA256(b)
	w.saved = len(w.train.shards) + len(w.heldOut.shards)
	return atomicfile.WriteBytes(filepath.Join(w.dir, resumeFile), 0o644, append(b, sum[:]...))
}

func (p *partWriter) json() partJSON {
	j := partJSON{Shards: p.shards, Learnt: p.learnt}
	if p.open != nil {
		j.Open = len(*p.open)
	}
	return j
}

// resume restores an interrupted Prepare with the same plan, if its progress file is valid and its
// shards are present. It returns the source and the position to continue from.
func (w *shardWriter) resume(ctx context.Context, plan wire.Hash, sources []source.File) (i int, at source.Position, err error) {
	b, err := os.ReadFile(filepath.Join(w.dir, resumeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, at, nil
	}
	if err != nil {
		return 0, at, err
	}
	p, tails, ok := parseResume(b)
	if !ok || p.Plan != plan || p.Source > len(sources) || p.Train.Open+p.HeldOut.Open != len(tails) {
		return 0, at, nil
	}
	if w.whole(ctx, append(append([]Shard{}, p.Train.Shards...), p.HeldOut.Shards...)) {
		w.train.restore(p.Train, tails[:p.Train.Open], w.manifest.TokenBytes)
		w.heldOut.restore(p.HeldOut, tails[p.Train.Open:], w.manifest.TokenBytes)
		n := len(p.Train.Shards) + len(p.HeldOut.Shards)
		w.progress.Shards, w.progress.Kept, w.saved = n, n, n
		i, at = p.Source, p.At
	}
	return i, at, context.Cause(ctx)
}

// parseResume parses the file; it returns false if the file is invalid.
func parseResume(b []byte) (p progressJSON, tails []byte, ok bool) {
	n := len(b) - len(wire.Hash{})
	if n < 0 || wire.Hash(b[n:]) != wire.SHA256(b[:n]) {
		return p, nil, false
	}
	line, tails, ok := bytes.Cut(b[:n], []byte("\n"))
	if !ok || json.Unmarshal(line, &p) != nil || p.Source < 0 || p.Train.Open < 0 || p.HeldOut.Open < 0 {
		return p, nil, false
	}
	return p, tails, true
}

// whole reports whether all shards are on disk and correct.
func (w *shardWriter) whole(ctx context.Context, shards []Shard) bool {
	var faults, next atomic.Int64
	var checkers sync.WaitGroup
	for range w.n {
		checkers.Go(func() {
			for ctx.Err() == nil && faults.Load() == 0 {
				i := int(next.Add(1)) - 1
				if i >= len(shards) {
					return
				}
				if _, err := (&shard{Shard: shards[i], path: filepath.Join(w.dir, shards[i].File)}).verify(); err != nil {
					faults.Add(1)
				}
			}
		})
	}
	checkers.Wait()
	return faults.Load() == 0 && ctx.Err() == nil
}

// restore sets a part to its saved state.
func (p *partWriter) restore(j partJSON, tail []byte, tokenBytes int) {
	p.shards, p.learnt = j.Shards, j.Learnt
	for _, s := range j.Shards {
		p.tokens += s.Tokens
	}
	if len(tail) > 0 {
		open := bytes.Clone(tail)
		p.open = &open
		p.tokens += uint64(len(tail) / tokenBytes)
	}
}
