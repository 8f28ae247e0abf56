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
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
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
	c.WatchLightly(ctx, run, f)
}

// WatchLightly implements ledger.Lighter.
func (c *Client) WatchLightly(ctx context.Context, run string, f func(ledger.Snapshot)) func(light, reports bool) {
	w := &watcher{c: c, run: run, f: f, replica: replica{run: run, trust: c.trust}}
	c.run(ctx, func(ctx context.Context) {
		for ctx.Err() == nil {
			err := c.insist(ctx, func(endpoint string) error { return w.stream(ctx, endpoint) })
			if ctx.Err() != nil {
				return
			}
			// What is final for others is not for a watcher: the run may be created yet, an
			// endpoint may be put right.
			var wrong *WrongChainError
			if (errors.As(err, &wrong) || errors.Is(err, headers.ErrLied) || errors.Is(err, headers.ErrOld)) && !w.warned {
				w.warned = true
				c.log.Error("watching a run", "run", run, "err", err)
			}
			c.sleep(ctx, pauseAfter(err))
		}
	})
	return w.turn
}

// watcher is one call of Watch.
type watcher struct {
	c       *Client
	run     string
	f       func(ledger.Snapshot)
	replica replica
	told    uint64 // height of the newest state that f got
	lacked  bool   // that one lacked filters
	heard   int    // of how many rounds it had reports
	warned  bool
	others  atomic.Uint64 // height of the newest state that another endpoint has proven
	asking  atomic.Bool   // another endpoint, for that
	lags    int           // beats in a row without the state that another one has

	mu   sync.Mutex // guards what follows
	want wanted
	cut  context.CancelFunc // of the stream that is read
}

// wanted is what a stream is to show.
type wanted struct {
	light   bool
	reports bool // with a light state
}

// turn has the watcher ask for a light stream, for one with reports, or for a whole one.
func (w *watcher) turn(light, reports bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	want := wanted{light, light && reports}
	if w.want != want && w.cut != nil {
		w.cut()
	}
	w.want = want
}

// begin returns what the stream that begins is to show, and which state is there for it.
func (w *watcher) begin(cut context.CancelFunc) (want wanted, have mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	return w.want, w.replica.begin(w.want.light)
}

// turned reports whether another stream than that is wanted.
func (w *watcher) turned(want wanted) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.want != want
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
	want, have := w.begin(cancel)
	path := fmt.Sprintf("/v1/runs/%s/watch?since=%d&trusted=%d&packed=1", url.PathEscape(w.run), have.height, w.c.trust.Newest())
	switch {
	case want.reports:
		path += fmt.Sprintf("&light=2&mark=%d", have.sum)
	case want.light:
		path += fmt.Sprintf("&light=1&mark=%d", have.sum)
	}
	res, err := w.c.do(ctx, http.MethodGet, endpoint, path, nil)
	if err != nil && w.turned(want) {
		return nil
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for first := true; ; first = false {
		frame, err := readFrame(res.Body)
		if err != nil && first && !w.turned(want) {
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
		if w.replica.named {
			w.c.hear(w.run, w.replica.peers)
		}
		if err := w.compare(ctx, endpoint, frame); err != nil {
			return err
		}
		if s != nil && w.newer(s) && ctx.Err() == nil {
			w.told, w.lacked, w.heard = s.Height, s.Light, len(s.Reports)
			w.f(*s)
		}
	}
}

// newer reports whether a state says more than the last one that was passed on.
func (w *watcher) newer(s *ledger.Snapshot) bool {
	return s.Height > w.told || s.Height == w.told && w.lacked && (!s.Light || len(s.Reports) > w.heard)
}

// compare asks another endpoint now and then whether it has a newer state. Headers cannot expose an
// endpoint that withholds updates.
func (w *watcher) compare(ctx context.Context, endpoint string, frame []byte) error {
	if w.replica.reached() >= w.others.Load() {
		w.lags = 0
	}
	if len(w.c.endpoints) == 1 || frame[0] != frameBeat {
		return nil
	}
	if w.replica.reached() < w.others.Load() {
		most := 1
		if w.replica.lightly && !w.replica.plain {
			most += int(lightRoundWait / beatInterval) // what is not urgent may come that late
		}
		if w.lags++; w.lags > most {
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
