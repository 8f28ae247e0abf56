package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/chain/bittensor"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// SubnetBlock is how often Bittensor makes a block; a wait looks for new ones several times as
// often.
const SubnetBlock = 12 * time.Second

// Finney is a node of Bittensor's main chain.
const Finney = "wss://entrypoint-finney.opentensor.ai"

// OpenSubnet asks a node for a subnet, which must exist.
func OpenSubnet(ctx context.Context, endpoint string, netuid uint16) (bittensor.Subnet, error) {
	client, err := bittensor.Dial(ctx, endpoint)
	if err != nil {
		return bittensor.Subnet{}, err
	}
	s := bittensor.Subnet{Client: client, NetUID: netuid, Poll: SubnetBlock / 4}
	return s, s.Exists(ctx)
}

// SubnetScores returns the scores of a run's members by the numbers of their hotkeys.
func SubnetScores(neurons []bittensor.Neuron, s coordinator.State) map[uint16]float64 {
	return bittensor.Scores(neurons, func(pub key.Public) float64 {
		if i, ok := s.Find(pub); ok && s.Member(i).Scored {
			return float64(s.Member(i).Score) / score.One
		}
		return 0
	})
}

// A Weigher sets a subnet's weights by a run's scores. It has a connection of its own each time,
// because periods can be hours apart.
type Weigher struct {
	// Tell is told what was set, and what failed.
	Tell func(text string)

	endpoint string
	netuid   uint16
	hotkey   bittensor.Key
	settled  chan uint32 // periods
	hidden   *bittensor.Hidden
	locked   []lockedRow // in the order in which they are due
}

// A lockedRow is weights that the chain shows by itself when they are due. It says nothing if it
// drops them.
type lockedRow struct {
	row map[uint16]uint16
	due time.Time
}

// newWeigher finds the hotkey and the node as btcli does, in the environment, and checks that the
// hotkey is registered on the subnet.
func newWeigher(ctx context.Context, getenv func(string) string, netuid uint16) (*Weigher, error) {
	wallets := getenv("BT_WALLET_PATH")
	if wallets == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("say where the wallets are with BT_WALLET_PATH: %w", err)
		}
		wallets = filepath.Join(home, ".bittensor", "wallets")
	}
	file := filepath.Join(wallets, cmp.Or(getenv("BT_WALLET_NAME"), "default"), "hotkeys", cmp.Or(getenv("BT_WALLET_HOTKEY"), "default"))
	w := &Weigher{endpoint: cmp.Or(getenv("BT_SUBTENSOR_CHAIN_ENDPOINT"), Finney), netuid: netuid, settled: make(chan uint32, 1)}
	var err error
	if w.hotkey, err = bittensor.ReadKey(file); err != nil {
		return nil, fmt.Errorf("hotkey: %w; name another with BT_WALLET_NAME and BT_WALLET_HOTKEY", err)
	}
	s, err := OpenSubnet(ctx, w.endpoint, netuid)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s, which BT_SUBTENSOR_CHAIN_ENDPOINT can replace: %w", w.endpoint, err)
	}
	switch _, registered, err := s.UID(ctx, w.hotkey.Account()); {
	case err != nil:
		return nil, err
	case !registered:
		return nil, fmt.Errorf("%s is not registered on subnet %d; entrain bittensor commit --coldkey FILE does it", w.hotkey.Account(), netuid)
	}
	return w, s.CanSetWeights(ctx)
}

// Settled says that a period is settled. Only the newest counts. It must not be called after Close.
func (w *Weigher) Settled(period uint32) {
	select {
	case <-w.settled:
	default:
	}
	w.settled <- period
}

// Close has Run return once the weights of the newest period are set.
func (w *Weigher) Close() { close(w.settled) }

// showEvery is how often to see whether weights that a subnet wants hidden at first can be shown:
// epochs have 360 blocks.
const showEvery = 20 * SubnetBlock

// Run sets the weights after each period of a run, until Close or until ctx ends. It tells of
// a failure and tries again after the next period. Where weights are hidden at first, the next ones
// wait until these are shown.
func (w *Weigher) Run(ctx context.Context, l ledger.Reader, run string) {
	w.follow(ctx, showEvery, func() (string, bool, error) { return w.set(ctx, l, run) }, func() (bool, error) { return w.show(ctx) })
}

// follow calls set after each period, and while it has hidden weights, show every so often instead.
func (w *Weigher) follow(ctx context.Context, every time.Duration, set func() (did string, hidden bool, err error), show func() (closed bool, err error)) {
	var period, shown uint32 // the newest, and the one whose weights are hidden
	settled, owed, hidden := w.settled, false, false
	for settled != nil || owed || hidden {
		var later <-chan time.Time
		if hidden {
			later = time.After(every)
		}
		select {
		case <-ctx.Done():
			return
		case next, more := <-settled:
			if !more {
				settled = nil
				if hidden {
					w.Tell(fmt.Sprintf("period %d: stays until its weights on subnet %d can be shown; without that they do not count", shown, w.netuid))
				}
				continue
			}
			period, owed = next, true
		case <-later:
			closed, err := show()
			hidden = !closed
			switch {
			case closed && err != nil && ctx.Err() == nil:
				w.Tell(fmt.Sprintf("period %d: the weights on subnet %d are not shown in time, those set before stay: %v", shown, w.netuid, err))
			case closed && err == nil:
				w.Tell(fmt.Sprintf("period %d: the weights on subnet %d are shown and count", shown, w.netuid))
			}
		}
		if !owed || hidden {
			continue
		}
		owed = false
		var did string
		var err error
		did, hidden, err = set()
		shown = period
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.Tell(fmt.Sprintf("period %d: the weights on subnet %d are not set: %v; the next period tries again", period, w.netuid, err))
		default:
			w.Tell(fmt.Sprintf("period %d: %s", period, did))
		}
	}
}

// WeightsSet says what SetWeights did for n hotkeys.
func WeightsSet(n int, netuid uint16, in time.Duration) string {
	if in == 0 {
		return fmt.Sprintf("set the weights of %d hotkeys on subnet %d", n, netuid)
	}
	about := strings.TrimSuffix(in.Round(time.Minute).String(), "0s")
	return fmt.Sprintf("encrypted the weights of %d hotkeys on subnet %d; they count in about %s, when the chain shows them by itself", n, netuid, about)
}

func (w *Weigher) set(ctx context.Context, l ledger.Reader, run string) (did string, hidden bool, err error) {
	s, err := OpenSubnet(ctx, w.endpoint, w.netuid)
	if err != nil {
		return "", false, err
	}
	neurons, err := s.Neurons(ctx)
	if err != nil {
		return "", false, err
	}
	now, err := onchain.GetSnapshot(ctx, l, run)
	if err != nil {
		return "", false, err
	}
	scores := SubnetScores(neurons, now.State)
	if err := w.review(ctx, s); err != nil {
		return "", false, err
	}
	in, err := s.SetWeights(ctx, w.hotkey, scores)
	if err == nil && in > 0 {
		late := in / 8 // blocks may come less often
		w.locked = append(w.locked, lockedRow{bittensor.Row(scores), time.Now().Add(in + late)})
	}
	if !errors.Is(err, bittensor.ErrCommitReveal) {
		return WeightsSet(len(scores), w.netuid, in), false, err
	}
	h, err := s.Hide(ctx, w.hotkey, scores)
	w.hidden = &h
	return fmt.Sprintf("committed to the weights of %d hotkeys on subnet %d, which are shown in its next epoch", len(scores), w.netuid), err == nil, err
}

// review tells of timelocked weights that should be shown, and are not.
func (w *Weigher) review(ctx context.Context, s bittensor.Subnet) error {
	if len(w.locked) == 0 {
		return nil
	}
	uid, _, err := s.UID(ctx, w.hotkey.Account())
	if err != nil {
		return err
	}
	row, err := s.Weights(ctx, uid)
	if err == nil && w.dropped(row, time.Now()) {
		w.Tell(fmt.Sprintf("the chain has not shown weights that were encrypted for subnet %d, so those before count: check the hotkey's stake and permit, "+
			"and whether the subnet's owner has changed its tempo", w.netuid))
	}
	return err
}

// dropped reports whether weights are due and row, which counts, is others. It forgets those that
// are shown or dropped.
func (w *Weigher) dropped(row map[uint16]uint16, now time.Time) bool {
	for i, x := range slices.Backward(w.locked) {
		if maps.Equal(x.row, row) {
			w.locked = w.locked[i+1:]
			return false
		}
	}
	due := 0
	for due < len(w.locked) && w.locked[due].due.Before(now) {
		due++
	}
	w.locked = w.locked[due:]
	return due > 0
}

func (w *Weigher) show(ctx context.Context) (closed bool, err error) {
	s, err := OpenSubnet(ctx, w.endpoint, w.netuid)
	if err != nil {
		return false, err
	}
	return s.Show(ctx, w.hotkey, *w.hidden)
}
