package comet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	dbm "github.com/cometbft/cometbft-db"
	cmtconfig "github.com/cometbft/cometbft/config"
	cmtnode "github.com/cometbft/cometbft/node"
	"github.com/cometbft/cometbft/proxy"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/cometlog"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// Replica is one node of the chain: CometBFT, the ledger as its application, and the API for
// clients.
type Replica struct {
	home     home
	app      *app
	listener net.Listener
	log      *slog.Logger
}

// Pace bounds what the API sends to all clients on other machines together, in bytes a second; 0
// means no limit. Call it before Run.
func (r *Replica) Pace(limit uint64) { r.listener = httpserve.PacedBeyond(r.listener, limit) }

// Open reads a replica's directory, which Init made, and opens the API's port, so that a damaged
// directory or a port in use is found before anything runs. Call Run next; it also closes the
// replica. Without referees, no run with verification can be created or hosted. All replicas must
// have the same referees. A nil log discards.
func Open(dir string, log *slog.Logger, referees host.Referees) (*Replica, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h, err := readHome(dir)
	if err == nil {
		err = makeDirs(dir)
	}
	if err != nil {
		return nil, err
	}
	a, err := newApp(h, referees)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", h.settings.API)
	if err != nil {
		return nil, fmt.Errorf("open the API for clients (set \"api\" in %s to use another address): %w",
			filepath.Join(dir, settingsFile), err)
	}
	return &Replica{home: h, app: a, listener: listener, log: log}, nil
}

// Chain returns the chain's id.
func (r *Replica) Chain() string { return r.home.ledger.Chain }

// Endpoint returns the URL clients reach the API at: the host in "public", if chain.json names one.
func (r *Replica) Endpoint() string {
	at := r.listener.Addr().String()
	if name, _, err := net.SplitHostPort(r.home.settings.Public); err == nil {
		if _, port, err := net.SplitHostPort(at); err == nil {
			at = net.JoinHostPort(name, port)
		}
	}
	return "http://" + at
}

// OwnEndpoint returns where programs on this machine reach the API of the replica in dir, with the
// chain's genesis: see CheckGenesis.
func OwnEndpoint(dir string) (string, error) {
	h, err := readHome(dir)
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(h.settings.API)
	if ip, wrong := netip.ParseAddr(host); host == "" || wrong == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("http://%s#0:%v", net.JoinHostPort(host, port), GenesisHash(h.genesisBytes)), err
}

// PeerAddress returns the address that other replicas list among their peers to follow this one, as
// ID@host:port. It works only if "peering" in chain.json names a port that they can reach; the
// default does not.
func (r *Replica) PeerAddress() string {
	return r.home.peerAddress()
}

// Run replays the blocks after the saved state, then takes part in the chain and serves clients,
// until ctx ends. It then returns nil, once all that it started has ended and the state is saved.
// If the replica halts, for example because a disk is full, it returns the error. Transactions in a
// block are never lost. After the cause is removed, the replica continues from where it was.
func (r *Replica) Run(ctx context.Context) error {
	defer r.listener.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	halt := func(err error) { cancel(&haltError{err}) }

	if err := r.sync(ctx); ctx.Err() != nil {
		return nil // told to end while it fetched the state
	} else if err != nil {
		return fmt.Errorf("start chain %q in %q: %w", r.Chain(), r.home.dir, err)
	}
	own, err := r.home.votes()
	if err != nil {
		return err
	}
	e := engine{dbs: map[string]dbm.DB{}}
	if err := e.open(ctx, r, halt); err != nil {
		if ctx.Err() != nil {
			return nil // told to end while it replayed blocks
		}
		return fmt.Errorf("start chain %q in %q: %w", r.Chain(), r.home.dir, err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := serve(ctx, r, &e); err != nil {
			halt(err)
		}
	})
	serving.Go(func() { r.app.wake(ctx, e.node.Mempool()) })
	if url := r.home.settings.Bittensor; url != "" {
		w := lookout{app: r.app, pool: e.node.Mempool(), url: url, signer: ledger.Signer{Chain: r.Chain(), Key: own}, log: r.log.With("part", "bittensor")}
		serving.Go(func() { w.watch(ctx) })
	}
	<-ctx.Done()
	serving.Wait()
	err = e.close()

	var halted *haltError
	if errors.As(context.Cause(ctx), &halted) {
		return fmt.Errorf("chain %q in %q: %w", r.Chain(), r.home.dir, halted.err)
	}
	return errors.Join(err, r.app.close())
}

// haltError is the reason why a replica stopped by itself.
type haltError struct{ err error }

func (e *haltError) Error() string { return e.err.Error() }

// engine is the running CometBFT node with the databases it opened.
type engine struct {
	node   *cmtnode.Node
	lights *headers.Kept
	dbs    map[string]dbm.DB
}

// open starts CometBFT. CometBFT reports a store that contradicts the application by a panic; here,
// before anything runs, that is an error like others.
func (e *engine) open(ctx context.Context, r *Replica, halt func(error)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	c := r.home.config()
	e.node, err = cmtnode.NewNodeWithContext(ctx, c, r.home.validator, r.home.node,
		proxy.NewConnSyncLocalClientCreator(r.app),
		func() (*cmttypes.GenesisDoc, error) { return r.home.genesis, nil },
		e.openDB,
		cmtnode.DefaultMetricsProvider(c.Instrumentation),
		cometlog.Logger{Log: r.log.With("part", "cometbft"), Failed: halt, Ended: ctx.Done()},
	)
	if err != nil {
		return err
	}
	e.lights = &headers.Kept{
		Blocks: e.node.BlockStore(), States: sm.NewStore(e.dbs["state"], sm.StoreOptions{DiscardABCIResponses: true}),
		Dir: filepath.Join(r.home.dir, lightsDir), Chain: r.Chain(),
	}
	first := r.home.genesis.GenesisTime
	if last := e.lights.Blocks.LoadBlockMeta(e.lights.Blocks.Height()); last != nil {
		first = last.Header.Time
		r.app.hub.confirm(wire.Hash(last.Header.AppHash), uint64(last.Header.Height))
	}
	r.app.lights.Store(e.lights)
	if ahead := time.Until(first); ahead > clockSlack { // CometBFT would wait, and answer nobody
		return fmt.Errorf("the chain is at %s, %s ahead of this machine's clock: set the clock (timedatectl set-ntp true). "+
			"If it is right now, and was ahead when the last block was made, the chain goes on from that time: start again in %s, "+
			"or for a new chain continue from the run's last checkpoint (entrain host --from STATE)",
			first.UTC().Format(time.RFC3339), ahead.Round(time.Second), (ahead-clockSlack).Round(time.Second)+time.Second)
	}
	return e.node.Start()
}

// clockSlack is how far the clock of a replica's machine may be behind its chain's.
const clockSlack = time.Minute

// behindMost is how many blocks a replica may lack and be current: votes on the next ones are under
// way.
const behindMost = 10

// behind reports whether the replica lacks blocks: it is fetching them, or most of its peers have
// more. The latter is so where peers have deleted the blocks that it needs.
func (e *engine) behind() bool {
	if e.node.ConsensusReactor().WaitSync() {
		return true
	}
	var peers []peer
	for _, p := range e.node.Switch().Peers().Copy() {
		if s, ok := p.Get(cmttypes.PeerStateKey).(interface{ GetHeight() int64 }); ok {
			peers = append(peers, peer{s.GetHeight(), p.IsPersistent()})
		}
	}
	return lags(e.node.BlockStore().Height(), peers)
}

// peer is another replica that is connected: the height that it says it has, and whether the
// operator named it.
type peer struct {
	height int64
	named  bool
}

// lags reports whether most peers have more than behindMost blocks more, most of those that the
// operator named if there are any: anybody may connect, as often as it likes, and say any height.
func lags(own int64, peers []peer) bool {
	if slices.ContainsFunc(peers, func(p peer) bool { return p.named }) {
		peers = slices.DeleteFunc(peers, func(p peer) bool { return !p.named })
	}
	ahead := 0
	for _, p := range peers {
		if p.height > own+behindMost {
			ahead++
		}
	}
	return 2*ahead > len(peers)
}

func (e *engine) openDB(c *cmtconfig.DBContext) (dbm.DB, error) {
	db, err := cmtconfig.DefaultDBProvider(c)
	if err != nil {
		return nil, fmt.Errorf("open database %q (does another process run this chain?): %w", c.ID, err)
	}
	if c.ID == "blockstore" {
		db = &ending{DB: db}
	}
	e.dbs[c.ID] = db
	return db, nil
}

// close stops CometBFT, if it runs, and closes its databases.
func (e *engine) close() error {
	if e.node != nil && e.node.IsRunning() {
		if err := e.node.Stop(); err != nil {
			return fmt.Errorf("stop the chain's engine: %w", err)
		}
		e.node.Wait()
		return e.node.ProxyApp().Stop()
	}
	var errs []error
	for _, db := range e.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// config returns CometBFT's configuration. Its RPC server, with the websocket, stays off: clients
// use our API.
func (h *home) config() *cmtconfig.Config {
	c := cmtconfig.DefaultConfig()
	c.SetRoot(h.dir)
	c.Moniker = string(h.node.ID())
	c.RPC.ListenAddress = ""
	c.RPC.GRPCListenAddress = ""
	c.TxIndex.Indexer = "null"
	c.Storage.DiscardABCIResponses = true

	c.P2P.ListenAddress = "tcp://" + h.settings.Peering
	c.P2P.PersistentPeers = strings.Join(h.settings.Peers, ",")
	c.P2P.PexReactor = len(h.settings.Peers) > 0
	c.P2P.ExternalAddress = h.settings.Public
	c.P2P.AddrBook = filepath.Join(dataDir, "addrbook.json")
	c.P2P.AddrBookStrict = false // replicas of one chain may share a private network, or a machine
	c.P2P.AllowDuplicateIP = true
	c.P2P.FlushThrottleTimeout = 10 * time.Millisecond

	c.Mempool.MaxTxBytes = host.TxBytesMax
	c.Mempool.Size = 5000
	c.Mempool.Recheck = true // drops what expires while it waits

	// A block is made for transactions, for a deadline that has passed (see wake), and after each
	// block that changed the state, so that the new state's hash gets signed.
	c.Consensus.CreateEmptyBlocks = false
	c.Consensus.TimeoutCommit = time.Duration(h.settings.BlockMs) * time.Millisecond
	c.Consensus.TimeoutPropose = time.Second
	c.Consensus.PeerGossipSleepDuration = 10 * time.Millisecond
	c.Consensus.BlockTimeTolerance = 10 * time.Second // how far a proposer's clock may be ahead
	return c
}
