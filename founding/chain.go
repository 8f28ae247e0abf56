package founding

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// Ports of the first of the replicas that share a machine; each further one takes the next ones.
const (
	apiPort     = 7370
	peeringPort = 26656
)

// Replica says how a replica is set up, in the words of the command line.
type Replica struct {
	Home                 string // directory
	API, Peering, Public string // addresses, as in comet.Options
	Peers                []string

	// Of a new chain:

	ID       string
	Creators []string // keys that may create runs; none: anyone may
	Supply   uint64   // tokens; 0: what Allocate gives away
	Allocate []string // KEY=AMOUNT
	Bond     uint64   // tokens behind each replica
	Replicas int
	Hosts    []string // where they run; none: all on this machine
	Block    time.Duration
	// Owner returns the key of the chain's founder; the zero key if it has none and make is not
	// set.
	Owner func(make bool) (key.Public, error)

	Genesis string // file of an existing chain, in place of ID
}

// genesisBytesMax bounds a genesis file that is read.
const genesisBytesMax = 1 << 20

// Init sets up the replicas of a new chain, or one of the chain with the genesis.
func (r Replica) Init() ([]comet.Place, error) {
	if (r.ID == "") == (r.Genesis == "") {
		return nil, errors.New("say either --chain-id NAME for a new chain, or URLs or --genesis FILE for a replica of an existing one")
	}
	o := comet.Options{Chain: r.ID, API: r.API, Peers: r.Peers, Block: r.Block, Stake: r.Bond}
	for _, s := range r.Creators {
		k, err := key.ParsePublic(s)
		if err != nil {
			return nil, fmt.Errorf("--creator %q: want a public key of 64 hexadecimal digits, as entrain key prints it", s)
		}
		o.Creators = append(o.Creators, k)
	}
	var err error
	switch {
	case r.Genesis != "" && (r.Replicas > 1 || len(r.Hosts) > 0):
		return nil, errors.New("--replicas and --host are for a new chain, --genesis for a replica of an existing one")
	case r.Genesis != "":
		o.Stake = 0
		if o.Genesis, err = atomicfile.ReadBounded(r.Genesis, genesisBytesMax); err != nil {
			return nil, fmt.Errorf("genesis: %w", err)
		}
	case !host.ChainIDValid(r.ID): // before a key is made for it
		return nil, fmt.Errorf("chain id %q: want 1 to %d of a-z, 0-9 and inner '-'", r.ID, host.ChainIDBytesMax)
	default:
		if o.Accounts, err = accounts(r.Allocate, r.Supply, func() (key.Public, error) { return r.Owner(true) }); err != nil {
			return nil, err
		}
		// A chain without tokens needs no operator.
		if o.Operator, err = r.Owner(r.Bond > 0); err != nil {
			return nil, err
		}
	}
	list, err := places(r.Home, r.API, r.Replicas, r.Hosts)
	if err != nil {
		return nil, err
	}
	if err := comet.InitAll(list, o); err != nil {
		return nil, err
	}
	return list, nil
}

// places returns where the replicas of a new chain will run. A single replica lives in dir and
// serves clients at api. Several live in directories below dir: all on this machine, or one on each
// of hosts.
func places(dir, api string, replicas int, hosts []string) ([]comet.Place, error) {
	switch {
	case replicas < 1 || replicas > host.SeatsMax:
		return nil, fmt.Errorf("--replicas %d: want 1 to %d", replicas, host.SeatsMax)
	case len(hosts) > 0 && len(hosts) != replicas:
		return nil, fmt.Errorf("--host %d times, with --replicas %d: want one for each", len(hosts), replicas)
	case replicas == 1 && len(hosts) == 0:
		return []comet.Place{{Dir: dir, API: api}}, nil
	}
	var list []comet.Place
	for i := range replicas {
		p := comet.Place{
			Dir: filepath.Join(dir, fmt.Sprint("replica-", i+1)),
			API: fmt.Sprint("127.0.0.1:", apiPort+i), Peering: fmt.Sprint("127.0.0.1:", peeringPort+i),
		}
		if len(hosts) > 0 {
			p.API, p.Peering = fmt.Sprint("0.0.0.0:", apiPort), fmt.Sprint("0.0.0.0:", peeringPort)
			p.Public = net.JoinHostPort(hosts[i], fmt.Sprint(peeringPort))
		}
		list = append(list, p)
	}
	return list, nil
}

// accounts returns the accounts of a new chain: one for each KEY=AMOUNT in allocate, and the rest
// of the supply for the key that owner returns, which it calls only if there is a rest. A supply of
// 0 is what allocate gives away.
func accounts(allocate []string, supply uint64, owner func() (key.Public, error)) ([]host.Allocation, error) {
	var list []host.Allocation
	given := uint64(0)
	for _, s := range allocate {
		who, amount, _ := strings.Cut(s, "=")
		k, err := key.ParsePublic(who)
		n, err2 := strconv.ParseUint(amount, 10, 64)
		if err := errors.Join(err, err2); err != nil || n == 0 || n > host.SupplyMax-given {
			return nil, fmt.Errorf("--allocate %q: want KEY=AMOUNT, with at most %d tokens in all", s, uint64(host.SupplyMax))
		}
		given += n
		list = append(list, host.Allocation{Key: k, Amount: n})
	}
	switch {
	case supply == 0 || supply == given:
		return list, nil
	case supply < given || supply > host.SupplyMax:
		return nil, fmt.Errorf("--supply %d: want the %d that --allocate gives away, or more, up to %d", supply, given, uint64(host.SupplyMax))
	}
	k, err := owner()
	if err != nil {
		return nil, err
	}
	for i, a := range list {
		if a.Key == k {
			list[i].Amount += supply - given
			return list, nil
		}
	}
	return append(list, host.Allocation{Key: k, Amount: supply - given}), nil
}

// Follow sets up a replica of the chain that is served at URLs, whose genesis and peers it takes
// from there, and returns its options.
func (r Replica) Follow(ctx context.Context, urls []string) (comet.Options, error) {
	o := comet.Options{API: r.API, Peering: r.Peering, Public: r.Public, Peers: r.Peers}
	if r.ID != "" || r.Genesis != "" || r.Replicas != 1 {
		return o, errors.New("with URLs the replica follows their chain: leave out --chain-id, --genesis and --replicas")
	}
	ctx, cancel := context.WithTimeout(ctx, onchain.Patience)
	defer cancel()
	var errs []error
	named := len(o.Peers) > 0
	for _, u := range urls {
		at, err := onchain.URL(u)
		if err != nil {
			return o, err
		}
		status, genesis, err := comet.FetchGenesis(ctx, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch {
		case o.Genesis == nil:
			o.Genesis, o.Chain = genesis, status.Chain
		case string(o.Genesis) != string(genesis):
			return o, fmt.Errorf("%s serves another genesis than the URLs before it: one of them is not to be believed", at)
		}
		o.Sync = append(o.Sync, at)
		if p, err := peerAt(status.Peer, at); err == nil && !named {
			o.Peers = append(o.Peers, p)
		}
	}
	if o.Genesis == nil {
		return o, fmt.Errorf("nobody serves the chain: %w", errors.Join(errs...))
	}
	if len(o.Peers) == 0 {
		return o, errors.New("the replicas at these URLs do not say where other replicas reach them: name one with --peer ID@HOST:PORT")
	}
	return o, comet.Init(r.Home, o)
}

// peerAt returns where other replicas reach the one whose API is at a URL: as it says, but at the
// URL's host if it listens on all addresses of its machine.
func peerAt(says, at string) (string, error) {
	id, addr, _ := strings.Cut(says, "@")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		u, err := url.Parse(at)
		if err != nil {
			return "", err
		}
		host = u.Hostname()
	}
	return id + "@" + net.JoinHostPort(host, port), nil
}
