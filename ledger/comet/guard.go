package comet

import (
	"log"
	"log/slog"
	"net"
	"sync"
	"time"
)

// semaphore bounds how many hold it at once: its capacity.
type semaphore chan struct{}

// take takes a place, if one is free.
func (s semaphore) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) give() { <-s }

// limitListener closes connections beyond its capacity as they come.
type limitListener struct {
	net.Listener
	free semaphore
}

func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.free.take() {
			return &limitConn{Conn: c, give: sync.OnceFunc(l.free.give)}, nil
		}
		c.Close()
	}
}

type limitConn struct {
	net.Conn
	give func()
}

func (c *limitConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}

// rates is a token bucket for each client address. Tokens are counted in nanoseconds of the time
// that earns them.
type rates struct {
	now     func() time.Time
	mu      sync.Mutex // guards buckets
	buckets map[string]time.Time
}

// ratesMax bounds the addresses that are remembered. Those that have been quiet long enough to have
// a full bucket are forgotten first; if all are busy, newcomers wait.
const ratesMax = 1 << 14

func newRates(now func() time.Time) *rates {
	return &rates{now: now, buckets: map[string]time.Time{}}
}

// allow takes one token of addr's bucket, if there is one. A bucket is the moment at which it would
// be full again: it moves on by one token's worth with each that is taken, and may be a burst's
// worth ahead of now.
func (r *rates) allow(addr string) bool {
	const token = time.Second / txsPerSecond
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
	if full.Add(token).Sub(now) > txsBurst*token {
		return false
	}
	r.buckets[addr] = full.Add(token)
	return true
}

// slogLogger makes net/http's complaints, mostly about clients, debug messages.
func slogLogger(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
