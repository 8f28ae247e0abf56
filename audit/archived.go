package audit

import (
	"errors"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// archivedRound is what an audit of a round's results takes, as a gossip.Reader kept it at the
// time. Its encoding is
//
//	magic "EAUD\x01\0\0\0" | Var coordinator's state | U32 n | n × (Var signed commitment) |
//	U32 m | m × (Hash root, Var blob)
//
// In the state, as the chain showed it then, the round is settled and still has its slot. It says
// which share each member had and which parameters were agreed on. Commitments carry their authors'
// signatures, and blobs (parameters, optimizer states) are checked against the roots in them, so
// that an archive cannot attribute to a member what it did not commit to.
type archivedRound struct {
	State  coordinator.State
	Signed []dispute.Signed
	Blobs  map[wire.Hash][]byte // by root
}

const archiveMagic = "EAUD\x01\x00\x00\x00"

// Limits of what is read from an archive.
const (
	archiveStateMax  = 64 << 20 // of a run of 10,000 members: about 20 MB
	archiveSignedMax = 4 * coordinator.MembersMax
	archiveBlobsMax  = 2 * coordinator.MembersMax
	archiveBlobMax   = 1 << 31 // bytes; larger models cannot be archived
)

// Append appends the encoding; blobs are in the order of their roots.
func (r archivedRound) Append(dst []byte) []byte {
	dst = append(dst, archiveMagic...)
	dst = wire.AppendVar(dst, r.State.Bytes())
	dst = wire.AppendU32(dst, uint32(len(r.Signed)))
	for _, s := range r.Signed {
		dst = wire.AppendVar(dst, s.Append(nil))
	}
	roots := make([]wire.Hash, 0, len(r.Blobs))
	for root := range r.Blobs {
		roots = append(roots, root)
	}
	slices.SortFunc(roots, func(a, b wire.Hash) int { return slices.Compare(a[:], b[:]) })
	dst = wire.AppendU32(dst, uint32(len(roots)))
	for _, root := range roots {
		dst = wire.AppendHash(dst, root)
		dst = wire.AppendVar(dst, r.Blobs[root])
	}
	return dst
}

// errArchive reports bytes that are not a round of an archive, or a damaged one.
var errArchive = errors.New("damaged, or no round of an archive")

// parseArchivedRound is the inverse of Append for a round of a run. It checks signatures and roots.
// The blobs point into b.
func parseArchivedRound(b []byte, run wire.Hash) (archivedRound, error) {
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
	if a.State, err = coordinator.Open(state); err != nil {
		return a, errArchive
	}
	if a.State.ID() != run {
		return a, errors.New("a round of another run")
	}
	n := r.U32()
	if n > archiveSignedMax {
		return a, errArchive
	}
	for range n {
		signed, err := dispute.ParseSigned(r.Var(dispute.SignedBytes))
		if err != nil || r.Err() != wire.OK || signed.Commitment.Member >= a.State.Count() || !signed.Verify(a.State.Key(signed.Commitment.Member)) {
			return a, errArchive
		}
		a.Signed = append(a.Signed, signed)
	}
	n = r.U32()
	if n > archiveBlobsMax {
		return a, errArchive
	}
	a.Blobs = map[wire.Hash][]byte{}
	var last wire.Hash
	for i := range n {
		root, blob := r.Hash(), r.Var(archiveBlobMax)
		if r.Err() != wire.OK || i > 0 && slices.Compare(last[:], root[:]) >= 0 || merkle.BlobRoot(blob) != root {
			return a, errArchive
		}
		a.Blobs[root], last = blob, root
	}
	if r.Done() != wire.OK {
		return a, errArchive
	}
	return a, nil
}
