package key

import "crypto/ed25519"

// Private is a participant's secret. It prints as a placeholder under every verb, and is left out of JSON: a log or an error
// message that includes one by mistake reveals nothing. The zero Private is no key; using it panics.
type Private struct {
	// secret is behind a pointer because fmt, for verbs that do not ask String, walks the fields of a struct but prints
	// only the address of what an inner pointer points to.
	secret *secret
}

type secret struct {
	expanded [ed25519.PrivateKeySize]byte // seed, then public key: the form RFC 8032's signing starts from
}

// FromSeed returns the key pair of an Ed25519 seed, 32 random bytes.
func FromSeed(seed [32]byte) Private {
	s := new(secret)
	copy(s.expanded[:], ed25519.NewKeyFromSeed(seed[:]))
	return Private{secret: s}
}

// Seed returns the secret itself. It is for the file the key is kept in and for the transport, which authenticates with
// the same key.
func (p Private) Seed() [32]byte { return [32]byte(p.must().expanded[:32]) }

// Public returns the public half.
func (p Private) Public() Public { return Public(p.must().expanded[32:]) }

// Sign signs msg in the domain, deterministically (RFC 8032, section 5.1.6). It panics when the domain is empty or longer
// than wire.DomainBytesMax.
func (p Private) Sign(domain string, msg []byte) Signature {
	return Signature(ed25519.Sign(p.must().expanded[:], signed(domain, msg)))
}

// IsZero tells whether p is no key.
func (p Private) IsZero() bool { return p.secret == nil }

func (p Private) must() *secret {
	if p.secret == nil {
		panic("key: use of the zero private key")
	}
	return p.secret
}

// hidden is what a private key prints as.
const hidden = "key.Private(hidden)"

// String returns a placeholder, never the secret.
func (p Private) String() string { return hidden }

// GoString returns a placeholder, never the secret, for the verb %#v.
func (p Private) GoString() string { return hidden }
