// Package statefile keeps a participant's state in a file, as node.Store.
//
// The file has the format of checkpoint.State, drawn in package checkpoint: parameters and private
// optimizer state, each under its hash, and a header under a checksum. It is replaced whole
// (package atomicfile), so that kill -9, a full disk or a power cut leave the state of the save
// before. Whatever is not as it was written is an error on loading, with the remedy: never a state
// that is slightly wrong.
package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// Store is a node.Store on a file. Its methods are not for concurrent use, within a process or
// between processes: the owner of the directory locks it.
type Store struct {
	path                    string
	paramsLen, optimizerLen int
}

var _ node.SealStore = (*Store)(nil)

// commitmentSuffix is appended to the path of the state for the file of the last commitment.
const commitmentSuffix = ".commitment"

// commitmentBytesMax bounds that file: a signed commitment has a few hundred bytes.
const commitmentBytesMax = 4 << 10

// SaveCommitment replaces the last commitment, and returns when it is on the disk.
func (s *Store) SaveCommitment(signed []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("commitment file: %w", err)
	}
	return atomicfile.WriteBytes(s.path+commitmentSuffix, 0o600, signed)
}

// LoadCommitment returns the last commitment, nil if there was none.
func (s *Store) LoadCommitment() ([]byte, error) {
	f, err := os.Open(s.path + commitmentSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("commitment file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, commitmentBytesMax+1))
	if err == nil && len(b) > commitmentBytesMax {
		err = fmt.Errorf("it has more than %d bytes", commitmentBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("commitment file %q: %w", f.Name(), err)
	}
	return b, nil
}

// New returns a store at path of states with these lengths. The directory is made with the first
// Save.
func New(path string, paramsLen, optimizerLen int) *Store {
	return &Store{path: path, paramsLen: paramsLen, optimizerLen: optimizerLen}
}

// Load reads the state. ok is false if there is none. A state that is damaged, or belongs to
// another model, is an error: a *checkpoint.CorruptError in the former case.
func (s *Store) Load() (saved node.Saved, ok bool, err error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return node.Saved{}, false, nil
	}
	if err != nil {
		return node.Saved{}, false, fmt.Errorf("state file: %w", err)
	}
	defer f.Close()
	st, err := checkpoint.ReadState(f, s.paramsLen, s.optimizerLen)
	if err != nil {
		return node.Saved{}, false, fmt.Errorf("state file %q: %w", s.path, err)
	}
	return node.Saved{Run: st.Run, Epoch: coordinator.Epoch(st.Epoch), Round: coordinator.Round(st.Round), Step: coordinator.Step(st.Step), Params: st.Params, Optimizer: st.Optimizer}, true, nil
}

// Save replaces the state. After an error the file is as before.
func (s *Store) Save(saved node.Saved) error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	return atomicfile.Write(s.path, 0o600, func(w io.Writer) error {
		return checkpoint.WriteState(w, checkpoint.State{
			Run: saved.Run, Epoch: uint32(saved.Epoch), Round: uint32(saved.Round), Step: uint32(saved.Step), Params: saved.Params, Optimizer: saved.Optimizer,
		})
	})
}

// sealedSuffix is appended to the path of the state for the file of the update committed to last.
const sealedSuffix = ".sealed"

// sealedBytesMax bounds that file: one byte a parameter, of the largest model that a machine holds
// in memory.
const sealedBytesMax = 1 << 36

// SaveSealed replaces the update, and returns when it is on the disk: the round, and then its
// bytes.
func (s *Store) SaveSealed(round coordinator.Round, update []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("file of the last update: %w", err)
	}
	return atomicfile.Write(s.path+sealedSuffix, 0o600, func(w io.Writer) error {
		if _, err := w.Write(wire.AppendU32(nil, uint32(round))); err != nil {
			return err
		}
		_, err := w.Write(update)
		return err
	})
}

// LoadSealed returns the last update, nil if there was none. The caller, which knows its root,
// checks that it is whole.
func (s *Store) LoadSealed() (round coordinator.Round, update []byte, err error) {
	f, err := os.Open(s.path + sealedSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("file of the last update: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, sealedBytesMax))
	if err != nil {
		return 0, nil, fmt.Errorf("file of the last update %q: %w", f.Name(), err)
	}
	r := wire.NewReader(b)
	if round = coordinator.Round(r.U32()); r.Err() != wire.OK {
		return 0, nil, fmt.Errorf("file of the last update %q: it ends in its head", f.Name())
	}
	return round, r.Rest(), nil
}
