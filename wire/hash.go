package wire

// DomainBytesMax bounds the name of a domain, in Sum and in signatures. No byte of lower-case text
// is as small, so bytes that begin with the length of a domain are never the text another protocol
// begins with, such as libp2p's handshakes, which sign with the same keys.
const DomainBytesMax = 64

// Hash is a SHA-256 digest. The zero Hash stands for "none" where a format says so. Finding bytes
// with that digest is infeasible.
type Hash [32]byte

// Sum returns the hash of the parts, one after the other, under a domain, which says what the bytes
// are: sha256(length of domain in one byte | domain | parts). The parts are not delimited: a caller
// that hashes several parts of variable length puts lengths between them. It panics when the domain
// is empty or longer than DomainBytesMax.
func Sum(domain string, parts ...[]byte) Hash {
	if len(domain) == 0 || len(domain) > DomainBytesMax {
		panic("wire: domain of a hash is empty or too long")
	}
	var prefix [1 + DomainBytesMax]byte
	prefix[0] = uint8(len(domain))
	n := 1 + copy(prefix[1:], domain)
	return sha256Sum(prefix[:n], parts)
}

// SHA256 returns the plain digest of the parts, one after the other. It is for formats fixed
// elsewhere, such as RFC 6962 trees. Our own formats use Sum.
func SHA256(parts ...[]byte) Hash { return sha256Sum(nil, parts) }

// IsZero reports whether h is the zero Hash, "none".
func (h Hash) IsZero() bool { return h == Hash{} }

// Compare orders hashes as numbers written big end first: -1 if h is before o, 0 if they are equal,
// 1 if it is after.
func (h Hash) Compare(o Hash) int {
	for i := range h {
		if h[i] < o[i] {
			return -1
		}
		if h[i] > o[i] {
			return 1
		}
	}
	return 0
}

// String returns h as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return string(AppendHex(nil, h[:])) }

// ParseHash is the inverse of String: it accepts exactly 64 lower-case hexadecimal digits, and
// fails with ErrText.
func ParseHash(s string) (Hash, error) {
	var h Hash
	err := DecodeHex(h[:], s)
	return h, err
}

// MarshalText implements encoding.TextMarshaler as String.
func (h Hash) MarshalText() ([]byte, error) { return AppendHex(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler as ParseHash. On an error h is unchanged.
func (h *Hash) UnmarshalText(text []byte) error { return DecodeHex(h[:], string(text)) }
