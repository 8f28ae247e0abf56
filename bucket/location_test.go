package bucket_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/host"
)

func TestLocationIsWrittenAsItIsRead(t *testing.T) {
	for _, text := range []string{
		"s3://host/abc",
		"s3://host:9000/a-b.c/some/prefix?tls=0",
		"s3://AKIA1234:se%2Fcret+x=@s3.eu-central-1.amazonaws.com/bucket?region=eu-central-1",
		"s3://k:s@[2001:db8::1]:443/abc?region=auto&tls=0",
	} {
		l, err := bucket.ParseLocation(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := l.URL(); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"s3://host/abc/?tls=1&region=us-east-1": "s3://host/abc",
		"s3://host/abc?tls=0&region=r":          "s3://host/abc?region=r&tls=0",
	} {
		if l, err := bucket.ParseLocation(text); err != nil || l.URL() != want {
			t.Errorf("%s is %s, %v, want %s", text, l.URL(), err, want)
		}
	}
}

func TestBadLocationsAreRefusedWithoutTheirSecret(t *testing.T) {
	for _, text := range []string{
		"", "http://host/abc", "s3://", "s3://host", "s3://host/", "s3:///abc", "s3://host/ab", "s3://host/ABC", "s3://host/-abc", "s3://host/a..b",
		"s3://host/" + strings.Repeat("a", 64), "s3://host:0/abc", "s3://host:65536/abc", "s3://host:/abc", "s3://ho st/abc", "s3://host/abc/..", "s3://host/abc//x",
		"s3://host/abc?tls=2", "s3://host/abc?x=1", "s3://host/abc?region=", "s3://host/abc?tls=0&tls=0", "s3://host/abc#x", "s3://host/abc#",
		"s3://key@host/abc", "s3://:TOPSECRET@host/abc", "s3://key:@host/abc", "s3://key:TOPSECRET@host/ABC", "s3://key:TOPSECRET@host", "s3://a:TOP%00SECRET@host/abc",
		"s3://key:TOPSECRET%zz@host/abc", "s3://key:TOPSECRET\x7f@host/abc", "s3://a%2Fb:TOPSECRET@host/abc", "s3://k:" + strings.Repeat("TOPSECRET", 20) + "@host/abc",
		"s3://[::1/abc", "s3://[fe80::1%25eth0]/abc", "s3://host/abc?region=" + strings.Repeat("r", 65), "s3://host/" + strings.Repeat("a", 2000),
	} {
		_, err := bucket.ParseLocation(text)
		if err == nil {
			t.Errorf("%q is taken for a location", text)
		} else if strings.Contains(err.Error(), "TOP") {
			t.Errorf("the error of %q shows the secret: %v", text, err)
		}
	}
}

func TestNoVerbPrintsCredentials(t *testing.T) {
	l := bucket.Location{Endpoint: "host", Bucket: "abc", AccessKey: "AKIAKEY", SecretKey: "TOPSECRET", Token: "TOKENTOKEN", Secure: true}
	holder := struct {
		At  bucket.Location
		Ptr *bucket.Location
		Any any
	}{l, &l, l.SecretKey}
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %T %10s") {
		for _, value := range []any{l, &l, holder, []bucket.Location{l}, l.SecretKey, map[bucket.Location]bool{l: true}} {
			text := fmt.Sprintf(verb, value)
			for _, secret := range []string{"AKIAKEY", "TOPSECRET", "TOKEN", "544f50534543524554", "544F50"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s of %T prints %s", verb, value, text)
				}
			}
		}
	}
	if b, err := json.Marshal(holder); err != nil || strings.Contains(string(b), "TOPSECRET") || strings.Contains(string(b), "AKIA") {
		t.Errorf("JSON is %s, %v", b, err)
	}
	if got, want := l.String(), "s3://(hidden)@host/abc"; got != want {
		t.Errorf("the location prints as %s, want %s", got, want)
	}
}

func TestRegisteredLocationFitsTheChain(t *testing.T) {
	if bucket.LocationBytesMax != host.AddrBytesMax {
		t.Errorf("a location may have %d bytes, an address on the chain %d", bucket.LocationBytesMax, host.AddrBytesMax)
	}
	l := bucket.Location{Endpoint: "0123456789abcdef0123456789abcdef.eu.r2.cloudflarestorage.com", Region: "auto", Bucket: "entrain-miner", Prefix: "run-1",
		AccessKey: bucket.Secret(strings.Repeat("a", 32)), SecretKey: bucket.Secret(strings.Repeat("b", 64)), Secure: true}
	if s, err := l.Registered(); err != nil || s != l.URL() {
		t.Errorf("a location of a real provider does not fit: %v", err)
	}
	l.Prefix = strings.Repeat("p", 100)
	if _, err := l.Registered(); err == nil || !strings.Contains(err.Error(), "chain takes 256") || strings.Contains(err.Error(), "bbbb") {
		t.Errorf("a location that is too long is registered, or the reason is unclear: %v", err)
	}
	l.Prefix, l.Token = "", "x"
	if _, err := l.Registered(); err == nil {
		t.Error("temporary credentials are registered")
	}
}

func FuzzParseLocation(f *testing.F) {
	f.Add("s3://KEY:SECRET@host:9000/bucket/prefix?region=r&tls=0")
	f.Add("s3://[::1]:9/abc?tls=1")
	f.Add("s3://a%3Ab:c%40@h/abc")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := bucket.ParseLocation(s)
		if err != nil {
			return
		}
		again, err := bucket.ParseLocation(l.URL())
		if err != nil || again != l {
			t.Errorf("%q is read as %#v, written as %q, and that is read as %#v, %v", s, l, l.URL(), again, err)
		}
		if l.SecretKey != "" && len(l.SecretKey) > 12 && strings.Contains(l.String(), string(l.SecretKey)) {
			t.Errorf("%q prints its secret", s)
		}
	})
}
