package depot

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
)

// An address that opens is written as one that opens the same place, and neither that nor an error shows a secret, of the address or of the environment.
func FuzzOpen(f *testing.F) {
	for _, address := range []string{
		"s3://AKIA:a-secret-of-s3@host:9000/bucket/prefix?tls=0", "s3://host/bucket", "hf://owner/name", "hf://127.0.0.1:80/owner/name?revision=step-000300&tls=0",
		"https://user:a-secret-of-http@host/directory/", "http://host:8080/a%20b", "https://host/?x=y", "hf://owner:a-secret-of-hubs@host/owner/name", "ftp://x", "",
	} {
		f.Add(address)
	}
	const token = "hf_a-secret-of-the-environment"
	env := func(name string) string {
		return map[string]string{"HF_TOKEN": token, "ENTRAIN_S3_ACCESS_KEY": "AKIB", "ENTRAIN_S3_SECRET_KEY": token}[name]
	}
	f.Fuzz(func(t *testing.T, address string) {
		open := func(l bucket.Location) (bucket.Store, error) { return mem.New(time.Now, 1).Open(l) }
		d, err := Open(address, Options{Getenv: env, S3: open})
		if err == nil {
			defer d.Close()
		}
		if err == nil && !IsAddress(address) {
			t.Errorf("%q is opened, and is not an address", address)
		}
		shown := fmt.Sprint(err)
		if err == nil {
			shown = d.String()
		}
		if strings.Contains(shown, token) {
			t.Errorf("%q shows the environment's secret: %s", address, shown)
		}
		if u, fault := url.Parse(address); fault == nil && u.User != nil {
			if secret, _ := u.User.Password(); len(secret) > 12 && strings.Count(address, secret) == 1 && strings.Contains(shown, secret) {
				t.Errorf("%q shows its secret: %s", address, shown)
			}
		}
	})
}

func FuzzParseStep(f *testing.F) {
	for _, s := range []string{"step-000300", "step-4294967295", "step-1", "step--00001", "step-+00001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseStep(s); ok && StepName(n) != s {
			t.Errorf("%q is read as step %d", s, n)
		}
	})
}

func FuzzRangeSize(f *testing.F) {
	f.Add("bytes 10-19/200", int64(10))
	f.Add("bytes 10-19/*", int64(10))
	f.Add("bytes 0-/99999999999999999999", int64(0))
	f.Fuzz(func(t *testing.T, header string, offset int64) {
		size, err := rangeSize(header, offset)
		if err != nil && size != 0 || size < -1 || err == nil && !strings.HasPrefix(header, fmt.Sprintf("bytes %d-", offset)) {
			t.Errorf("%q from %d has size %d, %v", header, offset, size, err)
		}
	})
}
