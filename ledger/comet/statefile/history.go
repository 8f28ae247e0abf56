package statefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// History keeps the list of the states that each run was in, forever, in one file a run. Each state
// takes 48 bytes. Blocks are deleted meanwhile. The ledger's state holds the root over each list,
// so any list can be verified. A replica that fetched the state fetches the lists too; entries that
// it cannot get are zeros.
type History struct{ Dir string }

const changesPage = 4096 // in one answer

func (h History) path(run string) string { return filepath.Join(h.Dir, run) }

// Write puts changes into a run's list, from the given number on. Entries that exist are written
// again when a killed replica replays blocks.
func (h History) Write(run string, from uint64, changes ...host.Change) error {
	f, err := os.OpenFile(h.path(run), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	var b []byte
	for _, c := range changes {
		b = c.Append(b)
	}
	_, err = f.WriteAt(b, int64(from)*host.ChangeBytes)
	return errors.Join(err, f.Close())
}

// Sync makes all lists durable. Changes since the last sync can be replayed from blocks.
func (h History) Sync(runs []string) error {
	for _, run := range runs {
		f, err := os.OpenFile(h.path(run), os.O_WRONLY, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Read returns changes of a run from the given number on, at most changesPage.
func (h History) Read(run string, from uint64) ([]byte, error) {
	f, err := os.Open(h.path(run))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, changesPage*host.ChangeBytes)
	n, err := f.ReadAt(b, int64(from)*host.ChangeBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n-n%host.ChangeBytes], nil
}

// ReadChanges reads a list, of at most limit changes.
func ReadChanges(b []byte, limit uint64) []host.Change {
	var list []host.Change
	for r := wire.NewReader(b); r.Len() >= host.ChangeBytes && uint64(len(list)) < limit; {
		list = append(list, host.ReadChange(&r))
	}
	return list
}
