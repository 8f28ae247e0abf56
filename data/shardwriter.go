package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// shardWriter cuts tokens into shards. One goroutine supplies tokens; workers hash the full shards
// and write the ones that are not on disk.
type shardWriter struct {
	dir       string
	manifest  Manifest  // without shards
	old       *Manifest // the manifest that dir must match, or nil
	tokenizer tokenizer.Tokenizer
	train     partWriter
	heldOut   partWriter
	total     uint64 // bytes of the sources
	n         int    // of workers
	saved     int    // shards that resumeFile knows of

	jobs    chan job
	workers sync.WaitGroup
	pending sync.WaitGroup // unfinished jobs
	buffers sync.Pool      // of *[]byte, for shards

	mu       sync.Mutex // guards the shards of the parts, and what follows
	progress Progress
	report   func(Progress)
}

// partWriter is one of the parts of the set.
type partWriter struct {
	prefix string
	old    []Shard // of the old manifest's part
	tokens uint64
	learnt uint64  // of them; counted if some are masked
	open   *[]byte // the bytes of the shard being filled, or nil
	shards []Shard
	leaves map[int][]wire.Hash // of the shards that were hashed
}

// job is a full shard.
type job struct {
	part  *partWriter
	index int
	bytes *[]byte
}

func newShardWriter(dir string, m Manifest, old *Manifest, o PrepareOptions) *shardWriter {
	w := &shardWriter{dir: dir, manifest: m, old: old, tokenizer: o.Tokenizer, report: o.Progress, n: o.Workers}
	w.train.prefix, w.heldOut.prefix = "train", "heldout"
	w.train.leaves, w.heldOut.leaves = make(map[int][]wire.Hash), make(map[int][]wire.Hash)
	if old != nil {
		w.train.old, w.heldOut.old = old.Shards, old.HeldOut
	}
	w.buffers.New = func() any { return new([]byte) }
	w.jobs = make(chan job)
	return w
}

// start starts the workers, which end with finish. The first failure ends ctx by fail.
func (w *shardWriter) start(ctx context.Context, fail context.CancelCauseFunc) {
	for range w.n {
		w.workers.Go(func() { w.work(ctx, fail) })
	}
}

// write adds tokens of a source to a part.
func (w *shardWriter) write(ctx context.Context, p *partWriter, tokens []uint32, source string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	size := uint64(w.manifest.TokenBytes)
	for len(tokens) > 0 {
		if p.open == nil {
			p.open = w.buffers.Get().(*[]byte)
			*p.open = (*p.open)[:0]
		}
		room := w.manifest.ShardTokens - uint64(len(*p.open))/size
		n := min(uint64(len(tokens)), room)
		b, err := w.encode(*p.open, tokens[:n], p.tokens)
		if err != nil {
			return fmt.Errorf("%q: %w", source, err)
		}
		*p.open = b
		p.tokens += n
		if w.manifest.Masked {
			for _, token := range tokens[:n] {
				p.learnt += uint64(^token >> 31)
			}
		}
		tokens = tokens[n:]
		if n == room {
			if err := w.flush(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// encode appends tokens to a shard's bytes; the first is token at of its part.
func (w *shardWriter) encode(dst []byte, tokens []uint32, at uint64) ([]byte, error) {
	for i, token := range tokens {
		id, mask := token&^Masked, token&Masked
		if !w.manifest.Masked {
			id, mask = token, 0
		}
		if id >= w.manifest.Vocab {
			return nil, fmt.Errorf("token %d is %d, but tokenizer %q has %d tokens", at+uint64(i), id, w.tokenizer.Name(), w.manifest.Vocab)
		}
		if w.manifest.TokenBytes == 2 {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(id|mask>>16))
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, token)
		}
	}
	return dst, nil
}

// flush hands the shard being filled to a worker.
func (w *shardWriter) flush(ctx context.Context, p *partWriter) error {
	if p.open == nil {
		return nil
	}
	w.mu.Lock()
	j := job{p, len(p.shards), p.open}
	p.shards = append(p.shards, Shard{})
	w.progress.Tokens = w.train.tokens + w.heldOut.tokens
	w.mu.Unlock()
	if j.index >= shardsMax {
		return fmt.Errorf("more than %d shards: make them larger than %d tokens", shardsMax, w.manifest.ShardTokens)
	}
	p.open = nil
	w.pending.Add(1)
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		w.pending.Done()
		return context.Cause(ctx)
	}
}

// work finishes shards until there are no more.
func (w *shardWriter) work(ctx context.Context, fail context.CancelCauseFunc) {
	for j := range w.jobs {
		if ctx.Err() == nil {
			if err := w.store(j); err != nil {
				fail(err)
			}
			w.buffers.Put(j.bytes)
		}
		w.pending.Done()
	}
}

// store hashes a shard, and writes it unless it is on disk.
func (w *shardWriter) store(j job) error {
	b := *j.bytes
	leaves := merkle.BlobLeaves(b)
	s := Shard{
		File:   fmt.Sprintf("%s-%05d.bin", j.part.prefix, j.index),
		Tokens: uint64(len(b) / w.manifest.TokenBytes),
		Bytes:  uint64(len(b)),
		Root:   merkle.Root(leaves),
	}
	if w.old != nil && (j.index >= len(j.part.old) || j.part.old[j.index] != s) {
		return errOther(w.dir)
	}
	path := filepath.Join(w.dir, s.File)
	_, err := (&shard{Shard: s, path: path}).verify()
	kept := err == nil
	if !kept {
		if err := atomicfile.WriteBytes(path, 0o644, b); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.part.shards[j.index] = s
	j.part.leaves[j.index] = leaves
	w.progress.Shards++
	if kept {
		w.progress.Kept++
	}
	w.tell()
	return nil
}

// read records that the first n bytes of the sources are processed.
func (w *shardWriter) read(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress.Bytes = n
	w.progress.Tokens = w.train.tokens + w.heldOut.tokens
	w.progress.Learnt = w.train.learnt
	w.tell()
}

// tell reports the progress; mu is held, so that reports come in order.
func (w *shardWriter) tell() {
	if w.report != nil {
		p := w.progress
		p.BytesTotal = w.total
		w.report(p)
	}
}

// finish completes the last shards, waits for the workers and returns the manifest. It is called
// once, with the error that ended the writing, if any.
func (w *shardWriter) finish(ctx context.Context, err error) (Manifest, error) {
	if err == nil {
		w.read(w.total)
	}
	for _, p := range []*partWriter{&w.train, &w.heldOut} {
		if err == nil {
			err = w.flush(ctx, p)
		}
	}
	close(w.jobs)
	w.workers.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Manifest{}, err
	}
	m := w.manifest
	m.Tokens, m.HeldOutTokens = w.train.tokens, w.heldOut.tokens
	m.Shards, m.HeldOut = w.train.shards, w.heldOut.shards
	return m, nil
}

// writeLeaves writes the file of leaves. It reads from disk the leaves of shards that an
// interrupted Prepare finished.
func (w *shardWriter) writeLeaves() error {
	var b []byte
	for _, p := range []*partWriter{&w.train, &w.heldOut} {
		for i, s := range p.shards {
			leaves := p.leaves[i]
			if leaves == nil {
				var err error
				if leaves, err = (&shard{Shard: s, path: filepath.Join(w.dir, s.File)}).verify(); err != nil {
					return err
				}
			}
			for _, leaf := range leaves {
				b = append(b, leaf[:]...)
			}
		}
	}
	return atomicfile.WriteBytes(filepath.Join(w.dir, leavesFile), 0o644, b)
}
