package data

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// What an interrupted preparation left is read as it was written, or not at all; with a right sum it still may say anything.
func FuzzParseResume(f *testing.F) {
	for _, p := range []progressJSON{{}, {Plan: wire.Sum("plan"), Source: 3, Train: partJSON{Open: 5}, HeldOut: partJSON{Open: 2}}} {
		line, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, "\n1234567"...))
	}
	f.Add([]byte(`{"source":-1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, ok := parseResume(b); ok {
			t.Errorf("%q is read without its sum", b)
		}
		sum := wire.SHA256(b)
		p, tails, ok := parseResume(append(b, sum[:]...))
		if ok && (p.Source < 0 || p.Train.Open < 0 || p.HeldOut.Open < 0 || !strings.HasSuffix(string(b), string(tails))) {
			t.Errorf("%q is read as %+v with %d bytes after it", b, p, len(tails))
		}
	})
}

// An address is read as that of a directory, and shown without its password.
func FuzzParseWeb(f *testing.F) {
	for _, s := range []string{"https://host/directory", "http://user:a-secret@host:80/d/", "https://user:a-secret@host/%zz", "ftp://host/", "https:///x", "https://host/?a=b", "/://:cret@", "http://0/:cret@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		base, err := parseWeb(s)
		if err == nil && !strings.HasSuffix(base, "/") {
			t.Errorf("%q is read as %q", s, base)
		}
		shown := fmt.Sprint(err)
		if err == nil {
			shown = web{base, nil}.String()
		}
		if _, after, ok := strings.Cut(s, "://"); ok {
			info, _, ok := strings.Cut(after, "@")
			if _, secret, is := strings.Cut(info, ":"); ok && is && len(secret) > 3 && !strings.ContainsAny(info, "/?#%") && strings.Count(s, secret) == 1 && strings.Contains(shown, secret) {
				t.Errorf("%q shows its secret: %s", s, shown)
			}
		}
		if u, fault := url.Parse(base); err == nil && (fault != nil || u.Host == "") {
			t.Errorf("%q is read as %q", s, base)
		}
	})
}
