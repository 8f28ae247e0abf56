package comet

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	cmtp2p "github.com/cometbft/cometbft/p2p"

	"github.com/entrain-network/entrain/chain/bittensor"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// Defaults of Options.
const (
	DefaultAPI            = "127.0.0.1:7370"
	defaultPeering        = "127.0.0.1:0"
	DefaultBlock          = 200 * time.Millisecond
	defaultKeepBlocks     = 10_000
	defaultSnapshotBlocks = 50
)

// Options configures Init. Chain or Genesis must be given; the zero value of each other field means
// its default.
type Options struct {
	Chain    string       // name of a new chain, with this replica as its only validator
	Creators []key.Public // of a new chain: who may create runs; none means anyone

	// Accounts allocates the tokens of a new chain. No others are ever created.
	Accounts []host.Allocation

	// Operator acts for the replicas of a new chain. Stake is the stake of each in tokens, besides
	// Accounts.
	Operator key.Public
	Stake    uint64

	// Genesis is the content of an existing chain's genesis file. The replica follows that chain
	// and serves clients, but has no vote before it is given a seat.
	Genesis []byte
	Peers   []string // other replicas to keep connections to, as ID@host:port
	Sync    []string // endpoints to fetch the state from, instead of replaying all blocks

	API     string // TCP address of the API for clients; DefaultAPI
	Peering string // TCP address for other replicas; defaultPeering: this machine only, any free port
	Public  string // the address where others reach Peering, if it is another

	Block          time.Duration // between blocks: the resolution of deadlines; DefaultBlock
	KeepBlocks     uint64        // older blocks are deleted; defaultKeepBlocks
	SnapshotBlocks uint64        // blocks between two writes of the state; defaultSnapshotBlocks
}

// settings is the content of chain.json: the part of Options that may be edited between two runs of
// a replica.
type settings struct {
	API            string   `json:"api"`
	Peering        string   `json:"peering"`
	Public         string   `json:"public,omitempty"`
	Peers          []string `json:"peers"`
	Sync           []string `json:"sync,omitempty"`
	Proxies        []string `json:"proxies,omitempty"`   // web servers that say who asks
	Bittensor      string   `json:"bittensor,omitempty"` // a node of Bittensor: see lookout
	BlockMs        uint64   `json:"block_ms"`
	KeepBlocks     uint64   `json:"keep_blocks"`
	SnapshotBlocks uint64   `json:"snapshot_blocks"`
}

const (
	blockMsMax   = 60_000 // longer than any sensible deadline of a round
	settingsMode = 0o644
	secretMode   = 0o600
)

func (o Options) settings() settings {
	s := settings{
		API: o.API, Peering: o.Peering, Public: o.Public, Peers: o.Peers, Sync: o.Sync,
		BlockMs: uint64(o.Block.Milliseconds()), KeepBlocks: o.KeepBlocks, SnapshotBlocks: o.SnapshotBlocks,
	}
	if s.API == "" {
		s.API = DefaultAPI
	}
	if s.Peering == "" {
		s.Peering = defaultPeering
	}
	if s.Peers == nil {
		s.Peers = []string{}
	}
	if s.BlockMs == 0 {
		s.BlockMs = uint64(DefaultBlock.Milliseconds())
	}
	if s.KeepBlocks == 0 {
		s.KeepBlocks = defaultKeepBlocks
	}
	if s.SnapshotBlocks == 0 {
		s.SnapshotBlocks = defaultSnapshotBlocks
	}
	return s
}

func (s settings) check() error {
	var faults []error
	for _, p := range s.Proxies {
		if _, err := netip.ParseAddr(p); err != nil {
			faults = append(faults, fmt.Errorf("proxies: %q is not an IP address such as 127.0.0.1", p))
		}
	}
	for _, a := range []struct{ field, addr string }{{"api", s.API}, {"peering", s.Peering}} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is not HOST:PORT: %w", a.field, a.addr, err))
		}
	}
	if _, _, err := net.SplitHostPort(s.Public); s.Public != "" && err != nil {
		faults = append(faults, fmt.Errorf("public: %q is not HOST:PORT: %w", s.Public, err))
	}
	for _, e := range s.Sync {
		if _, _, err := endpoint(e); err != nil {
			faults = append(faults, fmt.Errorf("sync: %w", err))
		}
	}
	for _, p := range s.Peers {
		if err := checkPeer(p); err != nil {
			faults = append(faults, fmt.Errorf("peers: %q is not an ID@host:port: %w", p, err))
		}
	}
	if s.Bittensor != "" {
		if err := bittensor.CheckURL(s.Bittensor); err != nil {
			faults = append(faults, fmt.Errorf("bittensor: %w", err))
		}
	}
	if s.BlockMs == 0 || s.BlockMs > blockMsMax {
		faults = append(faults, fmt.Errorf("block_ms: %d, want 1 to %d", s.BlockMs, blockMsMax))
	}
	if s.SnapshotBlocks == 0 || s.KeepBlocks < 2*s.SnapshotBlocks {
		faults = append(faults, fmt.Errorf("snapshot_blocks: %d, want 1 to half of keep_blocks, %d", s.SnapshotBlocks, s.KeepBlocks))
	}
	return errors.Join(faults...)
}

// checkPeer checks how an address is written. Whether its host has a name by now is found when it
// is dialled.
func checkPeer(s string) error {
	id, addr, _ := strings.Cut(s, "@")
	b, err := hex.DecodeString(id)
	if err == nil && len(b) != cmtp2p.IDByteLength {
		err = fmt.Errorf("ID of %d bytes, want %d", len(b), cmtp2p.IDByteLength)
	}
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil && (host == "" || port == "") {
		err = errors.New("host or port is missing")
	}
	return err
}
