package comet

import (
	"errors"
	"io"
	"net/http"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtmempool "github.com/cometbft/cometbft/mempool"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/wire"
)

// Receipt is the answer to a submitted transaction.
type Receipt struct {
	ID      wire.Hash `json:"id"`               // the transaction's
	Settled bool      `json:"settled"`          // false: not in a block yet; send it again
	Code    host.Code `json:"code"`             // what became of it, once settled
	Text    string    `json:"text,omitempty"`   // why it was refused
	Height  uint64    `json:"height,omitempty"` // of its block; 0 if refused or long ago
}

// submit takes a transaction and answers when it is in a block or refused, or after inclusionWait.
func (a *api) submit(w http.ResponseWriter, r *http.Request) {
	from := a.proxies.Client(r)
	if !a.rates.Allow(httpserve.Network(from)) {
		fail(w, http.StatusTooManyRequests, "more than %d transactions a second from %s", txsPerSecond, from)
		return
	}
	from = a.proxies.Bounded(from)
	if !a.waiters.Take(from) {
		fail(w, http.StatusServiceUnavailable, "%d submissions wait already, or %d from one address: try again, or another replica", a.waiters.All, a.waiters.Each)
		return
	}
	defer a.waiters.Give(from)
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, host.TxBytesMax+1))
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		fail(w, http.StatusBadRequest, "read the transaction: %v", err)
		return
	}
	if len(b) > host.TxBytesMax {
		tooBig := host.TxError{Code: host.CodeTooLarge}
		settled(w, Receipt{Code: tooBig.Code, Text: tooBig.Error()})
		return
	}
	deadline(w, inclusionWait+writeTimeout)
	patient(w)
	tx, err := a.app.parse(b)
	if err != nil {
		settled(w, Receipt{ID: tx.ID, Code: host.CodeOf(err), Text: err.Error()})
		return
	}
	a.include(w, r, tx, b)
}

// include brings a verified transaction into a block, unless it is in one.
func (a *api) include(w http.ResponseWriter, r *http.Request, tx host.Tx, b []byte) {
	// Await before looking into the past, or a block between the two would be missed.
	result, cancel := a.app.hub.await(tx.ID)
	defer cancel()
	if a.past(w, tx) {
		return
	}
	refused := make(chan *abci.ResponseCheckTx, 1)
	err := a.pool.CheckTx(b, func(res *abci.ResponseCheckTx) {
		if res.Code != abci.CodeTypeOK {
			refused <- res
		}
	}, cmtmempool.TxInfo{})
	if err != nil && !errors.Is(err, cmtmempool.ErrTxInCache) { // cached: it already waits
		fail(w, http.StatusServiceUnavailable, "the ledger is busy: %v", err)
		return
	}
	patience := time.NewTimer(inclusionWait)
	defer patience.Stop()
	select {
	case o := <-result:
		receipt := Receipt{ID: tx.ID, Settled: true, Code: host.CodeOf(o.err), Height: o.height}
		if o.err != nil {
			receipt.Text = o.err.Error()
		}
		if receipt.Code == host.CodeReplayed && a.past(w, tx) {
			return // it is in the chain twice; the first one counts
		}
		settled(w, receipt)
	case res := <-refused:
		a.refuse(w, tx, res)
	case <-patience.C:
		reply(w, http.StatusAccepted, Receipt{ID: tx.ID})
	case <-r.Context().Done():
	case <-a.ending.Done():
		fail(w, http.StatusServiceUnavailable, "the replica is stopping")
	}
}

// past answers for a transaction that stands in an earlier block.
func (a *api) past(w http.ResponseWriter, tx host.Tx) bool {
	a.app.hostMu.RLock()
	code, ok := a.app.host.Outcome(tx)
	a.app.hostMu.RUnlock()
	if !ok {
		return false
	}
	receipt := Receipt{ID: tx.ID, Code: code}
	if code != host.CodeOK {
		receipt.Text = code.String()
	}
	settled(w, receipt)
	return true
}

// refuse answers for a transaction that may not wait for a block.
func (a *api) refuse(w http.ResponseWriter, tx host.Tx, res *abci.ResponseCheckTx) {
	code := host.Code(res.Code)
	switch {
	case code == host.CodeReplayed && a.past(w, tx):
	case code == host.CodeAccountsFull:
		fail(w, http.StatusServiceUnavailable, "%s", code)
	case code == host.CodeExpiresLate && !a.current():
		// After a stop the ledger's time is old until the second block; the client's clock may well
		// be right.
		fail(w, http.StatusServiceUnavailable, "the ledger's last block is old, it may be catching up")
	default:
		settled(w, Receipt{ID: tx.ID, Code: code, Text: res.Log})
	}
}

func settled(w http.ResponseWriter, r Receipt) {
	r.Settled = true
	status := http.StatusOK
	if r.Code != host.CodeOK {
		status = http.StatusUnprocessableEntity
	}
	reply(w, status, r)
}
