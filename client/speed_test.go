package client

import (
	"testing"

	"github.com/entrain-network/entrain/client/pace"
	"github.com/entrain-network/entrain/coordinator"
)

// bySpeed makes shares go by speed: 48 sequences a batch, of 16 tokens.
func bySpeed(c *coordinator.Config) {
	c.Sharing, c.BatchStart, c.BatchEnd = coordinator.SpeedShares, 48, 48
}

// said are the speeds that a peer has stated since it joined.
func (p *peer) said() (list []uint32) {
	for _, m := range p.sent {
		if s, ok := m.(coordinator.SetSpeed); ok {
			list = append(list, s.Speed)
		}
	}
	return list
}

func (p *peer) member() coordinator.MemberState {
	i, ok := p.state.Find(p.key.Public())
	if !ok {
		p.t.Fatalf("%s is not a member", p.name)
	}
	return p.state.Member(i)
}

// restart starts all peers again, with these speeds.
func (net *network) restart(each []uint64, trial []uint32) {
	for i, p := range net.peers {
		p.each, p.trial = each[i], trial[i]
		p.start()
	}
}

// Speeds that fit need no word; who was wrong about its own says what its steps were, once an epoch, and comes to do what it can.
func TestMembersStateTheSpeedOfTheirSteps(t *testing.T) {
	for name, adjust := range map[string]func(*coordinator.Config){"peers": func(*coordinator.Config) {}, "buckets": byBuckets} {
		net := newNetwork(t, 4, 1, 60, 1, bySpeed, adjust)
		// A sequence of 16 tokens in 50 ms is 320 tokens a second. Two believe what is true, or nearly; one that it is four times as fast, one that
		// it is far slower.
		net.restart([]uint64{50, 50, 200, 50}, []uint32{320, 300, 320, 80})
		net.run(600_000, net.finished)
		epochs := int(net.state.Epoch())
		for i, want := range []uint32{320, 320, 80, 320} {
			p := net.peers[i]
			if got := p.member().Speed; pace.Differ(got, want) {
				t.Errorf("%s: %s is at %d, its steps at %d; it said %d", name, p.name, got, want, p.said())
			}
			if n := len(p.said()); n > epochs || (n > 0) != (i >= 2) {
				t.Errorf("%s: %s stated %d in %d epochs", name, p.name, p.said(), epochs)
			}
		}
		r, ok := net.state.At(net.state.Round() - 3)
		if !ok || !r.Trains() {
			t.Fatalf("%s: the last round that trains is not there", name)
		}
		slow, _ := net.state.Find(net.peers[2].key.Public())
		if r.AcceptedCount() != 4 || r.Speed(slow) == 320 {
			t.Errorf("%s: in the last round %d results were accepted, and the slow one goes by %d", name, r.AcceptedCount(), r.Speed(slow))
		}
	}
}

// A step that was not over in time counts too: who never finishes one says that it is slower until it does.
func TestWhoIsLateStatesLess(t *testing.T) {
	net := newNetwork(t, 4, 1, 60, 1, bySpeed, byBuckets)
	net.restart([]uint64{50, 50, 500, 50}, []uint32{320, 320, 320, 320}) // 12 sequences in 6 s: three windows
	net.run(600_000, net.finished)
	p := net.peers[2]
	if m := p.member(); m.Results < 20 || len(p.said()) == 0 {
		t.Errorf("the late one had %d results accepted, and said %d", m.Results, p.said())
	}
	if r, ok := net.state.At(net.state.Round() - 3); !ok || r.AcceptedCount() != 4 {
		t.Errorf("not everybody's last result was accepted")
	}
}

// Where shares are equal nobody says more than it did when it joined.
func TestNobodyStatesSpeedsInEqualShares(t *testing.T) {
	net := newNetwork(t, 3, 0, 60, 1)
	net.restart([]uint64{50, 50, 200}, []uint32{320, 320, 320})
	net.run(600_000, net.finished)
	for _, p := range net.peers {
		if len(p.said()) > 0 || p.member().Speed != 320 {
			t.Errorf("%s said %d and is at %d", p.name, p.said(), p.member().Speed)
		}
	}
}
