package lp2p

import (
	"sync"
	"time"
)

// UploadMin is the least limit of Options.Upload. With it a chunk, the largest answer, arrives well
// before the peer gives up.
const UploadMin = 64 << 10

// uploadPatience is the longest that an answer waits for its turn. A request that would wait longer
// is refused as busy, so the peer asks another.
const uploadPatience = 5 * time.Second

// strangersQueue is the longest queue in which an answer to a stranger, not a member, lines up, so
// that members come first where the upload does not suffice for all.
const strangersQueue = time.Second

// bucket is a token bucket that limits the bytes a second of all answers, in the order they come. A
// nil bucket sets no limit.
type bucket struct {
	mu     sync.Mutex // guards what follows
	rate   float64    // bytes a second
	tokens float64    // bytes that may be sent at once; if negative, bytes that wait
	at     time.Time  // time of tokens
}

// newBucket returns a bucket of rate bytes a second; 0 means no limit. It starts with a second's
// worth.
func newBucket(rate uint64) *bucket {
	if rate == 0 {
		return nil
	}
	return &bucket{rate: float64(rate), tokens: float64(rate)}
}

// take reserves size bytes to be sent after wait. It reserves nothing and fails if that would be
// too long, or if what was reserved before waits longer than queue.
func (b *bucket) take(size int, now time.Time, queue time.Duration) (wait time.Duration, ok bool) {
	if b == nil {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.at = now
	}
	left := min(b.rate, b.tokens+b.rate*max(0, now.Sub(b.at).Seconds()))
	wait = time.Duration(max(0, float64(size)-left) / b.rate * float64(time.Second))
	if wait > uploadPatience || -left/b.rate > queue.Seconds() {
		return 0, false
	}
	b.tokens, b.at = left-float64(size), now
	return wait, true
}
