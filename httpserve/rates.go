package httpserve

import (
	"sync"
	"time"
)

// Rates is a token bucket for each client address. Tokens are counted in nanoseconds of the time
// that earns them.
type Rates struct {
	now     func() time.Time
	token   time.Duration // that earns one
	burst   time.Duration // that earns as many as a full bucket has
	mu      sync.Mutex    // guards buckets
	buckets map[string]time.Time
}

// ratesMax bounds the addresses that are remembered. Those that have been quiet long enough to have
// a full bucket are forgotten first; if all are busy, newcomers wait.
const ratesMax = 1 << 14

// NewRates returns buckets that earn a number of tokens a second, and hold burst of them.
func NewRates(perSecond, burst int, now func() time.Time) *Rates {
	token := time.Second / time.Duration(perSecond)
	return &Rates{now: now, token: token, burst: token * time.Duration(burst), buckets: map[string]time.Time{}}
}

// Allow takes one token of addr's bucket, if there is one. A bucket is the moment at which it would
// be full again: it moves on by one token's worth with each that is taken, and may be a burst's
// worth ahead of now.
func (r *Rates) Allow(addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	full, known := r.buckets[addr]
	if !known && len(r.buckets) >= ratesMax {
		for a, full := range r.buckets {
			if !full.After(now) {
				delete(r.buckets, a)
			}
		}
		if len(r.buckets) >= ratesMax {
			return false
		}
	}
	if full.Before(now) {
		full = now
	}
	if full.Add(r.token).Sub(now) > r.burst {
		return false
	}
	r.buckets[addr] = full.Add(r.token)
	return true
}
