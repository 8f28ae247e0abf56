package comet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// store keeps the ledger's state as of some block in a file. CometBFT keeps the blocks, and has
// each on disk before the application receives it, so blocks that the file lacks are replayed. The
// file need not be recent or written often. It must be whole, and no newer than the blocks.
//
//	"entrain ledger 1\n" | the state, as Host.Append writes it | Hash of the state
//
// A new state is written beside the old one, which stays as PREVIOUS until the next. The store
// therefore survives being killed between any two system calls. If a file is damaged, an operator
// can continue from the older one by hand.
type store struct {
	dir    string
	rules  host.Rules
	height uint64 // of the state in the file; 0 if there is none
	older  uint64 // of the state in the previous file; 0 if there is none or it is not known
}

const (
	hostFile     = "host"
	hostPrevious = "host.previous"
	hostMagic    = "entrain ledger 1\n"
	hostDomain   = "entrain/ledger/file"
)

// load returns the state that was saved last; nil if there is none.
func (s *store) load() (*host.Host, error) {
	path := filepath.Join(s.dir, hostFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) { // never saved, or killed between the two renames
		path = filepath.Join(s.dir, hostPrevious)
		b, err = os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ledger state: %w", err)
	}
	h, err := decodeHost(b, s.rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: move the file away to continue from %s and the blocks kept", path, err, hostPrevious)
	}
	s.height = h.Height()
	return h, nil
}

// save makes h's state durable.
func (s *store) save(h *host.Host) error {
	body := h.Append([]byte(hostMagic))
	sum := wire.Sum(hostDomain, body[len(hostMagic):])
	path, previous := filepath.Join(s.dir, hostFile), filepath.Join(s.dir, hostPrevious)
	if err := writeSynced(path+".new", append(body, sum[:]...), secretMode); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := os.Rename(path, previous); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := syncDir(s.dir); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	s.older, s.height = s.height, h.Height()
	return nil
}

func decodeHost(b []byte, rules host.Rules) (*host.Host, error) {
	body, ok := bytes.CutPrefix(b, []byte(hostMagic))
	if !ok || len(body) < len(wire.Hash{}) {
		return nil, errors.New("not a file of ledger state")
	}
	n := len(body) - len(wire.Hash{})
	if wire.Hash(body[n:]) != wire.Sum(hostDomain, body[:n]) {
		return nil, errors.New("ledger state is corrupted (its checksum does not match)")
	}
	return host.ParseHost(body[:n], rules)
}
