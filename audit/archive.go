package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// An archive is a directory with a file for each round that an audit went along with: see
// archivedRound.
func archiveName(round coordinator.Round) string { return fmt.Sprintf("round-%010d.audit", round) }

// readArchived reads a round of an archive; 0 means the newest.
func readArchived(dir string, run wire.Hash, round coordinator.Round) (archivedRound, coordinator.Round, error) {
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
	a, err := parseArchivedRound(b, run)
	if err != nil {
		return a, 0, fmt.Errorf("--archive %q: %w", path, err)
	}
	return a, round, nil
}

// keepArchived writes what was gathered of a round to the archive, and removes the oldest rounds
// beyond most bytes.
func keepArchived(dir string, state coordinator.State, round coordinator.Round, all []*inputs, most int64) error {
	a := archivedRound{State: state, Blobs: map[wire.Hash][]byte{}}
	for _, in := range all {
		if in.params == nil || uint64(len(in.params)) > archiveBlobMax/4 {
			continue
		}
		a.Signed = append(a.Signed, in.signed)
		a.Blobs[in.signed.Commitment.Params] = tensor.Bytes(in.params)
		a.Blobs[in.signed.Commitment.Prev] = tensor.Bytes(in.prev)
	}
	if len(a.Signed) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, archiveName(round)), 0o644, a.Append(nil)); err != nil {
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

// commitmentsOf returns a member's commitments to an archived round.
func commitmentsOf(a *archivedRound, round coordinator.Round, member coordinator.Member) (found []dispute.Signed) {
	for _, s := range a.Signed {
		if s.Commitment.Round == round && s.Commitment.Member == member {
			found = append(found, s)
		}
	}
	return found
}

// floatsOf returns an archived blob's numbers.
func floatsOf(a *archivedRound, root wire.Hash, n int) ([]float32, error) {
	b, ok := a.Blobs[root]
	if !ok || len(b) != 4*n {
		return nil, fmt.Errorf("the archive: %w", p2p.ErrMissing)
	}
	v := make([]float32, n)
	tensor.SetBytes(v, b)
	return v, nil
}
