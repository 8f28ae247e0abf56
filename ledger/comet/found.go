package comet

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtp2p "github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// Init makes dir the home of a replica: settings, genesis and keys. It overwrites nothing, and
// fails if dir already holds a chain.
func Init(dir string, o Options) error {
	return InitAll([]Place{{Dir: dir, API: o.API, Peering: o.Peering, Public: o.Public}}, o)
}

// Place is the machine of one of several replicas of a new chain.
type Place struct {
	Dir     string // its home
	API     string // as in Options
	Peering string // as in Options
	Public  string // as in Options; others reach it there, or else at Peering
}

// InitAll makes the homes of all replicas that a new chain begins with. Each has the others among
// its peers.
func InitAll(places []Place, o Options) error {
	var homes []fresh
	for _, p := range places {
		h, err := newHome(p, o)
		if err != nil {
			return fmt.Errorf("set up a chain in %q: %w", p.Dir, err)
		}
		homes = append(homes, h)
	}
	genesis, err := o.genesis(homes)
	if err != nil {
		return fmt.Errorf("set up a chain in %q: %w", places[0].Dir, err)
	}
	for i, h := range homes {
		for j, other := range homes {
			if i != j {
				h.settings.Peers = append(h.settings.Peers, other.address())
			}
		}
		if err := h.write(genesis); err != nil {
			return fmt.Errorf("set up a chain in %q: %w", h.dir, err)
		}
	}
	return nil
}

// fresh is a home that is being made.
type fresh struct {
	dir       string
	settings  settings
	validator cmted25519.PrivKey
	node      cmted25519.PrivKey
	chance    chance.Secret
}

func newHome(p Place, o Options) (fresh, error) {
	o.API, o.Peering, o.Public = p.API, p.Peering, p.Public
	h := fresh{dir: p.Dir, settings: o.settings(), validator: cmted25519.GenPrivKey(), node: cmted25519.GenPrivKey()}
	h.settings.Peers = slices.Clone(h.settings.Peers)
	if err := h.settings.check(); err != nil {
		return h, err
	}
	if _, err := os.Stat(filepath.Join(p.Dir, genesisFile)); err == nil {
		return h, errors.New("there is one already")
	} else if !errors.Is(err, os.ErrNotExist) {
		return h, err
	}
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return h, err
	}
	var err error
	h.chance, err = chance.NewSecret(seed)
	return h, err
}

// address returns the address under which other replicas list this one as a peer.
func (h fresh) address() string {
	at := h.settings.Public
	if at == "" {
		at = h.settings.Peering
	}
	return string(cmtp2p.PubKeyToID(h.node.PubKey())) + "@" + at
}

// makeDirs makes the directories of a replica that are not there. All but the keys may be deleted:
// a replica fetches their content again.
func makeDirs(dir string) error {
	for _, d := range []string{"", keysDir, dataDir, stateDir, lightsDir, historyDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (h fresh) write(genesis *cmttypes.GenesisDoc) error {
	if err := makeDirs(h.dir); err != nil {
		return err
	}
	pv := privval.NewFilePV(h.validator, filepath.Join(h.dir, validatorFile), filepath.Join(h.dir, votesFile))
	// The genesis file comes last: with it the directory is complete.
	for _, f := range []struct {
		name  string
		value any
		mode  os.FileMode
	}{
		{settingsFile, h.settings, settingsMode},
		{validatorFile, pv.Key, secretMode},
		{votesFile, pv.LastSignState, secretMode},
		{nodeFile, cmtp2p.NodeKey{PrivKey: h.node}, secretMode},
		{chanceFile, newChanceKey(h.chance), secretMode},
		{genesisFile, genesis, settingsMode},
	} {
		b, err := cmtjson.MarshalIndent(f.value, "", "  ")
		if f.name == settingsFile || f.name == chanceFile { // CometBFT writes 64-bit numbers as strings
			b, err = json.MarshalIndent(f.value, "", "  ")
		}
		if err != nil {
			return err
		}
		if err := atomicfile.WriteBytes(filepath.Join(h.dir, f.name), f.mode, append(b, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// genesis returns the document that all replicas of the chain share.
func (o Options) genesis(homes []fresh) (*cmttypes.GenesisDoc, error) {
	if o.Genesis != nil {
		doc, _, err := parseGenesis(o.Genesis)
		if err == nil && o.Chain != "" && o.Chain != doc.ChainID {
			err = fmt.Errorf("the genesis is of chain %q, want %q", doc.ChainID, o.Chain)
		}
		return doc, err
	}
	now := time.Now().UTC()
	g := host.Genesis{Chain: o.Chain, TimeMs: uint64(now.UnixMilli())}
	g.Creators = slices.Clone(o.Creators)
	slices.SortFunc(g.Creators, key.Public.Compare)
	g.Creators = slices.Compact(g.Creators)
	g.Accounts = slices.Clone(o.Accounts)
	sort.Slice(g.Accounts, func(i, j int) bool { return g.Accounts[i].Key.Compare(g.Accounts[j].Key) < 0 })
	for _, h := range homes {
		g.Replicas = append(g.Replicas, host.Founder{
			Key: key.Public(h.validator.PubKey().Bytes()), Chance: h.chance.Public(), Operator: o.Operator, Stake: o.Stake,
		})
	}
	sort.Slice(g.Replicas, func(i, j int) bool { return g.Replicas[i].Key.Compare(g.Replicas[j].Key) < 0 })
	state, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	doc := &cmttypes.GenesisDoc{GenesisTime: now, ChainID: o.Chain, ConsensusParams: consensusParams(), AppState: state}
	if doc.Validators, err = validators(g); err != nil {
		return nil, err
	}
	b, err := cmtjson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	doc, _, err = parseGenesis(b)
	return doc, err
}

// consensusParams returns a new chain's parameters of blocks.
func consensusParams() *cmttypes.ConsensusParams {
	p := cmttypes.DefaultConsensusParams()
	p.Block.MaxBytes = blockBytesMax
	// A validator that has left can be punished while its stake is bonded.
	p.Evidence.MaxAgeDuration = host.UnbondMs * time.Millisecond
	return p
}

// validators returns CometBFT's form of the replicas in a genesis.
func validators(g host.Genesis) ([]cmttypes.GenesisValidator, error) {
	host, err := host.NewHost(g, rules(nil))
	if err != nil {
		return nil, err
	}
	var list []cmttypes.GenesisValidator
	for _, r := range host.Replicas() {
		k := cmted25519.PubKey(r.Key[:])
		list = append(list, cmttypes.GenesisValidator{Address: k.Address(), PubKey: k, Power: int64(r.Power)})
	}
	return list, nil
}

// blockBytesMax holds a thousand witness reports of 2 to 4 KiB.
const blockBytesMax = 4 << 20

// parseGenesis reads and checks a genesis document and the ledger's part of it.
func parseGenesis(b []byte) (*cmttypes.GenesisDoc, host.Genesis, error) {
	doc := new(cmttypes.GenesisDoc)
	if err := cmtjson.Unmarshal(b, doc); err != nil {
		return nil, host.Genesis{}, fmt.Errorf("genesis: %w", err)
	}
	for i, v := range doc.Validators {
		if v.PubKey == nil { // ValidateAndComplete would panic
			return nil, host.Genesis{}, fmt.Errorf("genesis: validator %d has no pub_key", i)
		}
	}
	if err := doc.ValidateAndComplete(); err != nil {
		return nil, host.Genesis{}, fmt.Errorf("genesis: %w", err)
	}
	var g host.Genesis
	if err := json.Unmarshal(doc.AppState, &g); err != nil {
		return nil, host.Genesis{}, fmt.Errorf("genesis: app_state: %w", err)
	}
	if err := rules(nil).Check(g); err != nil {
		return nil, host.Genesis{}, fmt.Errorf("genesis: app_state: %w", err)
	}
	if g.Chain != doc.ChainID {
		return nil, host.Genesis{}, fmt.Errorf("genesis: chain_id is %q, app_state is of chain %q", doc.ChainID, g.Chain)
	}
	want, err := validators(g)
	if err != nil {
		return nil, host.Genesis{}, fmt.Errorf("genesis: app_state: %w", err)
	}
	same := slices.EqualFunc(doc.Validators, want, func(a, b cmttypes.GenesisValidator) bool {
		return a.PubKey.Equals(b.PubKey) && a.Power == b.Power
	})
	if len(want) == 0 || !same {
		return nil, host.Genesis{}, errors.New("genesis: the validators are not the replicas in app_state; a chain made by an older entrain has none there")
	}
	return doc, g, nil
}

// Identity holds a replica's public keys and its peer address.
type Identity struct {
	Chain  string
	Key    key.Public // of its votes
	Chance key.Public // of its random values
	Peer   string     // for the peers of others, as ID@host:port, if reachable
	secret key.Private
}

// ReadIdentity reads the home of a replica.
func ReadIdentity(dir string) (Identity, error) {
	h, err := readHome(dir)
	if err != nil {
		return Identity{}, err
	}
	k, err := h.votes()
	if err != nil {
		return Identity{}, err
	}
	return Identity{Chain: h.ledger.Chain, Key: k.Public(), Chance: h.chance.Public(), Peer: h.peerAddress(), secret: k}, nil
}

// votes returns the key that the replica votes with.
func (h *home) votes() (key.Private, error) {
	secret, ok := h.validator.Key.PrivKey.(cmted25519.PrivKey)
	if !ok {
		return key.Private{}, fmt.Errorf("%s: the key is not an Ed25519 key", filepath.Join(h.dir, validatorFile))
	}
	return key.FromSeed([32]byte(secret[:32])), nil
}

// Stake is the transaction by which an operator puts tokens behind the replica.
func (i Identity) Stake(operator key.Public, amount uint64) host.Stake {
	return host.Stake{
		Replica: i.Key, Amount: amount, Chance: i.Chance, Consent: host.Consent(i.secret, i.Chain, operator, i.Chance),
	}
}

// peerAddress returns the peer address with which others follow this replica.
func (h *home) peerAddress() string {
	at := h.settings.Public
	if at == "" {
		at = h.settings.Peering
	}
	if _, port, err := net.SplitHostPort(at); err != nil || port == "0" {
		at = "(no address that others can reach; see \"peering\" in chain.json)"
	}
	return string(h.node.ID()) + "@" + at
}
