package lp2p

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/entrain-network/entrain/key"
)

// privateKey converts a key to libp2p's form.
func privateKey(k key.Private) (crypto.PrivKey, error) {
	seed := k.Seed()
	return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

// peerID returns the libp2p identity of a key, which contains the key.
func peerID(k key.Public) (peer.ID, error) {
	pub, err := crypto.UnmarshalEd25519PublicKey(k[:])
	if err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(pub)
}

// publicKey is the inverse of peerID. It fails for identities with other kinds of keys.
func publicKey(id peer.ID) (key.Public, error) {
	pub, err := id.ExtractPublicKey()
	if err != nil {
		return key.Public{}, err
	}
	if pub.Type() != crypto.Ed25519 {
		return key.Public{}, fmt.Errorf("the peer %v has a key that is not ed25519", id)
	}
	raw, err := pub.Raw()
	if err != nil {
		return key.Public{}, err
	}
	return key.Public(raw), nil
}
