package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// The last own results have a file each beside the state. A result takes the place of the one a
// fixed number of rounds before. All integers are little endian:
//
//	"entrain-own-1\n\x00\x00" | Hash of the head | head | update
//
//	the head: u32 round | Var signed commitment
//
// The commitment names the root of the update, and that of the optimizer state from which the
// result began, which is a blob.

const (
	ownSuffix = ".own-"
	ownMagic  = "entrain-own-1\n\x00\x00"
	ownDomain = "entrain/own"
	// ownMax bounds the results that are kept, and ownSignedMax a signed commitment, which has a few
	// hundred bytes.
	ownMax       = 4
	ownSignedMax = 4 << 10
	// ownBytesMax bounds a file: one byte a parameter, of the largest model that a machine holds in
	// memory.
	ownBytesMax = 1 << 36
)

var errOwn = errors.New("it is not as it was written")

func (s *Store) ownPath(place coordinator.Round) string {
	return fmt.Sprintf("%s%s%d", s.path, ownSuffix, place)
}

// appendOwn appends what comes before the update.
func appendOwn(dst []byte, o node.OwnResult) []byte {
	head := wire.AppendVar(wire.AppendU32(nil, uint32(o.Round)), o.Signed)
	sum := wire.Sum(ownDomain, head)
	return append(append(append(dst, ownMagic...), sum[:]...), head...)
}

// parseOwn reads the file of a result of this member.
func parseOwn(b []byte) (o node.OwnResult, err error) {
	const front = len(ownMagic) + len(wire.Hash{})
	if len(b) < front || !bytes.HasPrefix(b, []byte(ownMagic)) {
		return o, errOwn
	}
	r := wire.NewReader(b[front:])
	o.Round, o.Signed = coordinator.Round(r.U32()), r.Var(ownSignedMax)
	if r.Err() != wire.OK {
		return node.OwnResult{}, errOwn
	}
	if o.Update = r.Rest(); !bytes.HasPrefix(b, appendOwn(nil, o)) {
		return node.OwnResult{}, errOwn
	}
	return o, nil
}

// saveSigned writes the file that Beside names: a result of this member without its update.
func (s *Store) saveSigned(o node.OwnResult) error {
	if s.signed == "" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(s.signed), 0o700)
	if err == nil {
		err = atomicfile.WriteBytes(s.signed, 0o600, appendOwn(nil, o))
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// loadSigned adds to list what saveSigned wrote, if it is newer.
func (s *Store) loadSigned(list []node.OwnResult) ([]node.OwnResult, error) {
	o, err := s.loadOwn(s.signed)
	switch {
	case s.signed == "" || errors.Is(err, fs.ErrNotExist):
		return list, nil
	case err != nil:
		return list, fmt.Errorf("file of the last signed result %q: %w", s.signed, err)
	case slices.ContainsFunc(list, func(have node.OwnResult) bool { return have.Round >= o.Round }):
		return list, nil
	}
	o.Update = nil
	return append(list, o), nil
}

// SaveOwn writes the file of a result of this member, in place of the one keep rounds before.
func (s *Store) SaveOwn(o node.OwnResult, keep coordinator.Round) error {
	if err := s.saveSigned(o); err != nil {
		return fmt.Errorf("file of the last signed result: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("file of a result of this member: %w", err)
	}
	return atomicfile.Write(s.ownPath(o.Round%min(keep, ownMax)), 0o600, func(w io.Writer) error {
		if _, err := w.Write(appendOwn(nil, o)); err != nil {
			return err
		}
		_, err := w.Write(o.Update)
		return err
	})
}

// LoadOwn reads this member's results that are kept. It leaves out those that cannot be read, and
// reports them in the error.
func (s *Store) LoadOwn() (list []node.OwnResult, err error) {
	var errs []error
	for place := range coordinator.Round(ownMax) {
		o, err := s.loadOwn(s.ownPath(place))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, fmt.Errorf("file of a result of this member %q: %w", s.ownPath(place), err))
		default:
			list = append(list, o)
		}
	}
	list, err = s.loadSigned(list)
	return list, errors.Join(append(errs, err)...)
}

func (s *Store) loadOwn(path string) (node.OwnResult, error) {
	f, err := os.Open(path)
	if err != nil {
		return node.OwnResult{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, ownBytesMax))
	if err != nil {
		return node.OwnResult{}, err
	}
	return parseOwn(b)
}
