package comet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

func TestClientNamesTheWrongChain(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c, err := NewClient("another", []string{r.Endpoint()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Status(t.Context())
	contains(t, err, `this is chain "test-chain", wanted "another"`, r.Endpoint())

	done := make(chan error, 3)
	c.Send(t.Context(), []byte("x"), func(err error) { done <- err })
	c.Spec(t.Context(), "demo", func(_ []byte, err error) { done <- err })
	c.Peers(t.Context(), "demo", func(_ []host.Peer, err error) { done <- err })
	for range 3 {
		var wrong *WrongChainError
		if err := wait(t, done); !errors.As(err, &wrong) || wrong.Got != testChain || wrong.Want != "another" {
			t.Errorf("got %v, want a *WrongChainError", err)
		}
	}
	s, err := Discover(t.Context(), r.Endpoint())
	if err != nil || s.Chain != testChain {
		t.Errorf("discovered %q, %v", s.Chain, err)
	}
}

func TestClientNamesWhatIsNoLedger(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, err := Discover(t.Context(), web.URL)
	contains(t, err, "is not an entrain ledger")
	for _, bad := range []string{"", "127.0.0.1:1", "ftp://x", "http://", "http://a/?q=1", "http://u:p@a"} {
		if _, err := NewClient(testChain, []string{bad}, nil); err == nil {
			t.Errorf("endpoint %q is accepted", bad)
		}
	}
	if _, err := NewClient("Bad Name", []string{"http://a"}, nil); err == nil {
		t.Error("a bad chain id is accepted")
	}
	if _, err := NewClient(testChain, nil, nil); err == nil {
		t.Error("no endpoints are accepted")
	}
}

// TestClientTurnsToAnotherReplica has one endpoint where nobody is, one that lies about the state,
// one that is overloaded, and one that works.
func TestClientTurnsToAnotherReplica(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	owner := signer("owner")
	if err := submit(t, newClient(t, r.Endpoint()), owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w := newWorld(t, 16)
	lie := w.frame(0)
	lie[len(lie)-1] ^= 1
	var lies atomic.Int32
	honest, err := url.Parse(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(honest)
	liar := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set(chainHeader, testChain)
		if strings.HasSuffix(req.URL.Path, "/watch") {
			lies.Add(1)
			rw.Write(lie)
			return
		}
		if strings.HasSuffix(req.URL.Path, "/headers") {
			pass.ServeHTTP(rw, req)
			return
		}
		fail(rw, http.StatusServiceUnavailable, "busy")
	}))
	defer liar.Close()

	c := newClient(t, gone.URL, liar.URL, r.Endpoint())
	snapshots := make(chan ledger.Snapshot, 100)
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
	if s := wait(t, snapshots); s.State.Config().Owner != owner.Key.Public() || s.State.ID() == w.state().ID() {
		t.Error("the liar was believed")
	}
	if lies.Load() == 0 {
		t.Error("the liar was not asked")
	}
	c = newClient(t, gone.URL, liar.URL, r.Endpoint())
	if err := submit(t, c, signer("ann"), join("demo")); err != nil {
		t.Error(err)
	}
}

func TestNothingIsCalledAfterTheContextOrTheClientHasEnded(t *testing.T) {
	stuck := make(chan struct{})
	asked := make(chan struct{}, 10)
	silent := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		select {
		case <-req.Context().Done():
		case <-stuck:
		}
	}))
	defer silent.Close()
	defer close(stuck)
	c, err := NewClient(testChain, []string{silent.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	c.Send(ctx, []byte("x"), func(error) { calls.Add(1) })
	c.Watch(ctx, "demo", func(ledger.Snapshot) { calls.Add(1) })
	c.Spec(t.Context(), "demo", func([]byte, error) { calls.Add(1) })
	for range 3 {
		wait(t, asked)
	}
	cancel()
	if err := c.Close(); err != nil { // waits for all three
		t.Fatal(err)
	}
	c.Send(t.Context(), []byte("x"), func(error) { calls.Add(1) })
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestClientBoundsWhatIsUnderWay(t *testing.T) {
	stuck := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer silent.Close()
	defer close(stuck)
	c, err := NewClient(testChain, []string{silent.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan error, 2*callsMax)
	for range callsMax + 1 {
		c.Send(t.Context(), []byte("x"), func(err error) { done <- err })
	}
	if err := wait(t, done); !errors.Is(err, ErrTooManyCalls) {
		t.Errorf("got %v, want ErrTooManyCalls", err)
	}
}
