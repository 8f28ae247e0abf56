package blobs

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// In a run of slices a payload is named by the root over its pieces of codec.PieceBytes. A peer is
// asked for consecutive ones, of one of the parts of partPieces into which a payload is cut.
const (
	partPieces     = 512 // half of an answer
	rangeProofsMax = 64
)

// Section is consecutive pieces of a payload with their proof.
type Section struct {
	Bytes []byte
	Proof []wire.Hash
}

// Range is the pieces [from, to) of a payload.
type Range struct {
	Payload  wire.Hash
	From, To int
}

// pieceCount returns the number of pieces of a payload.
func pieceCount(bytes int) int { return max(1, (bytes+codec.PieceBytes-1)/codec.PieceBytes) }

// Ranges returns the pieces in which bytes [from, to) of a payload lie, part by part.
func Ranges(payload wire.Hash, from, to int) (list []Range) {
	for first, end := from/codec.PieceBytes, pieceCount(to); first < end; {
		next := min(end, first-first%partPieces+partPieces)
		list = append(list, Range{payload, first, next})
		first = next
	}
	return list
}

// RangeBytes returns how many bytes bring bytes [from, to) of a payload of size bytes with their
// proof.
func RangeBytes(size, from, to int) (n int) {
	for _, r := range Ranges(wire.Hash{}, from, to) {
		n += 4 + len(wire.Hash{})*merkle.RangeProofLen(uint64(pieceCount(size)), uint64(r.From), uint64(r.To)) +
			min(r.To*codec.PieceBytes, size) - r.From*codec.PieceBytes
	}
	return n
}

// ParseSection reads an answer to a question for pieces of a payload of size bytes. It returns an
// error unless they are proven.
//
//	answer: u32 n | n × Hash proof (merkle.ProveRange) | the bytes of the pieces
func ParseSection(answer []byte, r Range, size int) (s Section, err error) {
	in := wire.NewReader(answer)
	n := in.U32()
	if n > rangeProofsMax {
		return s, p2p.ErrMalformed
	}
	for range n {
		s.Proof = append(s.Proof, in.Hash())
	}
	if in.Err() != wire.OK {
		return s, p2p.ErrMalformed
	}
	s.Bytes = answer[len(answer)-in.Len():]
	if len(s.Bytes) != min(r.To*codec.PieceBytes, size)-r.From*codec.PieceBytes {
		return s, p2p.ErrMalformed
	}
	leaves := merkle.PieceLeaves(s.Bytes, codec.PieceBytes)
	if !merkle.CheckRange(r.Payload, leaves, uint64(r.From), uint64(pieceCount(size)), s.Proof) {
		return s, p2p.ErrLied
	}
	return s, nil
}

// PutPieces keeps this member's payload for questions for its pieces.
func (s *Store) PutPieces(round coordinator.Round, payload []byte) {
	pieces := merkle.PieceLeaves(payload, codec.PieceBytes)
	s.Put(merkle.Root(pieces), &Blob{round, payload, &described{pieces: pieces}})
}

// Section returns pieces of a payload that are here: of this member's, or those that were asked for
// before.
func (s *Store) Section(r Range) (found Section, ok bool) {
	s.mu.RLock()
	found, ok = s.sections[r].Section, s.sections[r].round > 0
	own, held := s.byRoot[r.Payload]
	s.mu.RUnlock()
	if ok || !held || r.From >= r.To || r.To > len(own.pieces) || r.To-r.From > partPieces {
		return found, ok
	}
	found = Section{
		Bytes: own.bytes[r.From*codec.PieceBytes : min(r.To*codec.PieceBytes, len(own.bytes))],
		Proof: merkle.ProveRange(own.pieces, uint64(r.From), uint64(r.To)),
	}
	if r.From/partPieces == (r.To-1)/partPieces { // a group asks for the same ones
		s.PutSection(own.round, r, found)
	}
	return found, true
}

// keptSection is a section and the last round of whose results it is a part.
type keptSection struct {
	Section
	round coordinator.Round
}

// sectionsOfOwn bounds the sections of one payload that are kept for others that ask for them.
const sectionsOfOwn = 1 << 12

func (s *Store) PutSection(round coordinator.Round, r Range, found Section) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, ok := s.byRoot[r.Payload]; ok && own.pieces != nil {
		if own.sections++; own.sections > sectionsOfOwn {
			return
		}
	}
	s.sections[r] = keptSection{found, max(round, s.sections[r].round)}
}

// KeepSection keeps a section for a later round too. It reports whether it is here.
func (s *Store) KeepSection(round coordinator.Round, r Range) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.sections[r]
	if ok {
		k.round = max(k.round, round)
		s.sections[r] = k
	}
	return ok
}

// NameSlice has questions for this member's slice of a round answered, and ShowHeld those for what
// is held.
func (s *Store) NameSlice(round coordinator.Round, u client.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[round] = u
}

func (s *Store) ShowHeld(round coordinator.Round, tags []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[round] = tags
}

// AppendHeld appends the question for what is held, after its kind, of a witness to which this was
// shown before. It is not answered while nothing has changed: a witness asks many aggregators again
// because of one result.
//
//	u32 round | u64 of the hash of what was shown, if something was
func AppendHeld(q []byte, round coordinator.Round, shown []byte) []byte {
	if q = wire.AppendU32(q, uint32(round)); len(shown) > 0 {
		q = wire.AppendU64(q, heldSum(shown))
	}
	return q
}

func heldSum(shown []byte) uint64 {
	h := wire.SHA256(shown)
	return binary.LittleEndian.Uint64(h[:])
}

// AnswerHeld answers a question that AppendHeld made.
func (s *Store) AnswerHeld(r *wire.Reader) []byte {
	round, known := coordinator.Round(r.U32()), r.Len() > 0
	sum := uint64(0)
	if known {
		sum = r.U64()
	}
	s.mu.RLock()
	shown := s.shown[round]
	s.mu.RUnlock()
	if r.Done() != wire.OK || known && heldSum(shown) == sum {
		return nil
	}
	return shown
}

func (s *Store) AnswerSlice(round coordinator.Round) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u, ok := s.slices[round]
	return appendNamed(u, ok)
}

// AppendQuestion appends a question for the pieces, but for its first byte.
func (r Range) AppendQuestion(dst []byte) []byte {
	return wire.AppendU32(wire.AppendU32(wire.AppendHash(dst, r.Payload), uint32(r.From)), uint32(r.To-r.From))
}

// AnswerRange answers a question for pieces of a payload: the hash of the payload, the first piece
// and their number. See ParseSection.
func (s *Store) AnswerRange(r *wire.Reader) []byte {
	q := Range{Payload: r.Hash()}
	from, n := r.U32(), r.U32()
	if r.Done() != wire.OK || n == 0 || n > partPieces || from > 1<<30 {
		return nil
	}
	q.From, q.To = int(from), int(from+n)
	found, ok := s.Section(q)
	if !ok {
		return nil
	}
	out := wire.AppendU32(make([]byte, 0, 4+32*len(found.Proof)+len(found.Bytes)), uint32(len(found.Proof)))
	for _, p := range found.Proof {
		out = wire.AppendHash(out, p)
	}
	return append(out, found.Bytes...)
}
