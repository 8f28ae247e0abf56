package onchain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
)

func TestDelegationsAreReadStrictly(t *testing.T) {
	owner, node := key.FromSeed([32]byte{1}), key.FromSeed([32]byte{2}).Public()
	now := time.UnixMilli(1_000_000)
	d := onchain.Delegation{Chain: "c", Run: "r", Node: node, Certificate: host.NewCertificate(owner, "c", "r", node, 2_000_000)}
	got, err := onchain.ParseDelegation(d.String())
	if err != nil || got != d {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := d.Check("c", "r", node, now); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"not for run": d.Check("c", "other", node, now), "this is": d.Check("c", "r", owner.Public(), now), "expired": d.Check("c", "r", node, time.UnixMilli(2_000_000)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	text := d.String()
	for i := range text {
		changed := text[:i] + string("AB"[btoi(text[i] == 'A')]) + text[i+1:]
		if _, err := onchain.ParseDelegation(changed); !errors.Is(err, onchain.ErrDelegation) {
			t.Fatalf("character %d changed: %v", i, err)
		}
	}
	for _, s := range []string{"", onchain.DelegationPrefix, text[:len(text)-4], text + "AAAA"} {
		if _, err := onchain.ParseDelegation(s); err == nil {
			t.Errorf("%q is read", s)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func FuzzParseDelegation(f *testing.F) {
	node := key.FromSeed([32]byte{2}).Public()
	f.Add(onchain.Delegation{Chain: "c", Run: "r", Node: node, Certificate: host.NewCertificate(key.FromSeed([32]byte{1}), "c", "r", node, 9)}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := onchain.ParseDelegation(s); err == nil && d.String() != s {
			t.Errorf("%q is read, and written as %q", s, d)
		}
	})
}
