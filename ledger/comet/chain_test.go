package comet

import (
	"bytes"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

func TestARunLivesOnTheChain(t *testing.T) {
	dir := replicaDir(t, Options{})
	r, stop := start(t, dir)
	c := newClient(t, r.Endpoint())

	snapshots := make(chan ledger.Snapshot, 1000)
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s }) // before the run exists
	owner, ann := signer("owner"), signer("ann")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 256)); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, c, ann, join("demo")); err != nil {
		t.Fatal(err)
	}
	addrs := []string{"/ip4/127.0.0.1/udp/4001/quic-v1"}
	if err := submit(t, c, ann, host.Announce{Run: "demo", Addrs: addrs}); err != nil {
		t.Fatal(err)
	}
	var last ledger.Snapshot
	for last = wait(t, snapshots); last.State.Phase() != coordinator.Warmup; {
		next := wait(t, snapshots)
		if next.Height <= last.Height {
			t.Fatalf("snapshot of height %d after one of height %d", next.Height, last.Height)
		}
		last = next
	}
	if _, ok := last.State.Find(ann.Key.Public()); !ok {
		t.Error("ann is not a member in warmup")
	}

	spec := make(chan []byte, 1)
	c.Spec(t.Context(), "demo", func(b []byte, err error) {
		if err != nil {
			t.Error(err)
		}
		spec <- b
	})
	if got := wait(t, spec); !bytes.Equal(got, testSpec) {
		t.Errorf("spec is %q, want %q", got, testSpec)
	}
	if got := askPeers(t, c); len(got) != 1 || got[0].Key != ann.Key.Public() || !slices.Equal(got[0].Addrs, addrs) {
		t.Errorf("peers are %v", got)
	}
	before := last.State.Bytes()
	stop()

	r, _ = start(t, dir)
	again := make(chan ledger.Snapshot, 1000)
	newClient(t, r.Endpoint()).Watch(t.Context(), "demo", func(s ledger.Snapshot) { again <- s })
	s := wait(t, again)
	if !bytes.Equal(s.State.Bytes(), before) || s.Height != last.Height {
		t.Errorf("after a restart the state is of height %d, want %d with the same bytes", s.Height, last.Height)
	}
}

func askPeers(t *testing.T, c *Client) []host.Peer {
	t.Helper()
	peers := make(chan []host.Peer, 1)
	c.Peers(t.Context(), "demo", func(p []host.Peer, err error) {
		if err != nil {
			t.Error(err)
		}
		peers <- p
	})
	return wait(t, peers)
}

// Members ask for the addresses every other second: they travel when they have changed.
func TestAddressesTravelWhenTheyChange(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	op, ann := signer("op"), signer("ann")
	at, err := url.Parse(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Uint32
	counter := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		if path.Base(r.Out.URL.Path) == "peers" {
			read.Add(1)
		}
	}})
	defer counter.Close()
	reader := newClient(t, counter.URL)

	must := func(s *ledger.Signer, body host.Body) {
		t.Helper()
		if err := submit(t, c, s, body); err != nil {
			t.Fatal(err)
		}
	}
	must(op, createRun("demo", op.Key.Public(), 256))
	must(ann, join("demo"))
	for i, addrs := range [][]string{{"/dns/here"}, {"/dns/there"}} {
		must(ann, host.Announce{Run: "demo", Addrs: addrs})
		for range 3 {
			if got := askPeers(t, reader); len(got) != 1 || !slices.Equal(got[0].Addrs, addrs) {
				t.Errorf("peers are %v, want %v", got, addrs)
			}
		}
		if n := read.Load(); n != uint32(i)+1 {
			t.Errorf("the addresses were read %d times, want %d", n, i+1)
		}
	}
}
