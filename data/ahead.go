package data

import (
	"math"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/merkle"
)

// windowsMax is the number of stretches of sequences that are remembered; a member's share of a
// round has several.
const windowsMax = 64

// ahead tracks which sequences will be read, so that their chunks can be prefetched. The zero value
// prefetches nothing.
type ahead struct {
	sequences uint64 // how far to look

	mu      sync.Mutex // guards windows
	windows []window   // the newest last
}

// window is a stretch of sequences that are read one after the other.
type window struct {
	from, to uint64
	asked    uint64 // lower numbers have been requested
}

// expect adds a stretch.
func (a *ahead) expect(from, to uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.windows = append(a.windows, window{from, to, from})
	if n := len(a.windows) - windowsMax; n > 0 {
		a.windows = slices.Delete(a.windows, 0, n)
	}
}

// next returns which sequences to request before sequence i is read: the following ones in its
// stretch, up to the look-ahead, that have not been requested. A stretch without a stated end is
// unbounded.
func (a *ahead) next(i uint64) (from, to uint64) {
	a.mu.Lock()
	for k := len(a.windows) - 1; k >= 0; k-- {
		if w := &a.windows[k]; w.from <= i && i < w.to {
			from, to = max(w.asked, i+1), min(i+1+a.sequences, w.to)
			w.asked = max(w.asked, to)
			a.mu.Unlock()
			return from, to
		}
	}
	a.mu.Unlock()
	a.expect(i, math.MaxUint64)
	return a.next(i)
}

// Ahead announces that n sequences starting at number first will be read soon, and no others after
// them. A set on other machines prefetches only these. A set in a directory ignores the call.
func (s *Set) Ahead(first, n uint64) {
	first += s.first
	if s.mixed != nil {
		s.mixed.ahead(s.seed, first, n)
		return
	}
	if s.ahead.sequences == 0 || n == 0 {
		return
	}
	s.ahead.expect(first, first+n)
	s.train.ask(s.at(first))
	s.askAfter(first)
}

// askAfter requests the sequences after i.
func (s *Set) askAfter(i uint64) {
	for from, to := s.ahead.next(i); from < to; from++ {
		s.train.ask(s.at(from))
	}
}

// ask requests the chunks of sequence k before they are needed.
func (p part) ask(k uint64) {
	size := uint64(p.manifest.TokenBytes)
	for at := k * p.seq; at <= (k+1)*p.seq; {
		s := p.shards[at/p.manifest.ShardTokens]
		first := at % p.manifest.ShardTokens * size
		if key := (chunk{s, first / merkle.ChunkBytes}); !p.cache.has(key) {
			s.remote.want(key)
		}
		_, to := merkle.Chunk(s.Bytes, first/merkle.ChunkBytes)
		at += (to - first) / size
	}
}
