package comet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Limits and timeouts of a Client.
const (
	retryMin     = 100 * time.Millisecond         // the pause after all endpoints failed once
	retryMax     = 5 * time.Second                // the longest pause
	answerWait   = inclusionWait + 12*time.Second // for an answer to begin
	silenceMax   = 3*beatInterval + time.Second   // on a stream, after which it counts as dead
	answerMax    = 32 << 20                       // bytes of an answer except a state: 10,000 peers
	callsMax     = 256                            // submissions and questions under way at once
	endpointsMax = 64
	liarsFor     = 10 * time.Minute // an endpoint that lied is not asked
)

// ErrTooManyCalls reports that callsMax submissions and questions are in progress.
var ErrTooManyCalls = errors.New("too many submissions and questions to the ledger at once")

// WrongChainError reports an endpoint that serves another chain than the client's, or none.
type WrongChainError struct {
	Endpoint string
	Got      string // empty if the endpoint is not a ledger
	Want     string
}

// Error names the endpoint and both chains.
func (e *WrongChainError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("what answers at %s is not an entrain ledger", e.Endpoint)
	}
	return fmt.Sprintf("%s: this is chain %q, wanted %q", e.Endpoint, e.Got, e.Want)
}

// Client is a ledger.Ledger over the API of one or more replicas. It turns to another replica when
// one does not answer, or lies. What it reads of runs, accounts, pools and replicas is proven by a
// header signed by more than two thirds of the chain's voting power. The voters follow from a
// trusted header: one that was named, one that was remembered (see Remember), or else the first
// that an endpoint shows. Make one with NewClient.
type Client struct {
	chain      string
	endpoints  []string
	trust      *headers.Trust
	remember   string // file for the newest header; empty for none
	remembered bool   // one was there
	log        *slog.Logger
	http       *http.Client
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	calls      semaphore
	running    sync.WaitGroup

	mu     sync.Mutex        // guards what follows
	prefer int               // index of the endpoint that answered last
	liars  map[int]time.Time // until when endpoints are left out
	chance prng.Source
	closed bool
	peers  map[string]runPeers // by run: the addresses as last read
	heard  map[string]heard    // by run: of the addresses, on streams
	names  []host.Profile      // as last read
}

// runPeers are the addresses of a run's participants, and their hash in the run's proof.
type runPeers struct {
	hash wire.Hash
	list []host.Peer
}

// heard is what a stream said of a run's addresses last.
type heard struct {
	peers uint64 // peersOf the run's proof
	at    time.Time
}

var (
	_ ledger.Chain   = (*Client)(nil)
	_ ledger.Sender  = (*Client)(nil)
	_ ledger.Lighter = (*Client)(nil)
)

// NewClient returns a client of the chain served at the endpoints, which are URLs such as
// "http://127.0.0.1:7370". An endpoint may name a trusted header, as in
// "http://127.0.0.1:7370#HEIGHT:HASH"; see ledger.Anchor. The client connects on its first request.
// Status reports at once if an endpoint serves another chain. A nil log discards.
func NewClient(chain string, endpoints []string, log *slog.Logger) (*Client, error) {
	if !host.ChainIDValid(chain) {
		return nil, fmt.Errorf("chain id %q: want 1 to %d of a-z, 0-9 and inner '-'", chain, host.ChainIDBytesMax)
	}
	if len(endpoints) == 0 || len(endpoints) > endpointsMax {
		return nil, fmt.Errorf("%d endpoints of chain %q, want 1 to %d", len(endpoints), chain, endpointsMax)
	}
	var seed wire.Hash
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	c := &Client{
		chain: chain, log: log, calls: make(semaphore, callsMax),
		trust: headers.New(chain), liars: map[int]time.Time{}, peers: map[string]runPeers{}, heard: map[string]heard{},
		http: caller(transport()), chance: prng.New(seed, "entrain/ledger/comet/backoff"),
	}
	if log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for _, e := range endpoints {
		clean, anchor, err := endpoint(e)
		if err != nil {
			return nil, err
		}
		c.endpoints = append(c.endpoints, clean)
		if c.trust.Anchor.Hash.IsZero() && anchor.Height > 0 {
			c.trust.Anchor = anchor
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// endpoint parses an endpoint given by a user: a URL, optionally with a trusted header.
func endpoint(s string) (string, ledger.Anchor, error) {
	s, named, _ := strings.Cut(s, "#")
	anchor, err := ParseAnchor(named)
	if err != nil {
		return "", ledger.Anchor{}, err
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", ledger.Anchor{}, fmt.Errorf("endpoint of the ledger: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return "", ledger.Anchor{}, fmt.Errorf("endpoint %q of the ledger: want http://host:port", s)
	}
	return strings.TrimSuffix(u.String(), "/"), anchor, nil
}

func caller(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: ledger.Redirects}
}

func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: answerWait,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       time.Minute,
		DisableCompression:    true,
	}
}

// Close ends all calls and waits for them. Functions given to the client are not called afterwards.
// They must not call Close themselves.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
	c.http.CloseIdleConnections()
	return c.save()
}

// ChainID implements ledger.Reader.
func (c *Client) ChainID() string { return c.chain }

// As implements ledger.Chain.
func (c *Client) As(k key.Private) ledger.Ledger { return ledger.As(c, k, time.Now) }

// Status asks the endpoints, in order, for their status and returns the first answer. The error is
// a *WrongChainError if the answer is from another chain, or gives the reason why no endpoint
// answered.
func (c *Client) Status(ctx context.Context) (ledger.Status, error) {
	return first[ledger.Status](ctx, c, "/v1/status")
}

// Runs returns summaries of all runs, in order of names, from the first endpoint that answers.
func (c *Client) Runs(ctx context.Context) ([]ledger.RunStatus, error) {
	return first[[]ledger.RunStatus](ctx, c, "/v1/runs")
}

// Discover asks the endpoint which chain it serves.
func Discover(ctx context.Context, at string) (ledger.Status, error) {
	at, _, err := endpoint(at)
	if err != nil {
		return ledger.Status{}, err
	}
	t := transport()
	defer t.CloseIdleConnections()
	c := &Client{http: caller(t), endpoints: []string{at}}
	return c.Status(ctx)
}

// ask requests something from one endpoint after the other until one answers, and passes the answer
// on.
func ask[T any](ctx context.Context, c *Client, done func(T, error), get func(ctx context.Context, endpoint string) (T, error)) {
	c.call(ctx, func(err error) {
		var none T
		done(none, err)
	}, func(ctx context.Context) {
		var answer T
		err := c.insist(ctx, func(endpoint string) (err error) {
			answer, err = get(ctx, endpoint)
			return err
		})
		if ctx.Err() == nil {
			done(answer, err)
		}
	})
}

// call runs f in a goroutine, with a context that ends with ctx and with the client. If too many
// calls are in progress it calls refused instead.
func (c *Client) call(ctx context.Context, refused func(error), f func(context.Context)) {
	switch {
	case !c.calls.take():
		c.run(ctx, func(context.Context) { refused(ErrTooManyCalls) })
	default:
		if !c.run(ctx, func(ctx context.Context) {
			defer c.calls.give()
			f(ctx)
		}) {
			c.calls.give()
		}
	}
}

// run runs f in a goroutine, unless the client is closed.
func (c *Client) run(ctx context.Context, f func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		if ctx.Err() == nil {
			f(ctx)
		}
	})
	return true
}

// insist tries f with one endpoint after the other, with growing pauses, until it succeeds, fails
// for good, or ctx ends.
func (c *Client) insist(ctx context.Context, f func(endpoint string) error) error {
	pauses, hopeless := retry.Policy{Min: retryMin, Max: retryMax}, 0
	for try := 1; ; try++ {
		e, i := c.endpoint()
		err := f(e)
		if err == nil || final(err) || ctx.Err() != nil {
			return err
		}
		var other *WrongChainError
		switch {
		case errors.Is(err, headers.ErrLied):
			if c.leave(i) {
				c.log.Warn("an endpoint of the ledger is left for another", "endpoint", e, "err", c.explain(err))
			}
			hopeless++
		case errors.As(err, &other), errors.Is(err, ledger.ErrUnknownRun), errors.Is(err, headers.ErrOld):
			hopeless++
		default:
			hopeless = 0
		}
		if hopeless >= len(c.endpoints) {
			return c.explain(err) // all of them, one after the other
		}
		c.log.Debug("ledger did not answer", "endpoint", e, "try", try, "err", err)
		c.turnFrom(i)
		if try%len(c.endpoints) == 0 {
			c.sleep(ctx, pauses.Pause(try/len(c.endpoints)))
		}
	}
}

// final reports whether an error is permanent, so that neither a retry nor another endpoint helps.
func final(err error) bool {
	var refused *host.TxError
	return errors.As(err, &refused)
}

// sleep waits between half of d and d, so that clients that lost a replica together do not return
// together.
func (c *Client) sleep(ctx context.Context, d time.Duration) {
	c.mu.Lock()
	random := c.chance.Uint64()
	c.mu.Unlock()
	_ = retry.Wait(ctx, retry.Jitter(d, 2, random))
}

func (c *Client) endpoint() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints[c.prefer], c.prefer
}

// turnFrom makes the next endpoint the preferred one, unless another call has done so.
func (c *Client) turnFrom(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prefer != i {
		return
	}
	now := time.Now()
	for range c.endpoints {
		c.prefer = (c.prefer + 1) % len(c.endpoints)
		if !now.Before(c.liars[c.prefer]) {
			return
		}
	}
}

// leave excludes an endpoint for liarsFor, as long as there are others. It reports whether the
// endpoint was not excluded before.
func (c *Client) leave(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	known := now.Before(c.liars[i])
	c.liars[i] = now.Add(liarsFor)
	return !known
}

// get returns the answer to a GET request.
func (c *Client) get(ctx context.Context, endpoint, path string) ([]byte, error) {
	wait := answerWait
	if strings.HasPrefix(path, snapshotPath) {
		wait = syncWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	res, err := c.do(ctx, http.MethodGet, endpoint, path, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return body(res)
}

// do sends a request and checks that a replica of the chain answered, with success or 422.
func (c *Client) do(ctx context.Context, method, endpoint, path string, content io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, endpoint+path, content)
	if err != nil {
		return nil, err
	}
	if c.chain != "" {
		req.Header.Set(chainHeader, c.chain)
	}
	if content != nil {
		req.Header.Set("Content-Type", octets)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	got := res.Header.Get(chainHeader)
	if got == "" && res.StatusCode >= http.StatusInternalServerError { // a proxy whose replica is down
		res.Body.Close()
		return nil, fmt.Errorf("%s: status %s", endpoint, res.Status)
	}
	if got == "" || c.chain != "" && got != c.chain {
		res.Body.Close()
		return nil, &WrongChainError{Endpoint: endpoint, Got: got, Want: c.chain}
	}
	ok := []int{http.StatusOK, http.StatusAccepted, http.StatusUnprocessableEntity}
	if slices.Contains(ok, res.StatusCode) {
		return res, nil
	}
	defer res.Body.Close()
	var p problem
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		p.Error = res.Status
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s: %w: %s", endpoint, ledger.ErrUnknownRun, p.Error)
	}
	return nil, fmt.Errorf("%s: %s (status %d)", endpoint, p.Error, res.StatusCode)
}

func body(res *http.Response) ([]byte, error) {
	limit := int64(answerMax)
	if strings.HasSuffix(res.Request.URL.Path, snapshotPath) {
		limit = snapshotMax
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: answer of more than %d bytes", res.Request.URL, limit)
	}
	return b, err
}
