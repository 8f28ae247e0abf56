package bucket

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// magic begins every envelope; its last digit is the version of the format.
const magic = "entrain object 1"

// EnvelopeBytes is the size of an envelope: an object minus its body.
const EnvelopeBytes = len(magic) + 32 + 4 + 1 + 32 + 32 + 8 + 32 + 64

// domain separates an object's digest and signature from others.
const domain = "entrain/object"

// head returns the signed part of an envelope.
func head(n Name, body []byte) []byte {
	b := make([]byte, 0, EnvelopeBytes)
	b = append(b, magic...)
	b = wire.AppendHash(b, n.Run)
	b = wire.AppendU32(b, uint32(n.Window))
	b = wire.AppendU8(b, uint8(n.Kind))
	b = append(b, n.Member[:]...)
	b = wire.AppendHash(b, n.Content)
	b = wire.AppendU64(b, uint64(len(body)))
	return wire.AppendHash(b, wire.Sum(domain, body))
}

// Seal returns the object of a name: the body in an envelope signed with k, which must be the
// member's key.
func Seal(k key.Private, n Name, body []byte) []byte {
	if k.Public() != n.Member || !n.Kind.Valid() {
		panic("bucket: an object is sealed by somebody else, or of no kind")
	}
	b := head(n, body)
	sig := k.Sign(domain, b)
	b = append(b, sig[:]...)
	return append(b, body...)
}

// Open is the inverse of Seal: it returns the name and the body, a view of object, if the envelope
// is consistent. The caller checks that it is the requested object and that the body has the
// content that the name states.
func Open(object []byte) (Name, []byte, error) {
	r := wire.NewReader(object)
	if string(r.Bytes(len(magic))) != magic {
		return Name{}, nil, errors.New("it is not an object of this version")
	}
	n := Name{Run: r.Hash(), Window: coordinator.Round(r.U32()), Kind: Kind(r.U8())}
	copy(n.Member[:], r.Bytes(len(n.Member)))
	n.Content = r.Hash()
	length, digest := r.U64(), r.Hash()
	signed := object[:len(object)-r.Len()]
	var sig key.Signature
	copy(sig[:], r.Bytes(len(sig)))
	if r.Err() != wire.OK {
		return Name{}, nil, errors.New("its envelope is truncated")
	}
	body := r.Rest()
	switch {
	case !n.Kind.Valid():
		return Name{}, nil, fmt.Errorf("unknown kind of object %d", uint8(n.Kind))
	case uint64(len(body)) != length:
		return Name{}, nil, fmt.Errorf("its body has %d bytes, want %d", len(body), length)
	case wire.Sum(domain, body) != digest:
		return Name{}, nil, errors.New("its body is not the signed one")
	case !key.Verify(n.Member, domain, signed, sig):
		return Name{}, nil, errors.New("its signature is not the member's")
	}
	return n, body, nil
}

// checkContent compares a body with its name, for the kinds that this package can verify. Reveals
// and states have roots that only a codec can compute.
func checkContent(n Name, body []byte) error {
	switch n.Kind {
	case KindCommitment:
		s, err := dispute.ParseSigned(body)
		if err != nil {
			return fmt.Errorf("the commitment: %w", err)
		}
		if s.Commitment.ID() != n.Content || s.Commitment.Run != n.Run || s.Commitment.Round != n.Window || !s.Verify(n.Member) {
			return errors.New("it is a different commitment, or the member did not sign it")
		}
	case KindCopy:
		if s, _, err := ParseCopy(body); err != nil || s.Commitment.ID() != n.Content || s.Commitment.Run != n.Run || s.Commitment.Round != n.Window {
			return errors.New("it is not a copy of what is committed to")
		}
	case KindLack:
		if !n.Content.IsZero() || len(body) > LackBytesMax {
			return errors.New("the list of what its author lacks has a content hash, or is too long")
		}
	case KindIndex:
		if _, err := parseIndex(body, n.Content); err != nil {
			return err
		}
	case KindPart:
		if len(body) > partBytes || merkle.BlobRoot(body) != n.Content {
			return errors.New("the hash of the part does not match the name")
		}
	case KindScore:
		if scoreContent(body) != n.Content {
			return errors.New("the hash of the notes does not match the name")
		}
	}
	return nil
}

// AppendCopy appends the body of an object of kind copy: another member's signed commitment, and
// the slice that it revealed.
func AppendCopy(dst []byte, s dispute.Signed, reveal []byte) []byte {
	return append(s.Append(dst), reveal...)
}

// ParseCopy is the inverse of AppendCopy. It checks neither the signature nor the slice.
func ParseCopy(body []byte) (s dispute.Signed, reveal []byte, err error) {
	n := min(len(body), dispute.SignedBytes)
	s, err = dispute.ParseSigned(body[:n])
	return s, body[n:], err
}
