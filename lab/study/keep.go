package study

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/lab/results"
	"github.com/entrain-network/entrain/wire"
)

// keeper keeps the losses of runs in a file. Runs in progress have files beside it. Without a file
// it keeps nothing.
type keeper struct {
	path string
	file results.File[kept]
	done map[wire.Hash][]float64
}

// kept is a result in the file.
type kept struct {
	ID     wire.Hash `json:"id"`   // hash of everything that determines the losses
	What   string    `json:"what"` // for people
	Result []float64 `json:"result"`
}

func openKeeper(path string) (*keeper, error) {
	file, all, err := results.Open[kept](path)
	if err != nil {
		return nil, err
	}
	k := &keeper{path: path, file: file, done: map[wire.Hash][]float64{}}
	for _, v := range all {
		k.done[v.ID] = v.Result
	}
	return k, nil
}

// partPath returns the name of the file that keeps how far a result is.
func (k *keeper) partPath(id wire.Hash) string {
	return fmt.Sprintf("%s.%.16s.part", k.path, id)
}

// part returns the state from which a result is to be continued, or nil.
func (k *keeper) part(id wire.Hash, params, optimizer int) (*checkpoint.State, error) {
	if k.path == "" {
		return nil, nil
	}
	f, err := os.Open(k.partPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := checkpoint.ReadState(f, params, optimizer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if s.Run != id {
		return nil, fmt.Errorf("%s: is of another run: remove it", f.Name())
	}
	return &s, nil
}

// putPart keeps the state from which a result is to be continued, in place of an earlier one.
func (k *keeper) putPart(s checkpoint.State) error {
	if k.path == "" {
		return nil
	}
	return atomicfile.Write(k.partPath(s.Run), 0o600, func(w io.Writer) error { return checkpoint.WriteState(w, s) })
}

// dropPart removes what putPart keeps.
func (k *keeper) dropPart(id wire.Hash) error {
	if k.path == "" {
		return nil
	}
	if err := os.Remove(k.partPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
