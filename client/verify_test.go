package client

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// half makes half of the results be checked.
func half(c *coordinator.Config) {
	c.VerificationPercent, c.VerifyMs, c.DisputeMs = 50, 6000, 3000
	c.MinMembers = 2
}

func TestHonestChecksPass(t *testing.T) {
	for overlap := range uint8(2) {
		net := newNetwork(t, 5, overlap, 60, 24, half)
		net.run(400_000, net.finished)
		everybodyAgrees(t, net)
		drawn, passed := net.state.ChecksDrawn()
		if drawn < 80 || passed+8 < drawn {
			t.Errorf("overlap %d: of %d checks %d passed", overlap, drawn, passed)
		}
		if list := net.convicted(); len(list) > 0 {
			t.Errorf("overlap %d: convicted were %s", overlap, list)
		}
		for _, p := range net.peers {
			if p.verdicts[Missing]+p.verdicts[Different] > 0 || p.verdicts[Same] == 0 {
				t.Errorf("overlap %d: the verdicts of %s are %v", overlap, p.name, p.verdicts)
			}
			unique(t, p)
			servesItsLast(t, net, p)
		}
	}
}

// servesItsLast checks that whoever audits the finished run gets what the last result of a member
// began from.
func servesItsLast(t *testing.T, net *network, p *peer) {
	t.Helper()
	last := net.state.Round()
	for r, ok := net.state.At(last); ok && !r.Trains(); r, ok = net.state.At(last) {
		last--
	}
	m := p.machine
	own := m.find(last).known.Of(m.member.index)
	params, ok := m.model.at(last)
	if len(own) != 1 || !ok {
		t.Fatalf("%s has %d results of round %d, the last that trained; its parameters: %v", p.name, len(own), last, ok)
	}
	for what, root := range map[string]wire.Hash{"optimizer state": own[0].commitment.Prev, "parameters": params} {
		if !slices.Contains(m.retained.Blobs, root) {
			t.Errorf("%s no longer has the %s with which its last result began", p.name, what)
		}
	}
}

// unique checks that nothing about checks and disputes was sent twice, nothing having been lost.
func unique(t *testing.T, p *peer) {
	t.Helper()
	seen := map[wire.Hash]bool{}
	for _, msg := range p.sent {
		switch msg.(type) {
		case coordinator.Pass, coordinator.Accuse, coordinator.Unserved, coordinator.TieBreak, coordinator.Defend, coordinator.Reveal, coordinator.Evidence:
		default:
			continue
		}
		if h := coordinator.MessageHash(msg); seen[h] {
			t.Errorf("%s sent %T twice: %+v", p.name, msg, msg)
		} else {
			seen[h] = true
		}
	}
}

func TestCheatsAreConvicted(t *testing.T) {
	for _, c := range []struct {
		name    string
		cheat   func(*peer)
		offence dispute.Offence
	}{
		{"a liar", func(p *peer) { p.lies = true }, dispute.WrongResult},
		{"a slanderer", func(p *peer) { p.slanders = true }, dispute.FalseAccusation},
		{"an equivocator", func(p *peer) { p.equivocate = true }, dispute.Equivocated},
		{"a miser", func(p *peer) { p.miser = true }, dispute.NotServing},
	} {
		for overlap := range uint8(2) {
			repeat := overlap == 1 // every event, then
			t.Run(fmt.Sprintf("%s, overlap %d, repeat %v", c.name, overlap, repeat), func(t *testing.T) {
				net := newNetwork(t, 6, overlap, 600, 25, half, func(cfg *coordinator.Config) { cfg.StartMembers = 5 })
				bad := net.peers[3]
				c.cheat(bad)
				for _, p := range net.peers {
					p.repeat = repeat
				}
				net.run(900_000, func() bool { return bad.expelled != nil })
				if got, want := net.convicted(), []string{"peer 3 of " + c.offence.String()}; !slices.Equal(got, want) {
					t.Errorf("convicted were %s, want %s", got, want)
				}
				if bad.expelled.Conviction.Offence != c.offence || bad.expelled.Conviction.Key != bad.key.Public() {
					t.Errorf("it was told of %+v", bad.expelled.Conviction)
				}
				step := net.state.Step()
				net.run(900_000, func() bool { return net.state.Step() > step+10 })
				for _, p := range net.peers {
					unique(t, p)
				}
			})
		}
	}
}

// TestAVerifierThatRestartsGivesItsVerdict starts it again when the ledger's state has let go of the round, so that it has to ask others what
// was given to whom, and for the commitment: in the first half of the time for the check, or in the second.
func TestAVerifierThatRestartsGivesItsVerdict(t *testing.T) {
	for _, late := range []bool{false, true} {
		net := newNetwork(t, 5, 0, 80, 28, half, func(c *coordinator.Config) { c.VerifyMs = 20_000 })
		var check dispute.Check
		var verifier *peer
		net.run(60_000, func() bool {
			for _, c := range net.state.Checks() {
				if c.Round > 10 {
					check, verifier = c, net.peer(net.state.Key(c.Verifier))
				}
			}
			return verifier != nil
		})
		verifier.crash()
		net.run(60_000, func() bool { return net.state.Round() > check.Round+6 && (!late || net.now >= check.DeadlineMs-8000) })
		verifier.sent = nil
		verifier.start()
		net.run(60_000, func() bool {
			for _, msg := range verifier.sent {
				if p, ok := msg.(coordinator.Pass); ok && p.Round == check.Round && p.Member == check.Member {
					return true
				}
			}
			return false
		})
		net.run(400_000, net.finished)
		if list := net.convicted(); len(list) > 0 {
			t.Errorf("late %v: convicted were %s", late, list)
		}
	}
}

// TestTheOwnTrainingGoesFirst lets verifications begin only when the own share of the round is done, or when the deadline is near.
func TestTheOwnTrainingGoesFirst(t *testing.T) {
	net := newNetwork(t, 5, 0, 60, 26, half)
	began, while := 0, 0
	for _, p := range net.peers {
		p.slow = 700
		p.onVerify = func(a Verify) {
			began++
			if p.training != nil && !a.Urgent {
				while++
			}
		}
	}
	net.run(400_000, net.finished)
	if began == 0 || while > 0 {
		t.Errorf("%d of %d verifications began while the own share was being computed", while, began)
	}
}

// TestALateVerdictIsNotSent lets verifications take longer than there is time.
func TestALateVerdictIsNotSent(t *testing.T) {
	net := newNetwork(t, 4, 0, 40, 27, half, func(cfg *coordinator.Config) { cfg.VerifyMs, cfg.MissedMax = 2000, 250 })
	for _, p := range net.peers {
		p.onVerify = func(Verify) { p.delay = 2500 }
	}
	net.run(900_000, net.finished)
	began := 0
	for _, p := range net.peers {
		began += p.verdicts[Same]
		for _, msg := range p.sent {
			if _, ok := msg.(coordinator.Pass); ok {
				t.Fatalf("%s passed a result although its deadline was over", p.name)
			}
		}
	}
	if began == 0 {
		t.Error("nothing was verified")
	}
	if list := net.convicted(); len(list) > 0 {
		t.Errorf("convicted were %s", list)
	}
}

// TestVerdictsThatGetLostAreSentAgain loses what the ledger is told, and what it answers, in every way.
func TestVerdictsThatGetLostAreSentAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		net := newNetwork(t, 5, rapid.Uint8Range(0, 1).Draw(rt, "overlap"), 30, rapid.Uint64().Draw(rt, "seed"), half,
			func(cfg *coordinator.Config) { cfg.StartMembers, cfg.DisputeMs = 3, 30_000 })
		loss := rapid.Uint64Range(0, 40).Draw(rt, "loss")
		lost := func(m coordinator.Message) bool {
			switch m.(type) {
			case coordinator.Pass, coordinator.TieBreak, coordinator.Defend, coordinator.Reveal, coordinator.Evidence, coordinator.Accuse:
				return net.random.Uint64n(100) < loss
			}
			return false
		}
		net.censor = lost
		for _, p := range net.peers {
			p.deaf = lost
		}
		bad := net.peers[1]
		bad.lies = rapid.Bool().Draw(rt, "a liar")
		victim := net.peers[3]
		down := rapid.Uint32Range(5, 25).Draw(rt, "down")
		net.run(900_000, func() bool { return net.state.Step() >= coordinator.Step(down) })
		victim.crash()
		back := net.now + rapid.Uint64Range(0, 2000).Draw(rt, "up")
		net.run(900_000, func() bool { return net.now >= back })
		victim.start()
		net.run(900_000, net.finished)
		net.run(900_000, func() bool { return len(net.state.Checks()) == 0 }) // disputes may outlast the run
		for _, c := range net.state.Convictions() {
			if c.Key != bad.key.Public() && !c.Offence.Lesser() {
				rt.Errorf("convicted were %s", net.convicted())
			}
		}
		if bad.lies && net.state.ConvictionsTotal() == 0 {
			rt.Error("the liar was not convicted")
		}
	})
}
