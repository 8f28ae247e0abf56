// Package solana is a ledger on Solana: runs are accounts of the program in chain/solana/program.
// It speaks JSON-RPC with any endpoint of a cluster, over HTTP and, to be told of changes,
// WebSocket. It needs no replica of its own.
//
// A client believes what an endpoint says of the chain: it checks that a state is sound, that a
// specification has the run's hash and that heights never go back, but no proof. A participant that
// doubts an endpoint names one of its own.
//
// Heights are slots. The program acts only when it is called, so a ledger for a key sends a Tick
// when a phase's time is over and nobody else did.
package solana

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Options configure a Client.
type Options struct {
	Program   solana.Program // of runs, on this cluster
	Endpoints []string       // URLs of JSON-RPC; the others are asked when one fails
	// Mint is the token of the runs that this client creates; zero: they have none.
	Mint solana.Address
	// Poll is the time between two looks at a run where an endpoint tells of no changes; default
	// 800 ms, two slots, and an eighth of that on a cluster of this machine, whose blocks come as fast
	// as it likes.
	Poll time.Duration
	// HTTP asks the endpoints; nil for one of the client's own.
	HTTP *http.Client
	Log  *slog.Logger // nil discards
	// Rules makes the rules of a run's referee from the text of its specification (verify.Rules); nil:
	// the client neither creates runs that verify results nor reads their specifications.
	Rules func(specText []byte) ([]byte, error)
}

// Client is a connection to a cluster.
type Client struct {
	chain     string
	program   solana.Program
	mint      solana.Address
	endpoints []string
	current   atomic.Uint64 // endpoints left so far: the one of that number, modulo all, is asked
	poll      time.Duration
	http      *http.Client
	log       *slog.Logger
	rules     func(specText []byte) ([]byte, error)
	calls     sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc
}

// NewClient asks an endpoint which cluster it serves, and whether the program is there.
func NewClient(ctx context.Context, o Options) (*Client, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("no endpoint of Solana: name the URL of one")
	}
	c := &Client{program: o.Program, mint: o.Mint, endpoints: slices.Clone(o.Endpoints), poll: o.Poll, http: o.HTTP, log: o.Log, rules: o.Rules}
	if c.poll <= 0 {
		c.poll = 800 * time.Millisecond
		if !slices.ContainsFunc(o.Endpoints, remote) {
			c.poll /= 8
		}
	}
	if c.http == nil {
		c.http = &http.Client{CheckRedirect: ledger.Redirects}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	var genesis solana.Address
	var errs []error
	for range c.endpoints {
		var text string
		err := c.call(ctx, &text, "getGenesisHash")
		if err == nil {
			genesis, err = solana.ParseAddress(text)
		}
		if err == nil {
			// A signature for one cluster or program must not count on another.
			id := wire.Sum("entrain/solana/chain", genesis[:], o.Program[:])
			c.chain = fmt.Sprintf("solana-%x", id[:4])
			c.ctx, c.cancel = context.WithCancel(context.Background())
			if err := c.deployed(ctx); err != nil {
				c.cancel()
				return nil, err
			}
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("reach Solana: %w", errors.Join(errs...))
}

// remote reports whether an endpoint is not at an address of this machine.
func remote(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}

// deployed returns an error if the cluster has no such program.
func (c *Client) deployed(ctx context.Context) error {
	if c.program == (solana.Program{}) {
		return nil // to deploy one
	}
	_, list, err := c.accounts(ctx, nil, solana.Address(c.program))
	if err == nil && (list[0] == nil || !list[0].Executable) {
		err = fmt.Errorf("%s has no program %v: is that the right cluster? entrain chain init puts one there", plain(c.endpoints[0]), solana.Address(c.program))
	}
	return err
}

// ChainID implements ledger.Reader: "solana-" and a hash of the cluster and the program.
func (c *Client) ChainID() string { return c.chain }

// Close ends all calls and waits for them.
func (c *Client) Close() error {
	c.cancel()
	c.calls.Wait()
	c.http.CloseIdleConnections()
	return nil
}

// start calls f in a goroutine, with a context that Close ends, too.
func (c *Client) start(ctx context.Context, f func(ctx context.Context)) {
	c.calls.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		f(ctx)
	})
}

// patience is how calls are repeated while endpoints fail.
var patience = retry.Policy{Min: 100 * time.Millisecond, Max: 10 * time.Second}

// insist repeats f while endpoints fail.
func (c *Client) insist(ctx context.Context, f func() error) error {
	return patience.Do(ctx, func(err error) bool {
		c.log.Debug("an endpoint of Solana fails", "err", err)
		var failed *endpointError
		return errors.As(err, &failed)
	}, f)
}

// place is where a run is.
type place struct{ run, spec solana.Address }

// find looks a run's name up. The error is ledger.ErrUnknownRun if no endpoint knows it: one that
// lags may not yet.
func (c *Client) find(ctx context.Context, run string) (p place, err error) {
	unknown := fmt.Errorf("run %q: %w", run, ledger.ErrUnknownRun)
	at, err := c.program.Name(run)
	if err != nil || !host.RunNameValid(run) {
		return p, unknown
	}
	for range c.endpoints {
		n := c.current.Load()
		_, list, err := c.accounts(ctx, nil, at)
		if err != nil {
			return p, err
		}
		if list[0] != nil && list[0].Owner == solana.Address(c.program) {
			var ok bool
			if p.run, p.spec, ok = solana.Named(list[0].Data); ok {
				return p, nil
			}
		}
		c.current.CompareAndSwap(n, n+1)
	}
	return p, unknown
}

// closed says that a run is no more, whose name stays.
func closed(run string) error { return fmt.Errorf("run %q was closed: %w", run, ledger.ErrUnknownRun) }

// another reports whether a run's account has a run of another name: who closes one may make
// another in its place.
func another(account []byte, run string) bool {
	s, err := coordinator.Attach(solana.State(account))
	return err == nil && s.Config().Name != run
}

// Spec implements ledger.Reader.
func (c *Client) Spec(ctx context.Context, run string, done func([]byte, error)) {
	ask(ctx, c, done, func(ctx context.Context) ([]byte, error) {
		p, err := c.find(ctx, run)
		if err != nil {
			return nil, err
		}
		_, list, err := c.accounts(ctx, nil, p.spec, p.run)
		if err != nil {
			return nil, err
		}
		if list[1] == nil || another(list[1].Data, run) {
			return nil, closed(run)
		}
		if list[0] != nil {
			if _, text, ok := solana.Buffered(list[0].Data); ok {
				return text, c.checkRules(ctx, p.run, list[1].Data, text)
			}
		}
		return nil, fmt.Errorf("run %q: its specification is gone", run)
	})
}

// Peers implements ledger.Reader: the announcements of a run's members, and of others up to
// host.PendingPeersMax.
func (c *Client) Peers(ctx context.Context, run string, done func([]host.Peer, error)) {
	ask(ctx, c, done, func(ctx context.Context) ([]host.Peer, error) {
		p, err := c.find(ctx, run)
		if err != nil {
			return nil, err
		}
		s, _, err := c.read(ctx, p.run)
		if err != nil {
			return nil, err
		}
		found, err := c.buffers(ctx, announcement(p.run))
		if err != nil {
			return nil, err
		}
		var list []host.Peer
		strangers := 0
		for author, b := range found {
			k := key.Public(author)
			addrs, err := readAddrs(b)
			if err != nil || len(addrs) == 0 {
				continue
			}
			if _, member := s.State.Find(k); !member {
				if strangers++; strangers > host.PendingPeersMax {
					continue
				}
			}
			list = append(list, host.Peer{Key: k, Addrs: addrs})
		}
		sort.Slice(list, func(i, j int) bool { return list[i].Key.Compare(list[j].Key) < 0 })
		return list, nil
	})
}

// ask answers a question in a goroutine, as often as endpoints fail.
func ask[T any](ctx context.Context, c *Client, done func(T, error), question func(ctx context.Context) (T, error)) {
	c.start(ctx, func(ctx context.Context) {
		var answer T
		err := c.insist(ctx, func() (err error) {
			answer, err = question(ctx)
			return err
		})
		if ctx.Err() == nil {
			done(answer, err)
		}
	})
}

// read reads the account of a run, and what it says. An endpoint whose state is not sound is not
// asked again soon.
func (c *Client) read(ctx context.Context, run solana.Address) (s ledger.Snapshot, data []byte, err error) {
	n := c.current.Load()
	slot, list, err := c.accounts(ctx, nil, run, solana.Clock)
	if err != nil {
		return s, nil, err
	}
	if list[0] == nil {
		return s, nil, fmt.Errorf("the run's account %v is gone: %w", run, ledger.ErrUnknownRun)
	}
	unsound := func(err error) error {
		c.current.CompareAndSwap(n, n+1)
		return &endpointError{plain(c.endpoints[n%uint64(len(c.endpoints))]), fmt.Errorf("the run's account %v: %w", run, err)}
	}
	if list[0].Owner != solana.Address(c.program) {
		return s, nil, unsound(errors.New("belongs to another program"))
	}
	data = list[0].Data
	if s.State, err = coordinator.Open(solana.State(data)); err != nil {
		return s, nil, unsound(err)
	}
	if s.TimeMs, err = clockOf(list[1]); err != nil {
		return s, nil, unsound(err)
	}
	s.Height = slot
	return s, data, nil
}

// The account of the clock, and where in it is the time, in seconds since 1970.
const (
	clockBytes   = 40
	clockSeconds = 32
)

// Watch implements ledger.Reader. It looks at the 64 bytes behind the state, which count messages,
// and reads the state when they have changed: when the endpoint tells of it, and now and then, or
// often where the endpoint tells nothing.
func (c *Client) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	c.watch(ctx, run, f, func(ledger.Snapshot) {})
}

// watch is Watch that calls closing when a closing begins or goes on, with the newest state that it
// has read. It tells nothing of the states in it.
func (c *Client) watch(ctx context.Context, run string, f, closing func(ledger.Snapshot)) {
	c.start(ctx, func(ctx context.Context) {
		w := watcher{c: c, run: run, f: f, closing: closing, bell: newBell(), moved: time.Now()}
		unasked := false // nothing told of a change that this look may find
		for ctx.Err() == nil {
			told, pause := w.told, c.poll
			err := w.once(ctx)
			switch {
			case err == nil:
				w.failures = 0
				if told == 0 && w.told > 0 {
					c.start(ctx, func(ctx context.Context) { c.listen(ctx, w.bell, w.place.run, part{w.bytes, solana.TailBytes}) })
				}
			case !errors.Is(err, ledger.ErrUnknownRun):
				if w.failures++; w.failures == unheard {
					c.log.Warn("no endpoint of Solana answers; asking until one does", "err", err)
				}
				pause = max(pause, patience.Pause(w.failures))
				c.log.Debug("watching a run", "run", run, "err", err)
			}
			if unasked && w.told > told {
				w.bell.miss()
			}
			if unasked = err == nil && w.bell.live.Load() && w.told >= w.bell.slot.Load(); unasked {
				pause *= quiet
			}
			select {
			case <-ctx.Done():
			case <-w.bell.rung:
				unasked = false
				_ = retry.Wait(ctx, c.poll/quiet) // however often it rings
			case <-time.After(pause):
			}
		}
	})
}

// watcher is one call of Watch.
type watcher struct {
	c        *Client
	run      string
	f        func(ledger.Snapshot)
	closing  func(ledger.Snapshot)
	last     ledger.Snapshot // the newest that was read
	bell     *bell
	place    *place
	bytes    uint64 // of the state
	tail     []byte // what followed the state that f got
	told     uint64 // height of that state
	slot     uint64 // the newest that an endpoint named, and when
	moved    time.Time
	failures int
}

// unheard is after how many failures in a row, half a minute of them, a participant is told.
const unheard = 8

// stalled is the number of polls after which an endpoint is left if its chain has not moved.
const stalled = 40

// reached takes the slot of an answer, and leaves an endpoint that has stood still for long.
func (w *watcher) reached(slot uint64) {
	switch now := time.Now(); {
	case slot > w.slot:
		w.slot, w.moved = slot, now
	case now.Sub(w.moved) > stalled*w.c.poll:
		w.moved = now
		w.c.leave("its chain stands still")
	}
}

// leave has the next call ask another endpoint.
func (c *Client) leave(why string) {
	n := c.current.Add(1) - 1
	c.log.Debug("leaving an endpoint", "endpoint", plain(c.endpoints[n%uint64(len(c.endpoints))]), "why", why)
}

// once looks at the run, and tells of a change.
func (w *watcher) once(ctx context.Context) error {
	if w.place == nil {
		p, err := w.c.find(ctx, w.run)
		if err != nil {
			return err
		}
		w.place = &p
	}
	if w.tail != nil {
		slot, list, err := w.c.accounts(ctx, &part{Offset: w.bytes, Length: solana.TailBytes}, w.place.run)
		if err != nil {
			return err
		}
		w.reached(slot)
		if list[0] == nil || slot <= w.told || slices.Equal(list[0].Data, w.tail) {
			return nil // an endpoint that lags behind another one tells nothing
		}
		if solana.Closing(list[0].Data) { // the state is megabytes, and changes soon
			w.tail = slices.Clone(list[0].Data)
			w.closing(w.last)
			return nil
		}
	}
	s, data, err := w.c.read(ctx, w.place.run)
	if err != nil {
		return err
	}
	if s.Height <= w.told || ctx.Err() != nil {
		return nil
	}
	if another(data, w.run) {
		return closed(w.run)
	}
	w.bytes = uint64(len(s.State.Bytes()))
	w.tail = slices.Clone(data[w.bytes:])
	w.told, w.last = s.Height, s
	if s.State.Closing() {
		w.closing(s)
	} else {
		w.f(s)
	}
	return nil
}
