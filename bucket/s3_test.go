package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/internal/freeport"
)

// provider is where tests get buckets.
type provider struct {
	// make makes a bucket and returns its location for its owner and for everybody.
	make   func(t *testing.T, name string) (own, public bucket.Location)
	open   bucket.Opener
	client *bucket.Client // nil in memory
}

// everyProvider runs a test against buckets in memory, in the embedded server, and in real servers.
func everyProvider(t *testing.T, test func(t *testing.T, p provider)) {
	t.Run("mem", func(t *testing.T) { test(t, inMemory()) })
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("versitygw", func(t *testing.T) { test(t, process(t, "versitygw", "ENTRAIN_VERSITYGW", versitygw)) })
	t.Run("minio", func(t *testing.T) { test(t, process(t, "minio", "ENTRAIN_MINIO", minio)) })
}

func inMemory() provider {
	w := mem.New(time.Now, 1)
	return provider{open: w.Open, make: func(t *testing.T, name string) (own, public bucket.Location) {
		own = bucket.Location{Endpoint: "mem", Bucket: name, AccessKey: "key", SecretKey: "secret"}
		public = bucket.Location{Endpoint: "mem", Bucket: name}
		w.Make(own)
		return own, public
	}}
}

// newClient returns a client that is closed with the test.
func newClient(t *testing.T, o bucket.S3Options) *bucket.Client {
	c := bucket.NewClient(o)
	t.Cleanup(c.Close)
	return c
}

func embedded(t *testing.T) provider {
	s := startServer(t, t.TempDir(), "")
	c := newClient(t, bucket.S3Options{})
	return provider{client: c, open: c.Open, make: func(t *testing.T, name string) (own, public bucket.Location) {
		own, public, err := s.Make(name)
		if err != nil {
			t.Fatal(err)
		}
		return own, public
	}}
}

func startServer(t *testing.T, dir, addr string) *serve.Server {
	t.Helper()
	s, err := serve.Start(context.Background(), serve.Config{Dir: dir, Addr: addr, Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// The root's credentials of servers that are processes.
const rootAccess, rootSecret = "entrainroot", "entrain-root-secret"

func versitygw(dir, addr string) *exec.Cmd {
	return exec.Command("", "--access", rootAccess, "--secret", rootSecret, "--port", addr, "--quiet", "posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
}

// minio answers once it has read the buckets that it has: before that it may forget the policy of a
// new one.
func minio(dir, addr string) *exec.Cmd {
	c := exec.Command("", "server", "--quiet", "--address", addr, filepath.Join(dir, "data"))
	c.Env = append(os.Environ(), "MINIO_ROOT_USER="+rootAccess, "MINIO_ROOT_PASSWORD="+rootSecret, "MINIO_BROWSER=off", "MINIO_SYNC_BOOT=on", "HOME="+dir)
	return c
}

// process starts a real server, or skips the test when its program is not there.
func process(t *testing.T, name, variable string, command func(dir, addr string) *exec.Cmd) provider {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("no %s in PATH or named by %s: .ci/run installs one", name, variable)
		}
		program = found
	}
	addr := fmt.Sprint("127.0.0.1:", freeport.First(t, 1))
	dir := t.TempDir()
	for _, d := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(dir, addr)
	cmd.Path, cmd.Args[0] = program, program
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	c := newClient(t, bucket.S3Options{})
	root := func(name string) bucket.Location {
		return bucket.Location{Endpoint: addr, Bucket: name, AccessKey: rootAccess, SecretKey: rootSecret}
	}
	ready := func() bool { return c.Make(t.Context(), root("ready"), "") == nil }
	for !ready() {
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", name, output.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return provider{client: c, open: c.Open, make: func(t *testing.T, name string) (own, public bucket.Location) {
		own, public = root(name), bucket.Location{Endpoint: addr, Bucket: name}
		if err := c.Make(t.Context(), own, publicPolicy(name)); err != nil {
			t.Fatal(err)
		}
		return own, public
	}}
}

// publicPolicy lets everybody read and list a bucket.
func publicPolicy(name string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetObject"],"Resource":["arn:aws:s3:::%[1]s/*"]},`+
		`{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::%[1]s"]}]}`, name)
}

func (p provider) store(t *testing.T, l bucket.Location) bucket.Store {
	t.Helper()
	s, err := p.open(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s bucket.Store, key string, body []byte) {
	t.Helper()
	if err := s.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), false); err != nil {
		t.Fatal(err)
	}
}

func expectKind(t *testing.T, err, want error) {
	t.Helper()
	var e *bucket.Error
	if !errors.Is(err, want) || !errors.As(err, &e) {
		t.Errorf("got the error %v, want %v", err, want)
	}
	if err != nil && (strings.Contains(err.Error(), rootSecret) || strings.Contains(err.Error(), rootAccess)) {
		t.Errorf("the error shows credentials: %v", err)
	}
}

func TestStore(t *testing.T) {
	everyProvider(t, func(t *testing.T, p provider) {
		for _, prefix := range []string{"", "some/prefix"} {
			own, public := p.make(t, "bucket-"+fmt.Sprint(len(prefix)))
			own.Prefix, public.Prefix = prefix, prefix
			t.Run("objects"+prefix, func(t *testing.T) { testObjects(t, p.store(t, own)) })
			t.Run("listing"+prefix, func(t *testing.T) { testListing(t, p.store(t, own)) })
			t.Run("public"+prefix, func(t *testing.T) { testPublic(t, p.store(t, own), p.store(t, public)) })
		}
		own, _ := p.make(t, "race")
		t.Run("race", func(t *testing.T) { testRace(t, p.store(t, own)) })
		t.Run("refusals", func(t *testing.T) { testRefusals(t, p, own) })
	})
}

func testObjects(t *testing.T, s bucket.Store) {
	ctx := t.Context()
	body := bytes.Repeat([]byte("0123456789"), 1000)
	put(t, s, "a/b", body)
	old, err := s.Stat(ctx, "a/b")
	if err != nil || old.Key != "a/b" || old.Bytes != 10_000 || old.Version == "" {
		t.Errorf("stat: %+v, %v", old, err)
	}
	for _, c := range []struct{ offset, n, want int64 }{{0, 10_000, 10_000}, {0, 20_000, 10_000}, {0, 1, 1}, {9_990, 100, 10}, {5, 10, 10}} {
		b, whole, err := s.Get(ctx, "a/b", c.offset, c.n)
		if err != nil || whole != old || !bytes.Equal(b, body[c.offset:c.offset+c.want]) {
			t.Errorf("%d bytes from %d on: %d bytes of %+v, %v", c.n, c.offset, len(b), whole, err)
		}
	}
	put(t, s, "a/b", []byte("new"))
	b, replaced, err := s.Get(ctx, "a/b", 0, 10)
	if string(b) != "new" || replaced.Bytes != 3 || replaced.Version == old.Version || replaced.Version == "" || err != nil {
		t.Errorf("after it was replaced: %q of %+v, %v", b, replaced, err)
	}
	if b, whole, err := s.Get(ctx, "a/b", 9_000, 10); len(b) > 0 || whole != replaced || err != nil {
		t.Errorf("behind its end: %q of %+v, %v", b, whole, err)
	}
	expectKind(t, s.Put(ctx, "a/b", strings.NewReader("x"), 1, true), bucket.ErrExists)
	if err := s.Put(ctx, "a/c", strings.NewReader("x"), 1, true); err != nil {
		t.Errorf("put if absent: %v", err)
	}
	put(t, s, "empty", nil)
	if b, whole, err := s.Get(ctx, "empty", 0, 10); len(b) != 0 || whole.Bytes != 0 || err != nil {
		t.Errorf("the empty object: %q of %+v, %v", b, whole, err)
	}
	odd := "odd/a b+c&d=é~%41(1)'!*,:;@$"
	put(t, s, odd, []byte("odd"))
	if b, _, err := s.Get(ctx, odd, 0, 10); string(b) != "odd" || err != nil {
		t.Errorf("the object with an odd name: %q, %v", b, err)
	}
	if objects, err := s.List(ctx, "odd/", "", 10); err != nil || len(objects) != 1 || objects[0].Key != odd {
		t.Errorf("it is listed as %v, %v", objects, err)
	}
	if err := s.Delete(ctx, "a/b", "a/b", "never", "empty", "a/c", odd); err != nil {
		t.Errorf("delete: %v", err)
	}
	_, _, err = s.Get(ctx, "a/b", 0, 1)
	expectKind(t, err, bucket.ErrMissing)
	_, err = s.Stat(ctx, "a/b")
	expectKind(t, err, bucket.ErrMissing)
}

func testListing(t *testing.T, s bucket.Store) {
	var want []string
	var work sync.WaitGroup
	for i := range 12 {
		key := fmt.Sprintf("list/%02d/x", i)
		want = append(want, key)
		work.Go(func() {
			if err := s.Put(t.Context(), key, strings.NewReader(key), int64(len(key)), false); err != nil {
				t.Error(err)
			}
		})
	}
	put(t, s, "lis", nil)
	put(t, s, "list0", nil)
	work.Wait()
	for _, page := range []int{1, 5, 12, 100} {
		var got []string
		for after := ""; ; {
			objects, err := s.List(t.Context(), "list/", after, page)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				got, after = append(got, o.Key), o.Key
				if o.Bytes != int64(len(o.Key)) {
					t.Errorf("%s is listed with %d bytes", o.Key, o.Bytes)
				}
			}
			if len(objects) < page {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in pages of %d: %v, want %v", page, got, want)
		}
	}
	if objects, err := s.List(t.Context(), "nothing/", "", 10); err != nil || len(objects) != 0 {
		t.Errorf("the listing of nothing is %v, %v", objects, err)
	}
}

// An object of more than a part arrives whole, or not at all and leaves no parts.
func TestLargeObjectsAreUploadedInParts(t *testing.T) {
	body := make([]byte, 65<<20)
	for i := range body {
		body[i] = byte(i * i >> 8)
	}
	everyProvider(t, func(t *testing.T, p provider) {
		own, _ := p.make(t, "large")
		s := p.store(t, own)
		put(t, s, "large", body)
		if b, whole, err := s.Get(t.Context(), "large", 0, 66<<20); err != nil || !bytes.Equal(b, body) || whole.Bytes != 65<<20 {
			t.Errorf("%d bytes of %+v, %v", len(b), whole, err)
		}
		expectKind(t, s.Put(t.Context(), "large", bytes.NewReader(body[1:]), 65<<20-1, true), bucket.ErrExists)
	})
	p := publish(t)
	own := p.own
	own.Endpoint = p.proxy.addr
	store, err := newClient(t, bucket.S3Options{}).Open(own)
	if err != nil {
		t.Fatal(err)
	}
	var begun, ended atomic.Bool
	p.proxy.do(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Has("uploads") {
			begun.Store(true)
		}
		if r.Method == http.MethodDelete && query.Has("uploadId") {
			ended.Store(true)
		}
		if query.Get("partNumber") == "2" {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server's goroutine outlives the test by half a second
			w.WriteHeader(http.StatusInsufficientStorage)
			return
		}
		p.proxy.next.ServeHTTP(w, r)
	})
	expectKind(t, store.Put(t.Context(), "half", bytes.NewReader(body), 65<<20, false), bucket.ErrFull)
	if !begun.Load() || !ended.Load() {
		t.Errorf("an upload was begun: %v, and aborted: %v", begun.Load(), ended.Load())
	}
	p.proxy.do(nil)
	_, err = store.Stat(t.Context(), "half")
	expectKind(t, err, bucket.ErrMissing)
}

// What is registered on the chain lets everybody read and nobody write.
func testPublic(t *testing.T, own, public bucket.Store) {
	put(t, own, "public", []byte("x"))
	if b, _, err := public.Get(t.Context(), "public", 0, 10); err != nil || string(b) != "x" {
		t.Errorf("reading with the published credentials: %q, %v", b, err)
	}
	if objects, err := public.List(t.Context(), "pub", "", 10); err != nil || len(objects) != 1 {
		t.Errorf("listing with the published credentials: %v, %v", objects, err)
	}
	_, _, err := public.Get(t.Context(), "missing", 0, 10)
	expectKind(t, err, bucket.ErrMissing)
	expectKind(t, public.Put(t.Context(), "public", strings.NewReader("y"), 1, false), bucket.ErrRefused)
	expectKind(t, public.Delete(t.Context(), "public"), bucket.ErrRefused)
	if b, _, err := own.Get(t.Context(), "public", 0, 10); err != nil || string(b) != "x" {
		t.Errorf("after a stranger tried to write: %q, %v", b, err)
	}
}

// Of several who write what is not there, one wins, and its object is there whole.
func testRace(t *testing.T, s bucket.Store) {
	for round := range 10 {
		key := fmt.Sprintf("race/%d", round)
		var won atomic.Int32
		var work sync.WaitGroup
		for i := range byte(8) {
			work.Go(func() {
				body := bytes.Repeat([]byte{i}, 4096)
				err := s.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), true)
				if err == nil {
					won.Add(1)
				} else {
					expectKind(t, err, bucket.ErrExists)
				}
			})
		}
		work.Wait()
		b, _, err := s.Get(t.Context(), key, 0, 10_000)
		if err != nil || len(b) != 4096 || bytes.Count(b, b[:1]) != 4096 || won.Load() != 1 {
			t.Errorf("%d of 8 won, and the object has %d bytes: %v", won.Load(), len(b), err)
		}
	}
}

func testRefusals(t *testing.T, p provider, own bucket.Location) {
	other := own
	other.Bucket = "never-made"
	_, _, err := p.store(t, other).Get(t.Context(), "x", 0, 1)
	expectKind(t, err, bucket.ErrRefused)
	if p.client == nil {
		return
	}
	forged := own
	forged.SecretKey = "forged-secret"
	_, _, err = p.store(t, forged).Get(t.Context(), "x", 0, 1)
	expectKind(t, err, bucket.ErrRefused)
	expectKind(t, p.store(t, forged).Put(t.Context(), "x", strings.NewReader("x"), 1, false), bucket.ErrRefused)
}

func TestServerKeepsObjectsWhenItIsRestarted(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, "")
	c := newClient(t, bucket.S3Options{})
	own, _, err := s.Make("kept")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "a", []byte("kept"))
	s.Close()
	_, _, err = store.Get(t.Context(), "a", 0, 10)
	expectKind(t, err, bucket.ErrUnreachable)
	startServer(t, dir, s.Addr())
	if b, _, err := store.Get(t.Context(), "a", 0, 10); err != nil || string(b) != "kept" {
		t.Errorf("after a restart: %q, %v", b, err)
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if s, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir(), Addr: l.Addr().String(), Secret: "x"}); err == nil {
		s.Close()
		t.Error("it starts on a port that is taken")
	} else if !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the reason is not said: %v", err)
	}
	if _, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir()}); err == nil {
		t.Error("it starts without a secret")
	}
}

// A location that a stranger registers must not make members send requests to what only they can reach.
func TestPrivateAddressesAreForbidden(t *testing.T) {
	asked := false
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })}
	served := make(chan error)
	go func() { served <- srv.Serve(l) }()
	defer func() { srv.Close(); <-served }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := newClient(t, bucket.S3Options{Public: true})
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.168.1.1", "0.0.0.0", "[fd00::1]", "[fe80::1]"} {
		store, err := c.Open(bucket.Location{Endpoint: host + ":" + port, Bucket: "abc"})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = store.Get(t.Context(), "x", 0, 1)
		expectKind(t, err, bucket.ErrForbidden)
	}
	if asked {
		t.Error("a request was sent")
	}
}
