package bucket_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func keyOf(b byte) key.Private { return key.FromSeed([32]byte{b}) }

// reveal returns the name of a reveal, whose content the package does not check by itself.
func reveal(b byte, window coordinator.Round) bucket.Name {
	return bucket.Name{Run: wire.Sum("run"), Window: window, Kind: bucket.KindReveal, Member: keyOf(b).Public(), Content: wire.Sum("content", []byte{b})}
}

func TestNamesAreWrittenAsTheyAreRead(t *testing.T) {
	n := reveal(1, 42)
	want := n.Run.String() + "/0000000042/reveal/" + n.Member.String() + "/" + n.Content.String()
	if got := n.Path(); got != want {
		t.Errorf("the path is %s, want %s", got, want)
	}
	for k := bucket.Kind(1); k.Valid(); k++ {
		n.Kind, n.Window = k, 1<<32-1
		if got, err := bucket.ParseName(n.Path()); err != nil || got != n {
			t.Errorf("%s is read as %v, %v", n, got, err)
		}
		if !strings.HasPrefix(n.Path(), n.Prefix()) || !strings.HasPrefix(n.Prefix(), bucket.WindowPrefix(n.Run, n.Window)) ||
			!strings.HasPrefix(n.Prefix(), bucket.RunPrefix(n.Run)) {
			t.Errorf("the prefixes of %s are not its begin", n)
		}
	}
	for _, change := range []func(string) string{
		strings.ToUpper,
		func(s string) string { return s + "/" },
		func(s string) string { return "/" + s },
		func(s string) string { return strings.Replace(s, "0000000042", "42", 1) },
		func(s string) string { return strings.Replace(s, "0000000042", "4294967296", 1) },
		func(s string) string { return strings.Replace(s, "0000000042", "+000000042", 1) },
		func(s string) string { return strings.Replace(s, "reveal", "", 1) },
		func(s string) string { return strings.Replace(s, "reveal", "other", 1) },
		func(s string) string { return s[1:] },
		func(s string) string { return s[:len(s)-1] },
	} {
		if text := change(want); text != want {
			if _, err := bucket.ParseName(text); err == nil {
				t.Errorf("%s is taken for a name", text)
			}
		}
	}
}

func TestSealedObjectOpens(t *testing.T) {
	n, body := reveal(1, 7), []byte("values")
	object := bucket.Seal(keyOf(1), n, body)
	if len(object) != bucket.EnvelopeBytes+len(body) {
		t.Errorf("the object has %d bytes, want %d", len(object), bucket.EnvelopeBytes+len(body))
	}
	got, opened, err := bucket.Open(object)
	if err != nil || got != n || !bytes.Equal(opened, body) {
		t.Errorf("it opens as %v, %q, %v", got, opened, err)
	}
	if !bytes.Equal(object, bucket.Seal(keyOf(1), n, body)) {
		t.Error("sealing twice gives two objects")
	}
}

// Every bit of an object is under its signature, or is the signature; and it has one length.
func TestChangedObjectDoesNotOpen(t *testing.T) {
	object := bucket.Seal(keyOf(1), reveal(1, 7), []byte("values"))
	for bit := range 8 * len(object) {
		broken := slices.Clone(object)
		broken[bit/8] ^= 1 << (bit % 8)
		if n, _, err := bucket.Open(broken); err == nil {
			t.Errorf("with bit %d changed it opens as %v", bit, n)
		}
	}
	for n := range len(object) {
		if _, _, err := bucket.Open(object[:n]); err == nil {
			t.Errorf("its first %d bytes open", n)
		}
	}
	if _, _, err := bucket.Open(append(slices.Clone(object), 0)); err == nil {
		t.Error("it opens with a byte more")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(bucket.Seal(keyOf(1), reveal(1, 7), []byte("values")))
	f.Add([]byte("entrain object 1"))
	f.Fuzz(func(t *testing.T, object []byte) {
		n, body, err := bucket.Open(object)
		if err != nil {
			return
		}
		if len(object) != bucket.EnvelopeBytes+len(body) || !n.Kind.Valid() {
			t.Errorf("%d bytes open as %v with a body of %d", len(object), n, len(body))
		}
		if s, copied, err := bucket.ParseCopy(body); err == nil && !bytes.Equal(append(s.Append(nil), copied...), body) {
			t.Errorf("%x is read as a copy of %+v", body, s)
		}
	})
}

func FuzzParseName(f *testing.F) {
	f.Add(reveal(1, 7).Path())
	f.Add("a/b/c/d/e")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := bucket.ParseName(s); err == nil && n.Path() != s {
			t.Errorf("%q is read as %q", s, n.Path())
		}
	})
}
