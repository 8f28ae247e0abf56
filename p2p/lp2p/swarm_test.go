package lp2p

import (
	"bytes"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// Six who want one member's blob at the same time get most of it from each other.
func TestOneSeedIsSpared(t *testing.T) {
	t.Parallel()
	const fetchers = 6
	ps := together(t, fetchers+1, func(o *Options) { o.Upload = 24 << 20 }) // on one machine nobody would need help
	data := blob(16<<20, 11)
	ref := put(t, data, ps[fetchers])
	before := ps[fetchers].served()
	var done sync.WaitGroup
	for i := range fetchers {
		from := []key.Public{ps[fetchers].Self()}
		for j := range fetchers - 1 {
			from = append(from, ps[(i+1+j)%fetchers].Self())
		}
		done.Go(func() {
			got, err := fetch(t, ps[i], p2p.Fetch{Ref: ref, From: from})
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("fetcher %d: %v", i, err)
				return
			}
			put(t, got, ps[i])
		})
	}
	done.Wait()
	served, whole := ps[fetchers].served()-before, int(ref.Chunks())
	t.Logf("the seed served %d chunks of %d that %d fetchers wanted", served, fetchers*whole, fetchers)
	if served > fetchers*whole*2/3 {
		t.Errorf("the seed served %d of %d chunks", served, fetchers*whole)
	}
}
