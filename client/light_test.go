package client

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// lightWatch is what a peer's watch of the run shows it.
type lightWatch struct {
	Watch          // wanted
	shown          coordinator.State
	shownAt        uint64
	states         map[bool]int                            // shown, by whether they were light
	whole, reports int                                     // turns to whole states, and to reports
	spoils         func([]change.Reports) []change.Reports // what a replica makes of them, if it lies
}

const lightWaitMs = 30_000

// see shows a peer a new state of the run, if its watch does.
func (p *peer) see(s coordinator.State) {
	w := p.watch
	if w == nil || !w.Light {
		p.show(s)
	} else if change.Urgent(w.shown, s) || p.now >= w.shownAt+lightWaitMs {
		p.show(s)
	}
}

func (p *peer) show(s coordinator.State) {
	ev := StateChanged{State: s, TimeMs: p.now}
	if w := p.watch; w != nil {
		w.shown, w.shownAt = s, p.now
		w.states[w.Light]++
		if w.Light {
			ev.State, ev.Light = without(p, s), true
		}
		if w.Reports {
			ev.Reports = p.reportsOf(s)
		}
		if w.spoils != nil {
			ev.Reports = w.spoils(ev.Reports)
		}
	}
	p.feed(ev)
}

// reportsOf returns the reports of the rounds that are over.
func (n *network) reportsOf(s coordinator.State) (list []change.Reports) {
	for number := s.Round() - min(s.Round(), ringRounds); number < s.Round(); number++ {
		r, ok := change.ReportsOf(s, number, func(filter []byte) []byte {
			k := slices.IndexFunc(n.reported, func(w coordinator.Witness) bool { return w.Round == number && bytes.Equal(w.Commitments, filter) })
			if k < 0 {
				return nil
			}
			return n.reported[k].Held
		})
		if ok {
			list = append(list, r)
		}
	}
	return list
}

// without returns a state without the pages that hold nothing but filters.
func without(p *peer, s coordinator.State) coordinator.State {
	s, err := coordinator.Open(change.Of(s).State())
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *peer) turn(a Watch) {
	w := p.watch
	switch w.Watch = a; {
	case !a.Light:
		w.whole++
	case a.Reports:
		w.reports++
	default:
		return
	}
	p.show(p.snapshot())
}

// The same things happen whether members watch lightly or not: they are elected in turns, and no
// round, result or checkpoint is lost by the way from one watch to the other. That holds, too, if a
// replica withholds reports from those elected, or lies about them. Only then they watch whole states.
func TestLightWatchesChangeNothing(t *testing.T) {
	for name, spoils := range map[string]func([]change.Reports) []change.Reports{
		"honest":   nil,
		"withheld": func([]change.Reports) []change.Reports { return nil },
		"lies": func(list []change.Reports) []change.Reports {
			for i := range list {
				for seat := range list[i].Held {
					if b := bytes.Clone(list[i].Held[seat]); len(b) > 0 {
						b[0] ^= 1
						list[i].Held[seat] = b
					}
				}
			}
			return list
		},
	} {
		for overlap := range uint8(2) {
			whole, light := newFollowers(t, overlap, 1), newFollowers(t, overlap, 2)
			for _, p := range light.peers {
				p.watch.spoils = spoils
			}
			for _, net := range []*network{whole, light} {
				net.run(200_000, net.finished)
				everybodyAgrees(t, net)
			}
			changedNothing(t, fmt.Sprintf("%s, overlap %d", name, overlap), whole, light)
			turns, reports, rounds := 0, 0, int(light.state.Round())
			if light.idle == 0 || whole.idle > 0 {
				t.Errorf("%s, overlap %d: %d events did not matter, and %d without light watches", name, overlap, light.idle, whole.idle)
			}
			for _, p := range light.peers {
				if n := p.watch.states[true]; n == 0 || n > 4*rounds {
					t.Errorf("%s, overlap %d: %s was shown %d light states in %d rounds, and %d whole ones", name, overlap, p.name, n, rounds, p.watch.states[false])
				}
				turns, reports = turns+p.watch.whole, reports+p.watch.reports
			}
			t.Logf("%s, overlap %d: %d rounds, %d turns to reports, %d to whole states", name, overlap, rounds, reports, turns)
			if reports < rounds || spoils == nil && turns > rounds || spoils != nil && turns < rounds {
				t.Errorf("%s, overlap %d: %d turns to reports and %d to whole states in %d rounds", name, overlap, reports, turns, rounds)
			}
		}
	}
}

// changedNothing checks that the same has happened in a run that is watched lightly.
func changedNothing(t *testing.T, of string, whole, light *network) {
	t.Helper()
	for number, want := range whole.settled {
		if !maps.Equal(want, light.settled[number]) {
			t.Errorf("%s: of round %d, %v is accepted, %v without light watches", of, number, light.settled[number], want)
		}
	}
	a, b := whole.state, light.state
	if a.PointsTotal() != b.PointsTotal() || a.Round() != b.Round() || a.Epoch() != b.Epoch() {
		t.Errorf("%s: %d points in %d rounds of %d epochs with light watches, %d in %d of %d without",
			of, b.PointsTotal(), b.Round(), b.Epoch(), a.PointsTotal(), a.Round(), a.Epoch())
	}
	was, _ := a.Params()
	if now, _ := b.Params(); now != was {
		t.Errorf("%s: the parameters differ", of)
	}
	if whole.follow.fetched != light.follow.fetched || light.follow.payloads > 0 {
		t.Errorf("%s: %d updates and %d payloads were fetched, want %d updates", of, light.follow.fetched, light.follow.payloads, whole.follow.fetched)
	}
	for _, p := range light.peers {
		for k, c := range p.commits[1:] {
			if c.Prev != p.commits[k].State {
				t.Errorf("%s: %s began afresh in round %d, though its result of round %d was accepted", of, p.name, c.Round, p.commits[k].Round)
			}
		}
	}
}

// A member that is alone, in a run in which nobody follows, waits for no filters: in the rounds at
// an epoch's end it attests as soon as if it had whole states.
func TestALoneMemberWaitsForNoFilters(t *testing.T) {
	for overlap := range uint8(2) {
		var took [2]uint64
		for i, watch := range []*lightWatch{nil, {states: map[bool]int{}}} {
			net := newNetwork(t, 1, overlap, 12, 5)
			s, err := coordinator.New(coordinator.Limits{Members: 1000, Witnesses: 8}, net.state.Config(), coordinator.Env{NowMs: 1000})
			if err != nil {
				t.Fatal(err)
			}
			net.state, net.peers[0].watch = s, watch
			net.peers[0].start()
			net.run(200_000, net.finished)
			took[i] = net.now
		}
		if took[1] > took[0]+5*stepMs {
			t.Errorf("overlap %d: the run took %d ms with light states, %d with whole ones", overlap, took[1], took[0])
		}
	}
}

// Members that check results need no whole states for that: those who attested these name the
// commitments.
func TestChecksNeedNoWholeStates(t *testing.T) {
	for overlap := range uint8(2) {
		var turns [2]int
		for i, adjust := range []func(*coordinator.Config){func(*coordinator.Config) {}, half} {
			net := newFollowers(t, overlap, 2, adjust)
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
			for _, p := range net.peers {
				turns[i] += p.watch.whole
			}
			drawn, passed := net.state.ChecksDrawn()
			t.Logf("overlap %d: of %d checks %d passed, %d turns to whole states", overlap, drawn, passed, turns[i])
			if i == 1 && (drawn < 100 || passed+12 < drawn) || len(net.convicted()) > 0 {
				t.Errorf("overlap %d: of %d checks %d passed, convicted were %s", overlap, drawn, passed, net.convicted())
			}
		}
		if turns[1] > turns[0] {
			t.Errorf("overlap %d: %d turns to whole states with checks, %d without", overlap, turns[1], turns[0])
		}
	}
}

// Those who watch the run lightly convict all cheats, too, and nobody else.
func TestLightVerifiersConvict(t *testing.T) {
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
		t.Run(c.name, func(t *testing.T) {
			net := newFollowers(t, 1, 2, half, func(cfg *coordinator.Config) { cfg.TotalSteps = 600 })
			bad := net.peers[3]
			c.cheat(bad)
			net.run(400_000, func() bool { return bad.expelled != nil })
			if got, want := net.convicted(), []string{"peer 3 of " + c.offence.String()}; !slices.Equal(got, want) {
				t.Errorf("convicted were %s, want %s", got, want)
			}
		})
	}
}

// An author shows another commitment to whoever checks its result, and so do a third of those who
// attested it. The verifier takes the one that a quorum shows. Seeing two, it watches whole states.
func TestLightVerifiersTakeTheAcceptedCommitment(t *testing.T) {
	for _, name := range []string{"honest", "liars", "silent", "restarted"} {
		c := newCrowd(t, 1000, 10)
		before, list := c.snapshot(), c.commitments(c.initial)
		c.close(c.initial, c.initial, list)
		next := wire.Sum("the parameters of round 2")
		c.close(next, c.initial, c.commitments(next))
		attested, _ := c.state.At(1)
		now, _ := c.state.At(c.state.Round())
		checks := c.state.Checks()
		k := slices.IndexFunc(checks, func(k dispute.Check) bool {
			last, _ := c.state.At(now.Number() - 1)
			return k.Round == 1 && !now.Elected(k.Verifier) && !last.Elected(k.Verifier) && !attested.Elected(k.Verifier)
		})
		check := checks[k]
		m := New(Config{Self: c.keys[check.Verifier], PayloadMax: 1000, Update: 5000, UpdateMax: 10_000, Light: true})
		light := c.snapshot()
		s, err := coordinator.Open(change.Of(light.State).State())
		if err != nil {
			t.Fatal(err)
		}
		light.State, light.Light = s, true
		if name == "restarted" {
			before = light
		}
		// The verifier waits until its own share is trained.
		asked, whole := map[key.Public]bool{}, false
		step := func(events ...Event) {
			for _, a := range m.Step(c.env.NowMs, events...) {
				switch a := a.(type) {
				case AskCommitments:
					if len(a.Of) == 1 && a.Of[0] == check.Member && a.Round == 1 {
						asked[a.To] = true
					}
				case Watch:
					whole = !a.Light
				}
			}
		}
		if step(before); m.watched.Light {
			t.Errorf("%s: light states are watched before what was signed is loaded", name)
		}
		step(Loaded{Known: true, Params: c.initial})
		step(light)
		cs := m.caseOf[Share{Round: check.Round, Member: check.Member}]
		if len(asked) != int(attested.Quorum()) || whole {
			t.Fatalf("%s: %d are asked, want %d; whole states are watched: %t", name, len(asked), attested.Quorum(), whole)
		}
		shown := uint32(0)
		for who := range asked {
			if i := c.member(who); !attested.Elected(i) {
				t.Errorf("%s: member %d is asked, which did not attest the result", name, i)
			}
			commitment := list[check.Member]
			if shown++; name == "liars" && shown <= (attested.Quorum()-1)/2 {
				commitment.State = wire.Sum("made for the check")
			}
			if name == "silent" && shown == 1 {
				continue
			}
			if cs.known {
				t.Errorf("%s: it believes %d of %d", name, shown-1, attested.Quorum())
			}
			// What its author says counts for nothing, however often.
			for _, from := range []key.Public{who, c.keys[check.Member], {}} {
				step(CommitmentReceived{Signed: &dispute.Signed{Commitment: commitment}, Signer: c.keys[check.Member], ID: commitment.ID(), From: from})
			}
		}
		if right := name == "honest" || name == "restarted"; cs.known != right || right && cs.signed.Commitment != list[check.Member] {
			t.Errorf("%s: the commitment is known: %t", name, cs.known)
		}
		if name == "liars" && len(m.frauds) != 1 {
			t.Errorf("%s: %d frauds were found", name, len(m.frauds))
		}
		c.env.NowMs += max(c.state.Config().RoundTrainMs/reportsPart, reAskMs)
		step(Tick{})
		if right := name == "honest" || name == "restarted"; whole == right {
			t.Errorf("%s: whole states are watched: %t", name, whole)
		}
		if name == "silent" && len(asked) != int(attested.Quorum())+1 {
			t.Errorf("%s: %d are asked, want one more", name, len(asked))
		}
	}
}
