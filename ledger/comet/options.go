package comet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtp2p "github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

// Defaults of Options.
const (
	DefaultAPI            = "127.0.0.1:7370"
	DefaultPeering        = "127.0.0.1:0"
	DefaultBlock          = 200 * time.Millisecond
	DefaultKeepBlocks     = 10_000
	DefaultSnapshotBlocks = 50
)

// Options say what Init sets up. The zero value of each but Chain and Genesis, one of which must be given, means its
// default.
type Options struct {
	Chain    string       // name of a new chain, with this replica as its only validator
	Creators []key.Public // of a new chain: who may create runs; none means anyone

	// Accounts are who has the tokens of a new chain. There are never more than these.
	Accounts []ledger.Allocation

	// Genesis is the content of an existing chain's genesis file. The replica follows that chain and serves clients, but
	// has no vote. It replays the chain from its first block, so some peer must keep them all.
	Genesis []byte
	Peers   []string // other replicas to keep connections to, as ID@host:port

	API     string // TCP address of the API for clients; DefaultAPI
	Peering string // TCP address for other replicas; DefaultPeering: this machine only, any free port

	Block          time.Duration // between blocks, and so the resolution of coordinators' deadlines; DefaultBlock
	KeepBlocks     uint64        // older blocks are deleted; DefaultKeepBlocks
	SnapshotBlocks uint64        // the state is written after every so many blocks; DefaultSnapshotBlocks
}

// settings is what chain.json holds: the part of Options that may be edited between two runs of a replica.
type settings struct {
	API            string   `json:"api"`
	Peering        string   `json:"peering"`
	Peers          []string `json:"peers"`
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
		API: o.API, Peering: o.Peering, Peers: o.Peers,
		BlockMs: uint64(o.Block.Milliseconds()), KeepBlocks: o.KeepBlocks, SnapshotBlocks: o.SnapshotBlocks,
	}
	if s.API == "" {
		s.API = DefaultAPI
	}
	if s.Peering == "" {
		s.Peering = DefaultPeering
	}
	if s.Peers == nil {
		s.Peers = []string{}
	}
	if s.BlockMs == 0 {
		s.BlockMs = uint64(DefaultBlock.Milliseconds())
	}
	if s.KeepBlocks == 0 {
		s.KeepBlocks = DefaultKeepBlocks
	}
	if s.SnapshotBlocks == 0 {
		s.SnapshotBlocks = DefaultSnapshotBlocks
	}
	return s
}

func (s settings) check() error {
	var faults []error
	for _, a := range []struct{ field, addr string }{{"api", s.API}, {"peering", s.Peering}} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is no host:port: %w", a.field, a.addr, err))
		}
	}
	for _, p := range s.Peers {
		if _, err := cmtp2p.NewNetAddressString(p); err != nil {
			faults = append(faults, fmt.Errorf("peers: %q is no ID@host:port: %w", p, err))
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

// Init makes dir the home of a replica: settings, genesis and keys. It does not touch what is there already: a dir that
// holds a chain is an error.
func Init(dir string, o Options) error {
	if err := initDir(dir, o); err != nil {
		return fmt.Errorf("set up a chain in %q: %w", dir, err)
	}
	return nil
}

func initDir(dir string, o Options) error {
	s := o.settings()
	if err := s.check(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, genesisFile)); err == nil {
		return errors.New("there is one already")
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	validator := cmted25519.GenPrivKey()
	genesis, err := o.genesis(validator)
	if err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Join(dir, keysDir), filepath.Join(dir, dataDir), filepath.Join(dir, stateDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	pv := privval.NewFilePV(validator, filepath.Join(dir, validatorFile), filepath.Join(dir, votesFile))
	// The genesis file comes last: with it the directory is complete.
	for _, f := range []struct {
		name  string
		value any
		mode  os.FileMode
	}{
		{settingsFile, s, settingsMode},
		{validatorFile, pv.Key, secretMode},
		{votesFile, pv.LastSignState, secretMode},
		{nodeFile, cmtp2p.NodeKey{PrivKey: cmted25519.GenPrivKey()}, secretMode},
		{genesisFile, genesis, settingsMode},
	} {
		b, err := cmtjson.MarshalIndent(f.value, "", "  ")
		if f.name == settingsFile { // CometBFT's JSON writes 64-bit numbers as strings, which nobody wants to edit
			b, err = json.MarshalIndent(f.value, "", "  ")
		}
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.name), append(b, '\n'), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// genesis returns the document that all replicas of the chain share.
func (o Options) genesis(validator cmted25519.PrivKey) (*cmttypes.GenesisDoc, error) {
	if o.Genesis != nil {
		doc, _, err := parseGenesis(o.Genesis)
		if err == nil && o.Chain != "" && o.Chain != doc.ChainID {
			err = fmt.Errorf("the genesis is of chain %q, want %q", doc.ChainID, o.Chain)
		}
		return doc, err
	}
	now := time.Now().UTC()
	creators := slices.Clone(o.Creators)
	slices.SortFunc(creators, key.Public.Compare)
	accounts := slices.Clone(o.Accounts)
	slices.SortFunc(accounts, func(a, b ledger.Allocation) int { return a.Key.Compare(b.Key) })
	state, err := json.Marshal(ledger.Genesis{
		Chain: o.Chain, TimeMs: uint64(now.UnixMilli()), Creators: slices.Compact(creators), Accounts: accounts,
	})
	if err != nil {
		return nil, err
	}
	params := cmttypes.DefaultConsensusParams()
	params.Block.MaxBytes = blockBytesMax
	doc := &cmttypes.GenesisDoc{
		GenesisTime:     now,
		ChainID:         o.Chain,
		ConsensusParams: params,
		Validators:      []cmttypes.GenesisValidator{{PubKey: validator.PubKey(), Power: 1, Name: "first"}},
		AppState:        state,
	}
	b, err := cmtjson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	doc, _, err = parseGenesis(b)
	return doc, err
}

// blockBytesMax holds a thousand witness reports of 2 to 4 KiB.
const blockBytesMax = 4 << 20

// parseGenesis reads and checks a genesis document and the ledger's part of it.
func parseGenesis(b []byte) (*cmttypes.GenesisDoc, ledger.Genesis, error) {
	doc, err := cmttypes.GenesisDocFromJSON(b)
	if err != nil {
		return nil, ledger.Genesis{}, fmt.Errorf("genesis: %w", err)
	}
	var g ledger.Genesis
	if err := json.Unmarshal(doc.AppState, &g); err != nil {
		return nil, ledger.Genesis{}, fmt.Errorf("genesis: app_state: %w", err)
	}
	if err := g.Check(); err != nil {
		return nil, ledger.Genesis{}, fmt.Errorf("genesis: app_state: %w", err)
	}
	if g.Chain != doc.ChainID {
		return nil, ledger.Genesis{}, fmt.Errorf("genesis: chain_id is %q, app_state is of chain %q", doc.ChainID, g.Chain)
	}
	return doc, g, nil
}
