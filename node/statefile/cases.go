package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A case under check has a file of its own beside the state, named after the round and the member:
// what identifies it, then what the share begins from in the format of checkpoint.State. All
// integers are little endian:
//
//	"entrain-case-1\n\x00" | u32 length | length bytes | Hash of these bytes | state
//
//	the bytes: u32 round | u32 member | u32 step | u8 fresh | signed commitment |
//	           spans, as batch.Append writes them
//
// With fresh 1 the share begins from the fresh optimizer state, and the state's optimizer part is
// zeros.

const (
	casePrefix   = ".case-"
	caseMagic    = "entrain-case-1\n\x00"
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
	dst = wire.AppendBool(dst, c.State == nil)
	dst = dispute.Signed{Commitment: c.Commitment, Signature: c.Signature}.Append(dst)
	return batch.Append(dst, c.Spans)
}

// parseCase is the inverse of appendCase; fresh says that State is to be nil.
func parseCase(b []byte) (c node.SavedCase, fresh bool, err error) {
	r := wire.NewReader(b)
	c.Round, c.Member, c.Step = coordinator.Round(r.U32()), coordinator.Member(r.U32()), coordinator.Step(r.U32())
	fresh = r.Bool()
	signed := dispute.ReadSigned(&r)
	c.Commitment, c.Signature = signed.Commitment, signed.Signature
	c.Spans = batch.Parse(&r, spansMax)
	if err := r.Done().OrNil(); err != nil {
		return node.SavedCase{}, false, err
	}
	return c, fresh, nil
}

// SaveCase writes the file of a case.
func (s *Store) SaveCase(c node.SavedCase) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("case file: %w", err)
	}
	head := appendCase(nil, c)
	sum := wire.Sum(caseDomain, head)
	state := c.State
	if state == nil {
		state = make([]float32, s.optimizerLen)
	}
	return atomicfile.Write(s.casePath(c.Share), 0o600, func(w io.Writer) error {
		if _, err := w.Write(append(wire.AppendVar([]byte(caseMagic), head), sum[:]...)); err != nil {
			return err
		}
		return checkpoint.WriteState(w, checkpoint.State{
			Run: c.Commitment.Run, Epoch: uint32(c.Commitment.Epoch), Round: uint32(c.Round), Step: uint32(c.Step), Params: c.Params, Optimizer: state,
		})
	})
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
	f, err := os.Open(path)
	if err != nil {
		return node.SavedCase{}, err
	}
	defer f.Close()
	return readCase(f, s.paramsLen, s.optimizerLen)
}

var errCase = errors.New("it is not as it was written")

// readCase reads the file of a case of a model with these lengths.
func readCase(r io.Reader, paramsLen, optimizerLen int) (node.SavedCase, error) {
	front := make([]byte, len(caseMagic)+4)
	if _, err := io.ReadFull(r, front); err != nil || !bytes.HasPrefix(front, []byte(caseMagic)) {
		return node.SavedCase{}, errCase
	}
	in := wire.NewReader(front[len(caseMagic):])
	n := in.U32()
	if n > caseBytesMax {
		return node.SavedCase{}, errCase
	}
	b := make([]byte, int(n)+len(wire.Hash{}))
	if _, err := io.ReadFull(r, b); err != nil || wire.Sum(caseDomain, b[:n]) != wire.Hash(b[n:]) {
		return node.SavedCase{}, errCase
	}
	c, fresh, err := parseCase(b[:n])
	if err != nil {
		return node.SavedCase{}, err
	}
	st, err := checkpoint.ReadState(r, paramsLen, optimizerLen)
	if err != nil {
		return node.SavedCase{}, err
	}
	if st.Run != c.Commitment.Run || coordinator.Round(st.Round) != c.Round {
		return node.SavedCase{}, errCase
	}
	c.Params = st.Params
	if !fresh {
		c.State = st.Optimizer
	} else if len(bytes.Trim(tensor.Bytes(st.Optimizer), "\x00")) > 0 {
		return node.SavedCase{}, errCase
	}
	return c, nil
}
