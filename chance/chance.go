// Package chance makes random numbers that their maker cannot choose and everyone can check: the
// values of a verifiable random function, ECVRF-EDWARDS25519-SHA512-TAI.
//
// A secret key and a message have exactly one value. A proof shows the value to anyone that knows
// the public key. Without the secret key the value looks random, even to those that know all
// earlier values. So a maker that published its key before it knew the message can only tell the
// value or withhold it.
package chance

import (
	"crypto/ed25519"
	"errors"

	"filippo.io/edwards25519"
	"github.com/ProtonMail/go-ecvrf/ecvrf"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// ProofBytes is the size of a Proof.
const ProofBytes = ecvrf.ProofSize

// Proof shows the value of a message under a public key.
type Proof [ProofBytes]byte

// Secret is a key that makes values. Use it for nothing else. Make one with NewSecret.
type Secret struct {
	seed   [32]byte
	secret *ecvrf.PrivateKey
}

// NewSecret returns the key made from 32 random bytes.
func NewSecret(seed [32]byte) (Secret, error) {
	secret, err := ecvrf.NewPrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	return Secret{seed: seed, secret: secret}, err
}

// Seed returns the bytes that the key was made from.
func (s Secret) Seed() [32]byte { return s.seed }

// Public returns the key that checks proofs.
func (s Secret) Public() key.Public {
	return key.Public(ed25519.NewKeyFromSeed(s.seed[:]).Public().(ed25519.PublicKey))
}

// String hides the key from logs.
func (s Secret) String() string { return "chance.Secret(hidden)" }

// GoString hides the key from logs.
func (s Secret) GoString() string { return s.String() }

// Prove returns the message's value and its proof.
func (s Secret) Prove(message wire.Hash) (wire.Hash, Proof, error) {
	value, proof, err := s.secret.Prove(message[:])
	if err != nil {
		return wire.Hash{}, Proof{}, err
	}
	return digest(value), Proof(proof), nil
}

// ErrKey reports a public key that has no secret key, or more than one value for a message.
var ErrKey = errors.New("not a key of the verifiable random function")

// ErrProof reports a proof that proves nothing.
var ErrProof = errors.New("the proof of a random value is wrong")

// ValidKey reports whether every message has at most one value under the key: the key must be the
// canonical encoding of a point that is not of small order.
func ValidKey(k key.Public) bool {
	p, err := new(edwards25519.Point).SetBytes(k[:])
	if err != nil || key.Public(p.Bytes()) != k {
		return false
	}
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) != 1
}

// Verify returns the message's value under a valid key, or ErrProof.
func Verify(k key.Public, message wire.Hash, p Proof) (wire.Hash, error) {
	public, err := ecvrf.NewPublicKey(k[:])
	if err != nil {
		return wire.Hash{}, ErrKey
	}
	ok, value, err := public.Verify(message[:], p[:])
	if err != nil || !ok {
		return wire.Hash{}, ErrProof
	}
	return digest(value), nil
}

// digest shortens the function's 64 bytes.
func digest(value []byte) wire.Hash { return wire.Sum("entrain/chance", value) }
