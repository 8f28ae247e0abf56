package client

import (
	"maps"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
)

// lightWatch is what a peer's watch of the run shows it.
type lightWatch struct {
	light   bool // wanted
	shown   coordinator.State
	shownAt uint64
	states  map[bool]int // shown, by whether they were light
	turns   int          // to whole states
}

const lightWaitMs = 30_000

// see shows a peer a new state of the run, if its watch does.
func (p *peer) see(s coordinator.State) {
	w := p.watch
	if w == nil || !w.light {
		p.show(s)
	} else if change.Urgent(w.shown, s) || p.now >= w.shownAt+lightWaitMs {
		p.show(s)
	}
}

func (p *peer) show(s coordinator.State) {
	ev := StateChanged{State: s, TimeMs: p.now}
	if w := p.watch; w != nil {
		w.shown, w.shownAt = s, p.now
		w.states[w.light]++
		if w.light {
			ev.State, ev.Light = without(p, s), true
		}
	}
	p.feed(ev)
}

// without returns a state without the filters of reports.
func without(p *peer, s coordinator.State) coordinator.State {
	s, err := coordinator.Open(slices.Clone(s.Bytes()))
	if err != nil {
		p.t.Fatal(err)
	}
	for number := s.Round(); number > 0 && number+ringRounds > s.Round(); number-- {
		if r, ok := s.At(number); ok {
			for _, report := range r.Reports() {
				clear(report.Commitments) // of these bytes
			}
		}
	}
	return s
}

func (p *peer) turn(a Watch) {
	if p.watch.light = a.Light; !a.Light {
		p.watch.turns++
		p.show(p.snapshot())
	}
}

// The same things happen whether members watch lightly or not: they are elected in turns, and no
// round, result or checkpoint is lost by the way from one watch to the other.
func TestLightWatchesChangeNothing(t *testing.T) {
	for overlap := range uint8(2) {
		whole, light := newFollowers(t, overlap, 1), newFollowers(t, overlap, 2)
		for _, net := range []*network{whole, light} {
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
		}
		for number, want := range whole.settled {
			if !maps.Equal(want, light.settled[number]) {
				t.Errorf("overlap %d: of round %d, %v is accepted, %v without light watches", overlap, number, light.settled[number], want)
			}
		}
		a, rounds := whole.state, int(whole.state.Round())
		if b := light.state; a.PointsTotal() != b.PointsTotal() || a.Round() != b.Round() || a.Epoch() != b.Epoch() {
			t.Errorf("overlap %d: %d points in %d rounds of %d epochs with light watches, %d in %d of %d without",
				overlap, b.PointsTotal(), b.Round(), b.Epoch(), a.PointsTotal(), a.Round(), a.Epoch())
		}
		was, _ := a.Params()
		if now, _ := light.state.Params(); now != was {
			t.Errorf("overlap %d: the parameters differ", overlap)
		}
		if whole.follow.fetched != light.follow.fetched || light.follow.payloads > 0 {
			t.Errorf("overlap %d: %d updates and %d payloads were fetched, want %d updates", overlap, light.follow.fetched, light.follow.payloads, whole.follow.fetched)
		}
		turns := 0
		for _, p := range light.peers {
			for k, c := range p.commits[1:] {
				if c.Prev != p.commits[k].State {
					t.Errorf("overlap %d: %s began afresh in round %d, though its result of round %d was accepted", overlap, p.name, c.Round, p.commits[k].Round)
				}
			}
			if n := p.watch.states[true]; n == 0 || n > 4*rounds {
				t.Errorf("overlap %d: %s was shown %d light states in %d rounds, and %d whole ones", overlap, p.name, n, rounds, p.watch.states[false])
			}
			turns += p.watch.turns
		}
		if turns < rounds {
			t.Errorf("overlap %d: whole states were asked for %d times in %d rounds", overlap, turns, rounds)
		}
	}
}
