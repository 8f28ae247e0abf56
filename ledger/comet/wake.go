package comet

import (
	"bytes"
	"context"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtmempool "github.com/cometbft/cometbft/mempool"

	"github.com/entrain-network/entrain/wire"
)

// An idle chain makes no blocks. When a run's deadline has passed, each replica notices by its own
// clock and puts a wake among the transactions that wait for a block. A wake asks for a block and
// is never part of one.
//
//	wake = "wake" | U64 height of the block that is wanted
var wakePrefix = []byte("wake")

func wakeTx(height uint64) []byte { return wire.AppendU64(bytes.Clone(wakePrefix), height) }

// isWake reports whether tx is a wake. No transaction is one, because transactions are longer.
func isWake(tx []byte) bool { return len(tx) == len(wakePrefix)+8 && bytes.HasPrefix(tx, wakePrefix) }

// due reports whether a block without transactions is due, and its height.
func (a *app) due() (height uint64, ok bool) {
	a.hostMu.Lock() // Due makes trials
	defer a.hostMu.Unlock()
	return a.host.Height() + 1, a.host.Due(nowMs())
}

// checkWake lets a wake wait for a block if there is reason for it.
func (a *app) checkWake(tx []byte) *abci.ResponseCheckTx {
	a.hostMu.Lock()
	defer a.hostMu.Unlock()
	height, now := a.host.Height()+1, nowMs()
	// A trial of every run's deadline costs milliseconds where runs are large.
	asleep := a.asleep.height == height && now-min(now, a.asleep.ms) < wakeMsMax
	if asleep || !bytes.Equal(tx, wakeTx(height)) {
		return &abci.ResponseCheckTx{Code: 1, Log: "no reason to wake"}
	}
	if !a.host.Due(now) {
		a.asleep.height, a.asleep.ms = height, now
		return &abci.ResponseCheckTx{Code: 1, Log: "no reason to wake"}
	}
	return &abci.ResponseCheckTx{}
}

// wake watches the deadlines until ctx ends.
func (a *app) wake(ctx context.Context, pool cmtmempool.Mempool) {
	pause := time.Duration(min(max(a.blockMs, wakeMsMin), wakeMsMax)) * time.Millisecond
	t := time.NewTicker(pause)
	defer t.Stop()
	waited, since := uint64(0), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-a.hub.next(): // whose next one a run that counts blocks wants at once
		}
		height, due := a.due()
		if due {
			// Refused if it waits there already, or if there is no room and so no need.
			_ = pool.CheckTx(wakeTx(height), nil, cmtmempool.TxInfo{})
		}
		switch {
		case !due && pool.Size() == 0:
			waited = 0
		case waited != height:
			waited, since = height, time.Now()
		}
		a.hub.stalled(waited > 0 && time.Since(since) > clockLag)
	}
}

// wakeMsMax bounds how late a deadline is noticed, and wakeMsMin how often one is looked for: that
// takes a tenth of a millisecond in a run of 1,000 members.
const wakeMsMin, wakeMsMax = 10, 100

func nowMs() uint64 { return uint64(max(0, time.Now().UnixMilli())) }
