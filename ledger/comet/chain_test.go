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

func TestARunOutlivesAReplica(t *testing.T) {
	dir := replicaDir(t, Options{})
	r, stop := start(t, dir)
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 256)); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, c, signer("ann"), join("demo")); err != nil {
		t.Fatal(err)
	}
	look := func(c *Client) ledger.Snapshot {
		snapshots := make(chan ledger.Snapshot, 1000)
		c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
		s := wait(t, snapshots)
		for s.State.Phase() != coordinator.Warmup {
			s = wait(t, snapshots)
		}
		return s
	}
	before := look(c)
	stop()
	r, _ = start(t, dir)
	if after := look(newClient(t, r.Endpoint())); !bytes.Equal(after.State.Bytes(), before.State.Bytes()) || after.Height != before.Height {
		t.Errorf("after a restart the state is of height %d, want %d with the same bytes", after.Height, before.Height)
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
	t.Parallel()
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	op, ann := signer("op"), signer("ann")
	at, err := url.Parse(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	var read, requests atomic.Uint32
	counter := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		requests.Add(1)
		if path.Base(r.Out.URL.Path) == "peers" {
			read.Add(1)
		}
	}})
	t.Cleanup(counter.Close)
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

	// Who watches the run lightly asks for nothing until they change.
	snapshots, lightly := watchLightly(t, reader)
	lightly(true, false)
	must(signer("bob"), join("demo"))
	shows(t, r, snapshots, 2, true)
	asked := requests.Load()
	for range 3 {
		askPeers(t, reader)
	}
	if n := requests.Load() - asked; n > 0 {
		t.Errorf("%d questions about addresses that are the same", n)
	}
	must(ann, host.Announce{Run: "demo", Addrs: []string{"/dns/elsewhere"}})
	must(signer("eve"), join("demo"))
	shows(t, r, snapshots, 3, true)
	if got := askPeers(t, reader); len(got) == 1 && got[0].Addrs[0] != "/dns/elsewhere" {
		t.Errorf("peers are %v after a change", got)
	}
}
