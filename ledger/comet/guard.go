package comet

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/httpserve"
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

// connsOf returns how many connections of clients a process takes, given its limit on descriptors:
// half of it, or all but ownMax. The others are for blocks, state and replicas.
func connsOf(descriptors uint64) int {
	return int(min(max(descriptors/2, descriptors-min(descriptors, ownMax)), connsMax))
}

// streamsOf returns how many of these connections may be open streams.
func streamsOf(conns int) int { return conns / 4 * 3 }

// proxies are the addresses of web servers before the API, whose word for the client's address is
// taken.
type proxies map[netip.Addr]bool

func newProxies(list []string) proxies {
	p := make(proxies, len(list))
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			p[a.Unmap()] = true
		}
	}
	return p
}

// client returns the address of a request's client: what the proxy nearest to it says, if all on
// the way are proxies, and else who sent the request.
func (p proxies) client(r *http.Request) string {
	from := httpserve.Host(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, next := range slices.Backward(forwarded) {
		a, err := netip.ParseAddr(from)
		b, fault := netip.ParseAddr(strings.TrimSpace(next))
		if err != nil || fault != nil || !p[a.Unmap()] {
			break
		}
		from = b.Unmap().String()
	}
	return from
}

// bounded returns the address of a connection by which connections are counted, "" for those of
// proxies and of this machine.
func (p proxies) bounded(remote string) string {
	if a, err := netip.ParseAddr(httpserve.Host(remote)); err == nil && p[a.Unmap()] {
		return ""
	}
	return httpserve.Stranger(remote)
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
