//go:build !sbf

package key

import (
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/entrain-network/entrain/internal/tally"
)

// verify is the one verification rule, ZIP 215. It stands alone in its file so that a build for a
// chain's virtual machine can leave it, and its dependency, out by a build tag: there the chain
// itself checks signatures.
func verify(pub *Public, signed []byte, sig *Signature) bool {
	tally.Signature()
	tally.Hashed(len(signed))
	return ed25519.VerifyWithOptions(pub[:], signed, sig[:], &ed25519.Options{Verify: ed25519.VerifyOptionsZIP_215})
}
