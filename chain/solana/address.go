// Package solana speaks with the Solana program of runs (command program, in its directory):
// addresses, transactions, and the program's instructions. It opens no connection.
package solana

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"

	"filippo.io/edwards25519"
	"github.com/mr-tron/base58"

	"github.com/entrain-network/entrain/key"
)

// Address names an account: an Ed25519 public key, or the hash that a program has instead of one.
type Address [32]byte

// String returns the address in base 58, as all tools of Solana show it.
func (a Address) String() string { return base58.Encode(a[:]) }

// MarshalText returns the address in base 58.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// addressMax is the length of the longest address in base 58, whose decoding takes time in
// proportion to the square of its length.
const addressMax = 44

// ParseAddress is the inverse of String.
func ParseAddress(s string) (a Address, err error) {
	if len(s) > addressMax {
		return a, fmt.Errorf("%q... is not an address of Solana: it has %d characters, not 32 to 44", s[:addressMax], len(s))
	}
	b, err := base58.Decode(s)
	if err != nil || len(b) != len(a) {
		return a, fmt.Errorf("%q is not an address of Solana: 32 to 44 letters and digits in base 58", s)
	}
	return Address(b), nil
}

// must is ParseAddress of what is written in this package.
func must(s string) Address {
	a, err := ParseAddress(s)
	if err != nil {
		panic(err)
	}
	return a
}

// Programs and accounts that every cluster has.
var (
	SystemProgram = Address{}
	TokenProgram  = must("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
	Clock         = must("SysvarC1ock11111111111111111111111111111111") // the cluster's time
	budgetProgram = must("ComputeBudget111111111111111111111111111111")
	purseProgram  = must("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
)

// ErrNoAddress is the failure of Derived, which nobody has seen.
var ErrNoAddress = errors.New("no seed leads to an address without a key")

// derived returns the address of a program for seeds, which no key has: that of the first byte from
// 255 down for which the hash of seeds, byte and program is no point of the curve.
func derived(program Address, seeds ...[]byte) (Address, error) {
	for bump := 255; bump >= 0; bump-- {
		h := sha256.New()
		for _, s := range seeds {
			h.Write(s)
		}
		h.Write([]byte{uint8(bump)})
		h.Write(program[:])
		h.Write([]byte("ProgramDerivedAddress"))
		at := Address(h.Sum(nil))
		if _, err := new(edwards25519.Point).SetBytes(at[:]); err != nil {
			return at, nil
		}
	}
	return Address{}, ErrNoAddress
}

// Signer is who signs transactions: a participant's key as it is.
type Signer struct{ k key.Private }

// NewSigner returns the signer of a key.
func NewSigner(k key.Private) Signer { return Signer{k} }

// Address returns the account that signs.
func (s Signer) Address() Address { return Address(s.k.Public()) }

// sign signs bytes without a domain, as Solana asks. Such bytes begin with the number of signatures
// and then that of the read-only ones among them, which is smaller; a domain's signature begins
// with its length and then a letter, which is larger than any length. So neither signature counts
// for the other.
func (s Signer) sign(message []byte) []byte {
	seed := s.k.Seed()
	return ed25519.Sign(ed25519.NewKeyFromSeed(seed[:]), message)
}
