package solana_test

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
)

// A decoder of base 58 takes minutes for these bytes, which an endpoint may name as an owner.
func TestEndlessAddressesAreRefusedUnread(t *testing.T) {
	if _, err := solana.ParseAddress(strings.Repeat("z", 8<<20)); err == nil || len(err.Error()) > 200 {
		t.Errorf("an address of 8 MiB: %.200v", err)
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add(solana.TokenProgram.String())
	f.Add(solana.Address{}.String())
	f.Fuzz(func(t *testing.T, text string) {
		a, err := solana.ParseAddress(text)
		if err == nil && a.String() != text {
			t.Errorf("%q is %v", text, a)
		}
	})
}
