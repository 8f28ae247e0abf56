package comet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	cmtmempool "github.com/cometbft/cometbft/mempool"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
)

// Limits of the API. They apply to each replica and are not part of consensus.
const (
	connsMax      = 16384            // connections at most: see connsOf
	ownMax        = 4096             // descriptors that a replica needs besides
	addrPart      = 4                // of these and of submissions, the part that one address may have
	submittersMax = 1024             // requests that wait for a block
	headerMax     = 16 << 10         // bytes of a request's header
	txsPerSecond  = 500              // submissions from one address, enough for hundreds of members
	txsBurst      = 2 * txsPerSecond // as many at once
	inclusionWait = 8 * time.Second  // how long a submission waits for its block
	beatInterval  = 5 * time.Second  // between beats on a stream without changes
	writeTimeout  = 20 * time.Second // for a client to take one answer, or one frame
	readTimeout   = 15 * time.Second // for a client to send its request
	idleTimeout   = 2 * time.Minute  // between requests on a connection
	clockLag      = 15 * time.Second // without a block that is due, after which the chain has stopped
	chainHeader   = "Entrain-Chain"  // names the chain in answers, and the wanted chain in requests
	heightHeader  = "Entrain-Height" // the last block that changed the state
	hashHeader    = "Entrain-Hash"   // of the state
	octets        = "application/octet-stream"
)

// api serves clients over HTTP. The package comment lists its paths.
type api struct {
	app       *app
	pool      cmtmempool.Mempool
	watchers  *httpserve.Places // open streams
	proxies   httpserve.Proxies
	waiters   *httpserve.Places // of submissions
	rates     *httpserve.Rates
	ending    context.Context // when it is done, streams end
	lights    *headers.Kept
	peer      string      // where other replicas reach this one
	genesis   []byte      // the file's content
	catchesUp func() bool // whether the replica lacks blocks that others have
}

// serve answers clients until ctx ends, then waits for the answers in progress.
func serve(ctx context.Context, r *Replica, e *engine) error {
	conns := connsOf(httpserve.Descriptors())
	streams := streamsOf(conns)
	a := &api{
		app: r.app, pool: e.node.Mempool(), ending: ctx, lights: e.lights, genesis: r.home.genesisBytes, peer: r.PeerAddress(), catchesUp: e.behind,
		watchers: httpserve.NewPlaces(streams, streams/addrPart), proxies: httpserve.NewProxies(r.home.settings.Proxies), waiters: httpserve.NewPlaces(submittersMax, submittersMax/addrPart), rates: httpserve.NewRates(txsPerSecond, txsBurst, time.Now),
	}
	// Streams and waiting submissions end with ctx. A client that reads its answer too slowly is
	// cut off.
	return httpserve.Run(ctx, httpserve.Limit(r.listener, httpserve.NewPlaces(conns, conns/addrPart), a.proxies.Bounded), &http.Server{
		Handler: a.routes(), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerMax, ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}, time.Second)
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", a.status)
	mux.HandleFunc("GET /v1/runs", a.runs)
	mux.HandleFunc("GET /v1/runs/{run}", a.run)
	mux.HandleFunc("GET /v1/runs/{run}/state", a.state)
	mux.HandleFunc("GET /v1/runs/{run}/watch", a.watch)
	mux.HandleFunc("GET /v1/runs/{run}/spec", a.spec)
	mux.HandleFunc("GET /v1/runs/{run}/peers", a.peers)
	mux.HandleFunc("GET /v1/runs/{run}/admission", a.admission)
	mux.HandleFunc("GET /v1/accounts/{key}", a.account)
	mux.HandleFunc("GET /v1/pools", a.pools)
	mux.HandleFunc("GET /v1/closed", a.closed)
	mux.HandleFunc("GET /v1/pools/{pool}", a.ofPool)
	mux.HandleFunc("POST /v1/txs", a.submit)
	mux.HandleFunc("GET /v1/runs/{run}/history", a.changes)
	a.routesOfProofs(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "no %s %q here: this is an entrain ledger, begin with GET /v1/status", r.Method, r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chain := a.app.genesis.Chain
		w.Header().Set(chainHeader, chain)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if want := r.Header.Get(chainHeader); want != "" && want != chain {
			fail(w, http.StatusMisdirectedRequest, "this is chain %q, wanted %q", chain, want)
			return
		}
		deadline(w, writeTimeout)
		mux.ServeHTTP(w, r)
	})
}

func (a *api) status(w http.ResponseWriter, _ *http.Request) {
	height, timeMs := a.app.hub.now()
	a.app.hostMu.RLock()
	s := ledger.Status{Hash: a.app.hash, Runs: a.app.host.Runs(), Supply: a.app.host.Supply(), Replicas: len(powers(a.app.host.Replicas())), Peer: a.peer}
	if c, ok := a.app.host.Clock(nowMs()); ok {
		s.Clock = &c
	}
	a.app.hostMu.RUnlock()
	if s.Runs == nil {
		s.Runs = []string{}
	}
	s.Chain, s.Height, s.TimeMs, s.Version, s.BlockMs = a.app.genesis.Chain, height, timeMs, appVersion, a.app.blockMs
	s.Watchers, s.Current = a.watchers.Count(), a.current()
	reply(w, http.StatusOK, s)
}

// current reports whether the replica is caught up and the chain makes the blocks that are due.
func (a *api) current() bool { return a.app.hub.moves() && !a.catchesUp() }

func runStatus(v host.View) ledger.RunStatus {
	s := v.State
	return ledger.RunStatus{
		Name: v.Name, Phase: s.Phase().String(), Epoch: s.Epoch(), Round: s.Round(), Step: s.Step(), Members: s.Present(),
		Height: v.Changed, Hash: v.Hash, Bytes: len(s.Bytes()),
	}
}

func (a *api) runs(w http.ResponseWriter, r *http.Request) {
	list := []ledger.RunStatus{}
	a.app.hostMu.RLock()
	names := a.app.host.Runs()
	a.app.hostMu.RUnlock()
	if len(names) > 0 && !a.started(w, r) {
		return
	}
	for _, name := range names {
		if v, ok := a.app.hub.view(name); ok {
			list = append(list, runStatus(v))
		}
	}
	reply(w, http.StatusOK, list)
}

func (a *api) run(w http.ResponseWriter, r *http.Request) {
	if v, ok := a.view(w, r); ok {
		reply(w, http.StatusOK, runStatus(v))
	}
}

func (a *api) state(w http.ResponseWriter, r *http.Request) {
	if v, ok := a.view(w, r); ok {
		w.Header().Set(heightHeader, strconv.FormatUint(v.Changed, 10))
		w.Header().Set(hashHeader, v.Hash.String())
		w.Header().Set("Content-Type", octets)
		w.Write(v.State.Bytes()) // an error means that the client is gone
	}
}

func (a *api) view(w http.ResponseWriter, r *http.Request) (host.View, bool) {
	if !a.started(w, r) {
		return host.View{}, false
	}
	v, ok := a.app.hub.view(r.PathValue("run"))
	if !ok {
		a.noRun(w, r)
	}
	return v, ok
}

// started waits until a header has proven a state since the replica started, and refuses the
// request if none does for long: which runs there are shows with the first.
func (a *api) started(w http.ResponseWriter, r *http.Request) bool {
	if height, _ := a.app.hub.now(); height == 0 {
		return true
	}
	_, err := a.waitFor(r, a.app.hub.newest)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "%v", err)
	}
	return err == nil
}

func (a *api) noRun(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "no run %q on chain %q: GET /v1/runs lists them", r.PathValue("run"), a.app.genesis.Chain)
}

func (a *api) spec(w http.ResponseWriter, r *http.Request) {
	a.app.hostMu.RLock()
	spec, ok := a.app.host.Spec(r.PathValue("run"))
	a.app.hostMu.RUnlock()
	if !ok {
		a.noRun(w, r)
		return
	}
	w.Header().Set("Content-Type", octets)
	w.Write(spec)
}

func (a *api) peers(w http.ResponseWriter, r *http.Request) {
	a.app.hostMu.RLock()
	peers, ok := a.app.host.Peers(r.PathValue("run"))
	a.app.hostMu.RUnlock()
	if !ok {
		a.noRun(w, r)
		return
	}
	reply(w, http.StatusOK, peers)
}

// watch streams the state of a run: first what the client lacks, then every change, or those that a
// light watcher is shown.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	var have mark
	var trusted uint64
	for name, to := range map[string]*uint64{"since": &have.height, "mark": &have.sum, "trusted": &trusted} {
		var ok bool
		if *to, ok = number(w, r, name); !ok {
			return
		}
	}
	// light=2 asks for the reports of closed rounds, too; a replica that does not know it shows whole
	// states.
	run, kind, packed := r.PathValue("run"), r.FormValue("light"), r.FormValue("packed") == "1"
	reports, light := kind == "2", kind == "1" || kind == "2"
	seen := coordinator.Round(0) // whose reports were sent
	if _, ok := a.app.hub.view(run); !ok {
		a.noRun(w, r) // watchers try again soon
		return
	}
	from := a.proxies.Bounded(a.proxies.Client(r))
	if !a.watchers.Take(from) {
		fail(w, http.StatusServiceUnavailable, "all %d streams, or the %d for one address, are in use: try another replica", a.watchers.All, a.watchers.Each)
		return
	}
	defer a.watchers.Give(from)
	w.Header().Set("Content-Type", octets)
	patient(w)
	control := http.NewResponseController(w)
	timer := time.NewTimer(0) // the first beat tells the client at once that it is connected
	defer timer.Stop()
	for beat := false; ; {
		n, wait, err := a.news(run, have, trusted, light, packed)
		if err != nil {
			return // the client asks again
		}
		if n.frame == nil && reports {
			if n.frame, err = a.reports(run, &seen); err != nil {
				return
			}
		}
		switch {
		case n.frame == nil && beat:
			n.frame = a.beat(run, light)
		case n.frame == nil:
			select {
			case <-wait:
			case <-timer.C:
				beat = true
			case <-r.Context().Done():
				return
			case <-a.ending.Done():
				return
			}
			continue
		}
		timer.Reset(beatInterval)
		deadline(w, writeTimeout)
		if n.needs > trusted && trusted > 0 {
			if err := a.showWay(w, trusted, n.needs); err != nil {
				return
			}
		}
		if _, err := w.Write(n.frame); err != nil || control.Flush() != nil {
			return
		}
		if have, beat = n.to, false; trusted > 0 {
			trusted = max(trusted, n.needs, n.proves)
		}
	}
}

// news returns the next frame for a watcher of a run. If there is none yet, wait is closed when
// there may be.
func (a *api) news(run string, have mark, trusted uint64, light, packed bool) (n news, wait <-chan struct{}, err error) {
	if !light {
		n, wait = a.app.hub.after(run, have.height, packed)
		return n, wait, nil
	}
	now, l, wait := a.app.hub.look(run)
	if l == nil {
		return news{to: have}, wait, nil
	}
	n, err = l.after(have, trusted, now, time.Now(), a)
	return n, wait, err
}

// reports returns the next frame with a round's reports, if there is one.
func (a *api) reports(run string, seen *coordinator.Round) ([]byte, error) {
	_, l, _ := a.app.hub.look(run)
	if l == nil {
		return nil, nil
	}
	return l.reports(seen)
}

// beat returns the frame that says that the server lives.
func (a *api) beat(run string, light bool) []byte {
	height, timeMs := a.app.hub.now()
	if now, l, _ := a.app.hub.look(run); light && l != nil {
		return appendPeersBeat(nil, height, timeMs, peersOf(now.proof))
	}
	return appendBeat(nil, height, timeMs)
}

// deadline gives the client the time d to read the next write.
func deadline(w http.ResponseWriter, d time.Duration) {
	// The error says that the writer has no deadlines, as in a test without a connection.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// patient lets a request take long to answer. Without it the server's ReadTimeout would end the
// request's context.
func patient(w http.ResponseWriter) { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("comet: %T in an answer: %v", v, err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // an error means that the client is gone
}

// problem is the body of an answer that is an error.
type problem struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, format string, args ...any) {
	reply(w, status, problem{Error: fmt.Sprintf(format, args...)})
}
