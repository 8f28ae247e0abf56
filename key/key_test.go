package key

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors are TEST 1 to 3 of RFC 8032, section 7.1: messages without a domain, hence below Sign and Verify.
func TestRFC8032Vectors(t *testing.T) {
	for _, c := range []struct{ seed, public, msg, sig string }{
		{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
		{"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
		{"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
			"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
	} {
		p := FromSeed([32]byte(fromHex(t, c.seed)))
		if got := p.Public().String(); got != c.public {
			t.Errorf("seed %s has public key %s, want %s", c.seed, got, c.public)
		}
		msg, sig := fromHex(t, c.msg), Signature(fromHex(t, c.sig))
		pub := p.Public()
		if !verify(&pub, msg, &sig) {
			t.Errorf("signature of %q is refused", c.msg)
		}
	}
}

// pair returns a key made from one byte.
func pair(b byte) Private { return FromSeed([32]byte{b}) }

func TestSignedBytesAreAsDrawn(t *testing.T) {
	p := pair(1)
	pub, sig := p.Public(), p.Sign("ab", []byte("cd"))
	if !ed25519.Verify(pub[:], []byte("\x02abcd"), sig[:]) {
		t.Error("the bytes under a signature are not length, domain, message")
	}
}

func TestSignatureHoldsForItsKeyDomainAndMessageOnly(t *testing.T) {
	p := pair(1)
	msg := []byte("message")
	sig := p.Sign("domain", msg)
	if !Verify(p.Public(), "domain", msg, sig) {
		t.Fatal("a good signature is refused")
	}
	if p.Sign("domain", msg) != sig {
		t.Error("signing is not deterministic")
	}
	if Verify(pair(2).Public(), "domain", msg, sig) {
		t.Error("a signature counts for another key")
	}
	if Verify(p.Public(), "domai", []byte("nmessage"), sig) || Verify(p.Public(), "domain2", msg, sig) {
		t.Error("a signature counts for another domain")
	}
	if Verify(p.Public(), "domain", nil, sig) || Verify(p.Public(), "domain", msg[1:], sig) {
		t.Error("a signature counts for another message")
	}
	for bit := range 8 * len(sig) {
		broken := sig
		broken[bit/8] ^= 1 << (bit % 8)
		if Verify(p.Public(), "domain", msg, broken) {
			t.Errorf("a signature with bit %d changed is accepted", bit)
		}
	}
}

// smallOrder are all encodings of the eight points of small order, canonical and not, of which ZIP 215's own test vectors
// are made: with s = 0 every pair of them is a valid public key and R for every message.
var smallOrder = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
}

func TestRuleIsZIP215(t *testing.T) {
	msg := []byte("Zcash")
	otherwise := 0
	for _, a := range smallOrder {
		for _, r := range smallOrder {
			pub := Public(fromHex(t, a))
			var sig Signature
			copy(sig[:], fromHex(t, r))
			if !verify(&pub, msg, &sig) {
				t.Errorf("A = %s, R = %s, s = 0 is refused", a, r)
			}
			if !ed25519.Verify(pub[:], msg, sig[:]) {
				otherwise++
			}
		}
	}
	if otherwise == 0 {
		t.Error("the vectors do not tell ZIP 215 from the standard library's rule")
	}
}

func TestNumberBeyondTheGroupOrderIsRefused(t *testing.T) {
	p := pair(3)
	sig := p.Sign("domain", nil)
	order, ok := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	if !ok {
		t.Fatal("the group order is not a number")
	}
	s := slices.Clone(sig[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	copy(sig[32:], sum)
	if Verify(p.Public(), "domain", nil, sig) {
		t.Error("s plus the group order is accepted: signatures are malleable")
	}
}

// y = 2 and y = 7 are no coordinates of a point of the curve, in either sign of x.
func TestBytesThatAreNoPointVerifyNothing(t *testing.T) {
	sig := pair(4).Sign("domain", nil)
	for _, pub := range []Public{{0: 2}, {0: 2, 31: 0x80}, {0: 7}, {0: 7, 31: 0x80}} {
		for _, r := range []string{smallOrder[0], smallOrder[2]} {
			forged := Signature(append(fromHex(t, r), make([]byte, 32)...))
			if Verify(pub, "domain", nil, sig) || Verify(pub, "domain", nil, forged) {
				t.Errorf("%v, which is no point, verifies a signature", pub)
			}
		}
	}
}

func TestPrivateKeysAreNotPrinted(t *testing.T) {
	seed := [32]byte(slices.Repeat([]byte{0xa7}, 32))
	p := FromSeed(seed)
	holder := struct {
		Name string
		Key  Private
		ptr  *Private
		in   any
	}{"ann", p, &p, p}
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X % x %#x %d %o %b %c %U %e %t %p %T %10v %08d") {
		for _, value := range []any{p, &p, holder, &holder, []Private{p}, map[string]Private{"x": p}} {
			text := strings.ToLower(fmt.Sprintf(verb, value))
			for _, secret := range []string{"a7a7", "a7 a7", "a7, 0xa7", "167 167", "247 247", "10100111 10100111", "§§", "0xa70xa7"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s of %T prints %s", verb, value, text)
				}
			}
		}
	}
	if got := fmt.Sprint(p); got != hidden {
		t.Errorf("a private key prints as %q, want %q", got, hidden)
	}
	if text, err := json.Marshal(holder); err != nil || string(text) != `{"Name":"ann","Key":{}}` {
		t.Errorf("JSON of a private key is %s, %v", text, err)
	}
	if p.Seed() != seed {
		t.Error("Seed does not return the seed")
	}
}

func TestZeroPrivateKey(t *testing.T) {
	var zero Private
	if !zero.IsZero() || pair(1).IsZero() {
		t.Error("IsZero is wrong")
	}
	if got := fmt.Sprintf("%v %+v %#v", zero, zero, zero); got != hidden+" "+hidden+" "+hidden {
		t.Errorf("the zero private key prints as %q", got)
	}
	for name, f := range map[string]func(){
		"public key":    func() { zero.Public() },
		"seed":          func() { zero.Seed() },
		"signature":     func() { zero.Sign("domain", nil) },
		"no domain":     func() { pair(1).Sign("", nil) },
		"a long domain": func() { Verify(pair(1).Public(), strings.Repeat("x", wire.DomainBytesMax+1), nil, Signature{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestPublicKeysAsText(t *testing.T) {
	p := pair(5).Public()
	if got, err := ParsePublic(p.String()); err != nil || got != p {
		t.Errorf("ParsePublic(String) = %v, %v", got, err)
	}
	text, err := json.Marshal(map[Public]Public{p: p})
	if err != nil {
		t.Fatal(err)
	}
	var back map[Public]Public
	if err := json.Unmarshal(text, &back); err != nil || back[p] != p {
		t.Errorf("JSON %s is read as %v, %v", text, back, err)
	}
	for _, bad := range []string{"", p.String()[1:], p.String() + "00", strings.ToUpper(p.String()), "x" + p.String()[1:]} {
		if got, err := ParsePublic(bad); err != error(wire.ErrText) || got != (Public{}) {
			t.Errorf("ParsePublic(%q) = %v, %v", bad, got, err)
		}
	}
	if !(Public{}).IsZero() || p.IsZero() {
		t.Error("IsZero is wrong")
	}
	a, b := Public{0: 1}, Public{0: 1, 31: 1}
	if a.Compare(b) != -1 || b.Compare(a) != 1 || a.Compare(a) != 0 {
		t.Error("Compare does not order keys by their bytes")
	}
}

// FuzzVerify gives Verify keys and signatures from outside: it never fails, and what the standard library accepts, whose
// rule is narrower, it accepts too.
func FuzzVerify(f *testing.F) {
	p := pair(6)
	pub, sig := p.Public(), p.Sign("d", []byte("m"))
	f.Add(pub[:], sig[:], []byte("m"))
	for _, s := range smallOrder[:4] {
		b, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, append(slices.Clone(b), make([]byte, 32)...), []byte("m"))
	}
	f.Fuzz(func(t *testing.T, a, s, msg []byte) {
		var pub Public
		var sig Signature
		copy(pub[:], a)
		copy(sig[:], s)
		if ed25519.Verify(pub[:], signed("d", msg), sig[:]) && !Verify(pub, "d", msg, sig) {
			t.Errorf("key %v, signature %x: accepted by RFC 8032's rule, refused by ours", pub, sig)
		}
	})
}

func FuzzParsePublic(f *testing.F) {
	f.Add(pair(7).Public().String())
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParsePublic(s); err == nil && p.String() != s {
			t.Errorf("%q parses but is written %q", s, p)
		}
	})
}

func ExamplePrivate_Sign() {
	ann := FromSeed([32]byte{1})
	sig := ann.Sign("entrain/example", []byte("hello"))
	fmt.Println(Verify(ann.Public(), "entrain/example", []byte("hello"), sig))
	fmt.Println(Verify(ann.Public(), "entrain/another", []byte("hello"), sig))
	fmt.Println(ann)
	// Output:
	// true
	// false
	// key.Private(hidden)
}

func BenchmarkVerify(b *testing.B) {
	p := pair(8)
	pub, sig := p.Public(), p.Sign("domain", make([]byte, 200))
	b.ReportAllocs()
	for b.Loop() {
		if !Verify(pub, "domain", make([]byte, 200), sig) {
			b.Fatal("refused")
		}
	}
}
