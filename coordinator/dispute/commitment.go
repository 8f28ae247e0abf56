package dispute

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Commitment is a trainer's statement about its result of a round, made before anyone sees the
// result. It is bound to the run, the round, the member and the share, so it counts nowhere else
// and no other member can copy it.
type Commitment struct {
	Run          wire.Hash // State.ID
	Epoch        record.Epoch
	Round        record.Round
	Member       record.Member // the trainer's place in the table of members
	Share        wire.Hash     // batch.Hash of the trainer's spans
	Payload      wire.Hash     // codec.PayloadRoot of the compressed update
	PayloadBytes uint32        // its length
	Prev         wire.Hash     // hash of the trainer's optimizer state before the step
	State        wire.Hash     // hash of the state after the step
	Work         wire.Hash     // WorkHash of the gradient's root, which opens it
	Params       wire.Hash     // hash of the parameters it started from
	Loss         uint32        // mean loss on the share, in thousandths of a nat a token; informative
}

// CommitmentBytes is the length of an encoded commitment, and SignedBytes that of a signed one.
const (
	CommitmentBytes = 7*32 + 5*4
	SignedBytes     = CommitmentBytes + 64
)

// commitmentDomain is the domain of a commitment's ID and of its signature.
const commitmentDomain = "entrain/commitment"

// Append appends the canonical encoding of c: its fields in their order, CommitmentBytes in all.
func (c Commitment) Append(dst []byte) []byte {
	dst = wire.AppendHash(dst, c.Run)
	dst = wire.AppendU32(dst, uint32(c.Epoch))
	dst = wire.AppendU32(dst, uint32(c.Round))
	dst = wire.AppendU32(dst, uint32(c.Member))
	dst = wire.AppendHash(dst, c.Share)
	dst = wire.AppendHash(dst, c.Payload)
	dst = wire.AppendU32(dst, c.PayloadBytes)
	dst = wire.AppendHash(dst, c.Prev)
	dst = wire.AppendHash(dst, c.State)
	dst = wire.AppendHash(dst, c.Work)
	dst = wire.AppendHash(dst, c.Params)
	return wire.AppendU32(dst, c.Loss)
}

// readCommitment takes a commitment off a reader.
func readCommitment(r *wire.Reader) Commitment {
	return Commitment{
		Run: r.Hash(), Epoch: record.Epoch(r.U32()), Round: record.Round(r.U32()), Member: record.Member(r.U32()), Share: r.Hash(),
		Payload: r.Hash(), PayloadBytes: r.U32(), Prev: r.Hash(), State: r.Hash(), Work: r.Hash(), Params: r.Hash(), Loss: r.U32(),
	}
}

// ParseCommitment is the inverse of Append. It fails with a wire.Error unless b is exactly one
// commitment.
func ParseCommitment(b []byte) (Commitment, error) {
	r := wire.NewReader(b)
	c := readCommitment(&r)
	if err := r.Done().OrNil(); err != nil {
		return Commitment{}, err
	}
	return c, nil
}

// ID returns the commitment's name, which witnesses put into their filters:
// wire.Sum("entrain/commitment", encoding).
func (c Commitment) ID() wire.Hash { return wire.Sum(commitmentDomain, c.Append(nil)) }

// Signed is a commitment with its trainer's signature, the form in which it travels.
type Signed struct {
	Commitment Commitment
	Signature  key.Signature
}

// Append appends the commitment's encoding and the signature, SignedBytes in all.
func (s Signed) Append(dst []byte) []byte { return append(s.Commitment.Append(dst), s.Signature[:]...) }

// ReadSigned takes a signed commitment off a reader.
func ReadSigned(r *wire.Reader) Signed {
	s := Signed{Commitment: readCommitment(r)}
	copy(s.Signature[:], r.Bytes(len(s.Signature)))
	return s
}

// ParseSigned is the inverse of Append. It fails with a wire.Error unless b is exactly one signed
// commitment. It does not check the signature.
func ParseSigned(b []byte) (Signed, error) {
	r := wire.NewReader(b)
	s := ReadSigned(&r)
	if err := r.Done().OrNil(); err != nil {
		return Signed{}, err
	}
	return s, nil
}

// Verify reports whether the signature is by the member with this key.
func (s Signed) Verify(pub key.Public) bool {
	return key.Verify(pub, commitmentDomain, s.Commitment.Append(nil), s.Signature)
}

// WorkHash returns the Work of a commitment: a hash of the root of the gradient that a member
// computed from its share. It is bound to the run, the round and the member, so that no other
// member can copy it, and only one that computes the gradient can open it.
func WorkHash(run wire.Hash, round record.Round, member record.Member, gradient wire.Hash) wire.Hash {
	b := wire.AppendU32(wire.AppendU32(nil, uint32(round)), uint32(member))
	return wire.Sum("entrain/work", run[:], b, gradient[:])
}

// Blind returns what a verifier or tie-breaker names in place of the root of its trace, so that
// others cannot vote with it before they have computed it too. The zero hash is its own.
func Blind(by key.Public, root wire.Hash) wire.Hash {
	if root.IsZero() {
		return root
	}
	return wire.Sum("entrain/blind", by[:], root[:])
}

// Outcome returns the hash of the results that a commitment names: the payload and its length, the
// optimizer state and the work. It is the last value of the step's trace.
func Outcome(c Commitment) wire.Hash {
	return wire.Sum("entrain/outcome", c.Payload[:], wire.AppendU32(nil, c.PayloadBytes), c.State[:], c.Work[:])
}
