package comet

import (
	"bytes"
	"slices"
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
