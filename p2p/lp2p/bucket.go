package lp2p

import (
	"sync"
	"time"
)

// UploadMin is the least limit of Options.Upload: a chunk, the largest answer, still
// arrives well before the peer that asked gives up.
const UploadMin = 64 << 10

// uploadPatience bounds how long an answer waits for its turn. What would wait longer
// is refused as busy, so that the peer asks another meanwhile.
const uploadPatience = 5 * time.Second

// bucket shares out the bytes of a second among answers, in the order they come. Nil
// sets no limit.
type bucket struct {
	mu     sync.Mutex // guards what follows
	rate   float64    // bytes a second
	tokens float64    // bytes that may be sent at once; below 0: minus those that wait
	at     time.Time  // when tokens was right
}

// newBucket returns a bucket of rate bytes a second; 0 is no limit. It begins full, with a
// second's worth.
func newBucket(rate uint64) *bucket {
	if rate == 0 {
		return nil
	}
	return &bucket{rate: float64(rate), tokens: float64(rate)}
}

// take reserves size bytes, to be sent after wait. If that would be too long, nothing is
// reserved.
func (b *bucket) take(size int, now time.Time) (wait time.Duration, ok bool) {
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
	if wait > uploadPatience {
		return 0, false
	}
	b.tokens, b.at = left-float64(size), now
	return wait, true
}
