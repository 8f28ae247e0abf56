package client

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// everybodyAgrees checks that all who are up come to hold the last agreed parameters.
func everybodyAgrees(t *testing.T, net *network) {
	t.Helper()
	agreed, _ := net.state.Params()
	net.run(60_000, func() bool {
		for _, p := range net.peers {
			if p.up && p.expelled == nil && p.params != agreed {
				return false
			}
		}
		return true
	})
	if agreed == net.initial {
		t.Error("nothing was learned: the agreed parameters are the initial ones")
	}
}

func TestARunFinishes(t *testing.T) {
	for overlap := range uint8(2) {
		for _, n := range []uint32{1, 2, 4, 7} {
			net := newNetwork(t, n, overlap, 12, uint64(n))
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
			if got, want := net.state.PointsTotal(), uint64(12*2*n); got != want {
				t.Errorf("overlap %d, %d members: %d points, want %d", overlap, n, got, want)
			}
			for _, p := range net.peers {
				if p.heals > 0 {
					t.Errorf("overlap %d: %s healed %d times though nothing went wrong", overlap, p.name, p.heals)
				}
			}
		}
	}
}

func TestRoundsEndEarlyWhenAllIsThere(t *testing.T) {
	net := newNetwork(t, 4, 0, 20, 1)
	net.run(60_000, func() bool { return net.state.Step() == 1 })
	start := net.now
	net.run(60_000, func() bool { return net.state.Step() == 20 })
	if perRound := (net.now - start) / 19; perRound > 1000 {
		t.Errorf("a round takes %d ms, although training takes 100 and the limit is 4000", perRound)
	}
}

func TestACrashedMemberComesBackWithTheModel(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 5, overlap, 160, 3) // more than an epoch, in which it is dropped
		net.run(60_000, func() bool { return net.state.Step() == 5 })
		net.peers[1].crash()
		net.run(60_000, func() bool { return net.state.Step() == 9 })
		net.peers[1].start()
		net.run(200_000, net.finished)
		everybodyAgrees(t, net)
		i, _ := net.state.Find(net.peers[1].key.Public())
		if m := net.state.Member(i); m.Results < 20 {
			t.Errorf("overlap %d: the member that came back had %d results accepted", overlap, m.Results)
		}
	}
}

func TestAMemberThatCrashesAfterCommittingDoesNotCommitAgain(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 2, overlap, 300, 10) // of two, nobody goes on alone
		victim := net.peers[1]
		for range 5 {
			round := net.state.Round()
			net.run(60_000, func() bool {
				return net.state.Round() > round && victim.signed().Commitment.Round == net.state.Round()
			})
			victim.crash()
			net.tick()
			victim.start()
		}
		net.run(600_000, net.finished)
		everybodyAgrees(t, net)
	}
}

func TestAStaleMemberHealsDuringTheEpoch(t *testing.T) {
	net := newNetwork(t, 5, 0, 60, 4)
	net.run(60_000, func() bool { return net.state.Step() == 3 })
	p := net.peers[2]
	p.crash()
	p.saved.Params = wire.Sum("a disk that lies")
	net.run(60_000, func() bool { return net.state.Step() == 4 })
	p.start()
	net.run(300_000, net.finished)
	everybodyAgrees(t, net)
	if p.heals == 0 {
		t.Error("it did not heal")
	}
}

// Nearly all crash when an epoch has ended, and have the parameters of some rounds before on disk. Nobody
// has the results that lead on, and one has the agreed parameters.
func TestMembersDoNotWaitForeverForResultsThatNobodyHas(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 5, overlap, 300, 6)
		net.run(60_000, func() bool { return net.state.Draining() > 0 })
		var before []Loaded
		for _, p := range net.peers {
			before = append(before, p.saved)
		}
		net.run(60_000, func() bool { return net.state.Phase() == coordinator.Cooldown })
		for i, p := range net.peers[1:] {
			p.crash()
			before[i+1].Committed = p.saved.Committed
			p.saved = before[i+1]
			p.start()
		}
		clear(net.peers[0].held)
		step := net.state.Step()
		net.run(20_000, func() bool { return net.state.Step() > step+2 })
		if net.peers[1].heals != 1 {
			t.Errorf("overlap %d: it healed %d times", overlap, net.peers[1].heals)
		}
	}
}

func TestAMemberThatComesLateTakesPartInTheNextEpoch(t *testing.T) {
	net := newNetwork(t, 4, 0, 200, 5)
	net.run(60_000, func() bool { return net.state.Step() == 5 })
	late := net.add("late", 99)
	late.saved = Loaded{}
	late.crash()
	late.start()
	net.run(400_000, net.finished)
	everybodyAgrees(t, net)
	i, ok := net.state.Find(late.key.Public())
	if !ok || net.state.Member(i).Points == 0 {
		t.Error("the late member earned nothing")
	}
}

func TestAfterARollbackAllGoOnFromTheAgreedParameters(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 4, overlap, 60, 11)
		net.run(60_000, func() bool { return net.state.Step() == 10 })
		net.censor = func(m coordinator.Message) bool { _, report := m.(coordinator.Witness); return report }
		net.run(300_000, func() bool { return net.state.Rollbacks() == 1 })
		net.censor = nil
		net.run(300_000, net.finished)
		everybodyAgrees(t, net)
	}
}

func TestLossOnlyCostsTime(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 6, overlap, 15, 6)
		net.lose = func(from, to *peer) bool { return net.random.Uint64n(100) < 40 }
		net.run(600_000, net.finished)
		everybodyAgrees(t, net)
	}
}

func TestAnEquivocatorCannotSplitTheModel(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 7, overlap, 15, 7)
		net.peers[3].equivocate = true
		net.run(600_000, net.finished)
		everybodyAgrees(t, net)
		seen := false
		for _, p := range net.peers {
			for _, note := range p.notes {
				seen = seen || strings.Contains(note, "two commitments")
			}
		}
		if !seen {
			t.Error("nobody noticed")
		}
	}
}

func TestAWithholderIsDroppedAndTheRunGoesOn(t *testing.T) {
	net := newNetwork(t, 6, 0, 40, 8)
	w := net.peers[2]
	w.silent = true
	dropped := false
	net.run(900_000, func() bool {
		if i, ok := net.state.Find(w.key.Public()); ok && net.state.Status(i) == coordinator.StatusDropped {
			dropped = true
		}
		return net.finished()
	})
	everybodyAgrees(t, net)
	if !dropped {
		t.Error("the member whose results nobody can fetch was never dropped")
	}
}

func TestStoppingWithdraws(t *testing.T) {
	net := newNetwork(t, 4, 0, 1000, 9)
	net.run(60_000, func() bool { return net.state.Step() == 5 })
	p := net.peers[0]
	p.feed(Stopping{})
	net.run(10_000, func() bool {
		i, _ := net.state.Find(p.key.Public())
		return net.state.Status(i) == coordinator.StatusWithdrawn
	})
	step := net.state.Step()
	net.run(60_000, func() bool { return net.state.Step() > step+5 })
}

// TestWhateverHappensReplicasAreEqual draws crashes, loss, slowness and overlap. The comparison itself is in network.tick.
func TestWhateverHappensReplicasAreEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint32Range(3, 8).Draw(rt, "members")
		net := newNetwork(t, n, rapid.Uint8Range(0, 1).Draw(rt, "overlap"), 12, rapid.Uint64().Draw(rt, "seed"))
		loss := rapid.Uint64Range(0, 30).Draw(rt, "loss")
		net.lose = func(from, to *peer) bool { return net.random.Uint64n(100) < loss }
		for _, p := range net.peers {
			p.slow = rapid.Uint64Range(50, 1500).Draw(rt, "slow")
		}
		victim := net.peers[rapid.IntRange(0, int(n)-1).Draw(rt, "victim")]
		down, up := rapid.Uint32Range(1, 6).Draw(rt, "down"), rapid.Uint64Range(0, 15_000).Draw(rt, "up")
		net.run(900_000, func() bool { return net.state.Step() >= coordinator.Step(down) })
		victim.crash()
		back := net.now + up
		net.run(900_000, func() bool { return net.now >= back })
		victim.start()
		net.run(2_000_000, net.finished)
		everybodyAgrees(t, net)
	})
}
