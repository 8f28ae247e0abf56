package comet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/ledger/comet/statefile"
	"github.com/entrain-network/entrain/wire"
)

// app is the ledger as an ABCI 2.0 application. CometBFT calls it from several connections at once:
// consensus (one call at a time), mempool and queries.
type app struct {
	abci.BaseApplication
	genesis  host.Genesis
	blockMs  uint64 // least time between blocks
	verified verified
	keep     uint64          // blocks
	every    uint64          // blocks between two snapshots
	store    statefile.Store // consensus connection only
	hub      *hub
	lights   atomic.Pointer[headers.Kept] // once the engine is open
	secret   chance.Secret
	history  statefile.History
	outcomes []outcome // the last finalized block's, until its commit; consensus only
	before   wire.Hash // hash of the state before that block, which its header has

	hostMu sync.RWMutex // guards host and what it points to
	host   *host.Host
	hash   wire.Hash
	asleep struct{ height, ms uint64 } // when checkWake found no reason to wake
}

// outcome is the result of one transaction of a block.
type outcome struct {
	id     wire.Hash
	height uint64
	err    error // nil or a *host.TxError
}

const appVersion = 7 // of the ledger's rules, in every block's header

// rules returns the rules of a chain whose random values come from package chance.
func rules(referees host.Referees) host.Rules {
	return host.Rules{Referees: referees, ChanceKey: chance.ValidKey}
}

// newApp restores the last saved state, or starts from the genesis.
func newApp(h home, referees host.Referees) (*app, error) {
	g, s, dir := h.ledger, h.settings, filepath.Join(h.dir, stateDir)
	a := &app{
		genesis: g, secret: h.chance, history: statefile.History{Dir: filepath.Join(h.dir, historyDir)}, blockMs: s.BlockMs, keep: s.KeepBlocks, every: s.SnapshotBlocks,
		store: statefile.Store{Dir: dir, Rules: rules(referees)}, hub: newHub(),
	}
	current, err := a.store.Load()
	if err != nil {
		return nil, err
	}
	if current == nil {
		current, err = host.NewHost(g, a.store.Rules)
		if err != nil {
			return nil, err
		}
	}
	if current.Chain() != g.Chain {
		return nil, fmt.Errorf("%s: ledger state of chain %q, the genesis is of chain %q", dir, current.Chain(), g.Chain)
	}
	a.host, a.hash = current, current.Hash()
	a.hub.update(current, wire.Hash{}, a.hash, nil)
	return a, nil
}

// Info tells CometBFT the height of the saved state, so that it replays the blocks after it.
func (a *app) Info(context.Context, *abci.RequestInfo) (*abci.ResponseInfo, error) {
	a.hostMu.RLock()
	defer a.hostMu.RUnlock()
	info := &abci.ResponseInfo{Data: "entrain", AppVersion: appVersion, LastBlockHeight: int64(a.host.Height())}
	if info.LastBlockHeight > 0 {
		info.LastBlockAppHash = a.hash[:]
	}
	return info, nil
}

// InitChain starts the chain. The genesis was read from the same file when the replica was opened.
func (a *app) InitChain(_ context.Context, req *abci.RequestInitChain) (*abci.ResponseInitChain, error) {
	if req.ChainId != a.genesis.Chain {
		return nil, fmt.Errorf("chain %q begins, the ledger is of chain %q", req.ChainId, a.genesis.Chain)
	}
	hash := a.hash
	return &abci.ResponseInitChain{AppHash: hash[:]}, nil
}

// CheckTx reports whether a transaction may wait for a block.
func (a *app) CheckTx(_ context.Context, req *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	if isWake(req.Tx) {
		return a.checkWake(req.Tx), nil
	}
	parse := a.parse
	if req.Type != abci.CheckTxType_New {
		parse = host.ParseTx // signatures stay valid
	}
	tx, err := parse(req.Tx)
	if err == nil {
		a.hostMu.RLock()
		err = a.host.Admit(tx, nowMs()) // the ledger's own time is old on an idle chain
		a.hostMu.RUnlock()
	}
	if err != nil {
		return &abci.ResponseCheckTx{Code: uint32(host.CodeOf(err)), Log: err.Error()}, nil
	}
	return &abci.ResponseCheckTx{}, nil
}

// FinalizeBlock executes a decided block.
func (a *app) FinalizeBlock(_ context.Context, req *abci.RequestFinalizeBlock) (*abci.ResponseFinalizeBlock, error) {
	a.hostMu.Lock()
	defer a.hostMu.Unlock()
	height := uint64(req.Height)
	if height <= a.host.Height() {
		panic(fmt.Sprintf("comet: block %d after block %d", height, a.host.Height()))
	}
	a.before = a.hash
	powered := powers(a.host.Replicas())
	a.begin(req)
	res := &abci.ResponseFinalizeBlock{TxResults: []*abci.ExecTxResult{{}}} // the beacon's
	a.outcomes = a.outcomes[:0]
	for _, b := range req.Txs[1:] {
		tx, err := a.parse(b)
		if err == nil {
			err = a.host.DeliverVerified(tx)
		}
		result := &abci.ExecTxResult{Code: uint32(host.CodeOf(err))}
		if err != nil {
			result.Log = err.Error() // not part of what replicas agree on
		}
		res.TxResults = append(res.TxResults, result)
		if tx.Body != nil { // it is one
			if err == nil {
				a.hub.heard(tx.Body)
			}
			a.outcomes = append(a.outcomes, outcome{id: tx.ID, height: height, err: err})
		}
	}
	a.hash = a.host.Commit()
	hash := a.hash
	res.AppHash = hash[:]
	res.ValidatorUpdates = updates(powered, a.host.Replicas())
	return res, nil
}

// Commit saves the state when it is due and publishes the block, which is in CometBFT's store by
// now.
func (a *app) Commit(context.Context, *abci.RequestCommit) (*abci.ResponseCommit, error) {
	a.hostMu.RLock()
	defer a.hostMu.RUnlock()
	height := a.host.Height()
	if err := a.record(); err != nil {
		return nil, err
	}
	if height >= a.store.Height+a.every {
		if err := a.history.Sync(a.host.Runs()); err != nil {
			return nil, err
		}
		if err := a.store.Save(a.host); err != nil {
			return nil, err
		}
	}
	a.hub.update(a.host, a.before, a.hash, a.outcomes)
	a.outcomes = nil

	if l := a.lights.Load(); l != nil {
		if err := l.Keep(int64(height)); err != nil {
			return nil, err
		}
	}
	// Blocks since the older of the two snapshots are always kept, because restoring it needs them.
	res := &abci.ResponseCommit{}
	if retain := min(a.store.Older, height-min(height, a.keep)); retain > 0 {
		res.RetainHeight = int64(retain)
	}
	return res, nil
}

// close saves the state for a quick start next time. The engine must have ended.
func (a *app) close() error {
	if a.host.Height() == a.store.Height {
		return nil
	}
	return a.store.Save(a.host)
}
