package depot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// largeServer serves the files of a model or a checkpoint, with weights of some pieces, and cuts
// connections.
type largeServer struct {
	*httptest.Server
	dir     string
	weights atomic.Pointer[[]byte]
	tag     func(weights []byte) (header, value string) // of the weights
	whole   bool                                        // does not know Range
	sent    atomic.Int64                                // bytes of the weights
	perCall int64                                       // a connection is cut after these bytes; 0: never
	stopAt  atomic.Int64                                // from this byte on nothing is sent; 0: all is
	stopped chan struct{}                               // gets a value when a request is stopped
	hang    bool                                        // stopped requests hang, in place of failing
}

// testPiece is the size of pieces in these tests.
const testPiece = 1 << 20

const largeBytes = 4*testPiece - 1000

func content(seed byte) []byte {
	b := make([]byte, largeBytes)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func etag(b []byte) (header, value string) { return "Etag", strconv.Quote(wire.SHA256(b).String()[:8]) }

func linked(b []byte) (header, value string) {
	return "X-Linked-Etag", strconv.Quote(wire.SHA256(b).String())
}

func newLargeServer(t *testing.T, tag func([]byte) (string, string)) *largeServer {
	dir, m := write(t, 100, 1, checkpoint.Options{})
	s := &largeServer{dir: dir, tag: tag, stopped: make(chan struct{}, 100)}
	s.put(1)
	for i := range m.Files { // the manifest of a checkpoint with such weights
		if b := *s.weights.Load(); m.Files[i].File == checkpoint.WeightsFile {
			m.Files[i].Bytes, m.Files[i].SHA256 = uint64(len(b)), wire.SHA256(b)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, checkpoint.ManifestFile), m.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *largeServer) put(seed byte) {
	b := content(seed)
	s.weights.Store(&b)
}

func (s *largeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.whole {
		r.Header.Del("Range")
	}
	if !strings.HasSuffix(r.URL.Path, checkpoint.WeightsFile) {
		http.ServeFileFS(w, r, os.DirFS(s.dir), filepath.Base(r.URL.Path))
		return
	}
	b := *s.weights.Load()
	if s.tag != nil {
		header, value := s.tag(b)
		w.Header().Set(header, value)
	}
	var from int64
	_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
	http.ServeContent(&cutWriter{w, s, r, from, 0}, r, "", time.Time{}, bytes.NewReader(b))
}

// cutWriter cuts a response.
type cutWriter struct {
	http.ResponseWriter
	s        *largeServer
	r        *http.Request
	at, sent int64
}

func (c *cutWriter) Write(b []byte) (int, error) {
	stop := c.s.stopAt.Load()
	cut := c.s.perCall > 0 && c.sent+int64(len(b)) > c.s.perCall
	if cut || stop > 0 && c.at+int64(len(b)) > stop {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		c.s.stopped <- struct{}{}
		if c.s.hang {
			<-c.r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(b)
	c.at, c.sent = c.at+int64(n), c.sent+int64(n)
	c.s.sent.Add(int64(n))
	return n, err
}

// kinds are the ways to know that the rest of a file belongs to its beginning.
var kinds = []struct {
	name  string
	tag   func([]byte) (string, string)
	fetch func(ctx context.Context, d *Depot, dir string) error
}{
	{"manifest", nil, fetchAny},
	{"ETag", etag, fetchForeign},
	{"hub", linked, fetchForeign},
}

func fetchAny(ctx context.Context, d *Depot, dir string) error {
	_, err := d.Fetch(ctx, dir, anything)
	return err
}

func fetchForeign(ctx context.Context, d *Depot, dir string) error { return d.FetchModel(ctx, dir) }

// strayFile is one that the model no longer has.
const strayFile = "model-00009-of-00009.safetensors"

// interrupted fetches until the server stops, and returns the directory of what is left.
func interrupted(t *testing.T, s *largeServer, fetch func(context.Context, *Depot, string) error) (within string) {
	t.Helper()
	within = t.TempDir()
	s.stopAt.Store(2*testPiece + 5000)
	dir := filepath.Join(within, "fetched")
	if err := fetch(t.Context(), mustOpen(t, s.URL, Options{piece: testPiece, Partial: within, Attempts: 1}), dir); err == nil {
		t.Fatal("a fetch succeeds from a server that stops")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an interrupted fetch leaves something at its place: %v", err)
	}
	if at, _ := filepath.Glob(filepath.Join(within, partialPrefix+"*", "files")); len(at) == 1 { // of an earlier revision
		if err := os.WriteFile(filepath.Join(at[0], strayFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.stopAt.Store(0)
	s.sent.Store(0)
	return within
}

// continued fetches again, compares what comes with what the server has, and returns the bytes of the
// weights that were sent, and what the user was told.
func continued(t *testing.T, s *largeServer, within string, fetch func(context.Context, *Depot, string) error) (sent int64, told string) {
	t.Helper()
	dir := filepath.Join(within, "fetched")
	say := func(format string, args ...any) { told += fmt.Sprintf(format, args...) + "\n" }
	var last [2]uint64
	o := Options{piece: testPiece, Partial: within, Say: say, Progress: func(done, total uint64) { last = [2]uint64{done, total} }}
	if err := fetch(t.Context(), mustOpen(t, s.URL, o), dir); err != nil {
		t.Fatalf("%v; told %s", err, told)
	}
	if b, err := os.ReadFile(filepath.Join(dir, checkpoint.WeightsFile)); err != nil || !bytes.Equal(b, *s.weights.Load()) {
		t.Errorf("the weights are not those of the server: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, strayFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file of an earlier revision is among those of this one")
	}
	if last[0] != last[1] {
		t.Errorf("progress ends with %d of %d bytes", last[0], last[1])
	}
	left, err := filepath.Glob(filepath.Join(within, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the directory stays: %v, %v", left, err)
	}
	return s.sent.Load(), told
}

func TestAnInterruptedFetchContinues(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := newLargeServer(t, k.tag)
			sent, told := continued(t, s, interrupted(t, s, k.fetch), k.fetch)
			if sent != largeBytes-2*testPiece || !strings.Contains(told, "continuing model.safetensors after 2 MB of 4 MB") {
				t.Errorf("%d bytes were sent, want those after two pieces; told %q", sent, told)
			}
		})
	}
}

// A process that is killed leaves what it has fetched.
func TestAKilledFetchContinues(t *testing.T) {
	if address := os.Getenv("DEPOT_TEST_ADDRESS"); address != "" {
		within := os.Getenv("DEPOT_TEST_DIR")
		t.Fatal(mustOpen(t, address, Options{piece: testPiece, Partial: within}).FetchModel(t.Context(), filepath.Join(within, "fetched")))
	}
	s := newLargeServer(t, linked)
	s.hang = true
	s.stopAt.Store(testPiece + 5000)
	within := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestAKilledFetchContinues$")
	child.Env = append(os.Environ(), "DEPOT_TEST_ADDRESS="+s.URL, "DEPOT_TEST_DIR="+within)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-s.stopped
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	s.stopAt.Store(0)
	s.sent.Store(0)
	if sent, _ := continued(t, s, within, fetchForeign); sent != largeBytes-testPiece {
		t.Errorf("%d bytes were sent, want those after the first piece", sent)
	}
}

// A connection that is cut costs no bytes that have come, and no attempt as long as some do.
func TestACutConnectionContinues(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := newLargeServer(t, k.tag)
			s.perCall = 1 << 17
			sent, told := continued(t, s, t.TempDir(), k.fetch)
			if cuts := len(s.stopped); cuts < 20 || sent > largeBytes+int64(cuts)*(64<<10) || told != "" {
				t.Errorf("with %d cuts %d of %d bytes were sent; told %q", cuts, sent, largeBytes, told)
			}
		})
	}
}

func TestOnlyWhatIsTheSameIsContinued(t *testing.T) {
	weak := func([]byte) (string, string) { return "Etag", `W/"1"` } // of files that mean the same
	for name, c := range map[string]struct {
		tag    func([]byte) (string, string)
		change func(s *largeServer)
		want   int64 // bytes sent, at least
	}{
		"another file":        {etag, func(s *largeServer) { s.put(2) }, largeBytes},
		"another large file":  {linked, func(s *largeServer) { s.put(2) }, largeBytes},
		"a weak ETag":         {weak, func(s *largeServer) { s.put(2) }, largeBytes},
		"no ETag":             {nil, func(s *largeServer) { s.put(2) }, largeBytes},
		"no longer an ETag":   {etag, func(s *largeServer) { s.tag = nil }, largeBytes},
		"a smaller file":      {etag, func(s *largeServer) { b := content(2)[:testPiece]; s.weights.Store(&b) }, testPiece},
		"no ranges":           {etag, func(s *largeServer) { s.whole = true }, largeBytes},
		"no ranges, another":  {etag, func(s *largeServer) { s.whole = true; s.put(2) }, largeBytes},
		"the same under both": {linked, func(*largeServer) {}, largeBytes - 2*testPiece},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLargeServer(t, c.tag)
			within := interrupted(t, s, fetchForeign)
			c.change(s)
			if sent, told := continued(t, s, within, fetchForeign); sent < c.want {
				t.Errorf("%d bytes were sent, want at least %d; told %q", sent, c.want, told)
			}
		})
	}
}

// The depot asks a server that ignores ranges for each file once, and closes the open response when
// a fetch fails.
func TestAServerWithoutRangesSendsAFileOnce(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := newLargeServer(t, k.tag)
			s.whole = true
			if sent, told := continued(t, s, t.TempDir(), k.fetch); sent != largeBytes || told != "" {
				t.Errorf("%d bytes were sent, want %d; told %q", sent, largeBytes, told)
			}
		})
	}
	s := newLargeServer(t, etag)
	ended := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, checkpoint.WeightsFile) {
			s.ServeHTTP(w, r)
			return
		}
		_, _ = w.Write(make([]byte, 2*testPiece)) // of a file of unknown size
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	defer slow.Close()
	ctx, cancel := context.WithCancel(t.Context())
	for _, o := range []Options{{Progress: func(uint64, uint64) { cancel() }}, {BytesMax: testPiece + testPiece/2}} {
		o.piece = testPiece
		if err := mustOpen(t, slow.URL, o).FetchModel(ctx, filepath.Join(t.TempDir(), "x")); err == nil {
			t.Error("half of a file is taken for all of it")
		}
		<-ended
		ctx = t.Context()
	}
}

// A file that changes between two pieces is fetched from its start, so that it is of one version.
func TestAFileThatChangesIsBegunAgain(t *testing.T) {
	s := newLargeServer(t, etag)
	within := t.TempDir()
	d := mustOpen(t, s.URL, Options{piece: testPiece, Partial: within, Progress: func(done, _ uint64) {
		if done == testPiece {
			s.put(2)
		}
	}})
	if err := d.FetchModel(t.Context(), filepath.Join(within, "x")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(within, "x", checkpoint.WeightsFile)); err != nil || !bytes.Equal(b, content(2)) {
		t.Errorf("the weights are not the new ones: %v", err)
	}
}

// A model in a bucket is no checkpoint, and an interrupted fetch of it continues as long as the store
// has the same object.
func TestAModelInABucketIsFetchedAndContinued(t *testing.T) {
	server, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir(), Addr: "127.0.0.1:0", Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, memory := bucket.NewClient(bucket.S3Options{}), mem.New(time.Now, 1)
	defer client.Close()
	for kind, open := range map[string]bucket.Opener{"served": client.Open, "in memory": memory.Open} {
		for name, c := range map[string]struct {
			put  []byte // meanwhile
			want int64  // bytes that the second fetch reads
		}{
			"the same":          {nil, largeBytes - 2*testPiece},
			"replaced":          {content(2), largeBytes + testPiece}, // of the piece that shows it, nothing is kept
			"cut short":         {content(2)[:testPiece+1], testPiece + 1},
			"put a second time": {content(1), 0}, // a store may call this the same or not
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				own := bucket.Location{Endpoint: "memory", Bucket: "models", AccessKey: "key", SecretKey: "secret"}
				if kind == "served" {
					if own, _, err = server.Make("models"); err != nil {
						t.Fatal(err)
					}
				}
				memory.Make(own)
				own.Prefix = "model"
				store, err := open(own)
				if err != nil {
					t.Fatal(err)
				}
				put := func(file string, b []byte) {
					t.Helper()
					if err := store.Put(t.Context(), file, bytes.NewReader(b), int64(len(b)), false); err != nil {
						t.Fatal(err)
					}
				}
				from, _ := write(t, 100, 1, checkpoint.Options{})
				for _, file := range []string{checkpoint.ConfigFile, checkpoint.TokenizerFile} {
					b, err := os.ReadFile(filepath.Join(from, file))
					if err != nil {
						t.Fatal(err)
					}
					put(file, b)
				}
				put(checkpoint.WeightsFile, content(1))

				within, told, want := t.TempDir(), "", content(1)
				fetch := func(end int64) (dir string, read int64, err error) {
					dir = filepath.Join(within, "fetched")
					opener := func(bucket.Location) (bucket.Store, error) { return cutStore{store, end, &read}, nil }
					o := Options{S3: opener, piece: testPiece, Partial: within, Attempts: 1, Say: func(format string, args ...any) { told += fmt.Sprintf(format, args...) }}
					err = mustOpen(t, own.URL(), o).FetchModel(t.Context(), dir)
					return dir, read, err
				}
				if _, read, err := fetch(2*testPiece + 1); err == nil || read != 2*testPiece {
					t.Fatalf("%d bytes came, %v", read, err)
				}
				if c.put != nil {
					want = c.put
					put(checkpoint.WeightsFile, want)
				}
				dir, read, err := fetch(1 << 40)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(filepath.Join(dir, checkpoint.WeightsFile)); err != nil || !bytes.Equal(b, want) {
					t.Errorf("the weights are not those of the store: %v", err)
				}
				if c.want > 0 && read != c.want {
					t.Errorf("%d bytes were read, want %d; told %q", read, c.want, told)
				}
				if strings.Contains(told, "continuing model.safetensors after 2 MB") != (c.put == nil) && c.want > 0 {
					t.Errorf("it was told %q", told)
				}
			})
		}
	}
}

// cutStore is a bucket that breaks at a byte of the weights. It counts those that were read.
type cutStore struct {
	bucket.Store
	end  int64
	read *int64
}

func (s cutStore) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if key == checkpoint.WeightsFile && offset+n > s.end {
		return nil, bucket.Object{}, &bucket.Error{Op: "get", Key: key, Kind: bucket.ErrUnreachable}
	}
	b, whole, err := s.Store.Get(ctx, key, offset, n)
	if key == checkpoint.WeightsFile {
		*s.read += int64(len(b))
	}
	return b, whole, err
}

// What lies on the disk is not trusted: wrong bytes are found by the hash of their piece, and by
// that of the file if somebody wrote that too.
func TestWrongBytesOfAnInterruptedFetchAreFound(t *testing.T) {
	for _, k := range kinds {
		for _, forged := range []bool{false, true} {
			if forged && k.name == "ETag" {
				continue // nothing states the hash of such a file
			}
			t.Run(fmt.Sprintf("%s, log forged %v", k.name, forged), func(t *testing.T) {
				s := newLargeServer(t, k.tag)
				within := interrupted(t, s, k.fetch)
				found, err := filepath.Glob(filepath.Join(within, partialPrefix+"*", "files", checkpoint.WeightsFile))
				if err != nil || len(found) != 1 {
					t.Fatal(found, err)
				}
				b, err := os.ReadFile(found[0])
				if err != nil {
					t.Fatal(err)
				}
				b[testPiece+7] ^= 1
				log := filepath.Join(filepath.Dir(filepath.Dir(found[0])), "log-"+checkpoint.WeightsFile)
				lines, fault := os.ReadFile(log)
				if err := errors.Join(fault, os.WriteFile(found[0], b, 0o600)); err != nil {
					t.Fatal(err)
				}
				want := int64(largeBytes - testPiece)
				if forged {
					header, _, _ := bytes.Cut(lines, []byte("\n"))
					lines = fmt.Appendf(nil, "%s\n%s\n%s\n", header, wire.SHA256(b[:testPiece]), wire.SHA256(b[testPiece:2*testPiece]))
					if err := os.WriteFile(log, lines, 0o600); err != nil {
						t.Fatal(err)
					}
					want = largeBytes + largeBytes - 2*testPiece
				}
				if sent, told := continued(t, s, within, k.fetch); sent != want {
					t.Errorf("%d bytes were sent, want %d; told %q", sent, want, told)
				}
			})
		}
	}
}

// A hub that states a SHA-256 and sends other bytes is found out.
func TestALargeFileHasTheHashThatTheHubStates(t *testing.T) {
	s := newLargeServer(t, func([]byte) (string, string) { return linked([]byte("other")) })
	err := mustOpen(t, s.URL, Options{piece: testPiece}).FetchModel(t.Context(), filepath.Join(t.TempDir(), "x"))
	var corrupt *checkpoint.CorruptError
	if !errors.As(err, &corrupt) || corrupt.File != checkpoint.WeightsFile {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedFetchesAreBounded(t *testing.T) {
	within := t.TempDir()
	roots := func() []string {
		list, err := filepath.Glob(filepath.Join(within, partialPrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	old := filepath.Join(within, partialPrefix+"old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	busy := filepath.Join(within, partialPrefix+"busy")
	unlock, err := dirlock.Lock(busy, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for i := range 5 {
		past := time.Now().Add(time.Duration(i-20) * time.Hour)
		for _, path := range append(roots(), old, busy) {
			_ = os.Chtimes(path, past, past) // those removed are gone
		}
		if i == 0 {
			long := time.Now().Add(-2 * partialAge)
			_ = os.Chtimes(old, long, long)
		}
		removePartials(within, "")
		root := filepath.Join(within, fmt.Sprint(partialPrefix, i))
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removePartials(within, filepath.Join(within, partialPrefix+"4"))
	if left := roots(); len(left) > partialsMost+1 {
		t.Errorf("%v stay", left)
	}
	for _, path := range []string{busy, filepath.Join(within, partialPrefix+"4")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("one in use was removed: %v", err)
		}
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an old one stays")
	}
}

// Two processes that fetch the same do not write into the same files.
func TestTwoFetchesOfTheSame(t *testing.T) {
	s := newLargeServer(t, etag)
	within := interrupted(t, s, fetchForeign)
	root, err := filepath.Glob(filepath.Join(within, atomicfile.TempPrefix+"*"))
	if err != nil || len(root) != 1 {
		t.Fatal(root, err)
	}
	unlock, err := dirlock.Lock(root[0], "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, s.URL, Options{piece: testPiece, Partial: within}).FetchModel(t.Context(), filepath.Join(within, "other")); err != nil {
		t.Fatal(err)
	}
	if got := s.sent.Load(); got != largeBytes {
		t.Errorf("%d bytes were sent, want all", got)
	}
	unlock()
	s.sent.Store(0)
	if err := mustOpen(t, s.URL, Options{piece: testPiece, Partial: within}).FetchModel(t.Context(), filepath.Join(within, "fetched")); err != nil || s.sent.Load() != largeBytes-2*testPiece {
		t.Errorf("%d bytes were sent: %v", s.sent.Load(), err)
	}
}
