package exact

import "sync/atomic"

// A share is a range of numbered pieces of work assigned to one worker. Each worker takes its own
// pieces first and then the others'. In successive runs the same rows thus go to the same worker,
// whose caches hold them; fetching them from a core that shares no cache is slow.
type share struct {
	next atomic.Int64
	end  int64
	_    [48]byte // keeps two workers' shares on different cache lines
}

// divide splits the numbers below n among the shares.
func divide(shares []share, n int) {
	for w := range shares {
		shares[w].set(n*w/len(shares), n*(w+1)/len(shares))
	}
}

// set sets the share to [first, end).
func (s *share) set(first, end int) {
	s.next.Store(int64(first))
	s.end = int64(end)
}

// take returns a number that no worker has taken, or false if none is left.
func take(shares []share, worker int) (i int, ok bool) {
	for k := range shares {
		s := &shares[(worker+k)%len(shares)]
		if s.next.Load() < s.end {
			if i := s.next.Add(1) - 1; i < s.end {
				return int(i), true
			}
		}
	}
	return 0, false
}
