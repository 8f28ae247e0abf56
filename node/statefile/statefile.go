// Package statefile keeps a participant's state in a file, as node.Store.
//
// The state file is a header (checkpoint.StateHeader), which names the parameters and the private
// optimizer state by their roots; these are blobs, in files beside it. It is replaced whole
// (package atomicfile), after its blobs are there, so that kill -9, a full disk or a power cut
// leave the state of the save before. Whatever is not as it was written is an error on loading,
// with the remedy: never a state that is slightly wrong.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
)

// Store is a node.Store on files. Methods about the same file are not for concurrent use, within a
// process or between processes: the owner of the directory locks it.
type Store struct {
	path                    string
	paramsLen, optimizerLen int
	signed                  string // see Beside
}

// New returns a store at path of states with these lengths. The directory is made with the first
// Save.
func New(path string, paramsLen, optimizerLen int) *Store {
	return &Store{path: path, paramsLen: paramsLen, optimizerLen: optimizerLen}
}

// Beside keeps the newest own commitment in another file too. Its place is beside the key: a member
// that loses its state, or gets an older one back together with the chain, then still knows what it
// signed. Where that file may not be written, nothing is kept.
func (s *Store) Beside(path string) { s.signed = path }

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
	h, err := checkpoint.ReadStateHeader(f)
	if err == nil && (h.ParamsLen != uint64(s.paramsLen) || h.OptimizerLen != uint64(s.optimizerLen)) {
		err = fmt.Errorf("it is of another model, with %d parameters and %d numbers of optimizer state, not %d and %d", h.ParamsLen, h.OptimizerLen, s.paramsLen, s.optimizerLen)
	}
	if err != nil {
		return node.Saved{}, false, fmt.Errorf("state file %q: %w", s.path, err)
	}
	return node.Saved{Run: h.Run, Epoch: coordinator.Epoch(h.Epoch), Round: coordinator.Round(h.Round), Step: coordinator.Step(h.Step), Params: h.Params, Optimizer: h.Optimizer}, true, nil
}

// Save replaces the state. After an error the file is as before.
func (s *Store) Save(saved node.Saved) error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	return atomicfile.WriteBytes(s.path, 0o600, checkpoint.StateHeader{
		Run: saved.Run, Epoch: uint32(saved.Epoch), Round: uint32(saved.Round), Step: uint32(saved.Step),
		ParamsLen: uint64(s.paramsLen), OptimizerLen: uint64(s.optimizerLen), Params: saved.Params, Optimizer: saved.Optimizer,
	}.Append(nil))
}
