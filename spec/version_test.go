package spec

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
)

func TestVersionsAreOrderedByAge(t *testing.T) {
	order := []string{"v0.0.0-20260101000000-abcdef+dirty", "0.0.9", "v0.1.0", "v0.10.0-rc1", "v1.0.0", "v10.0.0"}
	for i, a := range order {
		for j, b := range order {
			va, err := ParseVersion(a)
			vb, err2 := ParseVersion(b)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if got := va.Compare(vb); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
	for _, s := range []string{"", "v1", "1.2", "1.2.3.4", "v1.02.3", "(devel)", "v1.2.x", "v1.2.99999999999"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%q is read as %v", s, v)
		}
	}
}

func TestClientMinIsAVersion(t *testing.T) {
	s, err := Parse([]byte("name = \"a\"\n[members]\nclient_min = \"v1.2.3\"\n"), all.Kinds())
	if err != nil || s.Members.ClientMin != "v1.2.3" {
		t.Fatal(err)
	}
	if _, err := Parse([]byte("name = \"a\"\n[members]\nclient_min = \"new\"\n"), all.Kinds()); err == nil || !strings.Contains(err.Error(), "members.client_min") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"v1.2.3", "1.2.3-rc.1+build", "v1.2", "v01.2.3", "4294967295.0.0", "4294967296.0.0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err != nil {
			return
		}
		if again, err := ParseVersion(v.String()); err != nil || again != v {
			t.Errorf("%q is %v, which reads as %v, %v", s, v, again, err)
		}
	})
}
