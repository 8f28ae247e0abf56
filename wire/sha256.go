//go:build !sbf

package wire

import (
	"crypto/sha256"

	"github.com/entrain-network/entrain/internal/tally"
)

// sha256Sum is the only use of SHA-256 in replicated packages. It stands alone in its file
// so that a build for a chain's virtual machine can replace it, by a build tag, with that machine's
// own instruction.
func sha256Sum(prefix []byte, parts [][]byte) Hash {
	d := sha256.New()
	d.Write(prefix)
	tally.Hashed(len(prefix))
	for _, p := range parts {
		d.Write(p)
		tally.Hashed(len(p))
	}
	var h Hash
	d.Sum(h[:0])
	return h
}
