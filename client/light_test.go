package client

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
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
	s, err := coordinator.Open(change.Of(s, true).State())
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
