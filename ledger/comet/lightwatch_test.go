package comet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// through serves what a replica serves, and lets edit change requests and what it answers them with.
func through(t *testing.T, endpoint string, edit func(*http.Request), answer func(*http.Response) error) *httptest.Server {
	t.Helper()
	at, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), ModifyResponse: answer, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		if edit != nil {
			edit(r.Out)
		}
	}})
	t.Cleanup(s.Close)
	return s
}

// lightRun starts a replica with a run that is large enough for light states to lack filters.
func lightRun(t *testing.T) (*Replica, *Client) {
	t.Helper()
	r, _ := start(t, replicaDir(t, Options{}))
	c, owner := newClient(t, r.Endpoint()), signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 512)); err != nil {
		t.Fatal(err)
	}
	return r, c
}

// watchLightly watches the run, and ends before the servers of the test.
func watchLightly(t *testing.T, c *Client) (<-chan ledger.Snapshot, func(light, reports bool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	snapshots := make(chan ledger.Snapshot, 1000)
	return snapshots, c.WatchLightly(ctx, "demo", func(s ledger.Snapshot) { snapshots <- s })
}

// shows waits for a state of some members that is light or not, and checks that it is the replica's.
func shows(t *testing.T, r *Replica, from <-chan ledger.Snapshot, members int, light bool) {
	t.Helper()
	var last uint64
	for {
		s := wait(t, from)
		if s.Height < last {
			t.Fatalf("height %d after %d", s.Height, last)
		}
		if last = s.Height; int(s.State.Count()) != members || s.Light != light {
			continue
		}
		v, _ := r.app.hub.view("demo")
		want := v.State.Bytes()
		if light {
			want = change.Of(v.State).State()
		}
		if v.Changed != s.Height || !bytes.Equal(s.State.Bytes(), want) {
			t.Fatalf("another state of height %d, the replica is at %d", s.Height, v.Changed)
		}
		return
	}
}

// A watcher turns from whole states to light ones and back, and sees all that happens.
func TestWatchersTurn(t *testing.T) {
	t.Parallel()
	r, c := lightRun(t)
	from, lightly := watchLightly(t, newClient(t, r.Endpoint()))
	shows(t, r, from, 0, false)
	lightly(true, false)
	for i := range 3 {
		must(t, submit(t, c, signer(fmt.Sprint("light ", i)), join("demo")))
	}
	shows(t, r, from, 3, true)
	lightly(false, false)
	shows(t, r, from, 3, false) // of the same height
	must(t, submit(t, c, signer("ann"), join("demo")))
	shows(t, r, from, 4, false)
	lightly(true, false)
	lightly(false, false)
	lightly(true, false)
	must(t, submit(t, c, signer("bob"), join("demo")))
	shows(t, r, from, 5, true)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What begins is shown to light watchers at once, other changes later: within the time for which a
// round's may wait. The chain's clock is that of its blocks.
func TestLightWatchersSeeWhatBeginsAtOnce(t *testing.T) {
	w := newWorld(t, 64)
	p := demo()
	w.block(w.tx("ann", join("demo"))) // with whom a warmup begins
	w.followLightly(p)
	w.block(w.tx("bob", join("demo")))
	if frame := w.light(p); frame != nil {
		t.Errorf("a join is shown at once, in %d bytes", len(frame))
	}
	w.block(w.tx("owner", host.ToRun("demo", coordinator.Pause{})))
	if w.followLightly(p) == 0 {
		t.Error("a pause is not shown at once")
	}
	if p.light.picture.Hash() != w.state().Hash() {
		t.Error("another state is shown")
	}
}

// A replica of the version before knows no light watches: it leaves out of account what it is asked
// for, and shows whole states.
func TestLightWatchersOfAnOlderReplica(t *testing.T) {
	r, c := lightRun(t)
	old := through(t, r.Endpoint(), func(req *http.Request) {
		q := req.URL.Query()
		q.Del("light")
		q.Del("mark")
		req.URL.RawQuery = q.Encode()
	}, nil)
	from, lightly := watchLightly(t, newClient(t, old.URL))
	shows(t, r, from, 0, false)
	lightly(true, false)
	for i := range 3 {
		must(t, submit(t, c, signer(fmt.Sprint(i)), join("demo")))
		shows(t, r, from, i+1, false)
	}
	lightly(false, false)
	must(t, submit(t, c, signer("ann"), join("demo")))
	shows(t, r, from, 4, false)

	// With one of each version members go from one to the other.
	var down atomic.Bool
	refuse := func(res *http.Response) error {
		if down.Load() && path.Base(res.Request.URL.Path) == "watch" {
			res.Body.Close()
			return errors.New("down")
		}
		return nil
	}
	now := through(t, r.Endpoint(), nil, refuse)
	from, lightly = watchLightly(t, newClient(t, now.URL, old.URL))
	lightly(true, false)
	shows(t, r, from, 4, true)
	down.Store(true)
	now.CloseClientConnections()
	must(t, submit(t, c, signer("bob"), join("demo")))
	shows(t, r, from, 5, false)
}

// flipping changes a bit of each frame of a kind.
type flipping struct {
	io.ReadCloser
	kind  byte
	lies  *atomic.Uint32
	ready bytes.Buffer
}

func (f *flipping) Read(b []byte) (int, error) {
	if f.ready.Len() == 0 {
		frame, err := readFrame(f.ReadCloser)
		if err != nil {
			return 0, err
		}
		if frame[0] == f.kind {
			f.lies.Add(1)
			frame[len(frame)-9] ^= 4
		}
		f.ready.Write(append(wire.AppendU32(nil, uint32(len(frame))), frame...))
	}
	return f.ready.Read(b)
}

// A replica that changes what it shows is left for another, and none of it is believed.
func TestLightWatchersLeaveLiars(t *testing.T) {
	r, c := lightRun(t)
	var lies atomic.Uint32
	liar := through(t, r.Endpoint(), nil, func(res *http.Response) error {
		if path.Base(res.Request.URL.Path) == "watch" {
			res.Body = &flipping{ReadCloser: res.Body, kind: frameChange, lies: &lies}
		}
		return nil
	})
	from, lightly := watchLightly(t, newClient(t, liar.URL, r.Endpoint()))
	lightly(true, false)
	must(t, submit(t, c, signer("ann"), join("demo")))
	shows(t, r, from, 1, true)
	if lies.Load() == 0 {
		t.Error("the liar was not asked")
	}
}

// A replica that shows an old light state to one that comes back shows it nothing.
func TestLightWatchersGoBackToNothing(t *testing.T) {
	r, c := lightRun(t)
	var old []byte
	var replay atomic.Bool
	asked := make(chan bool, 1000)
	proxy := through(t, r.Endpoint(), nil, func(res *http.Response) error {
		if path.Base(res.Request.URL.Path) != "watch" {
			return nil
		}
		if replay.Load() && res.Request.URL.Query().Get("light") == "1" {
			res.Body.Close()
			res.Body = io.NopCloser(bytes.NewReader(old))
			asked <- true
		}
		return nil
	})
	{ // the state without members
		s, l, _ := r.app.hub.look("demo")
		n, err := l.after(mark{}, 0, s, time.Now(), &api{lights: r.app.lights.Load()})
		must(t, err)
		old = n.frame
	}
	must(t, submit(t, c, signer("ann"), join("demo")))
	from, lightly := watchLightly(t, newClient(t, proxy.URL))
	shows(t, r, from, 1, false)
	replay.Store(true)
	lightly(true, false)
	for range 3 {
		<-asked
	}
	select {
	case s := <-from:
		t.Errorf("an old state of %d members is shown", s.State.Count())
	default:
	}
}

// A replica that sends beats, and keeps from a light watcher what begins or ends, is left for
// another 35 seconds after that one has shown that there is something newer: what is not urgent may
// come as late.
func TestLightWatchersLeaveReplicasThatWithhold(t *testing.T) {
	w := &watcher{c: newClient(t, "http://127.0.0.1:1", "http://127.0.0.1:2"), run: "demo"}
	w.replica.begin(true)
	w.replica.light.at.height = 5
	w.others.Store(9)
	w.asking.Store(true) // nothing more is asked
	beat, waited := appendPeersBeat(nil, 9, 1, 2)[4:], time.Duration(0)
	for w.compare(t.Context(), "http://127.0.0.1:1", beat) == nil {
		if waited += beatInterval; waited > lightRoundWait+beatInterval {
			t.Fatalf("it is believed for %v", waited)
		}
	}
	if waited < lightRoundWait {
		t.Errorf("it is left after %v, when an honest replica may not have shown it", waited)
	}
}
