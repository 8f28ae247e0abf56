package comet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// Send implements ledger.Sender.
func (c *Client) Send(ctx context.Context, tx []byte, done func(error)) {
	tx = bytes.Clone(tx)
	c.call(ctx, done, func(ctx context.Context) {
		err := c.insist(ctx, func(endpoint string) error { return c.post(ctx, endpoint, tx) })
		if ctx.Err() == nil {
			done(err)
		}
	})
}

// errUnsettled reports a transaction that waits for its block. It is sent again, because the
// replica may be killed before the block is made.
var errUnsettled = errors.New("transaction is not in a block yet")

// post sends a transaction once. The error is nil or a *host.TxError when it is settled.
func (c *Client) post(ctx context.Context, endpoint string, tx []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	res, err := c.do(ctx, http.MethodPost, endpoint, "/v1/txs", bytes.NewReader(tx))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := body(res)
	if err != nil {
		return err
	}
	var r Receipt
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: receipt: %w", endpoint, err)
	}
	switch {
	case !r.Settled:
		return errUnsettled
	case r.Code != host.CodeOK:
		// The text is for people and begins with the code's own words; the error adds them again.
		return &host.TxError{Code: r.Code, Text: strings.TrimPrefix(strings.TrimPrefix(r.Text, r.Code.String()), ": ")}
	}
	return nil
}

// Watch implements ledger.Reader.
func (c *Client) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	c.run(ctx, func(ctx context.Context) {
		w := watcher{c: c, run: run, f: f, replica: replica{run: run, trust: c.trust}}
		for ctx.Err() == nil {
			err := c.insist(ctx, func(endpoint string) error { return w.stream(ctx, endpoint) })
			if ctx.Err() != nil {
				return
			}
			// What is final for others is not for a watcher: the run may be created yet, an
			// endpoint may be put right.
			var wrong *WrongChainError
			if (errors.As(err, &wrong) || errors.Is(err, ErrLied) || errors.Is(err, ErrTrustOld)) && !w.warned {
				w.warned = true
				c.log.Error("watching a run", "run", run, "err", err)
			}
			c.sleep(ctx, pauseAfter(err))
		}
	})
}

// watcher is one call of Watch.
type watcher struct {
	c       *Client
	run     string
	f       func(ledger.Snapshot)
	replica replica
	told    uint64 // height of the newest state that f got
	warned  bool
	others  atomic.Uint64 // height of the newest state that another endpoint has proven
	asking  atomic.Bool   // another endpoint, for that
	lags    int           // beats in a row without the state that another one has
}

// pauseAfter returns how long a watcher waits before it reconnects after err.
func pauseAfter(err error) time.Duration {
	switch {
	case err == nil:
		return retryMin // the stream broke
	case errors.Is(err, ledger.ErrUnknownRun):
		return 2 * retryMin // created any moment, as far as the watcher knows
	}
	return retryMax
}

// stream follows the run at one endpoint until the connection breaks. It returns nil if it had got
// through.
func (w *watcher) stream(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()

	if err := w.c.begin(ctx, endpoint); err != nil {
		return err
	}
	path := fmt.Sprintf("/v1/runs/%s/watch?since=%d&trusted=%d&packed=1", url.PathEscape(w.run), w.replica.height, w.c.trust.newest())
	res, err := w.c.do(ctx, http.MethodGet, endpoint, path, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for first := true; ; first = false {
		frame, err := readFrame(res.Body)
		if err != nil && first {
			return fmt.Errorf("%s: %w", endpoint, err)
		}
		if err != nil {
			w.c.log.Debug("stream of a run's state broke", "run", w.run, "endpoint", endpoint, "err", err)
			return nil
		}
		silence.Reset(silenceMax)
		s, err := w.replica.apply(frame)
		if err != nil {
			w.replica = replica{run: w.run, trust: w.c.trust} // start over with the whole state
			return fmt.Errorf("%s: run %q: %w", endpoint, w.run, err)
		}
		if err := w.compare(ctx, endpoint, frame); err != nil {
			return err
		}
		if s != nil && s.Height > w.told && ctx.Err() == nil {
			w.told = s.Height
			w.f(*s)
		}
	}
}

// compare asks another endpoint now and then whether it has a newer state. Headers cannot expose an
// endpoint that withholds updates.
func (w *watcher) compare(ctx context.Context, endpoint string, frame []byte) error {
	if w.replica.height >= w.others.Load() {
		w.lags = 0
	}
	if len(w.c.endpoints) == 1 || frame[0] != frameBeat {
		return nil
	}
	if w.replica.height < w.others.Load() {
		if w.lags++; w.lags > 1 {
			w.lags = 0
			return fmt.Errorf("%s: run %q: the state of height %d is kept from us", endpoint, w.run, w.others.Load())
		}
	}
	other := w.c.otherThan(endpoint)
	if other != "" && w.asking.CompareAndSwap(false, true) && !w.c.run(ctx, func(ctx context.Context) {
		defer w.asking.Store(false)
		if proof, err := w.c.proofOf(ctx, other, w.run); err == nil {
			w.others.Store(proof.Changed)
		}
	}) {
		w.asking.Store(false)
	}
	return nil
}
