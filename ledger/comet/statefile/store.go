// Package statefile keeps on a replica's disk what CometBFT does not: the ledger's state as of some
// block, and the list of the states that each run was in.
package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// Store keeps the ledger's state as of some block in a file. CometBFT keeps the blocks, and has
// each on disk before the application receives it, so blocks that the file lacks are replayed. The
// file need not be recent or written often. It must be whole, and no newer than the blocks.
//
//	"entrain ledger 1\n" | the state, as Host.Append writes it | Hash of the state
//
// A new state is written beside the old one, which stays as PREVIOUS until the next. The store
// therefore survives being killed between any two system calls. If a file is damaged, an operator
// can continue from the older one by hand.
type Store struct {
	Dir    string
	Rules  host.Rules
	Height uint64 // of the state in the file; 0 if there is none
	Older  uint64 // of the state in the previous file; 0 if there is none or it is not known
}

// File is the name of the file in the directory of a [Store].
const File = "host"

const (
	previousFile = File + ".previous"
	magic        = "entrain ledger 1\n"
	domain       = "entrain/ledger/file"
)

// Load returns the state that was saved last; nil if there is none.
func (s *Store) Load() (*host.Host, error) {
	path := filepath.Join(s.Dir, File)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) { // never saved, or killed between the two renames
		path = filepath.Join(s.Dir, previousFile)
		b, err = os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ledger state: %w", err)
	}
	h, err := decode(b, s.Rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: move the file away to continue from %s and the blocks kept", path, err, previousFile)
	}
	s.Height = h.Height()
	return h, nil
}

// Save makes h's state durable.
func (s *Store) Save(h *host.Host) error {
	body := h.Append([]byte(magic))
	sum := wire.Sum(domain, body[len(magic):])
	path, previous := filepath.Join(s.Dir, File), filepath.Join(s.Dir, previousFile)
	if err := writeSynced(path+".new", append(body, sum[:]...), 0o600); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := os.Rename(path, previous); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	if err := atomicfile.SyncDir(s.Dir); err != nil {
		return fmt.Errorf("save ledger state: %w", err)
	}
	s.Older, s.Height = s.Height, h.Height()
	return nil
}

func decode(b []byte, rules host.Rules) (*host.Host, error) {
	body, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(body) < len(wire.Hash{}) {
		return nil, errors.New("not a file of ledger state")
	}
	n := len(body) - len(wire.Hash{})
	if wire.Hash(body[n:]) != wire.Sum(domain, body[:n]) {
		return nil, errors.New("ledger state is corrupted (its checksum does not match)")
	}
	return host.ParseHost(body[:n], rules)
}

// writeSynced writes a file and waits until it is durable.
func writeSynced(path string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
