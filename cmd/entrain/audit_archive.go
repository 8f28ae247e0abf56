package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// An archive is a directory with a file for each round that an audit went along with:
//
//	magic "EAUD\x01\0\0\0" | Var coordinator's state | U32 n | n × (Var signed commitment) | U32 m | m × (Hash root, Var blob)
//
// The state is one in which the round is settled and still has its slot, as the chain told it then; who reads the file takes from it who had
// which share and which parameters were agreed. Commitments carry their authors' signatures, and blobs (parameters, optimizer states) are checked
// against the roots in them, so that nobody can put words into a member's mouth by an archive.
type archivedRound struct {
	state  coordinator.State
	signed []coordinator.Signed
	blobs  map[wire.Hash][]byte
}

const archiveMagic = "EAUD\x01\x00\x00\x00"

// Limits of what is read from an archive.
const (
	archiveStateMax  = 64 << 20 // of a run of 10,000 members: about 20 MB
	archiveSignedMax = 4 * coordinator.MembersMax
	archiveBlobsMax  = 2 * coordinator.MembersMax
	archiveBlobMax   = 1 << 31 // bytes; larger models are not archived
)

func archiveName(round uint32) string { return fmt.Sprintf("round-%010d.audit", round) }

// append writes the file; blobs are in the order of their roots.
func (r archivedRound) append(dst []byte) []byte {
	dst = append(dst, archiveMagic...)
	dst = wire.AppendVar(dst, r.state.Bytes())
	dst = wire.AppendU32(dst, uint32(len(r.signed)))
	for _, s := range r.signed {
		dst = wire.AppendVar(dst, s.Append(nil))
	}
	roots := make([]wire.Hash, 0, len(r.blobs))
	for root := range r.blobs {
		roots = append(roots, root)
	}
	slices.SortFunc(roots, func(a, b wire.Hash) int { return slices.Compare(a[:], b[:]) })
	dst = wire.AppendU32(dst, uint32(len(roots)))
	for _, root := range roots {
		dst = wire.AppendHash(dst, root)
		dst = wire.AppendVar(dst, r.blobs[root])
	}
	return dst
}

// errArchive is what is wrong with bytes that are no round of an archive.
var errArchive = errors.New("it is damaged, or no round of an archive")

// parseArchived reads a file and checks its signatures and roots. The blobs point into b.
func parseArchived(b []byte, run wire.Hash) (archivedRound, error) {
	var a archivedRound
	if len(b) < len(archiveMagic) || string(b[:len(archiveMagic)]) != archiveMagic {
		return a, errArchive
	}
	r := wire.NewReader(b[len(archiveMagic):])
	state := r.Var(archiveStateMax)
	if r.Err() != wire.OK {
		return a, errArchive
	}
	var err error
	if a.state, err = coordinator.Open(state); err != nil {
		return a, errArchive
	}
	if a.state.ID() != run {
		return a, errors.New("it is of another run")
	}
	n := r.U32()
	if n > archiveSignedMax {
		return a, errArchive
	}
	for range n {
		signed, err := coordinator.ParseSigned(r.Var(coordinator.SignedBytes))
		if err != nil || r.Err() != wire.OK || signed.Commitment.Member >= a.state.Count() || !signed.Verify(a.state.Key(signed.Commitment.Member)) {
			return a, errArchive
		}
		a.signed = append(a.signed, signed)
	}
	n = r.U32()
	if n > archiveBlobsMax {
		return a, errArchive
	}
	a.blobs = map[wire.Hash][]byte{}
	var last wire.Hash
	for i := range n {
		root, blob := r.Hash(), r.Var(archiveBlobMax)
		if r.Err() != wire.OK || i > 0 && slices.Compare(last[:], root[:]) >= 0 || merkle.BlobRoot(blob) != root {
			return a, errArchive
		}
		a.blobs[root], last = blob, root
	}
	if r.Done() != wire.OK {
		return a, errArchive
	}
	return a, nil
}

// readArchived reads a round of an archive; round 0 is the newest there is.
func readArchived(dir string, run wire.Hash, round uint32) (archivedRound, uint32, error) {
	if round == 0 {
		found, err := filepath.Glob(filepath.Join(dir, "round-*.audit"))
		if err != nil || len(found) == 0 {
			return archivedRound{}, 0, fmt.Errorf("--archive %q has no rounds; entrain audit --watch --archive keeps some", dir)
		}
		if _, err := fmt.Sscanf(filepath.Base(slices.Max(found)), "round-%d.audit", &round); err != nil {
			return archivedRound{}, 0, fmt.Errorf("--archive %q: %w", slices.Max(found), errArchive)
		}
	}
	path := filepath.Join(dir, archiveName(round))
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return archivedRound{}, 0, fmt.Errorf("--archive %q has no round %d", dir, round)
	}
	if err != nil {
		return archivedRound{}, 0, fmt.Errorf("--archive: %w", err)
	}
	a, err := parseArchived(b, run)
	if err != nil {
		return a, 0, fmt.Errorf("--archive %q: %w", path, err)
	}
	return a, round, nil
}

// keep writes what was gathered of a round to the archive, and removes the oldest rounds while all take more than most bytes.
func keepArchived(dir string, state coordinator.State, round uint32, all []*inputs, most int64) error {
	a := archivedRound{state: state, blobs: map[wire.Hash][]byte{}}
	for _, in := range all {
		if in.params == nil || uint64(len(in.params)) > archiveBlobMax/4 {
			continue
		}
		a.signed = append(a.signed, in.signed)
		a.blobs[in.signed.Commitment.Params] = tensor.Bytes(in.params)
		a.blobs[in.signed.Commitment.Prev] = tensor.Bytes(in.prev)
	}
	if len(a.signed) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, archiveName(round)), 0o644, a.append(nil)); err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "round-*.audit"))
	if err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	slices.Sort(found)
	var sum int64
	for i, path := range slices.Backward(found) {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
		if sum > most && i < len(found)-1 {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("--archive: %w", err)
			}
		}
	}
	return nil
}

// commitments are those of a member to a round.
func (r archivedRound) commitments(round, member uint32) (found []coordinator.Signed) {
	for _, s := range r.signed {
		if s.Commitment.Round == round && s.Commitment.Member == member {
			found = append(found, s)
		}
	}
	return found
}

// floats are a blob's numbers.
func (r archivedRound) floats(root wire.Hash, n int) ([]float32, error) {
	b, ok := r.blobs[root]
	if !ok || len(b) != 4*n {
		return nil, fmt.Errorf("the archive: %w", p2p.ErrMissing)
	}
	v := make([]float32, n)
	tensor.SetBytes(v, b)
	return v, nil
}
