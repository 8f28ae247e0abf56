package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/entrain-network/entrain/bucket/sigv4"
)

// The time of the tests' server.
var noon = time.Now().Truncate(time.Second)

// alone starts a server with the bucket "box".
func alone(t *testing.T) *Server {
	t.Helper()
	s, err := Start(context.Background(), Config{Dir: t.TempDir(), Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, _, err := s.Make("box"); err != nil {
		t.Fatal(err)
	}
	return s
}

// signed returns a request signed with the key of a bucket, by a client that is not ours.
func signed(method, target, body string, write bool) *http.Request {
	access, secret := Credentials("root-secret", "box", write)
	r := httptest.NewRequest(method, "http://host"+target, strings.NewReader(body))
	r.RequestURI = ""
	r.Header.Set("X-Amz-Content-Sha256", sigv4.Hash([]byte(body)))
	return signer.SignV4(*r, access, secret, "", "us-east-1")
}

// answer lets the server answer a request, and returns the status and S3's code.
func answer(s *Server, r *http.Request) (status int, body string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func expect(t *testing.T, what string, s *Server, r *http.Request, status int, code string) {
	t.Helper()
	if got, body := answer(s, r); got != status || !strings.Contains(body, code) {
		t.Errorf("%s: got %d %s, want %d %s", what, got, body, status, code)
	}
}

func TestForgedRequestsAreRefused(t *testing.T) {
	s := alone(t)
	expect(t, "put", s, signed("PUT", "/box/x", "body", true), 200, "")
	expect(t, "get", s, signed("GET", "/box/x", "", false), 200, "body")
	for what, change := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "DELETE" },
		"key":          func(r *http.Request) { r.URL.Path = "/box/y" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "uploads=" },
		"host":         func(r *http.Request) { r.Host = "other" },
		"hash of body": func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", emptyHash) },
		"date": func(r *http.Request) {
			r.Header.Set("X-Amz-Date", noon.UTC().Add(-time.Minute).Format(sigv4.TimeLayout))
		},
		"signature": func(r *http.Request) {
			h := r.Header.Get("Authorization")
			r.Header.Set("Authorization", h[:len(h)-64]+strings.Repeat("0", 64))
		},
	} {
		r := signed("PUT", "/box/x", "forged", true)
		change(r)
		expect(t, what, s, r, 403, "SignatureDoesNotMatch")
	}
	r := signed("PUT", "/box/x", "forged", true)
	r.Header.Set("X-Amz-Meta-Added", "x")
	expect(t, "added header", s, r, 403, "AccessDenied")
	r = signed("PUT", "/box/x", "forged", true)
	r.Body = io.NopCloser(strings.NewReader("FORGED"))
	expect(t, "body", s, r, 400, "BadDigest")
	r = signed("PUT", "/box/x", "forged", true)
	r.Body = io.NopCloser(strings.NewReader("forge"))
	expect(t, "shorter body", s, r, 400, "IncompleteBody")
	r = signed("PUT", "/box/x", "forged", true)
	r.Header.Del("Authorization")
	expect(t, "no signature", s, r, 403, "AccessDenied")
	expect(t, "reader that writes", s, signed("PUT", "/box/x", "forged", false), 403, "AccessDenied")
	expect(t, "reader that begins an upload", s, signed("POST", "/box/x?uploads=", "", false), 403, "AccessDenied")
	expect(t, "another bucket", s, signed("GET", "/other/x", "", true), 403, "AccessDenied")
	expect(t, "get", s, signed("GET", "/box/x", "", false), 200, "body")
}

func TestOldAndFutureRequestsAreRefused(t *testing.T) {
	s := alone(t)
	r := signed("GET", "/box/?location=", "", false)
	presigned := signer.PreSignV4(*httptest.NewRequest("GET", "http://host/box/?location=", nil), "r-box", secretOf("root-secret", "r-box"), "", "us-east-1", 3600)
	for _, c := range []struct {
		request *http.Request
		at      time.Duration
		status  int
	}{
		{r, -skewMax - time.Minute, 403}, {r, -skewMax + time.Minute, 200}, {r, skewMax - time.Minute, 200}, {r, skewMax + time.Minute, 403},
		{presigned, -skewMax - time.Minute, 403}, {presigned, 59 * time.Minute, 200}, {presigned, 61 * time.Minute, 403},
	} {
		s.now = func() time.Time { return time.Now().Add(c.at) }
		if status, body := answer(s, c.request.Clone(t.Context())); status != c.status {
			t.Errorf("after %v: %d %s, want %d", c.at, status, body, c.status)
		}
	}
	s.now = time.Now
	for _, c := range []struct{ old, new string }{
		{"X-Amz-Expires=3600", "X-Amz-Expires=604801"}, {"X-Amz-Expires=3600", "X-Amz-Expires=0"}, {"X-Amz-Expires=3600", "X-Amz-Expires=-1"},
		{"X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Algorithm=none"}, {"us-east-1%2Fs3", "us-east-1%2Fiam"}, {"X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders="},
	} {
		r := presigned.Clone(t.Context())
		if r.URL.RawQuery = strings.Replace(r.URL.RawQuery, c.old, c.new, 1); r.URL.RawQuery == presigned.URL.RawQuery {
			t.Fatalf("%q is not in %q", c.old, presigned.URL.RawQuery)
		}
		if status, body := answer(s, r); status < 400 {
			t.Errorf("%s is taken: %d %s", c.new, status, body)
		}
	}
}

// No key leads out of its bucket's directory, and no two keys to one file.
func TestKeysStayInTheirBucket(t *testing.T) {
	s := alone(t)
	outside := filepath.Join(filepath.Dir(s.store.objects), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := []string{"../secret", "../../secret", "a/../../../secret", "%2e%2e/secret", "..%2fsecret", "..\\secret", "/../secret", "./secret", "a//../x"}
	seen := map[string]string{}
	root := filepath.Join(s.store.objects, "box") + string(filepath.Separator)
	for _, key := range keys {
		path, err := s.store.path("box", key)
		if err != nil || !strings.HasPrefix(path, root) || seen[path] != "" {
			t.Errorf("%q leads to %q, %v, as does %q", key, path, err, seen[path])
		}
		seen[path] = key
	}
	targets := []string{"/box/%2e%2e/secret", "/box/..%2f..%2fsecret", "/box/%2e%2e%2f%2e%2e%2fsecret"}
	for _, target := range targets {
		expect(t, target, s, signed("GET", target, "", false), 404, "NoSuchKey")
	}
	for _, target := range targets {
		expect(t, target, s, signed("PUT", target, "x", true), 200, "")
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("the file outside is %q, %v", b, err)
	}
	for _, key := range []string{strings.Repeat("n", 300), strings.Repeat("n/", 600), "\xff", "a\x00b"} {
		if path, err := s.store.path("box", key); err == nil {
			t.Errorf("%.10q... leads to %q", key, path)
		}
	}
	for _, bucket := range []string{"..", ".", "a/b", "", "Box", "x"} {
		if _, _, err := s.Make(bucket); err == nil {
			t.Errorf("a bucket %q can be made", bucket)
		}
	}
	for _, id := range []string{"..", "../../box", strings.Repeat("0", 32), strings.Repeat("G", 32)} {
		r := signed("PUT", "/box/x?partNumber=1&uploadId="+strings.ReplaceAll(id, "/", "%2F"), "x", true)
		expect(t, "upload "+id, s, r, 404, "NoSuchUpload")
	}
}

// An upload is of one object, and its parts are what they were.
func TestUploadsAreChecked(t *testing.T) {
	s := alone(t)
	_, body := answer(s, signed("POST", "/box/x?uploads=", "", true))
	_, rest, _ := strings.Cut(body, "<UploadId>")
	id, _, _ := strings.Cut(rest, "<")
	part := func(n string) *http.Request {
		return signed("PUT", "/box/x?partNumber="+n+"&uploadId="+id, "part", true)
	}
	for _, n := range []string{"0", "10001", "-1", "x", ""} {
		expect(t, "part "+n, s, part(n), 400, "InvalidArgument")
	}
	var tags [3]string
	for i := range 3 {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, part(fmt.Sprint(i)))
		tags[i] = w.Header().Get("ETag")
	}
	expect(t, "another object", s, signed("PUT", "/box/y?partNumber=1&uploadId="+id, "part", true), 404, "NoSuchUpload")
	complete := func(parts ...string) *http.Request {
		return signed("POST", "/box/x?uploadId="+id, "<CompleteMultipartUpload>"+strings.Join(parts, "")+"</CompleteMultipartUpload>", true)
	}
	xml := func(n int, tag string) string {
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, tag)
	}
	expect(t, "nothing", s, complete(), 400, "MalformedXML")
	expect(t, "no XML", s, signed("POST", "/box/x?uploadId="+id, "<", true), 400, "MalformedXML")
	expect(t, "order", s, complete(xml(2, tags[2]), xml(1, tags[1])), 400, "InvalidPartOrder")
	expect(t, "missing", s, complete(xml(3, tags[1])), 400, "InvalidPart")
	expect(t, "tag", s, complete(xml(1, tags[2])), 400, "InvalidPart")
	expect(t, "small", s, complete(xml(1, tags[1]), xml(2, tags[2])), 400, "EntityTooSmall")
	expect(t, "nothing yet", s, signed("GET", "/box/x", "", false), 404, "NoSuchKey")
	expect(t, "good", s, complete(xml(2, tags[2])), 200, "CompleteMultipartUploadResult")
	expect(t, "object", s, signed("GET", "/box/x", "", false), 200, "part")
	expect(t, "again", s, complete(xml(2, tags[2])), 404, "NoSuchUpload")
}

// What a crash leaves is gone after a restart, but uploads under way go on, and files of earlier
// versions are objects.
func TestRestartPutsTheDirectoryInOrder(t *testing.T) {
	s := alone(t)
	expect(t, "put", s, signed("PUT", "/box/a/b", "body", true), 200, "")
	_, body := answer(s, signed("POST", "/box/x?uploads=", "", true))
	s.Close()
	box := filepath.Join(s.store.objects, "box")
	for path, text := range map[string]string{"a/.entrain-tmp-123": "half", "a/earlier.txt": "earlier", ".sgwtmp/multipart/x": "old"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(box, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(box, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Dir(s.store.objects)
	s, err := Start(t.Context(), Config{Dir: dir, Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	expect(t, "kept", s, signed("GET", "/box/a/b", "", false), 200, "body")
	expect(t, "earlier", s, signed("GET", "/box/a/earlier.txt", "", false), 200, "earlier")
	_, rest, _ := strings.Cut(body, "<UploadId>")
	id, _, _ := strings.Cut(rest, "<")
	expect(t, "upload", s, signed("PUT", "/box/x?partNumber=1&uploadId="+id, "part", true), 200, "")
	var names []string
	_ = filepath.WalkDir(box, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, e.Name())
		}
		return err
	})
	if !slices.Equal(names, []string{"b%", "earlier.txt%"}) {
		t.Errorf("files are %q", names)
	}
}

// A full disk, or a client that is cut off, leaves the object that there was.
func TestFailedWritesLeaveTheOldObject(t *testing.T) {
	s := alone(t)
	expect(t, "put", s, signed("PUT", "/box/x", "old", true), 200, "")
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{{syscall.ENOSPC, 507, "InsufficientStorage"}, {errors.New("reset"), 500, "InternalError"}, {io.ErrUnexpectedEOF, 500, "InternalError"}} {
		r := signed("PUT", "/box/x", "new", true)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("ne"), iotest.ErrReader(fmt.Errorf("write: %w", c.err))))
		expect(t, c.err.Error(), s, r, c.status, c.code)
	}
	expect(t, "get", s, signed("GET", "/box/x", "", false), 200, "old")
	entries, err := os.ReadDir(filepath.Join(s.store.objects, "box"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// Whoever sends too much, or nothing more, is cut off, and the server goes on.
func TestHugeHeadersAreRefused(t *testing.T) {
	s := alone(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /box HTTP/1.1\r\nHost: x\r\nX-Amz-Meta-A: %s\r\n\r\n", strings.Repeat("a", 2*headBytesMax))
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v, %v", a, err)
	} else {
		a.Body.Close()
	}
	expect(t, "others", s, signed("GET", "/box/?location=", "", false), 200, "")
}

func TestStalledBodiesAreCutOff(t *testing.T) {
	s := alone(t)
	// By the server's clock the time to wait is over as soon as it begins.
	s.now = func() time.Time { return time.Now().Add(-stallTime) }
	s.Make("box")
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := signed("PUT", "/box/x", "never sent", true)
	fmt.Fprintf(c, "PUT /box/x HTTP/1.1\r\nHost: host\r\nContent-Length: 10\r\n")
	_ = r.Header.Write(c)
	fmt.Fprintf(c, "\r\n")
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open after %q", b)
	}
	if entries, err := os.ReadDir(filepath.Join(s.store.objects, "box")); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func FuzzAuthorization(f *testing.F) {
	f.Add(signed("GET", "/box/x", "", true).Header.Get("Authorization"), "x-id=1")
	f.Add("AWS4-HMAC-SHA256 Credential=a/20200101/r/s3/aws4_request, SignedHeaders=host, Signature=00", "X-Amz-Signature=1&X-Amz-Expires=3")
	s := &Server{config: Config{Secret: "other"}, now: time.Now, store: &store{objects: f.TempDir()}}
	f.Fuzz(func(t *testing.T, header, query string) {
		r := httptest.NewRequest("GET", "http://host/box/x", nil)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", header)
		r.Header.Set("X-Amz-Date", "20200101T000000Z")
		r.Header.Set("X-Amz-Content-Sha256", emptyHash)
		if status, body := answer(s, r); status < 400 || status > 403 {
			t.Errorf("%d %s", status, body)
		}
	})
}

// Any body in aws-chunked gives at most the announced bytes, and without the key none is accepted.
func FuzzChunks(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", 5, false)
	f.Add("5;chunk-signature=00\r\nhello\r\n0;chunk-signature=00\r\n\r\n", 5, true)
	f.Add("0\r\n\r\n", 0, false)
	f.Add("ffffffffff\r\n", 1, false)
	f.Fuzz(func(t *testing.T, body string, size int, secret bool) {
		g := &signature{body: chunksUnsignedTrailer, key: []byte("unknown")}
		if secret {
			g.body = chunksSignedTrailer
		}
		r := httptest.NewRequest("PUT", "http://host/box/x", strings.NewReader(body))
		r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(size))
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32")
		p, err := newPayload(r, g)
		if err != nil {
			return
		}
		b, err := io.ReadAll(iotest.OneByteReader(p))
		whole, wholeErr := io.ReadAll(must(newPayload(again(r, body), g)))
		if (err == nil) != (wholeErr == nil) || err == nil && !bytes.Equal(b, whole) {
			t.Errorf("in single bytes %q, %v; at once %q, %v", b, err, whole, wholeErr)
		}
		if len(b) > len(body) || err == nil && (len(b) != size || secret) {
			t.Errorf("%d bytes of %d, signed %v: %v", len(b), size, secret, err)
		}
	})
}

func again(r *http.Request, body string) *http.Request {
	r.Body = io.NopCloser(strings.NewReader(body))
	return r
}

func must(p *payload, err error) *payload {
	if err != nil {
		panic(err)
	}
	return p
}

func FuzzRange(f *testing.F) {
	for _, text := range []string{"bytes=0-3", "bytes=-5", "bytes=5-", "bytes=1-2,3-4", "bytes=18446744073709551615-"} {
		f.Add(text, int64(10))
	}
	f.Fuzz(func(t *testing.T, text string, size int64) {
		if size < 0 || size > 1<<16 {
			return
		}
		known, ok := checkRange(text, size)
		if ok && !known {
			t.Error("an unknown range is in the object")
		}
		if !known || !ok {
			return
		}
		// What passes is a range for net/http too.
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Range", text)
		w := httptest.NewRecorder()
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, size)))
		if w.Code != http.StatusPartialContent || int64(w.Body.Len()) > size {
			t.Errorf("%q of %d: %d with %d bytes", text, size, w.Code, w.Body.Len())
		}
	})
}

func FuzzCompletion(f *testing.F) {
	f.Add([]byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"))
	f.Add([]byte("<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object></Delete>"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, document := range []any{new(completion), new(deletes)} {
			q := &request{r: again(httptest.NewRequest("POST", "/", bytes.NewReader(b)), string(b)), signature: signature{body: unsignedBody}}
			if q.readXML(document) != nil {
				continue
			}
			if c, ok := document.(*completion); ok && c.check(dir) == nil {
				t.Error("parts that do not exist are accepted")
			}
		}
	})
}

// Every key has one file name, which gives the key back, or is refused.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a/b", "..", "a//b", "%", "ä", "a/"} {
		f.Add(key)
	}
	s := &store{objects: "/objects"}
	f.Fuzz(func(t *testing.T, key string) {
		path, err := s.path("box", key)
		if err != nil {
			return
		}
		rest, ok := strings.CutPrefix(filepath.ToSlash(path), "/objects/box/")
		if !ok || !strings.HasSuffix(rest, fileMark) || rest != filepath.ToSlash(filepath.Clean(rest)) {
			t.Fatalf("%q leads to %q", key, path)
		}
		var parts []string
		for name := range strings.SplitSeq(strings.TrimSuffix(rest, fileMark), "/") {
			part, ok := unescape(name)
			if !ok {
				t.Fatalf("%q leads to %q, which is not read back", key, path)
			}
			parts = append(parts, part)
		}
		if got := strings.Join(parts, "/"); got != key {
			t.Errorf("%q is read back as %q", key, got)
		}
	})
}

// The server's owner is told once of what keeps clients from their objects, and clients are told
// what is wrong.
func TestFaultsAreToldOnce(t *testing.T) {
	s := alone(t)
	var told []string
	s.faults.tell = func(text string) { told = append(told, text) }
	heard := func(what string, texts ...string) {
		t.Helper()
		if len(told) != len(texts) {
			t.Errorf("%s: told %q", what, told)
		}
		for i, text := range texts[:min(len(texts), len(told))] {
			if !strings.Contains(told[i], text) {
				t.Errorf("%s: told %q, want %q", what, told[i], text)
			}
		}
		told = nil
	}
	fails := func(body string, err error) *http.Request {
		r := signed("PUT", "/box/x", body, true)
		r.Body = io.NopCloser(iotest.ErrReader(fmt.Errorf("write: %w", err)))
		return r
	}
	for range 3 {
		expect(t, "full", s, fails("a large object", syscall.ENOSPC), 507, "InsufficientStorage")
		expect(t, "quota", s, fails("a large object", syscall.EDQUOT), 507, "InsufficientStorage")
		expect(t, "small", s, signed("PUT", "/box/small", "x", true), 200, "") // says nothing of large ones
	}
	heard("a full disk", "is full")
	expect(t, "room", s, signed("PUT", "/box/x", "a large object", true), 200, "")
	heard("room", "room again")
	expect(t, "full", s, fails("a large object", syscall.ENOSPC), 507, "InsufficientStorage")
	heard("full once more", "is full")

	forged := signed("GET", "/box/x", "", true)
	forged.Header.Set("Authorization", strings.Replace(forged.Header.Get("Authorization"), "Signature=", "Signature=0", 1))
	access, secret := Credentials("root-secret", "gone", true)
	gone := httptest.NewRequest("GET", "http://host/gone/x", nil)
	gone.Header.Set("X-Amz-Content-Sha256", emptyHash)
	gone = signer.SignV4(*gone, access, secret, "", "us-east-1")
	for range 2 {
		expect(t, "wrong name", s, signed("GET", "/bxo/x", "", true), 403, `those of bucket &#34;box&#34;`)
		expect(t, "gone", s, gone, 404, "NoSuchBucket")
		expect(t, "forged", s, forged.Clone(t.Context()), 403, "SignatureDoesNotMatch")
		expect(t, "disk", s, fails("x", syscall.EROFS), 500, "InternalError")
		expect(t, "cut off", s, fails("x", io.ErrUnexpectedEOF), 500, "InternalError")
		expect(t, "missing", s, signed("GET", "/box/none", "", true), 404, "NoSuchKey")
		expect(t, "reader", s, signed("PUT", "/box/x", "x", false), 403, "only read")
	}
	heard("clients that do not get what they ask for", `"bxo" with the credentials of "box"`, "entrain bucket DIR gone", "another secret", "read-only file system")
}
