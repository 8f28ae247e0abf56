//go:build !sbf

package dispute

import "github.com/entrain-network/entrain/key"

// Sign signs c as its trainer.
func (c Commitment) Sign(k key.Private) Signed {
	return Signed{Commitment: c, Signature: k.Sign(commitmentDomain, c.Append(nil))}
}
