package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// proxy stands between a client and a real server, and does to answers what a fault says.
type proxy struct {
	addr  string
	fault atomic.Pointer[http.HandlerFunc] // nil passes everything on
	next  *httputil.ReverseProxy
	asked atomic.Int32 // requests since the fault was set
}

// behind starts a proxy before the server at addr.
func behind(t *testing.T, addr string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	p := &proxy{addr: l.Addr().String(), next: &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: addr})
		r.Out.Host = r.In.Host // it is under the signature
	}}}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if f := p.fault.Load(); f != nil {
			(*f)(w, r)
			return
		}
		p.next.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() {
		_ = srv.Serve(l)
		close(served)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-served
	})
	return p
}

// do sets the fault.
func (p *proxy) do(f http.HandlerFunc) {
	p.asked.Store(0)
	if f == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&f)
}

// answer makes a fault that changes the body of what the server answers, its length with it.
func (p *proxy) answer(change func([]byte) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		honest := *p.next
		honest.ModifyResponse = func(a *http.Response) error {
			b, err := io.ReadAll(a.Body)
			if err != nil {
				return err
			}
			b = change(b)
			a.Body = io.NopCloser(bytes.NewReader(b))
			a.Header.Set("Content-Length", fmt.Sprint(len(b)))
			a.Header.Del("Content-Range")
			a.ContentLength, a.StatusCode = int64(len(b)), http.StatusOK
			return nil
		}
		honest.ServeHTTP(w, r)
	}
}

// published is a bucket with an object of member 1 in it, read through a proxy, which begins the host that is under the signature.
type published struct {
	proxy    *proxy
	store    bucket.Store // of the owner, not through the proxy
	own      bucket.Location
	location bucket.Location // of everybody, through the proxy
	reader   *bucket.Reader
	name     bucket.Name
	body     []byte
}

func publish(t *testing.T) *published {
	t.Helper()
	s := startServer(t, t.TempDir(), "")
	c := newClient(t, bucket.S3Options{})
	own, public, err := s.Make("miner-1")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	p := &published{proxy: behind(t, s.Addr()), store: store, own: own, location: public, name: reveal(1, 7), body: bytes.Repeat([]byte("value"), 2000)}
	p.location.Endpoint = p.proxy.addr
	w := bucket.NewWriter(store, keyOf(1), bucket.Options{})
	if err := w.Put(t.Context(), p.name, p.body); err != nil {
		t.Fatal(err)
	}
	p.reader = bucket.NewReader(c.Open, bucket.Options{Attempts: 3, Backoff: time.Millisecond})
	return p
}

func (p *published) getName(ctx context.Context, n bucket.Name) error {
	_, err := p.reader.Get(ctx, bucket.Want{Location: p.location, Name: n})
	return err
}

func (p *published) get(ctx context.Context) error {
	b, err := p.reader.Get(ctx, bucket.Want{Location: p.location, Name: p.name, Max: 1 << 20})
	if err == nil && !bytes.Equal(b, p.body) {
		return errors.New("no error, and other bytes than were published")
	}
	return err
}

// asObject sets the header of an answer that brings the object.
func asObject(w http.ResponseWriter) {
	w.Header().Set("Content-Length", fmt.Sprint(10_000+bucket.EnvelopeBytes))
	w.Header().Set("Last-Modified", http.TimeFormat)
}

// Whatever the store or the way to it does, a reader gets the right bytes or the right error, after as many requests as make sense.
// refuses answers with an error of S3's.
func refuses(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	}
}

func TestFaultsOfTheWay(t *testing.T) {
	p := publish(t)
	if err := p.get(t.Context()); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	other := bucket.Seal(keyOf(2), reveal(2, 7), p.body)
	old := bucket.Seal(keyOf(1), reveal(1, 6), p.body)
	forged := bucket.Seal(keyOf(2), reveal(2, 7), p.body)
	copy(forged[len("entrain object 1")+32+4+1:], p.name.Member[:]) // another's, with this member's name on it
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for _, c := range []struct {
		name  string
		fault http.HandlerFunc
		want  error
		asked int32
	}{
		{"fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, bucket.ErrUnreachable, 3},
		{"is full", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInsufficientStorage) }, bucket.ErrFull, 1},
		{"has another clock", refuses(403, "RequestTimeTooSkewed", "the difference is too large"), bucket.ErrClock, 1},
		{"has no quota left", refuses(403, "QuotaExceeded", "denied due to quota exceeded"), bucket.ErrFull, 1}, // versitygw, Ceph
		{"has no quota left, as MinIO says", refuses(400, "XMinioAdminBucketQuotaExceeded", "Bucket quota exceeded"), bucket.ErrFull, 1},
		{"fills up", refuses(500, "InternalError", "cause(no space left on device)"), bucket.ErrFull, 1}, // MinIO
		{"slows down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, bucket.ErrUnreachable, 3},
		{"cuts the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, bucket.ErrUnreachable, 0}, // net/http tries idle connections again
		{"truncates", func(w http.ResponseWriter, _ *http.Request) {
			asObject(w)
			_, _ = w.Write(make([]byte, 5000))
			panic(http.ErrAbortHandler)
		}, bucket.ErrUnreachable, 3},
		{"truncates and says so", p.proxy.answer(func(b []byte) []byte { return b[:len(b)-1] }), bucket.ErrLied, 1},
		{"sends nothing", p.proxy.answer(func([]byte) []byte { return nil }), bucket.ErrLied, 1},
		{"flips a bit", p.proxy.answer(flip), bucket.ErrLied, 1},
		{"serves another member's object", p.proxy.answer(func([]byte) []byte { return other }), bucket.ErrLied, 1},
		{"puts this member's name on another's object", p.proxy.answer(func([]byte) []byte { return forged }), bucket.ErrLied, 1},
		{"replays an old object", p.proxy.answer(func([]byte) []byte { return old }), bucket.ErrLied, 1},
		{"serves too much", p.proxy.answer(func([]byte) []byte { return make([]byte, 2<<20) }), bucket.ErrTooLarge, 1},
		{"refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, bucket.ErrRefused, 1},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/x", http.StatusTemporaryRedirect)
		}, bucket.ErrRefused, 1},
		{"has lost it", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, bucket.ErrMissing, 1},
		{"is not a store", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>hello</html>")
		}, bucket.ErrUnreachable, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.proxy.do(c.fault)
			expectKind(t, p.get(t.Context()), c.want)
			if got := p.proxy.asked.Load(); got != c.asked && c.asked > 0 {
				t.Errorf("it was asked %d times, want %d", got, c.asked)
			}
		})
	}
	p.proxy.do(nil)
	if err := p.get(t.Context()); err != nil {
		t.Errorf("after all faults: %v", err)
	}
}

// A store that answers byte by byte, or not at all, holds a reader no longer than the reader wants.
// A server that refuses a conditional put need not read its body, and what it says is heard all the same.
func TestRefusalBeforeTheBodyIsHeard(t *testing.T) {
	p := publish(t)
	p.proxy.do(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusPreconditionFailed) })
	own := p.own
	own.Endpoint = p.proxy.addr
	store, err := newClient(t, bucket.S3Options{}).Open(own)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 16<<20)
	for range 20 {
		expectKind(t, store.Put(t.Context(), "present", bytes.NewReader(body), int64(len(body)), true), bucket.ErrExists)
	}
}

func TestSlowStoreCostsNoMoreThanTheDeadline(t *testing.T) {
	p := publish(t)
	for name, fault := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"trickle": func(w http.ResponseWriter, r *http.Request) {
			asObject(w)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte{1}); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		},
	} {
		p.proxy.do(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := p.get(ctx)
		cancel()
		if name == "trickle" && errors.Is(err, bucket.ErrLied) {
			continue // it was fast enough to send all of its nonsense
		}
		expectKind(t, err, bucket.ErrSlow)
	}
}

// An answer without an end is read to its limit, not to the end of memory.
func TestEndlessAnswersEnd(t *testing.T) {
	p := publish(t)
	var sent atomic.Int64
	endless := func(begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			sent.Store(0)
			w.Header().Set("Last-Modified", http.TimeFormat)
			fmt.Fprint(w, begin)
			block := bytes.Repeat([]byte("<Contents><Key>x</Key></Contents>"), 1000)
			for {
				n, err := w.Write(block)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}
	p.proxy.do(endless(`<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>`))
	_, err := p.reader.List(t.Context(), p.location, bucket.RunPrefix(p.name.Run), 0)
	expectKind(t, err, bucket.ErrLied)
	p.proxy.do(endless(""))
	if err := p.get(t.Context()); err == nil {
		t.Error("an object without an end is taken")
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d MB of an answer were sent", n>>20)
	}
}

// A listing that says for ever that it goes on, with pages of nothing or of the same, ends.
func TestEndlessListingsEnd(t *testing.T) {
	p := publish(t)
	page := func(contents string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>%s</ListBucketResult>`, contents)
		}
	}
	same := strings.Repeat("<Contents><Key>"+p.name.Path()+"</Key><Size>1</Size></Contents>", 1000)
	elsewhere := "<Contents><Key>elsewhere</Key><Size>1</Size></Contents>"
	for name, contents := range map[string]string{"nothing": "", "the same": same, "elsewhere": elsewhere} {
		p.proxy.do(page(contents))
		_, err := p.reader.List(t.Context(), p.location, bucket.RunPrefix(p.name.Run), 0)
		if !errors.Is(err, bucket.ErrLied) {
			t.Errorf("a listing of %s for ever: %v", name, err)
		}
		if n := p.proxy.asked.Load(); n > 20 {
			t.Errorf("a listing of %s for ever was asked for %d times", name, n)
		}
	}
}

// A network that fails now and then is no obstacle.
func TestReaderTriesAgain(t *testing.T) {
	p := publish(t)
	p.proxy.do(func(w http.ResponseWriter, r *http.Request) {
		if p.proxy.asked.Load() < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.proxy.next.ServeHTTP(w, r)
	})
	if err := p.get(t.Context()); err != nil {
		t.Errorf("after two failures: %v", err)
	}
}

// A writer whose connection breaks in the middle of an upload leaves nothing, and succeeds in the end.
func TestWriterTriesAgain(t *testing.T) {
	p := publish(t)
	own := p.own
	own.Endpoint = p.proxy.addr
	c := newClient(t, bucket.S3Options{})
	store, err := c.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	p.proxy.do(func(w http.ResponseWriter, r *http.Request) {
		if p.proxy.asked.Load() == 1 {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		}
		p.proxy.next.ServeHTTP(w, r)
	})
	w := bucket.NewWriter(store, keyOf(1), bucket.Options{Backoff: time.Millisecond})
	n := reveal(1, 9)
	if err := w.Put(t.Context(), n, p.body); err != nil {
		t.Fatal(err)
	}
	if p.proxy.asked.Load() < 2 {
		t.Error("the first upload was not cut")
	}
	if err := p.getName(t.Context(), n); err != nil {
		t.Errorf("what was written in the end: %v", err)
	}
	if err := w.Put(t.Context(), n, p.body); err != nil || w.Traffic.Objects() != 1 {
		t.Errorf("writing it once more: %v, and %d objects were sent", err, w.Traffic.Objects())
	}
}

// An object that is there under a right name and is wrong is replaced by its owner.
func TestWriterReplacesWhatIsWrong(t *testing.T) {
	p := publish(t)
	n := reveal(1, 9)
	put(t, p.store, n.Path(), []byte("left by a process that ended"))
	expectKind(t, p.getName(t.Context(), n), bucket.ErrLied)
	if err := bucket.NewWriter(p.store, keyOf(1), bucket.Options{}).Put(t.Context(), n, p.body); err != nil {
		t.Fatal(err)
	}
	if err := p.getName(t.Context(), n); err != nil {
		t.Error(err)
	}
}

// A bucket in which somebody else can write too keeps what is not its owner's.
func TestOldWindowsAreRemoved(t *testing.T) {
	everyProvider(t, func(t *testing.T, p provider) {
		own, public := p.make(t, "tidy")
		store := p.store(t, own)
		w := bucket.NewWriter(store, keyOf(1), bucket.Options{})
		var kept []string
		for window := range coordinator.Round(6) {
			n := reveal(1, window)
			if err := w.Put(t.Context(), n, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if window >= 4 || window == 2 {
				kept = append(kept, n.Path())
			}
			others := reveal(2, window)
			put(t, store, others.Path(), bucket.Seal(keyOf(2), others, []byte("y")))
			kept = append(kept, others.Path())
		}
		otherRun := reveal(1, 0)
		otherRun.Run = wire.Sum("other run")
		put(t, store, otherRun.Path(), []byte("z"))
		put(t, store, bucket.RunPrefix(reveal(1, 0).Run)+"README", []byte("z"))
		keep := func(n bucket.Name) bool { return n.Window == 2 }
		if n, err := w.DeleteBefore(t.Context(), reveal(1, 0).Run, 4, keep); n != 3 || err != nil {
			t.Errorf("%d removed, %v, want 3", n, err)
		}
		reader := bucket.NewReader(p.open, bucket.Options{})
		names, err := reader.List(t.Context(), public, bucket.RunPrefix(reveal(1, 0).Run), 0)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, n := range names {
			left = append(left, n.Path())
		}
		slices.Sort(kept)
		if !slices.Equal(left, kept) {
			t.Errorf("left are %v, want %v", left, kept)
		}
		if _, err := store.Stat(t.Context(), otherRun.Path()); err != nil {
			t.Errorf("the other run's object: %v", err)
		}
		if few, err := reader.List(t.Context(), public, bucket.RunPrefix(reveal(1, 0).Run), 3); err != nil || len(few) != 3 {
			t.Errorf("a listing of at most 3 has %d, %v", len(few), err)
		}
	})
}

// More than one page of a real listing.
func TestListingOfManyPages(t *testing.T) {
	p := publish(t)
	const objects = 1100
	slots := make(chan struct{}, 8)
	var work sync.WaitGroup
	for i := range objects {
		n := bucket.Name{Run: p.name.Run, Window: 100, Kind: bucket.KindReveal, Content: wire.Sum("object", []byte{byte(i), byte(i >> 8)})}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			if err := p.store.Put(t.Context(), n.Path(), strings.NewReader("x"), 1, false); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	names, err := p.reader.List(t.Context(), p.location, bucket.WindowPrefix(p.name.Run, 100), 0)
	if err != nil || len(names) != objects {
		t.Errorf("%d names, %v, want %d", len(names), err, objects)
	}
}
