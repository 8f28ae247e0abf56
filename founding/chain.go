package founding

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	"github.com/entrain-network/entrain/wire"
)

// Ports of the first of the replicas that share a machine; each further one takes the next ones.
const (
	apiPort     = 7370
	peeringPort = 26656
)

// Replica says how a replica is set up, in the words of the command line.
type Replica struct {
	Home  string   // directory
	API   string   // where it listens for clients; "": at this machine only, or everywhere with Public
	Peers []string // as in comet.Options
	// Public is where others reach the replica, as HOST or HOST:PORT, where PORT is for replicas. A
	// new chain has one replica for each. None: this machine only.
	Public []string

	// Of a new chain:

	ID       string
	Creators []string // keys that may create runs; none: anyone may
	Supply   uint64   // tokens; 0: what Allocate gives away
	Allocate []string // KEY=AMOUNT
	Bond     uint64   // tokens behind each replica
	Replicas int      // at the start; 0 is one for each Public, at least one
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
	if r.Block < 0 || r.Block > 0 && r.Block < time.Millisecond || r.Block > time.Minute {
		return nil, fmt.Errorf("--block %s: want 1ms to 1m", r.Block)
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
	case r.Genesis != "" && (r.Replicas > 1 || len(r.Public) > 1):
		return nil, errors.New("with --genesis this sets up one replica: leave out --replicas, and give --public once")
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
	list, err := r.places()
	if err != nil {
		return nil, err
	}
	if err := comet.InitAll(list, o); err != nil {
		return nil, err
	}
	return list, nil
}

// places returns where the replicas will run. A single one lives in Home; several live in
// directories below it.
func (r Replica) places() (list []comet.Place, err error) {
	n := r.Replicas
	if n == 0 {
		n = max(1, len(r.Public))
	}
	switch {
	case n < 1 || n > host.SeatsMax:
		return nil, fmt.Errorf("--replicas %d: want 1 to %d", n, host.SeatsMax)
	case len(r.Public) > 0 && len(r.Public) != n:
		return nil, fmt.Errorf("--public %d times, with --replicas %d: want one for each", len(r.Public), n)
	case n > 1 && r.API != "":
		return nil, errors.New("--api is for one replica: chain.json in the home of each says where it listens")
	}
	for i := range n {
		p := comet.Place{Dir: r.Home, API: r.API}
		if n > 1 {
			p = comet.Place{
				Dir: filepath.Join(r.Home, fmt.Sprint("replica-", i+1)),
				API: fmt.Sprint("127.0.0.1:", apiPort+i), Peering: fmt.Sprint("127.0.0.1:", peeringPort+i),
			}
		}
		if len(r.Public) > 0 {
			if p, err = public(p.Dir, r.API, r.Public[i]); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// public returns the place of a replica that others reach at HOST or HOST:PORT. It listens on all
// addresses of its machine, but for clients at api, if that is not "".
func public(dir, api, at string) (comet.Place, error) {
	name, port, err := net.SplitHostPort(at)
	if err != nil {
		name, port = strings.Trim(at, "[]"), strconv.Itoa(peeringPort)
	}
	ip, wrong := netip.ParseAddr(name)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || name == "" || strings.ContainsAny(name, "/@ []") ||
		wrong != nil && strings.Contains(name, ":") || wrong == nil && ip.IsUnspecified() {
		return comet.Place{}, fmt.Errorf("--public %q: want HOST or HOST:PORT at which others reach this machine", at)
	}
	all := netip.IPv4Unspecified()
	if ip.Is6() {
		all = netip.IPv6Unspecified()
	}
	if api == "" {
		api = net.JoinHostPort(all.String(), strconv.Itoa(apiPort))
	}
	return comet.Place{Dir: dir, API: api, Peering: net.JoinHostPort(all.String(), port), Public: net.JoinHostPort(name, port)}, nil
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
	o := comet.Options{Peers: r.Peers}
	if r.ID != "" || r.Genesis != "" || r.Replicas > 1 || len(r.Public) > 1 {
		return o, errors.New("with URLs this sets up one replica of their chain: leave out --chain-id, --genesis and --replicas, and give --public once")
	}
	list, err := r.places()
	if err != nil {
		return o, err
	}
	o.API, o.Peering, o.Public = list[0].API, list[0].Peering, list[0].Public
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
		return o, errors.New("the replicas at these URLs do not say where other replicas reach them: their operators set \"peering\" and \"public\" in chain.json, then entrain chain show prints it, or name one with --peer ID@HOST:PORT")
	}
	return o, comet.Init(r.Home, o)
}

// Reach is where others reach a replica, as the replica says.
type Reach struct {
	Client  string    `json:"client"`  // URL for clients
	Peer    string    `json:"peer"`    // ID@HOST:PORT for replicas; "" if none can reach it
	Genesis wire.Hash `json:"genesis"` // comet.GenesisHash
}

// Reached asks the replica at an endpoint where others reach it. A replica that is asked on its own
// machine and has a public address is reached there.
func Reached(ctx context.Context, at string) (Reach, error) {
	at, _, _ = strings.Cut(at, "#")
	status, genesis, err := comet.FetchGenesis(ctx, at)
	if err != nil {
		return Reach{}, err
	}
	r := Reach{Client: at, Genesis: comet.GenesisHash(genesis)}
	if r.Peer, err = peerAt(status.Peer, at); err != nil {
		return r, nil
	}
	u, err := url.Parse(at)
	if err != nil {
		return r, err
	}
	_, addr, _ := strings.Cut(r.Peer, "@")
	if name, _, err := net.SplitHostPort(addr); err == nil && onchain.AllPrivate([]string{at}) {
		u.Host = net.JoinHostPort(name, u.Port())
		r.Client = u.String()
	}
	return r, nil
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
