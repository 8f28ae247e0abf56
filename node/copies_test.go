package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// blind is a bucket of which one reader gets no commitments or no reveals.
type blind struct {
	bucket.Store
	kind bucket.Kind
}

func (s blind) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if name, err := bucket.ParseName(key); err == nil && name.Kind == s.kind {
		return nil, bucket.Object{}, &bucket.Error{Op: "get", Key: key, Kind: bucket.ErrMissing}
	}
	return s.Store.Get(ctx, key, offset, n)
}

// TestCopiesOfWhatIsHidden has a miner hide from one of six, and another one lie: it lacks everything, and serves rubbish as copies or never
// answers. The victim follows without missing a window, and no bucket has more copies than others made results.
func TestCopiesOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	const victim, hider, liar, steps = 0, 2, 3, 6
	for _, kind := range []bucket.Kind{bucket.KindCommitment, bucket.KindReveal} {
		for _, rubbish := range []string{"another's", "cut", "silent"} {
			t.Run(fmt.Sprint(kind, " ", rubbish), func(t *testing.T) {
				w := newBucketWorld(t, steps, 6)
				seal := func(n bucket.Name, body []byte) []byte { return bucket.Seal(worldKey(liar), n, body) }
				serve := func(key string, object []byte) []byte {
					n, err := bucket.ParseName(key)
					switch {
					case err != nil:
					case n.Kind == bucket.KindLack:
						return seal(n, []byte{255, 255})
					case n.Kind == bucket.KindCopy && rubbish == "cut":
						return seal(n, make([]byte, dispute.SignedBytes-1))
					case n.Kind == bucket.KindCopy:
						c := dispute.Commitment{Run: n.Run, Round: n.Window, Member: hider, Payload: wire.Sum("rubbish")}.Sign(worldKey(liar))
						return seal(n, bucket.AppendCopy(nil, c, []byte("rubbish")))
					}
					return object
				}
				for i := range 6 {
					faults := bucketmem.Faults{Delay: 5 * time.Millisecond}
					if i == liar && rubbish == "silent" {
						faults.Silent = true
					} else if i == liar {
						faults.Serve = serve
					}
					w.stores.Break(place(i), faults)
					w.mine(i, func(cfg *Config) {
						open := func(at bucket.Location) (bucket.Store, error) {
							s, err := w.stores.Open(at)
							if i == victim && at.Bucket == place(hider).Bucket {
								s = blind{s, kind}
							}
							return s, err
						}
						cfg.Bucket.Exchange = bucket.NewExchange(cfg.Loop, cfg.Bucket.Exchange.Writer(), bucket.NewReader(open, bucket.Options{}), bucket.ExchangeOptions{Simulated: true})
					})
				}
				w.until(10*time.Minute, w.finished)
				w.agree(0, 1, 2, 4, 5)
				windows := map[coordinator.Round]bool{}
				for _, i := range []int{0, 1, 2, 4, 5} {
					if got := w.results(i); got != steps {
						t.Errorf("miner %d: %d of %d results accepted", i, got, steps)
					}
					copies := map[coordinator.Round]int{}
					for _, k := range w.stores.Keys(place(i)) {
						if n, err := bucket.ParseName(k); err == nil && n.Kind == bucket.KindCopy {
							copies[n.Window]++
						}
					}
					for window, n := range copies {
						if n > 5 || rubbish == "silent" && n > 1 {
							t.Errorf("miner %d has %d copies of window %d", i, n, window)
						}
					}
					for window := range copies {
						windows[window] = true
					}
				}
				if len(windows) < steps-1 { // in the first, two have the same result
					t.Errorf("there are copies of the windows %v", windows)
				}
			})
		}
	}
}
