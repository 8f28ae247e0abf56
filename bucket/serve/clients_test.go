package serve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/entrain-network/entrain/bucket/serve"
	_ "github.com/entrain-network/entrain/tests/heap"
	_ "github.com/entrain-network/entrain/tests/ramdisk"
)

// start starts a server with the bucket "box".
func start(t *testing.T, dir string) *serve.Server {
	t.Helper()
	s, err := serve.Start(t.Context(), serve.Config{Dir: dir, Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, _, err := s.Make("box"); err != nil {
		t.Fatal(err)
	}
	return s
}

// client returns a client of minio-go with the credentials of the bucket "box".
func client(t *testing.T, s *serve.Server, write bool) *minio.Core {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	access, secret := serve.Credentials("root-secret", "box", write)
	c, err := minio.NewCore(s.Addr(), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Transport: transport, MaxRetries: 1, TrailingHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expectCode checks the code of S3's error.
func expectCode(t *testing.T, err error, want string) {
	t.Helper()
	if code := minio.ToErrorResponse(err).Code; code != want {
		t.Errorf("got the error %v (%q), want %q", err, code, want)
	}
}

func write(t *testing.T, c *minio.Core, key string, body []byte, o minio.PutObjectOptions) {
	t.Helper()
	if _, err := c.Client.PutObject(t.Context(), "box", key, bytes.NewReader(body), int64(len(body)), o); err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
}

func read(t *testing.T, c *minio.Core, key string, o minio.GetObjectOptions) ([]byte, error) {
	t.Helper()
	r, _, _, err := c.GetObject(t.Context(), "box", key, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// pattern returns n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, 0, n+sha256.Size)
	for i := 0; len(b) < n; i++ {
		sum := sha256.Sum256(fmt.Append(nil, i))
		b = append(b, sum[:]...)
	}
	return b[:n]
}

// hardKeys are keys that a file system would take for something else.
var hardKeys = []string{
	"a", "a/b", "a/b/", "a//b", "/lead", "../up", "a/../b", "./x", "..", ".entrain-tmp-1", "a%", "a%2Fb", "%", "a+b c", "ä/ö",
	"con:aux", "back\\slash", "quote\"<&>'", "new\nline", strings.Repeat("n", 200), strings.Repeat("long/", 200),
}

func TestMinioClient(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	if ok, err := c.BucketExists(t.Context(), "box"); err != nil || !ok {
		t.Errorf("the bucket exists: %v, %v", ok, err)
	}
	for _, key := range hardKeys {
		write(t, c, key, []byte("body of "+key), minio.PutObjectOptions{})
	}
	for _, key := range hardKeys {
		if b, err := read(t, c, key, minio.GetObjectOptions{}); err != nil || string(b) != "body of "+key {
			t.Errorf("%q: %q, %v", key, b, err)
		}
	}
	var keys []string
	for o := range c.Client.ListObjects(t.Context(), "box", minio.ListObjectsOptions{Recursive: true, MaxKeys: 3}) {
		keys = append(keys, o.Key)
	}
	want := slices.Sorted(slices.Values(hardKeys))
	if !slices.Equal(keys, want) {
		t.Errorf("listed are %q, want %q", keys, want)
	}
	for _, key := range hardKeys {
		if err := c.RemoveObject(t.Context(), "box", key, minio.RemoveObjectOptions{}); err != nil {
			t.Errorf("remove %q: %v", key, err)
		}
	}
	for o := range c.Client.ListObjects(t.Context(), "box", minio.ListObjectsOptions{Recursive: true}) {
		t.Errorf("%q is left", o.Key)
	}
}

func TestBodiesAreChecked(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	body := pattern(300_000) // of several chunks
	for name, o := range map[string]minio.PutObjectOptions{
		"signed chunks":         {},
		"hashed":                {DisableContentSha256: false, DisableMultipart: true, SendContentMd5: true},
		"unsigned":              {DisableContentSha256: true, SendContentMd5: true},
		"trailing crc32":        {Checksum: minio.ChecksumCRC32},
		"trailing crc32c":       {Checksum: minio.ChecksumCRC32C},
		"trailing crc64nvme":    {Checksum: minio.ChecksumCRC64NVME},
		"trailing sha256":       {Checksum: minio.ChecksumSHA256},
		"trailing sha1":         {Checksum: minio.ChecksumSHA1},
		"multipart":             {PartSize: 5 << 20, ConcurrentStreamParts: false},
		"multipart with md5":    {PartSize: 5 << 20, SendContentMd5: true},
		"multipart with crc32c": {PartSize: 5 << 20, Checksum: minio.ChecksumCRC32C},
	} {
		b := body
		if o.PartSize > 0 {
			b = pattern(12 << 20)
		}
		write(t, c, name, b, o)
		if got, err := read(t, c, name, minio.GetObjectOptions{}); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestConditionsAndRanges(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	write(t, c, "x", []byte("0123456789"), minio.PutObjectOptions{})
	first, err := c.StatObject(t.Context(), "box", "x", minio.StatObjectOptions{})
	if err != nil || first.Size != 10 || first.ETag == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	for header, want := range map[string]string{
		"bytes=0-3": "0123", "bytes=8-": "89", "bytes=-3": "789", "bytes=5-100": "56789", "bytes=-100": "0123456789",
		"bytes=0-1,3-4": "0123456789", "bytes=3-1": "0123456789", "lines=1-2": "0123456789", "bytes=": "0123456789",
	} {
		var o minio.GetObjectOptions
		o.Set("Range", header)
		if b, err := read(t, c, "x", o); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v, want %q", header, b, err, want)
		}
	}
	for _, header := range []string{"bytes=10-", "bytes=10-20", "bytes=-0"} {
		var o minio.GetObjectOptions
		o.Set("Range", header)
		_, err := read(t, c, "x", o)
		expectCode(t, err, "InvalidRange")
	}
	var match minio.GetObjectOptions
	_ = match.SetMatchETag(first.ETag)
	if _, err := read(t, c, "x", match); err != nil {
		t.Errorf("with its own tag: %v", err)
	}
	write(t, c, "x", []byte("9876543210"), minio.PutObjectOptions{})
	_, err = read(t, c, "x", match)
	expectCode(t, err, "PreconditionFailed")
	var absent minio.PutObjectOptions
	absent.SetMatchETagExcept("*")
	_, err = c.Client.PutObject(t.Context(), "box", "x", strings.NewReader("no"), 2, absent)
	expectCode(t, err, "PreconditionFailed")
	_, err = read(t, c, "none", minio.GetObjectOptions{})
	expectCode(t, err, "NoSuchKey")
}

func TestListings(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	for _, key := range []string{"a", "b/1", "b/2", "b/c/3", "b0", "d/4", "e"} {
		write(t, c, key, nil, minio.PutObjectOptions{})
	}
	for _, v := range []struct{ prefix, delimiter, after, want string }{
		{"", "/", "", "a b/ b0 d/ e"},
		{"b/", "/", "", "b/1 b/2 b/c/"},
		{"", "", "b/1", "b/2 b/c/3 b0 d/4 e"},
		{"b", "", "", "b/1 b/2 b/c/3 b0"},
		{"", "0", "", "a b/1 b/2 b/c/3 b0 d/4 e"},
		{"", "c/", "", "a b/1 b/2 b/c/ b0 d/4 e"},
		{"x", "/", "", ""},
	} {
		for _, size := range []int{1, 2, 1000} {
			for _, second := range []bool{true, false} {
				got := pages(t, c, v.prefix, v.delimiter, v.after, size, second)
				if strings.Join(got, " ") != v.want {
					t.Errorf("%+v by %d, version 2 %v: %q", v, size, second, got)
				}
			}
		}
	}
}

// pages lists a bucket in pages of a size, by either version of the interface.
func pages(t *testing.T, c *minio.Core, prefix, delimiter, after string, size int, second bool) (keys []string) {
	t.Helper()
	add := func(contents []minio.ObjectInfo, prefixes []minio.CommonPrefix) {
		var page []string
		for _, o := range contents {
			page = append(page, o.Key)
		}
		for _, p := range prefixes {
			page = append(page, p.Prefix)
		}
		if len(page) > size {
			t.Errorf("a page of %d has %d entries", size, len(page))
		}
		slices.Sort(page)
		keys = append(keys, page...)
	}
	token := ""
	for range 20 {
		if second {
			p, err := c.ListObjectsV2("box", prefix, after, token, delimiter, size)
			if err != nil {
				t.Fatal(err)
			}
			add(p.Contents, p.CommonPrefixes)
			if token = p.NextContinuationToken; !p.IsTruncated {
				return keys
			}
			continue
		}
		p, err := c.ListObjects("box", prefix, after, delimiter, size)
		if err != nil {
			t.Fatal(err)
		}
		add(p.Contents, p.CommonPrefixes)
		if after = p.NextMarker; !p.IsTruncated {
			return keys
		}
	}
	t.Fatal("the listing does not end")
	return nil
}

func TestManyAreRemovedAtOnce(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	objects := make(chan minio.ObjectInfo, 1500)
	for i := range 1500 {
		key := fmt.Sprintf("many/%d/x", i)
		if i%100 == 0 {
			write(t, c, key, nil, minio.PutObjectOptions{})
		}
		objects <- minio.ObjectInfo{Key: key}
	}
	close(objects)
	for e := range c.RemoveObjects(t.Context(), "box", objects, minio.RemoveObjectsOptions{}) {
		t.Error(e)
	}
	if left := pages(t, c, "", "", "", 10, true); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

func TestSignedAddresses(t *testing.T) {
	s := start(t, t.TempDir())
	c := client(t, s, true)
	write(t, c, "a b+c", []byte("body"), minio.PutObjectOptions{})
	get, err := c.PresignedGetObject(t.Context(), "box", "a b+c", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, b := send(t, http.MethodGet, get.String(), nil); status != http.StatusOK || string(b) != "body" {
		t.Errorf("%d %s", status, b)
	}
	if status, b := send(t, http.MethodGet, strings.Replace(get.String(), "/a%20b", "/x", 1), nil); status != http.StatusForbidden {
		t.Errorf("for another object: %d %s", status, b)
	}
	if status, b := send(t, http.MethodPut, get.String(), []byte("x")); status != http.StatusForbidden {
		t.Errorf("for another method: %d %s", status, b)
	}
	put, err := c.PresignedPutObject(t.Context(), "box", "new", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, b := send(t, http.MethodPut, put.String(), []byte("by address")); status != http.StatusOK {
		t.Errorf("%d %s", status, b)
	}
	if b, err := read(t, client(t, s, false), "new", minio.GetObjectOptions{}); err != nil || string(b) != "by address" {
		t.Errorf("%q, %v", b, err)
	}
}

// send sends a plain request.
func send(t *testing.T, method, url string, body []byte) (status int, answer []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	a, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, b
}

// Amazon's own clients: boto3 as a library, and the aws command.
func TestAmazonsClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, library, script string }{
		{"boto3", "boto3", "with_boto3.py"},
		{"aws", "awscli", "with_aws.py"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("no python3: .ci/run installs it with boto3 and awscli")
			}
			if exec.Command(python, "-c", fmt.Sprintf("import importlib.util as u; assert u.find_spec(%q)", c.library)).Run() != nil {
				t.Skipf("python3 has no %s: .ci/run installs it", c.library)
			}
			s := start(t, t.TempDir())
			access, secret := serve.Credentials("root-secret", "box", true)
			readAccess, readSecret := serve.Credentials("root-secret", "box", false)
			work := t.TempDir()
			big := filepath.Join(work, "big")
			if err := os.WriteFile(big, pattern(20<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			script, err := filepath.Abs(filepath.Join("testdata", c.script))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), python, script, "http://"+s.Addr(), big, readAccess, readSecret)
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+access, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_DEFAULT_REGION=eu-central-1",
				"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent", "AWS_EC2_METADATA_DISABLED=true", "NO_PROXY=*")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			sum := sha256.Sum256(pattern(20 << 20))
			b, err := read(t, client(t, s, true), "kept/big", minio.GetObjectOptions{})
			if got := sha256.Sum256(b); err != nil || hex.EncodeToString(got[:]) != hex.EncodeToString(sum[:]) {
				t.Errorf("what it uploaded has %d bytes, %v", len(b), err)
			}
		})
	}
}
