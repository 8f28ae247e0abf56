package comet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	dbm "github.com/cometbft/cometbft-db"
	cmtconfig "github.com/cometbft/cometbft/config"
	cmtcrypto "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/light"
	cmtstate "github.com/cometbft/cometbft/proto/tendermint/state"
	sm "github.com/cometbft/cometbft/state"
	cmtstore "github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// A new replica need not replay the chain from its first block. It fetches the present state from
// the API of others, checks it by the replicas' signatures like a client, and gives CometBFT what
// it needs to continue from there, as node.BootstrapState does. CometBFT's own state sync does the
// same over its peer network, but waits at least five seconds for snapshots.

// syncWait bounds the transfer of the state from one endpoint.
const syncWait = 10 * time.Minute

// stepsBack bounds how many blocks without any change a state is behind the header that proves it.
const stepsBack = 1000

// sync fetches the state if the replica has none, and endpoints to take it from.
func (r *Replica) sync(ctx context.Context) error {
	if r.app.host.Height() > 0 {
		return r.home.resumeSync()
	}
	if len(r.home.settings.Sync) == 0 {
		return nil
	}
	c, err := NewClient(r.Chain(), r.home.settings.Sync, r.log)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.trust.Anchor.Hash.IsZero() {
		c.trust.Anchor.Height, c.trust.Genesis = 1, r.home.genesis
		c.trust.GenesisRoot = r.app.hash
	}
	for end := time.Now().Add(syncPatience); ; c.sleep(ctx, retryMax) {
		var errs []error
		for _, e := range c.endpoints {
			err := r.syncFrom(ctx, c, e)
			if err == nil || ctx.Err() != nil {
				return ctx.Err()
			}
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		if errors.Is(err, headers.ErrLied) || errors.Is(err, headers.ErrOld) || time.Now().After(end) {
			return fmt.Errorf("fetch the chain's state: %w", err)
		}
	}
}

// syncPatience is the time for which a new replica tries endpoints that do not answer, or whose
// chain has not begun.
const syncPatience = 30 * time.Second

func (r *Replica) syncFrom(ctx context.Context, c *Client, endpoint string) error {
	h, header, err := r.fetchHost(ctx, c, endpoint)
	if err != nil || h.Height() == 0 { // nothing has happened yet
		return err
	}
	at, next, err := c.back(ctx, endpoint, header, int64(h.Height()))
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	state, err := r.stateAfter(h, at, next)
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	if err := r.home.bootstrap(state, at.Commit); err != nil {
		return err
	}
	l := headers.Kept{Dir: filepath.Join(r.home.dir, lightsDir)}
	for _, b := range c.trust.Known() { // by these, others find the way from what they believe
		if err := l.Write(b); err != nil {
			return err
		}
	}
	if err := r.fetchHistories(ctx, c, h); err != nil {
		return err
	}
	return r.app.restore(h)
}

// fetchHost returns the ledger's state after the last block that changed it, and the height of a
// header that proves it.
func (r *Replica) fetchHost(ctx context.Context, c *Client, endpoint string) (*host.Host, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	b, header, err := c.proven(ctx, endpoint, snapshotPath)
	if err != nil {
		return nil, 0, err
	}
	h, err := host.RestoreHost(b, r.app.store.Rules)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", endpoint, err)
	}
	if err := c.trust.Check(header, h.Hash()); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", endpoint, err)
	}
	if fresh, err := host.NewHost(h.Genesis(), rules(nil)); err != nil || fresh.Hash() != r.app.hash {
		return nil, 0, fmt.Errorf("%s: %w: the state is that of a chain with another genesis", endpoint, headers.ErrLied)
	}
	return h, header, nil
}

// back returns the headers at a height and the next, by following hashes back from a trusted
// header.
func (c *Client) back(ctx context.Context, endpoint string, header uint64, to int64) (at, next *cmttypes.LightBlock, err error) {
	b := c.trust.At(header)
	if b.Height <= to || b.Height-to > stepsBack {
		return nil, nil, fmt.Errorf("%w: header %d for a state of height %d", headers.ErrLied, header, to)
	}
	for at = b; at.Height > to; {
		next = at
		raw, err := c.get(ctx, endpoint, "/v1/headers?height="+strconv.FormatInt(next.Height-1, 10))
		if err != nil {
			return nil, nil, err
		}
		if at, err = headers.Parse(raw, c.chain); err != nil {
			return nil, nil, err
		}
		if err := light.VerifyBackwards(at.Header, next.Header); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", headers.ErrLied, err)
		}
	}
	if !bytes.Equal(next.AppHash, b.AppHash) {
		return nil, nil, fmt.Errorf("%w: state of height %d is not the one that header %d proves", headers.ErrLied, to, header)
	}
	return at, next, nil
}

// stateAfter returns CometBFT's own state after the block that left the ledger in h. at is that
// block's header, and next is the header after it.
func (r *Replica) stateAfter(h *host.Host, at, next *cmttypes.LightBlock) (sm.State, error) {
	params := *r.home.genesis.ConsensusParams
	if !bytes.Equal(params.Hash(), next.ConsensusHash) {
		return sm.State{}, errors.New("the chain's rules about blocks are not those of its genesis")
	}
	after, err := validatorsAfter(next.ValidatorSet, h.Replicas())
	if err != nil {
		return sm.State{}, err
	}
	if !bytes.Equal(after.Hash(), next.NextValidatorsHash) {
		return sm.State{}, fmt.Errorf("%w: the replicas in the state are not those that the header names", headers.ErrLied)
	}
	return sm.State{
		ChainID: r.Chain(), InitialHeight: 1,
		Version:         cmtstate.Version{Consensus: next.Version, Software: version.TMCoreSemVer},
		LastBlockHeight: at.Height, LastBlockTime: at.Time, LastBlockID: at.Commit.BlockID,
		AppHash: next.AppHash, LastResultsHash: next.LastResultsHash,
		LastValidators: at.ValidatorSet, Validators: next.ValidatorSet, NextValidators: after,
		LastHeightValidatorsChanged: next.Height + 1,
		ConsensusParams:             params, LastHeightConsensusParamsChanged: next.Height,
	}, nil
}

// validatorsAfter returns the set that follows set when the ledger has these replicas, as CometBFT
// computes it.
func validatorsAfter(set *cmttypes.ValidatorSet, list []host.Replica) (*cmttypes.ValidatorSet, error) {
	after := set.Copy()
	var changes []*cmttypes.Validator
	for _, r := range list {
		k := cmtcrypto.PubKey(r.Key[:])
		_, was := set.GetByAddress(k.Address())
		if was == nil && r.Power == 0 || was != nil && was.VotingPower == int64(r.Power) {
			continue
		}
		v := cmttypes.NewValidator(k, int64(r.Power))
		changes = append(changes, v)
	}
	if len(changes) > 0 {
		if err := after.UpdateWithChangeSet(changes); err != nil {
			return nil, err
		}
	}
	after.IncrementProposerPriority(1)
	return after, nil
}

// bootstrap gives CometBFT's databases what they need to continue after a block.
func (h *home) bootstrap(state sm.State, commit *cmttypes.Commit) error {
	return h.withStores(func(blocks *cmtstore.BlockStore, states sm.Store) error {
		if !blocks.IsEmpty() {
			return errors.New("there are blocks already, and no state of the ledger: restore the \"state\" directory, or remove \"data\" but for votes.json")
		}
		if err := states.Bootstrap(state); err != nil {
			return err
		}
		if err := blocks.SaveSeenCommit(state.LastBlockHeight, commit); err != nil {
			return err
		}
		return states.SetOfflineStateSyncHeight(state.LastBlockHeight)
	})
}

// resumeSync lets CometBFT continue from a fetched state after which it has stored no block yet.
// CometBFT forgets at its first start that the state was fetched, and if it is killed before its
// first block it takes the missing blocks for a fault.
func (h *home) resumeSync() error {
	return h.withStores(func(blocks *cmtstore.BlockStore, states sm.Store) error {
		state, err := states.Load()
		if err != nil || state.LastBlockHeight == 0 || !blocks.IsEmpty() {
			return err
		}
		return states.SetOfflineStateSyncHeight(state.LastBlockHeight)
	})
}

// withStores calls f with CometBFT's stores, which are open only meanwhile.
func (h *home) withStores(f func(*cmtstore.BlockStore, sm.Store) error) (err error) {
	c := h.config()
	var dbs []dbm.DB
	defer func() {
		for _, db := range dbs {
			err = errors.Join(err, db.Close())
		}
	}()
	for _, id := range []string{"blockstore", "state"} {
		db, err := cmtconfig.DefaultDBProvider(&cmtconfig.DBContext{ID: id, Config: c})
		if err != nil {
			return fmt.Errorf("open database %q (does another process run this chain?): %w", id, err)
		}
		dbs = append(dbs, db)
	}
	return f(cmtstore.NewBlockStore(dbs[0]), sm.NewStore(dbs[1], sm.StoreOptions{DiscardABCIResponses: true}))
}

// restore takes over a state of the ledger and saves it.
func (a *app) restore(h *host.Host) error {
	a.hostMu.Lock()
	defer a.hostMu.Unlock()
	if err := a.store.Save(h); err != nil {
		return err
	}
	a.host, a.hash = h, h.Hash()
	a.hub.update(h, wire.Hash{}, a.hash, nil)
	return nil
}
