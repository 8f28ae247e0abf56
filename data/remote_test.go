package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// bigSet prepares a set whose shards have several chunks: 3 to train on, 1 held out.
func bigSet(t *testing.T) (dir string, m Manifest) {
	t.Helper()
	o := options()
	o.ShardTokens = 300_000
	dir = t.TempDir()
	return dir, mustPrepare(t, dir, files(t, text(800_000, "big")), o)
}

// quick are options that fail fast.
func quick() RemoteOptions {
	return RemoteOptions{Options: Options{SequenceTokens: 1000}, Attempts: 3, Timeout: 10 * time.Second, Backoff: time.Millisecond}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func mustOpenURL(t *testing.T, m Manifest, o RemoteOptions, addresses ...string) *Set {
	t.Helper()
	s, err := OpenURL(t.Context(), addresses, m.Hash(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sameSequences compares some sequences of two sets, those that are held out too.
func sameSequences(t *testing.T, got, want *Set) {
	t.Helper()
	a, b := make([]uint32, 1001), make([]uint32, 1001)
	for i := uint64(0); i < want.Len()+5; i += 7 {
		if err := errors.Join(got.Read(i, a), want.Read(i, b)); err != nil || !slices.Equal(a, b) {
			t.Fatalf("sequence %d differs: %v", i, err)
		}
	}
	for i := range want.HeldOut().Len() {
		if err := errors.Join(got.HeldOut().Read(i, a), want.HeldOut().Read(i, b)); err != nil || !slices.Equal(a, b) {
			t.Fatalf("held-out sequence %d differs: %v", i, err)
		}
	}
}

// counter counts requests and remembers the paths.
type counter struct {
	http.Handler
	mu    sync.Mutex
	paths map[string]int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.paths == nil {
		c.paths = make(map[string]int)
	}
	c.paths[strings.TrimPrefix(r.URL.Path, "/")]++
	c.mu.Unlock()
	c.Handler.ServeHTTP(w, r)
}

func (c *counter) count(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[path]
}

func TestSetIsReadFromAnyStaticHost(t *testing.T) {
	dir, m := bigSet(t)
	local := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	static := http.FileServer(http.Dir(dir))
	noRanges := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		static.ServeHTTP(w, r)
	})
	below := http.StripPrefix("/a/b", static)
	for _, c := range []struct {
		name    string
		handler http.Handler
		path    string
		o       func(*RemoteOptions)
	}{
		{"plain", static, "", nil},
		{"directory", below, "/a/b/", nil},
		{"without ranges", noRanges, "", nil},
		{"without look-ahead", static, "", func(o *RemoteOptions) { o.LookAhead = -1 }},
		{"small cache", static, "", func(o *RemoteOptions) { o.CacheBytes = 1; o.Connections = 1 }},
		{"verified first", static, "", func(o *RemoteOptions) { o.Verify = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quick()
			if c.o != nil {
				c.o(&o)
			}
			sameSequences(t, mustOpenURL(t, m, o, serve(t, c.handler)+c.path), local)
		})
	}
}

// Each chunk is fetched once, the leaves of each shard once, and never more than is needed.
func TestChunksAreFetchedOnce(t *testing.T) {
	dir, m := bigSet(t)
	host := &counter{Handler: http.FileServer(http.Dir(dir))}
	s := mustOpenURL(t, m, quick(), serve(t, host))
	if host.count("leaves.bin")+host.count("train-00000.bin") != 0 {
		t.Error("opening the set fetches more than the manifest")
	}
	sameSequences(t, s, mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
	for _, shard := range append(slices.Clone(m.Shards), m.HeldOut...) {
		if got, want := host.count(shard.File), int(shard.chunks()); got != want {
			t.Errorf("%s: %d requests for %d chunks", shard.File, got, want)
		}
	}
	if got, want := host.count("leaves.bin"), len(m.Shards)+len(m.HeldOut); got != want {
		t.Errorf("%d requests for the leaves of %d shards", got, want)
	}
}

// The chunks that will be needed are on their way before anyone asks for them.
func TestLookAheadFetchesWhatComesNext(t *testing.T) {
	dir, m := bigSet(t)
	static := http.FileServer(http.Dir(dir))
	o := quick()
	o.LookAhead = int(m.Tokens / 1000)
	s := mustOpenURL(t, m, o, serve(t, static))
	dst := make([]uint32, 1001)
	if err := s.Read(0, dst); err != nil {
		t.Fatal(err)
	}
	var chunks int
	for _, shard := range m.Shards {
		chunks += int(shard.chunks())
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		s.train.cache.mu.Lock()
		n := len(s.train.cache.at)
		s.train.cache.mu.Unlock()
		if n == chunks {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d chunks were fetched after one read", n, chunks)
		}
	}
}

// Who says what will be read gets that, and nothing else is fetched.
func TestOnlyTheShareIsFetched(t *testing.T) {
	dir, m := bigSet(t)
	host := &counter{Handler: http.FileServer(http.Dir(dir))}
	s := mustOpenURL(t, m, quick(), serve(t, host))
	const first, n = 5, 2
	chunks := make(map[chunk]bool)
	for k := uint64(first); k < first+n; k++ {
		for _, token := range []uint64{s.at(k) * 1000, s.at(k)*1000 + 1000} {
			chunks[chunk{s.train.shards[token/m.ShardTokens], token % m.ShardTokens * 2 / merkle.ChunkBytes}] = true
		}
	}
	s.Ahead(first, n)
	dst := make([]uint32, 1001)
	for k := uint64(first); k < first+n; k++ {
		if err := s.Read(k, dst); err != nil {
			t.Fatal(err)
		}
	}
	s.Close() // what was on its way has come
	got := 0
	for _, shard := range m.Shards {
		got += host.count(shard.File)
	}
	if got != len(chunks) {
		t.Errorf("%d chunks were fetched for a share in %d", got, len(chunks))
	}
}

func TestWindowsMoveWithTheReads(t *testing.T) {
	a := ahead{sequences: 10}
	a.expect(100, 105)
	for _, c := range [][3]uint64{ // read, asked for from, to
		{100, 101, 105}, {101, 105, 105}, {104, 105, 105}, // no further than expected
		{7, 8, 18}, {8, 18, 19}, {8, 19, 19}, {30, 31, 41}, // as far as is looked
		{2, 3, 13}, {3, 13, 14},
	} {
		if from, to := a.next(c[0]); to > from && (from != c[1] || to != c[2]) || to <= from && c[1] != c[2] {
			t.Errorf("reading %d asks for %d to %d, want %d to %d", c[0], from, to, c[1], c[2])
		}
	}
	for i := range uint64(1000) {
		a.expect(i, i+1)
	}
	if len(a.windows) != windowsMax {
		t.Errorf("%d windows are kept", len(a.windows))
	}
}

// faulty serves a directory, but the n-th request for the same bytes of something else than the manifest as bad says; what bad leaves alone is
// served right. Requests are counted by what they ask for, so that whose turn it is does not depend on which come at the same time.
func faulty(dir string, bad func(n int64, w http.ResponseWriter, r *http.Request) bool) http.Handler {
	static := http.FileServer(http.Dir(dir))
	var mu sync.Mutex
	asked := map[string]int64{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		what := r.URL.Path + " " + r.Header.Get("Range")
		asked[what]++
		n := asked[what]
		mu.Unlock()
		if r.URL.Path == "/"+manifestFile || !bad(n, w, r) {
			static.ServeHTTP(w, r)
		}
	})
}

// flipping changes a byte of what a handler serves.
func flipping(h http.Handler, w http.ResponseWriter, r *http.Request) {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	b := recorder.Body.Bytes()
	if len(b) > 0 {
		b[len(b)/2] ^= 1
	}
	for key, values := range recorder.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(recorder.Code)
	w.Write(b)
}

func TestFaultsOfAHostAreRiddenOut(t *testing.T) {
	dir, m := bigSet(t)
	local := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	static := http.FileServer(http.Dir(dir))
	var requests atomic.Int64 // to the slow host
	for _, c := range []struct {
		name string
		bad  func(n int64, w http.ResponseWriter, r *http.Request) bool
	}{
		{"failing", func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n%2 == 1 {
				http.Error(w, "overloaded", []int{500, 503, 429}[n/2%3])
			}
			return n%2 == 1
		}},
		{"hanging up", func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n%2 == 1 {
				panic(http.ErrAbortHandler)
			}
			return false
		}},
		{"truncating", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if n%2 == 0 {
				return false
			}
			recorder := httptest.NewRecorder()
			static.ServeHTTP(recorder, r)
			for key, values := range recorder.Header() {
				w.Header()[key] = values
			}
			w.WriteHeader(recorder.Code)
			w.Write(recorder.Body.Bytes()[:recorder.Body.Len()/2])
			panic(http.ErrAbortHandler)
		}},
		{"slow", func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if n := requests.Add(1); n == 2 || n == 4 {
				<-r.Context().Done() // the client gives up
				return true
			}
			return false
		}},
		{"lying now and then", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if n%2 == 1 && r.URL.Path != "/"+leavesFile {
				flipping(static, w, r)
				return true
			}
			return false
		}},
		{"without leaves", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/"+leavesFile {
				http.NotFound(w, r)
				return true
			}
			return false
		}},
		{"lying about leaves", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/"+leavesFile {
				flipping(static, w, r)
				return true
			}
			return false
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quick()
			o.Connections = 1
			if c.name == "slow" {
				o.Timeout = 300 * time.Millisecond
			}
			sameSequences(t, mustOpenURL(t, m, o, serve(t, faulty(dir, c.bad))), local)
		})
	}
}

// One honest host among several is enough.
func TestOtherHostsAreAsked(t *testing.T) {
	dir, m := bigSet(t)
	static := http.FileServer(http.Dir(dir))
	liar := serve(t, faulty(dir, func(_ int64, w http.ResponseWriter, r *http.Request) bool { flipping(static, w, r); return true }))
	empty := serve(t, http.NotFoundHandler())
	other, _ := bigSetOf(t, "another")
	gone := httptest.NewServer(static)
	gone.Close()
	s := mustOpenURL(t, m, quick(), empty, gone.URL, liar, serve(t, http.FileServer(http.Dir(other))), serve(t, static))
	sameSequences(t, s, mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
}

func bigSetOf(t *testing.T, label string) (string, Manifest) {
	o := options()
	dir := t.TempDir()
	return dir, mustPrepare(t, dir, files(t, text(20_000, label)), o)
}

func TestWhatNoHostHasRightIsNamed(t *testing.T) {
	dir, m := bigSet(t)
	static := http.FileServer(http.Dir(dir))
	dst := make([]uint32, 1001)
	for _, c := range []struct {
		name    string
		bad     func(n int64, w http.ResponseWriter, r *http.Request) bool
		corrupt bool
		want    []string
	}{
		{"lying", func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/"+leavesFile {
				return false
			}
			flipping(static, w, r)
			return true
		}, true, []string{"train-0000", "not those of the manifest"}},
		{"lying, without leaves", func(_ int64, w http.ResponseWriter, r *http.Request) bool { flipping(static, w, r); return true }, true,
			[]string{"no right leaves.bin"}},
		{"missing", func(_ int64, w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }, false, []string{"404"}},
		{"other size", func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, 400_000)))
			return true
		}, false, []string{"400000 bytes, want"}},
		{"other range", func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Range", "bytes 5-10/600000")
			w.WriteHeader(http.StatusPartialContent)
			return true
		}, false, []string{`sent the range "bytes 5-10/600000"`}},
		{"failing", func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return true
		}, false, []string{"503"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quick()
			o.LookAhead = -1
			s := mustOpenURL(t, m, o, serve(t, faulty(dir, c.bad)))
			err := s.Read(0, dst)
			var corrupt *CorruptError
			if errors.As(err, &corrupt) != c.corrupt {
				t.Errorf("got %v, corrupt should be %v", err, c.corrupt)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestAddressesAndManifestsAreChecked(t *testing.T) {
	dir, m := bigSet(t)
	url := serve(t, http.FileServer(http.Dir(dir)))
	for _, c := range []struct {
		addresses []string
		want      wire.Hash
		o         RemoteOptions
		text      string
	}{
		{nil, m.Hash(), quick(), "name an address"},
		{[]string{"ftp://x/y"}, m.Hash(), quick(), "https://host/directory"},
		{[]string{"http:///y"}, m.Hash(), quick(), "https://host/directory"},
		{[]string{"http://x/y?a=b"}, m.Hash(), quick(), "https://host/directory"},
		{[]string{url}, wire.Hash{1}, quick(), "its manifest has hash " + m.Hash().String()},
		{[]string{url}, m.Hash(), RemoteOptions{}, "sequence length 0"},
		{[]string{url}, m.Hash(), RemoteOptions{Options: Options{SequenceTokens: 1 << 20}}, "fewer than"},
		{[]string{serve(t, http.NotFoundHandler())}, m.Hash(), quick(), "404"},
	} {
		if s, err := OpenURL(t.Context(), c.addresses, c.want, c.o); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: got %v, %v, want %q", c.addresses, s, err, c.text)
		}
	}
	if !IsURL(url) || IsURL(dir) {
		t.Error("addresses and directories are mixed up")
	}
}

func TestClosedSetsAreNotRead(t *testing.T) {
	dir, m := bigSet(t)
	entered := make(chan struct{}, 100)
	hanging := serve(t, faulty(dir, func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		entered <- struct{}{}
		<-r.Context().Done()
		return true
	}))
	dst := make([]uint32, 1001)
	for _, end := range []string{"close", "context"} {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := OpenURL(ctx, []string{hanging}, m.Hash(), quick())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-entered
			if end == "close" {
				s.Close()
			} else {
				cancel()
			}
		}()
		if err := s.Read(0, dst); !errors.Is(err, errClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s while it is read: got %v", end, err)
		}
		cancel()
		s.Close()
		if err := s.Read(0, dst); err == nil {
			t.Errorf("%s: it can still be read", end)
		}
	}
}

func TestTokenizerComesWithTheSet(t *testing.T) {
	sources := []string{"source/testdata/docs.parquet"}
	dir := t.TempDir()
	learnt, err := LearnTokenizer(t.Context(), dir, sources, LearnOptions{Vocab: 300, Format: source.Auto})
	if err != nil {
		t.Fatal(err)
	}
	o := docOptions()
	o.Tokenizer = learnt
	m := mustPrepare(t, dir, sources, o)
	s := mustOpenURL(t, m, quick(), serve(t, http.FileServer(http.Dir(dir))))
	if got, err := s.Tokenizer(); err != nil || got.Hash() != learnt.Hash() {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, tokenizerFile), tokenizer.Bytes{}.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tokenizer(); err == nil || !strings.Contains(err.Error(), "has hash") {
		t.Errorf("another tokenizer: got %v", err)
	}
	_, plain := bigSetOf(t, "x")
	if got, err := (&remote{}).tokenizer(plain); err != nil || got != (tokenizer.Bytes{}) {
		t.Errorf("bytes: got %v, %v", got, err)
	}
}

func ExampleOpenURL() {
	_, err := OpenURL(context.Background(), []string{"data.example.org/corpus"}, wire.Hash{}, RemoteOptions{Options: Options{SequenceTokens: 512}})
	fmt.Println(err)
	// Output: address of the data "data.example.org/corpus": want https://host/directory
}

// An address from a specification does not direct requests to the private network of the machine
// that reads it: not by a name, not by a redirect, and not through a proxy.
func TestForeignAddressesArePublic(t *testing.T) {
	asked := 0
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer private.Close()
	for _, address := range []string{private.URL + "/set", strings.Replace(private.URL, "127.0.0.1", "localhost", 1) + "/set"} {
		set, err := OpenURL(t.Context(), []string{address}, wire.Hash{1}, RemoteOptions{Public: true, Attempts: 1})
		if err == nil {
			set.Close()
			t.Errorf("%s: opened", address)
		}
		if !errors.Is(err, bucket.ErrForbidden) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked != 0 {
		t.Errorf("a private host was asked %d times", asked)
	}
	if o := (RemoteOptions{Public: true}); o.transport().Proxy != nil {
		t.Error("a proxy is used, which connects to any address")
	}
}
