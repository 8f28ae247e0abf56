//go:build !sbf

package key

import "crypto/ed25519"

// Private is a participant's secret. It prints as a placeholder or an address under every verb, and
// is left out of JSON: a log or an error message that includes one by mistake reveals nothing. The
// zero Private is not a key; using it panics.
type Private struct {
	// reveal returns the seed and the public key, the form from which RFC 8032 signs. They are in a
	// closure because fmt, when it does not call String, prints through fields and pointers, but
	// prints only the address of a function.
	reveal func() [ed25519.PrivateKeySize]byte
}

// FromSeed returns the key pair of an Ed25519 seed, 32 random bytes.
func FromSeed(seed [32]byte) Private {
	expanded := [ed25519.PrivateKeySize]byte(ed25519.NewKeyFromSeed(seed[:]))
	return Private{reveal: func() [ed25519.PrivateKeySize]byte { return expanded }}
}

// Seed returns the secret itself. It is for the key file and for the transport, which authenticates
// with the same key.
func (p Private) Seed() [32]byte {
	b := p.expanded()
	return [32]byte(b[:32])
}

// Public returns the public half.
func (p Private) Public() Public {
	b := p.expanded()
	return Public(b[32:])
}

// Sign signs msg in the domain, deterministically (RFC 8032, section 5.1.6). It panics when the
// domain is empty or longer than wire.DomainBytesMax.
func (p Private) Sign(domain string, msg []byte) Signature {
	b := p.expanded()
	return Signature(ed25519.Sign(b[:], signed(domain, msg)))
}

// IsZero reports whether p is the zero Private.
func (p Private) IsZero() bool { return p.reveal == nil }

func (p Private) expanded() [ed25519.PrivateKeySize]byte {
	if p.reveal == nil {
		panic("key: use of the zero private key")
	}
	return p.reveal()
}

// hidden is printed in place of a private key.
const hidden = "key.Private(hidden)"

// String returns a placeholder, never the secret.
func (p Private) String() string { return hidden }

// GoString returns a placeholder, never the secret, for the verb %#v.
func (p Private) GoString() string { return hidden }
