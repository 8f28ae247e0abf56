package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/wire"
)

// resumeFile has how far a Prepare came that was interrupted, in the directory of its set. It is deleted when the set is complete.
//
// It is a line of JSON, progressJSON, then the tokens of the two shards that are not full yet, then the SHA-256 of all this. It is no data of
// the set: what it says about finished shards is checked, and what it says about where to go on is bound to the sources' names, sizes and times
// of change and to the options by a hash; if anything is different, the work begins anew.
const resumeFile = ".entrain-prepare"

// resumeShards is after how many finished shards the file is written again: what is lost when the process is killed.
const resumeShards = 4

// progressJSON is the first line of the file.
type progressJSON struct {
	Plan    wire.Hash `json:"plan"` // of sources and options
	Source  int       `json:"source"`
	At      position  `json:"at"`
	Train   partJSON  `json:"train"`
	HeldOut partJSON  `json:"held_out"`
}

type partJSON struct {
	Shards []Shard `json:"shards"` // all full
	Open   int     `json:"open"`   // bytes of the next one
}

// planOf is what a resumed Prepare must have in common with the one that was interrupted.
func planOf(m Manifest, sources []sourceFile) wire.Hash {
	b := m.Bytes() // without shards
	for _, s := range sources {
		b = fmt.Appendf(b, "%q %d %d %d %d %q\n", s.path, s.format, s.size, s.modTime, s.heldOut, s.field)
	}
	return wire.SHA256(b)
}

// save writes how far w is: everything before position at of source i. Shards that are being written are waited for.
func (w *shardWriter) save(ctx context.Context, plan wire.Hash, i int, at position) error {
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
	j := partJSON{Shards: p.shards}
	if p.open != nil {
		j.Open = len(*p.open)
	}
	return j
}

// resume continues where an interrupted Prepare by the same plan was, if it left word and its shards are there. It returns the source and the
// position to go on from.
func (w *shardWriter) resume(ctx context.Context, plan wire.Hash, sources []sourceFile) (i int, at position, err error) {
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

// parseResume takes the file apart; false if it is not what was written.
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

// whole tells whether all shards are on disk as they should be.
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

// restore sets a part to what was saved.
func (p *partWriter) restore(j partJSON, tail []byte, tokenBytes int) {
	p.shards = j.Shards
	for _, s := range j.Shards {
		p.tokens += s.Tokens
	}
	if len(tail) > 0 {
		open := bytes.Clone(tail)
		p.open = &open
		p.tokens += uint64(len(tail) / tokenBytes)
	}
}
