package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Message is a message from a participant or a host to a run. Env names its sender.
type Message interface {
	name() string
	append(dst []byte) []byte // Append
	apply(s State, env Env) Error
}

// Name returns what people call a message.
func Name(m Message) string { return m.name() }

const (
	filterBytesMax = 1 << 18             // in a Witness message: bloom.BitsMax/8
	proofMax       = 4 * bisect.DepthMax // siblings in a Defend message
)

// Append appends the canonical encoding of m, which the package comment lists.
func Append(dst []byte, m Message) []byte { return m.append(dst) }

// ParseMessage is the inverse of Append. It fails with a wire.Error if b is malformed, oversized or
// not canonical, and with ErrMessage if the kind is unknown. The result holds views of b.
func ParseMessage(b []byte) (Message, error) {
	r := wire.NewReader(b)
	m := readMessage(r.U8(), &r)
	if m == nil {
		return nil, ErrMessage
	}
	if w, ok := m.(Witness); ok && len(w.Held) > 0 && w.Held[len(w.Held)-1] == 0 {
		r.Fail(wire.ErrNotCanonical)
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, err
	}
	return m, nil
}

// MessageHash returns the hash by which convictions refer to a message as evidence.
func MessageHash(m Message) wire.Hash {
	if e, ok := m.(Evidence); ok { // a host may lack the memory for a copy
		head := Append(nil, Evidence{Dispute: e.Dispute})
		return wire.Sum("entrain/message", wire.AppendU32(head[:len(head)-4], uint32(len(e.Bytes))), e.Bytes)
	}
	return wire.Sum("entrain/message", Append(nil, m))
}

// SetHeld sets a member's bit in a bitmap of held results (Witness.Held), growing it as needed, and
// returns it.
func SetHeld(held []byte, member Member) []byte {
	for Member(len(held)) <= member>>3 {
		held = append(held, 0)
	}
	held[member>>3] |= 1 << (member & 7)
	return held
}

// length reads the length of a list. It fails if the length exceeds most, or if fewer bytes are
// left than that many elements of this size take. It then returns 0.
func length(r *wire.Reader, most, size uint32) uint32 {
	n := r.U32()
	if n > most {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*uint64(size) > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() != wire.OK {
		return 0
	}
	return n
}

func appendHashes(dst []byte, list []wire.Hash) []byte {
	dst = wire.AppendU32(dst, uint32(len(list)))
	for _, h := range list {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

func readHashes(r *wire.Reader, most uint32) []wire.Hash {
	n := length(r, most, 32)
	if n == 0 {
		return nil
	}
	list := make([]wire.Hash, n)
	for i := range list {
		list[i] = r.Hash()
	}
	return list
}

func appendNodes(dst []byte, nodes *[bisect.Fan]wire.Hash) []byte {
	for _, h := range nodes {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

func readNodes(r *wire.Reader) (nodes [bisect.Fan]wire.Hash) {
	for i := range nodes {
		nodes[i] = r.Hash()
	}
	return nodes
}

func appendScores(dst []byte, scores []score.Score) []byte { return score.Append(dst, scores) }

func readScores(r *wire.Reader, most uint32) []score.Score {
	return score.Read(r, length(r, most, score.Bytes))
}

// ScoresHash returns the hash that a validator commits to. It is bound to the run, the validator,
// the period and a secret salt, so that no other validator can copy the commitment or guess the
// scores.
func ScoresHash(run wire.Hash, validator key.Public, m RevealScores) wire.Hash {
	b := make([]byte, 0, 64+score.Bytes*len(m.Scores)) // grown in parts it takes four times as much
	return wire.Sum("entrain/scores", run[:], validator[:], m.append(b)[1:])
}
