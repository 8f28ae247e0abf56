package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// A case under check has a file of its own beside the state, named after the round and the member:
// what identifies it. The commitment names the parameters and the state that the share begins from,
// which are blobs. All integers are little endian:
//
//	"entrain-case-2\n\x00" | u32 length | length bytes | Hash of these bytes
//
//	the bytes: u32 round | u32 member | u32 step | u8 fresh | signed commitment |
//	           spans, as batch.Append writes them
//
// With fresh 1 the share begins from the fresh optimizer state.

const (
	casePrefix   = ".case-"
	caseMagic    = "entrain-case-2\n\x00"
	caseDomain   = "entrain/case"
	caseBytesMax = 4 << 10 // of what identifies a case
	spansMax     = 64      // in a share; the coordinator gives a round eight
	// casesMax bounds the files that are read: a member is in a few cases at a time.
	casesMax = 256
)

var _ node.CaseStore = (*Store)(nil)

func (s *Store) casePath(c client.Share) string {
	return fmt.Sprintf("%s%s%d-%d", s.path, casePrefix, c.Round, c.Member)
}

// appendCase appends what identifies a case.
func appendCase(dst []byte, c node.SavedCase) []byte {
	dst = wire.AppendU32(wire.AppendU32(wire.AppendU32(dst, uint32(c.Round)), uint32(c.Member)), uint32(c.Step))
	dst = wire.AppendBool(dst, c.Fresh)
	dst = dispute.Signed{Commitment: c.Commitment, Signature: c.Signature}.Append(dst)
	return batch.Append(dst, c.Spans)
}

// parseCase is the inverse of appendCase.
func parseCase(b []byte) (c node.SavedCase, err error) {
	r := wire.NewReader(b)
	c.Round, c.Member, c.Step = coordinator.Round(r.U32()), coordinator.Member(r.U32()), coordinator.Step(r.U32())
	c.Fresh = r.Bool()
	signed := dispute.ReadSigned(&r)
	c.Commitment, c.Signature = signed.Commitment, signed.Signature
	c.Spans = batch.Parse(&r, spansMax)
	if err := r.Done().OrNil(); err != nil {
		return node.SavedCase{}, err
	}
	return c, nil
}

// SaveCase writes the file of a case.
func (s *Store) SaveCase(c node.SavedCase) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("case file: %w", err)
	}
	head := appendCase(nil, c)
	sum := wire.Sum(caseDomain, head)
	return atomicfile.WriteBytes(s.casePath(c.Share), 0o600, append(wire.AppendVar([]byte(caseMagic), head), sum[:]...))
}

// DropCase deletes the file of a case, if there is one.
func (s *Store) DropCase(c client.Share) error {
	if err := os.Remove(s.casePath(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("case file: %w", err)
	}
	return nil
}

// LoadCases reads all cases. It deletes those that cannot be read, which are of no use, and reports
// them in the error.
func (s *Store) LoadCases() (list []node.SavedCase, err error) {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("case files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(s.path)+casePrefix) || e.IsDir() || len(list) >= casesMax {
			continue
		}
		path := filepath.Join(filepath.Dir(s.path), e.Name())
		c, err := s.loadCase(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("case file %q: %w", path, err), os.Remove(path))
			continue
		}
		list = append(list, c)
	}
	return list, errors.Join(errs...)
}

func (s *Store) loadCase(path string) (node.SavedCase, error) {
	b, err := atomicfile.ReadBounded(path, caseBytesMax)
	if err != nil {
		return node.SavedCase{}, err
	}
	return readCase(b)
}

var errCase = errors.New("it is not as it was written")

// readCase reads the file of a case.
func readCase(b []byte) (node.SavedCase, error) {
	if !bytes.HasPrefix(b, []byte(caseMagic)) {
		return node.SavedCase{}, errCase
	}
	in := wire.NewReader(b[len(caseMagic):])
	head := in.Var(caseBytesMax)
	if sum := in.Hash(); in.Done() != wire.OK || wire.Sum(caseDomain, head) != sum {
		return node.SavedCase{}, errCase
	}
	return parseCase(head)
}
