package comet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtmempool "github.com/cometbft/cometbft/mempool"

	"github.com/entrain-network/entrain/chain/bittensor"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// A replica whose chain.json names a node of Bittensor tells the chain of its newest final blocks:
// see host.Sight. So few blocks are named while no run counts them that an idle chain stays idle,
// and so often that a run that wants to count them can be created at any time.
const (
	sightPause   = 2 * time.Second // between two questions to the node
	sightTimeout = 20 * time.Second
	sightAgain   = 30 * time.Second // after which blocks that are not agreed on are named again
	// sightIdle is between two blocks that a replica names while no run counts them. All do so when
	// such a part of the wall clock's time begins, so that they name the same ones.
	sightIdle = 3 * time.Minute
)

// lookout follows Bittensor for one replica.
type lookout struct {
	app    *app
	pool   cmtmempool.Mempool
	url    string
	signer ledger.Signer
	log    *slog.Logger

	named    uint64 // the newest block that it named
	sent     time.Time
	failing  bool
	standing bool
}

// watch names new blocks until ctx ends.
func (w *lookout) watch(ctx context.Context) {
	t := time.NewTicker(sightPause)
	defer t.Stop()
	for {
		if asked, err := w.look(ctx); ctx.Err() != nil {
			return
		} else if failing := err != nil; asked && failing != w.failing {
			w.failing = failing
			if failing {
				w.log.Warn("this replica names no blocks of Bittensor", "err", err)
			} else {
				w.log.Warn("this replica names Bittensor's blocks again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// look names the blocks that are new, if it is time to ask the node for any.
func (w *lookout) look(ctx context.Context) (asked bool, err error) {
	w.app.hostMu.RLock()
	seated := w.app.host.Seated(w.signer.Key.Public())
	c, _ := w.app.host.Clock(nowMs())
	w.app.hostMu.RUnlock()
	if standing := c.Wanted && c.Standing; standing != w.standing {
		w.standing = standing
		if standing {
			w.log.Warn("the replicas agree on no new block of Bittensor: runs that count its blocks count the chain's own time instead",
				"block", c.Number, "since", time.UnixMilli(int64(c.SinceMs)).UTC())
		} else {
			w.log.Warn("runs count Bittensor's blocks again", "block", c.Number)
		}
	}
	now := time.Now()
	if rests := !c.Wanted && now.Truncate(sightIdle).Equal(w.sent.Truncate(sightIdle)); rests || !seated {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	named := w.named
	if now.Sub(w.sent) >= sightAgain {
		named = 0 // no block may have taken it
	}
	s, err := bittensor.Newest(ctx, w.url, c.Genesis, c.Number, named)
	switch {
	case err != nil:
		return true, err
	case len(s.Hashes) > 0 && s.Genesis != c.Genesis && !c.Standing:
		return true, fmt.Errorf("%s is a node of the chain with genesis %v; this chain follows the one with %v", w.url, s.Genesis, c.Genesis)
	case len(s.Hashes) == 0:
		return true, nil
	}
	return true, w.send(host.Sight{Sight: s}, now)
}

func (w *lookout) send(s host.Sight, now time.Time) error {
	b, err := w.signer.Sign(now, s)
	if err != nil {
		return err
	}
	var refused error
	err = w.pool.CheckTx(b, func(r *abci.ResponseCheckTx) {
		if r.Code != 0 {
			refused = fmt.Errorf("the chain refuses it: %s", r.Log)
		}
	}, cmtmempool.TxInfo{})
	if err = cmp.Or(err, refused); err == nil {
		w.named, w.sent = s.Number, now
	}
	return err
}
