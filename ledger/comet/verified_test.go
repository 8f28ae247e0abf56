package comet

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// A signature is checked once, and another one under the same transaction again.
func TestAKnownTransactionWithAnotherSignatureIsRefused(t *testing.T) {
	a := &app{genesis: host.Genesis{Chain: "test"}}
	signer := &ledger.Signer{Chain: "test", Key: key.FromSeed(wire.Sum("signer"))}
	tx, err := signer.Sign(time.Now(), host.Announce{Run: "run", Addrs: []string{"here"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.parse(tx); err != nil {
			t.Fatal(err)
		}
		if !a.verified.knows(sha256.Sum256(tx)) {
			t.Fatal("the signature would be checked again")
		}
	}
	forged := bytes.Clone(tx)
	forged[len(forged)-1] ^= 1
	for range 2 {
		if _, err := a.parse(forged); err == nil {
			t.Fatal("a forged signature passes")
		}
	}
	for i := range uint32(3 * verifiedMax) {
		a.verified.add(wire.Sum("another", wire.AppendU32(nil, i)))
	}
	if n := len(a.verified.recent) + len(a.verified.before); n > 2*verifiedMax || a.verified.knows(sha256.Sum256(tx)) {
		t.Errorf("%d transactions are remembered", n)
	}
}
