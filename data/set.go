package data

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Options configure how a data set is used.
type Options struct {
	SequenceTokens uint32    // input tokens per sequence; Read returns one more
	Seed           wire.Hash // of the order of the sequences; the same for all members of a run
	Verify         bool      // read and verify every shard now, not on first use
	// the number of sequence 0: in a continued run, the first sequence not yet trained on
	First      uint64
	CacheBytes int // of chunks kept in memory; 0 means 32 MiB

	component bool // of a mix
}

// cacheBytes is the default size of the cache: a small data set fits and is read from disk once.
const cacheBytes = 32 << 20

// A Set is an open data set. As an engine.Source it yields the training part, in a new order in
// every pass. It holds no open files, and may be used concurrently.
type Set struct {
	dir    string
	remote *remote // nil if the set is in dir
	mixed  *mixed  // the component sets of a mix, which has no shards; else nil
	ahead  ahead

	manifest Manifest
	train    part
	heldOut  HeldOut
	seed     wire.Hash
	first    uint64
	// the pass used last; computing another order is cheap, but not for each sequence
	last atomic.Pointer[pass]
}

// pass is the order of the sequences in one pass.
type pass struct {
	number uint64
	order  *order.Permutation
}

// Open opens the data set in dir, whose manifest must have the hash want. It verifies a shard
// before its first token is used, or at once if o.Verify is set. A faulty shard is reported as a
// *CorruptError.
func Open(ctx context.Context, dir string, want wire.Hash, o Options) (*Set, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if got := m.Hash(); got != want {
		return nil, fmt.Errorf("data set in %q has hash %s, want %s: it is a different data set, or was prepared with other options", dir, got, want)
	}
	if m.mix != nil && o.component {
		return nil, errNested
	}
	if m.mix != nil {
		mix, err := ParseMix(m.mix)
		if err != nil {
			return nil, err
		}
		return openMix(mix, o, func(c Component, o Options) (*Set, error) { return Open(ctx, filepath.Join(dir, c.Set), c.Manifest, o) })
	}
	s, err := newSet(dir, m, o, nil)
	if err != nil {
		return nil, err
	}
	if o.Verify {
		if err := s.Verify(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newSet returns the set of a manifest, whose shards are in dir or at a remote place.
func newSet(dir string, m Manifest, o Options, r *remote) (*Set, error) {
	if o.SequenceTokens == 0 || o.SequenceTokens > sequenceMax {
		return nil, fmt.Errorf("sequence length %d is not in 1..%d", o.SequenceTokens, sequenceMax)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = cacheBytes
	}
	c := newCache(max(1, o.CacheBytes/merkle.ChunkBytes))
	train, heldOut := newShards(dir, m, r)
	s := &Set{
		dir:      dir,
		remote:   r,
		manifest: m,
		train:    part{m, train, m.Tokens, uint64(o.SequenceTokens), c},
		heldOut:  HeldOut{part: part{m, heldOut, m.HeldOutTokens, uint64(o.SequenceTokens), c}},
		seed:     o.Seed,
		first:    o.First,
	}
	if s.Len() == 0 {
		return nil, fmt.Errorf("data set %q has %d tokens to train on, fewer than one sequence of %d", m.Name, m.Tokens, o.SequenceTokens+1)
	}
	return s, nil
}

// Manifest returns the manifest of the set. Its slices must not be changed.
func (s *Set) Manifest() Manifest { return s.manifest }

// Len returns the number of training sequences in a pass. Sequence k covers the tokens from
// k*SequenceTokens on; up to SequenceTokens tokens at the end of the data belong to no sequence.
//
// For a mix, it is the number of sequences before the first of its sets starts over.
func (s *Set) Len() uint64 {
	if s.mixed != nil {
		return s.mixed.len((*Set).Len)
	}
	return s.train.len()
}

// Read sets dst to the i-th sequence of training. i is unbounded: pass i/Len() yields every
// sequence once, in the order of order.NewPermutation(seed, pass, Len()), beginning with
// Options.First. Errors are a *CorruptError, a failed read, or a token outside the vocabulary.
func (s *Set) Read(i uint64, dst []uint32) error {
	i += s.first
	if s.mixed != nil {
		set, k := s.mixed.mix.pick(s.seed, i)
		return s.mixed.sets[set].Read(k, dst)
	}
	if s.ahead.sequences > 0 {
		s.askAfter(i)
	}
	return s.train.read(s.at(i), dst)
}

// at returns the number in the text of the i-th sequence of training.
func (s *Set) at(i uint64) uint64 {
	n := s.Len()
	p := s.last.Load()
	if p == nil || p.number != i/n {
		p = &pass{i / n, order.NewPermutation(s.seed, i/n, n)}
		s.last.Store(p)
	}
	return p.order.At(i % n)
}

// Close stops the background work of a set on other machines. It does nothing for a set in a
// directory.
func (s *Set) Close() {
	if s.mixed != nil {
		for _, set := range s.mixed.sets {
			set.Close()
		}
	}
	if s.remote != nil {
		s.remote.close()
	}
}

// HeldOut returns the part that is never trained on, in its own order.
func (s *Set) HeldOut() *HeldOut { return &s.heldOut }

// Verify compares every shard with the manifest and returns the first error, a *CorruptError if the
// data is at fault.
func (s *Set) Verify(ctx context.Context) error {
	if s.mixed != nil {
		for _, set := range s.mixed.sets {
			if err := set.Verify(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range []part{s.train, s.heldOut.part} {
		for _, shard := range p.shards {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("verify data: %w", err)
			}
			if _, err := shard.verify(); err != nil {
				return err
			}
		}
	}
	return nil
}

// HeldOut is the held-out part of a Set, which yields its sequences in text order. For a
// mix it takes them from its sets in turn, in the proportions of the weights.
type HeldOut struct {
	part  part
	mixed *mixed
}

// Len returns the number of held-out sequences; it may be 0.
func (h *HeldOut) Len() uint64 {
	if h.mixed != nil {
		return h.mixed.len(func(s *Set) uint64 { return s.heldOut.Len() })
	}
	return h.part.len()
}

// Read sets dst to held-out sequence i. It is an error if i is not below Len.
func (h *HeldOut) Read(i uint64, dst []uint32) error {
	if i >= h.Len() {
		return fmt.Errorf("held-out sequence %d is beyond the last of %d", i, h.Len())
	}
	if h.mixed != nil {
		total := h.mixed.mix.total()
		set, nth := h.mixed.mix.at(i % total)
		return h.mixed.sets[set].heldOut.Read(i/total*uint64(h.mixed.mix.Components[set].Weight)+nth, dst)
	}
	return h.part.read(i, dst)
}

// part is a run of shards seen as one text.
type part struct {
	manifest Manifest
	shards   []*shard
	tokens   uint64
	seq      uint64 // tokens a sequence gives the model
	cache    *cache
}

// len returns the number of sequences: each starts seq tokens after the previous one and has seq+1
// tokens.
func (p part) len() uint64 {
	if p.tokens == 0 {
		return 0
	}
	return (p.tokens - 1) / p.seq
}

// read sets dst to sequence k, which may span shards.
func (p part) read(k uint64, dst []uint32) error {
	if uint64(len(dst)) != p.seq+1 {
		panic(fmt.Sprintf("data: sequence of %d tokens read into %d", p.seq+1, len(dst)))
	}
	for at := k * p.seq; len(dst) > 0; {
		n, err := p.readFrom(at, dst)
		if err != nil {
			return err
		}
		at += uint64(n)
		dst = dst[n:]
	}
	return nil
}

// readFrom fills the front of dst with the tokens from token at to the end of its chunk, and
// returns the number read.
func (p part) readFrom(at uint64, dst []uint32) (int, error) {
	size := uint64(p.manifest.TokenBytes)
	s := p.shards[at/p.manifest.ShardTokens]
	first := at % p.manifest.ShardTokens * size // the byte in the shard
	b, err := p.cache.load(chunk{s, first / merkle.ChunkBytes})
	if err != nil {
		return 0, err
	}
	b = b[first%merkle.ChunkBytes:]
	n := min(len(dst), len(b)/int(size))
	if i := p.manifest.decode(dst[:n], b); i >= 0 {
		return 0, &CorruptError{s.path, fmt.Sprintf("token %d is %d, the vocabulary has %d", first/size+uint64(i), dst[i]&^Masked, p.manifest.Vocab)}
	}
	return n, nil
}
