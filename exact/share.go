package exact

import "sync/atomic"

// A share is one worker's part of the numbers of pieces of work. Each worker takes its own first,
// then what is left of the others'. In one run after another the same rows so meet the same worker,
// whose caches have them: from cores that share no cache they would come slowly.
type share struct {
	next atomic.Int64
	end  int64
	_    [48]byte // keeps two workers' shares on different cache lines
}

// divide gives each worker its share of the numbers below n.
func divide(shares []share, n int) {
	for w := range shares {
		shares[w].set(n*w/len(shares), n*(w+1)/len(shares))
	}
}

// set makes the share the numbers from first up to end.
func (s *share) set(first, end int) {
	s.next.Store(int64(first))
	s.end = int64(end)
}

// take returns a number that nobody has taken yet, for a worker; false if there is none.
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
