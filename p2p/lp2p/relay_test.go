package lp2p

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// sheltered starts a relay and two peers that nobody can connect to, as far as anybody is told.
func sheltered(t *testing.T, limits RelayLimits) (relay, a, b *participant) {
	t.Helper()
	relay = begin(t, 0, func(o *Options) { o.Relay, o.Reach = &limits, ReachPublic })
	hidden := func(o *Options) {
		o.Reach, o.Relays = ReachPrivate, relay.Addrs()[:1]
		o.Listen = []string{loopbackTCP}
	}
	a, b = begin(t, 1, hidden), begin(t, 2, hidden)
	for _, p := range []*participant{relay, a, b} {
		for _, q := range []*participant{relay, a, b} {
			p.gate.allow(q.Self())
		}
	}
	for _, p := range []*participant{a, b} {
		eventually(t, func() bool { return len(p.shelter.addrs(time.Now())) > 0 })
	}
	return relay, a, b
}

// only is a peer with those of its addresses that lead through a relay.
func only(p *participant) p2p.Peer {
	var via []string
	for _, a := range p.Addrs() {
		if strings.Contains(a, "/p2p-circuit/") {
			via = append(via, a)
		}
	}
	return p2p.Peer{Key: p.Self(), Addrs: via}
}

func (p *participant) limitedTo(q *participant) bool {
	return p.host.Network().Connectedness(q.host.ID()) == network.Limited
}

func TestPeersThatCannotBeReachedMeetThroughARelay(t *testing.T) {
	t.Parallel()
	relay, a, b := sheltered(t, RelayLimits{})
	if got := only(b).Addrs; len(got) == 0 || !strings.Contains(got[0], relay.host.ID().String()+"/p2p-circuit/p2p/"+b.host.ID().String()) {
		t.Fatalf("b tells %v", b.Addrs())
	}
	a.Connect([]p2p.Peer{relay.peer(), only(b)})
	b.Connect([]p2p.Peer{relay.peer(), only(a)})
	eventually(t, func() bool { return a.limitedTo(b) && b.limitedTo(a) })
	if n := a.Connected(); n != 2 {
		t.Errorf("connected with %d peers", n)
	}
	if got, err := ask(t, a, b.Self(), []byte("hello")); err != nil || string(got) != "re: hello" {
		t.Errorf("%q, %v", got, err)
	}
	data := blob(3<<20, 5)
	ref := put(t, data, b)
	if got, err := fetch(t, a, p2p.Fetch{Ref: ref, From: []key.Public{b.Self()}}); err != nil || !bytes.Equal(got, data) {
		t.Error(err)
	}
	// What gossip says comes by way of the relay, which is a peer of both.
	eventually(t, func() bool { return len(a.topic.ListPeers()) == 1 && len(b.topic.ListPeers()) == 1 })
	eventually(t, func() bool {
		if err := a.Publish([]byte("round")); err != nil {
			t.Error(err)
		}
		return b.count(a, "round") > 0
	})
}

func TestAFetchOutlastsTheRelaysLimit(t *testing.T) {
	t.Parallel()
	relay, a, b := sheltered(t, RelayLimits{CircuitBytes: 1 << 20})
	a.Connect([]p2p.Peer{relay.peer(), only(b)})
	data := blob(4<<20, 6)
	ref := put(t, data, b)
	var cuts atomic.Int32
	a.host.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if c.RemotePeer() == b.host.ID() {
			cuts.Add(1)
		}
	}})
	var held p2p.FetchError
	for {
		before := cuts.Load()
		got, err := fetch(t, a, p2p.Fetch{Ref: ref, From: []key.Public{b.Self()}, Have: held.Chunk, Leaves: held.Leaves()})
		if err == nil && bytes.Equal(got, data) {
			break
		}
		var fe *p2p.FetchError
		if !errors.As(err, &fe) {
			t.Fatal(err)
		}
		if fe.Held <= held.Held { // a try that brings nothing asked on a connection that ended
			eventually(t, func() bool { return cuts.Load() > before })
			continue
		}
		held = *fe
	}
	if cuts.Load() == 0 {
		t.Error("four megabytes went through a circuit of one")
	}
}

func TestARelayServesOnlyThoseItKnows(t *testing.T) {
	relay := begin(t, 0, func(o *Options) { o.Relay, o.Reach = &RelayLimits{}, ReachPublic })
	stranger := begin(t, 1, func(o *Options) { o.Reach, o.Relays = ReachPrivate, relay.Addrs()[:1] })
	eventually(t, func() bool {
		stranger.shelter.placesMu.Lock()
		defer stranger.shelter.placesMu.Unlock()
		return len(stranger.shelter.refusals) == 1
	})
	if got := stranger.shelter.addrs(time.Now()); len(got) > 0 {
		t.Errorf("a stranger has a place: %v", got)
	}
}

func TestWhoCanBeReachedNeedsNoRelay(t *testing.T) {
	public := ma.StringCast("/ip4/8.8.8.8/udp/4001/quic-v1")
	private := ma.StringCast("/ip4/10.1.2.3/udp/4001/quic-v1")
	for _, c := range []struct {
		reach   Reach
		verdict network.Reachability
		own     ma.Multiaddr
		want    bool
	}{
		{ReachUnknown, network.ReachabilityUnknown, private, false},
		{ReachUnknown, network.ReachabilityUnknown, public, true},
		{ReachUnknown, network.ReachabilityPrivate, public, false},
		{ReachUnknown, network.ReachabilityPublic, private, true},
		{ReachPublic, network.ReachabilityPrivate, private, true},
		{ReachPrivate, network.ReachabilityPublic, public, false},
	} {
		s := newShelter(nil, c.reach)
		s.verdict = c.verdict
		if got := s.reached([]ma.Multiaddr{c.own}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPlacesAreRenewedAndReplaced(t *testing.T) {
	now := time.Unix(1000, 0)
	relays := []peer.AddrInfo{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	s := newShelter(nil, ReachPrivate)
	gone := map[peer.ID]bool{}
	due := func() (ids []peer.ID) {
		for _, r := range s.due(relays, func(id peer.ID) bool { return !gone[id] }, now) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	want := func(ids ...peer.ID) {
		t.Helper()
		if got := due(); !slices.Equal(got, ids) {
			t.Errorf("due %v, want %v", got, ids)
		}
	}
	want("a", "b")
	s.places["a"] = place{expires: now.Add(reservationTime)}
	s.refusals["b"] = refusal{1, now.Add(refusedFor)}
	want("c")
	s.places["c"] = place{expires: now.Add(reservationTime)}
	want()
	now = now.Add(reservationTime/2 + time.Second)
	want("a", "c") // to be renewed; they keep their places
	gone["a"] = true
	want("a", "c") // a again, if it is back
	now = now.Add(reservationTime)
	want("a", "b") // all have expired
}

func TestARelaysAddressesAreToldWithoutItsName(t *testing.T) {
	id, err := peerID(secret(3).Public())
	if err != nil {
		t.Fatal(err)
	}
	var addrs []ma.Multiaddr
	for _, s := range []string{
		"/ip4/10.0.0.1/tcp/1", "/ip4/8.8.8.8/tcp/1", "/ip4/8.8.8.8/tcp/1/p2p/" + id.String(), "/ip4/8.8.8.8/udp/1/quic-v1",
		"/ip4/9.9.9.9/tcp/1", "/ip4/8.8.4.4/tcp/1/p2p/" + id.String() + "/p2p-circuit",
	} {
		addrs = append(addrs, ma.StringCast(s))
	}
	got := tellAtRelay(addrs, id)
	if len(got) != 2 || got[0].String() != "/ip4/8.8.8.8/tcp/1" || got[1].String() != "/ip4/8.8.8.8/udp/1/quic-v1" {
		t.Errorf("told: %v", got)
	}
	if got := tellAtRelay(addrs[:1], id); len(got) != 1 {
		t.Errorf("in a private network: %v", got)
	}
}
