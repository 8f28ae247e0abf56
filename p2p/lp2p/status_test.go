package lp2p

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// What is measured of each peer is what was sent, and who misbehaved shows.
func TestPeersAreMeasured(t *testing.T) {
	ps := together(t, 3, nil)
	data := blob(2<<20, 9)
	ref := put(t, data, ps[1])
	if _, err := fetch(t, ps[0], p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}); err != nil {
		t.Fatal(err)
	}
	of := func(p, q *participant) p2p.PeerStatus {
		for _, s := range p.Peers() {
			if s.Key == q.Self() {
				return s
			}
		}
		t.Fatal("the peer is not listed")
		return p2p.PeerStatus{}
	}
	if s := of(ps[0], ps[1]); s.Received != uint64(len(data)) || s.Way != "direct" || s.Sent != 0 {
		t.Errorf("from who served: %+v", s)
	}
	for n := byte(10); of(ps[0], ps[1]).Down <= 0; n++ { // until transfers took long enough to be measured
		if n == 200 {
			t.Fatal("no transfer is measured")
		}
		if _, err := fetch(t, ps[0], p2p.Fetch{Ref: put(t, blob(2<<20, n), ps[1]), From: []key.Public{ps[1].Self()}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return of(ps[1], ps[0]).Sent >= uint64(len(data)) }) // and its leaves
	if s := of(ps[0], ps[2]); s.Received != 0 || s.Down != 0 {
		t.Errorf("from who did nothing: %+v", s)
	}
	ps[0].charge(ps[2].Self(), p2p.Lied)
	if s := of(ps[0], ps[2]); s.Weight < 39 || s.Banned {
		t.Errorf("who has lied once: %+v", s)
	}
	for range 3 {
		ps[0].charge(ps[2].Self(), p2p.Lied)
	}
	if s := of(ps[0], ps[2]); !s.Banned {
		t.Errorf("who has lied four times: %+v", s)
	}
	eventually(t, func() bool { return of(ps[0], ps[2]).Way == "" })
}

func TestRoundTripsAreMeasured(t *testing.T) {
	quick := times{late: lateAfter, stall: stallAfter, join: joinPatience, ping: 20 * time.Millisecond}
	ps := []*participant{beginWith(t, 0, quick, nil), beginWith(t, 1, quick, nil)}
	introduce(ps)
	eventually(t, func() bool { rtt := ps[0].Peers()[0].RTT; return rtt > 0 && rtt < pingTimeout })
}
