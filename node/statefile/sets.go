package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// The accepted set of each round applied since the last save has a file of its own beside the
// state, named after the round. All integers are little endian:
//
//	"entrain-set-1\n\x00\x00" | Hash of the rest | Hash run | u32 round | u32 step |
//	Hash before | Hash after | u32 n | n × Var payload

const (
	setPrefix = ".set-"
	setMagic  = "entrain-set-1\n\x00\x00"
	setDomain = "entrain/set"
	// setsMax bounds the files that are read, and setMembersMax the payloads in one.
	setsMax       = 1024
	setMembersMax = coordinator.MembersMax
)

var _ node.SetStore = (*Store)(nil)

func (s *Store) setPath(round coordinator.Round) string {
	return fmt.Sprintf("%s%s%d", s.path, setPrefix, round)
}

// setBytesMax bounds the file of a set: the payloads are not larger than the model.
func (s *Store) setBytesMax() int64 { return int64(4*s.paramsLen + 16*setMembersMax + 1024) }

func appendSet(v node.SavedSet) []byte {
	b := wire.AppendHash(nil, v.Run)
	b = wire.AppendU32(wire.AppendU32(b, uint32(v.To)), uint32(v.Step))
	b = wire.AppendHash(wire.AppendHash(b, v.From), v.Params)
	b = wire.AppendU32(b, uint32(len(v.Payloads)))
	for _, p := range v.Payloads {
		b = wire.AppendVar(b, p)
	}
	return b
}

// parseSet reads the file of a set.
func parseSet(b []byte) (v node.SavedSet, err error) {
	const head = len(setMagic) + len(wire.Hash{})
	if len(b) < head || !bytes.HasPrefix(b, []byte(setMagic)) || wire.Sum(setDomain, b[head:]) != wire.Hash(b[len(setMagic):head]) {
		return v, errCase
	}
	r := wire.NewReader(b[head:])
	v.Run, v.To, v.Step = r.Hash(), coordinator.Round(r.U32()), coordinator.Step(r.U32())
	v.From, v.Params = r.Hash(), r.Hash()
	n := r.U32()
	if n > setMembersMax {
		return node.SavedSet{}, errCase
	}
	for range n {
		if v.Payloads = append(v.Payloads, r.Var(int(r.Len()))); r.Err() != wire.OK {
			break
		}
	}
	if err := r.Done().OrNil(); err != nil {
		return node.SavedSet{}, err
	}
	return v, nil
}

// SaveSet writes the file of a set.
func (s *Store) SaveSet(v node.SavedSet) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("file of an accepted set: %w", err)
	}
	body := appendSet(v)
	sum := wire.Sum(setDomain, body)
	return atomicfile.Write(s.setPath(v.To), 0o600, func(w io.Writer) error {
		if _, err := w.Write(append([]byte(setMagic), sum[:]...)); err != nil {
			return err
		}
		_, err := w.Write(body)
		return err
	})
}

// sets calls each with the path and round of each file of a set.
func (s *Store) sets(each func(path string, round coordinator.Round) error) error {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	left := setsMax
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), filepath.Base(s.path)+setPrefix)
		round, failed := strconv.ParseUint(number, 10, 32)
		if !ok || failed != nil || e.IsDir() || left == 0 {
			continue
		}
		left--
		path := filepath.Join(filepath.Dir(s.path), e.Name())
		if err := each(path, coordinator.Round(round)); err != nil {
			errs = append(errs, fmt.Errorf("file of an accepted set %q: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// DropSets deletes the sets of rounds up to one.
func (s *Store) DropSets(to coordinator.Round) error {
	return s.sets(func(path string, round coordinator.Round) error {
		if round > to {
			return nil
		}
		return os.Remove(path)
	})
}

// LoadSets reads all sets. It deletes those that cannot be read, and reports them in the error.
func (s *Store) LoadSets() (list []node.SavedSet, err error) {
	err = s.sets(func(path string, round coordinator.Round) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, s.setBytesMax()))
		if err != nil {
			return err
		}
		v, err := parseSet(b)
		if err == nil && v.To != round {
			err = errCase
		}
		if err != nil {
			return errors.Join(err, os.Remove(path))
		}
		list = append(list, v)
		return nil
	})
	return list, err
}
