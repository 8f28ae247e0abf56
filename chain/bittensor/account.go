package bittensor

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mr-tron/base58"
	"github.com/oasisprotocol/curve25519-voi/primitives/sr25519"
	"golang.org/x/crypto/blake2b"
)

// Account is the public sr25519 key of a hotkey or coldkey.
type Account [32]byte

// prefix is Substrate's generic address format, which Bittensor uses.
const prefix = 42

// String returns the account's SS58 address.
func (a Account) String() string {
	body := append([]byte{prefix}, a[:]...)
	return base58.Encode(append(body, checksum(body)...))
}

func checksum(body []byte) []byte {
	sum := blake2b.Sum512(append([]byte("SS58PRE"), body...))
	return sum[:2]
}

// MarshalText returns the account's SS58 address.
func (a Account) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Key signs as an account. It is not printed.
type Key struct{ pair func() *sr25519.KeyPair }

// newKey returns the key of a seed of 32 bytes.
func newKey(seed [32]byte) (Key, error) {
	mini, err := sr25519.NewMiniSecretKeyFromBytes(seed[:])
	if err != nil {
		return Key{}, err
	}
	pair := mini.ExpandEd25519().KeyPair()
	return Key{pair: func() *sr25519.KeyPair { return pair }}, nil
}

// ReadKey reads the file of an unencrypted key in a wallet of btcli: JSON with the secretSeed.
func ReadKey(file string) (Key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Key{}, err
	}
	var f struct{ SecretSeed, SS58Address string }
	if err := json.Unmarshal(text, &f); err != nil || f.SecretSeed == "" {
		return Key{}, fmt.Errorf("%s is not an unencrypted key of a wallet: it lacks a secretSeed", file)
	}
	var seed [32]byte
	if b, err := hex.DecodeString(strings.TrimPrefix(f.SecretSeed, "0x")); err != nil || copy(seed[:], b) != len(seed) || len(b) != len(seed) {
		return Key{}, fmt.Errorf("the secretSeed of %s is not 64 hexadecimal digits", file)
	}
	k, err := newKey(seed)
	if err == nil && f.SS58Address != "" && f.SS58Address != k.Account().String() {
		err = fmt.Errorf("the secretSeed of %s is not the key of its ss58Address", file)
	}
	return k, err
}

// Account returns the account as which the key signs.
func (k Key) Account() (a Account) {
	b, err := k.pair().PublicKey().MarshalBinary()
	if err != nil {
		panic(err)
	}
	copy(a[:], b)
	return a
}

// String returns a placeholder.
func (k Key) String() string { return "<sr25519 key>" }

// GoString returns a placeholder.
func (k Key) GoString() string { return k.String() }

var signing = sr25519.NewSigningContext([]byte("substrate"))

func (k Key) sign(msg []byte) ([]byte, error) {
	if k.pair == nil {
		return nil, errors.New("there is no key to sign with")
	}
	sig, err := k.pair().Sign(rand.Reader, signing.NewTranscriptBytes(msg))
	if err != nil {
		return nil, err
	}
	return sig.MarshalBinary()
}
