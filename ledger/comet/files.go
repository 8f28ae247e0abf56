package comet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtp2p "github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
)

// Where things are in a replica's directory; the package comment says what they are.
const (
	settingsFile  = "chain.json"
	genesisFile   = "genesis.json"
	keysDir       = "keys"
	validatorFile = "keys/validator.json"
	nodeFile      = "keys/node.json"
	chanceFile    = "keys/chance.json"
	dataDir       = "data"
	votesFile     = "data/votes.json"
	stateDir      = "state"
	lightsDir     = "headers"
	historyDir    = "history"
)

// fileBytesMax bounds what is read of a file that people may edit.
const fileBytesMax = 1 << 20

// home is the content of a replica's directory, apart from its blocks and its state.
type home struct {
	dir      string
	settings settings
	genesis  *cmttypes.GenesisDoc

	genesisBytes []byte // the file's content

	ledger    host.Genesis
	validator *privval.FilePV
	node      *cmtp2p.NodeKey
	chance    chance.Secret
}

// readHome reads and checks everything before anything is opened, because CometBFT ends the process
// when it reads a damaged key file.
func readHome(dir string) (home, error) {
	h := home{dir: dir}
	b, err := h.read(genesisFile)
	if errors.Is(err, os.ErrNotExist) {
		return h, fmt.Errorf("no chain in %q: set one up first", dir)
	}
	if err != nil {
		return h, err
	}
	h.genesisBytes = b
	if h.genesis, h.ledger, err = parseGenesis(b); err != nil {
		return h, fmt.Errorf("%s: %w", filepath.Join(dir, genesisFile), err)
	}
	if err := h.readSettings(); err != nil {
		return h, fmt.Errorf("%s: %w", filepath.Join(dir, settingsFile), err)
	}
	var pvKey privval.FilePVKey
	var votes privval.FilePVLastSignState
	h.node = new(cmtp2p.NodeKey)
	for _, f := range []struct {
		name string
		to   any
	}{{validatorFile, &pvKey}, {votesFile, &votes}, {nodeFile, h.node}} {
		b, err := h.read(f.name)
		if err == nil {
			err = cmtjson.Unmarshal(b, f.to)
		}
		if err != nil {
			return h, fmt.Errorf("%s: %w", filepath.Join(dir, f.name), err)
		}
	}
	if pvKey.PrivKey == nil || h.node.PrivKey == nil {
		return h, fmt.Errorf("%s: a key is missing: restore it from a copy", filepath.Join(dir, keysDir))
	}
	if b, err = h.read(chanceFile); err == nil {
		h.chance, err = parseChanceKey(b)
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w", filepath.Join(dir, chanceFile), err)
	}
	h.validator = privval.NewFilePV(pvKey.PrivKey, filepath.Join(dir, validatorFile), filepath.Join(dir, votesFile))
	last := &h.validator.LastSignState // field by field, since it holds the path of its file too
	last.Height, last.Round, last.Step = votes.Height, votes.Round, votes.Step
	last.Signature, last.SignBytes = votes.Signature, votes.SignBytes
	return h, nil
}

func (h *home) readSettings() error {
	b, err := h.read(settingsFile)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&h.settings); err != nil {
		return err
	}
	return h.settings.check()
}

func (h *home) read(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(h.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(b) > fileBytesMax {
		err = fmt.Errorf("file of more than %d bytes", fileBytesMax)
	}
	return b, err
}
