package chance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func secret(t testing.TB, name string) Secret {
	t.Helper()
	s, err := NewSecret(wire.Sum("entrain/test/chance", []byte(name)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAValueIsProven(t *testing.T) {
	ann, bob := secret(t, "ann"), secret(t, "bob")
	message := wire.Sum("entrain/test/message")
	value, proof, err := ann.Prove(message)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, _ := ann.Prove(message); again != value {
		t.Error("a message has two values")
	}
	if got, err := Verify(ann.Public(), message, proof); err != nil || got != value {
		t.Errorf("got %v, %v, want %v", got, err, value)
	}
	if _, err := Verify(bob.Public(), message, proof); !errors.Is(err, ErrProof) {
		t.Errorf("another's key: %v", err)
	}
	if _, err := Verify(ann.Public(), wire.Sum("entrain/test/other"), proof); !errors.Is(err, ErrProof) {
		t.Errorf("another message: %v", err)
	}
	for i := range proof {
		bad := proof
		bad[i] ^= 1
		if got, err := Verify(ann.Public(), message, bad); err == nil && got != value {
			t.Errorf("with byte %d changed the proof shows another value", i)
		}
	}
	if other, _, _ := bob.Prove(message); other == value {
		t.Error("two keys have the same value")
	}
}

func TestKeysWithoutASecretAreRefused(t *testing.T) {
	if !ValidKey(secret(t, "ann").Public()) {
		t.Error("an honest key is refused")
	}
	var ones key.Public
	for i := range ones {
		ones[i] = 0xff
	}
	// The points of order 1, 2, 4 and 8, and an encoding of zero that is not the one: RFC 8032 and its errata.
	small := []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	}
	for _, s := range small {
		k, err := key.ParsePublic(s)
		if err != nil {
			t.Fatal(err)
		}
		if ValidKey(k) {
			t.Errorf("%s is accepted", s)
		}
	}
	if ValidKey(ones) {
		t.Error("bytes that are no point are accepted")
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s := secret(t, "ann")
	seed := s.Seed()
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%#v", s), fmt.Sprintf("%+v", s)} {
		if strings.Contains(text, fmt.Sprintf("%x", seed[:4])) || !strings.Contains(text, "hidden") {
			t.Errorf("printed as %q", text)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s, err := NewSecret(wire.Sum("entrain/test/chance"))
	if err != nil {
		f.Fatal(err)
	}
	message := wire.Sum("entrain/test/message")
	value, proof, err := s.Prove(message)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(proof[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Proof
		copy(p[:], b)
		if got, err := Verify(s.Public(), message, p); err == nil && got != value {
			t.Errorf("%x proves another value", b)
		}
	})
}
