package client

import "testing"

// chained checks that every result of an honest peer began from the fresh state or from what its accepted result of the training round
// before ended with, and that some did the latter.
func chained(t *testing.T, p *peer) {
	t.Helper()
	went := 0
	for i, c := range p.commits {
		if c.Prev == testFresh {
			continue
		}
		if i == 0 {
			t.Errorf("%s: the first result begins from %s", p.name, c.Prev)
			continue
		}
		before := p.commits[i-1]
		accepted := p.settled[before.Round][before.Member]
		if c.Prev != before.State || !accepted && p.settled[c.Round][c.Member] {
			t.Errorf("%s: round %d begins from %s; round %d ended with %s and its acceptance is %v", p.name, c.Round, c.Prev, before.Round, before.State, accepted)
		}
		went++
	}
	if went == 0 {
		t.Errorf("%s: all of %d results begin afresh", p.name, len(p.commits))
	}
}

func TestOptimizerStatesGoOnAcrossEpochs(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 4, overlap, 160, 21)
		net.run(400_000, net.finished)
		if net.state.Epoch() < 2 {
			t.Error("the run had one epoch only")
		}
		for _, p := range net.peers {
			chained(t, p)
			fresh := 0
			for _, c := range p.commits {
				if c.Prev == testFresh {
					fresh++
				}
			}
			if fresh != 1 {
				t.Errorf("overlap %d: %s began afresh %d times of %d though all was accepted", overlap, p.name, fresh, len(p.commits))
			}
		}
	}
}

func TestWhoMissesBeginsAfresh(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 5, overlap, 60, 22)
		p := net.peers[2]
		net.run(60_000, func() bool { return net.state.Step() == 10 })
		p.silent = true // nobody gets its payload
		net.run(60_000, func() bool {
			for i := range p.commits {
				if p.missed(i) {
					return true
				}
			}
			return false
		})
		p.silent = false
		net.run(400_000, net.finished)
		everybodyAgrees(t, net)
		missed, again, afresh := 0, 0, 0
		for i, c := range p.commits {
			switch {
			case p.missed(i):
				missed++
			case i > 0 && p.missed(i-1):
				again++
				if c.Prev == testFresh {
					afresh++
				}
			}
		}
		if missed == 0 || again == 0 || afresh != again {
			t.Errorf("overlap %d: of %d results %d were not accepted; %d came after one of those and were, %d of them afresh", overlap, len(p.commits), missed, again, afresh)
		}
		for _, q := range net.peers {
			chained(t, q)
		}
	}
}

// missed says that it is settled that result i of a peer was not accepted.
func (p *peer) missed(i int) bool {
	c := p.commits[i]
	accepted, settled := p.settled[c.Round][c.Member]
	return settled && !accepted
}

func TestAResultFromAForeignStateIsNotHeld(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 5, overlap, 40, 23)
		bad := net.peers[1]
		bad.foreign = true
		net.run(900_000, net.finished)
		for _, c := range bad.commits {
			if net.settled[c.Round][c.Member] {
				t.Errorf("overlap %d: round %d, which began from a state of its own making, was accepted", overlap, c.Round)
			}
		}
		if len(bad.commits) == 0 {
			t.Error("it committed to nothing")
		}
	}
}
