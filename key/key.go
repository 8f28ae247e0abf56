// Package key implements identities. An identity is an Ed25519 key pair (RFC 8032), used to sign
// transactions and commitments and as the participant's address among peers.
//
// A signature is always bound to a purpose. The signed bytes are
//
//	U8 length of domain | domain | message
//
// so that a signature made for one purpose never counts for another. Since a domain has at most
// wire.DomainBytesMax (64) bytes, these bytes never begin like the lower-case text that transports
// sign with the same key.
//
// One rule decides whether a signature is valid, on every machine and forever, single or in a
// batch: ZIP 215 (https://zips.z.cash/zip-0215). RFC 8032 leaves open how to treat non-canonical
// points and of small-order components, and libraries differ; replicas that differ fork. Under ZIP
// 215, A and R may be any encodings that decode to points, s must be below the group order, and the
// equation is checked times the cofactor.
//
// A public key is written as 64 lower-case hexadecimal digits.
//
// The package is replicated (see package wire) except for signing, which no replica does.
package key

import "github.com/entrain-network/entrain/wire"

// Public is a participant's identity: an Ed25519 public key, the encoding of a curve point. Bytes
// that encode no point are also values of this type, for which no signature is valid.
type Public [32]byte

// Signature is an Ed25519 signature: the encoding of a point R, then the number s, little endian.
type Signature [64]byte

// Verify reports whether sig is pub's signature of msg in the domain, by ZIP 215. It panics when
// the domain is empty or longer than wire.DomainBytesMax.
func Verify(pub Public, domain string, msg []byte, sig Signature) bool {
	return verify(&pub, signed(domain, msg), &sig)
}

// signed returns the bytes that are signed.
func signed(domain string, msg []byte) []byte {
	if len(domain) == 0 || len(domain) > wire.DomainBytesMax {
		panic("key: domain of a signature is empty or too long")
	}
	b := make([]byte, 0, 1+len(domain)+len(msg))
	b = append(b, uint8(len(domain)))
	b = append(b, domain...)
	return append(b, msg...)
}

// IsZero reports whether p is the zero Public, which formats use for "none". It encodes a point of
// small order, for which anyone can make signatures, so it must never identify a participant.
func (p Public) IsZero() bool { return p == Public{} }

// Compare orders keys by their bytes: -1 if p is before o, 0 if they are equal, 1 if it is after.
func (p Public) Compare(o Public) int { return wire.Hash(p).Compare(wire.Hash(o)) }

// String returns the key as 64 lower-case hexadecimal digits.
func (p Public) String() string { return string(wire.AppendHex(nil, p[:])) }

// ParsePublic is the inverse of String: it accepts exactly 64 lower-case hexadecimal digits, and
// fails with wire.ErrText.
func ParsePublic(s string) (Public, error) {
	var p Public
	err := wire.DecodeHex(p[:], s)
	return p, err
}

// MarshalText implements encoding.TextMarshaler as String.
func (p Public) MarshalText() ([]byte, error) { return wire.AppendHex(nil, p[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler as ParsePublic. On an error p is unchanged.
func (p *Public) UnmarshalText(text []byte) error { return wire.DecodeHex(p[:], string(text)) }
