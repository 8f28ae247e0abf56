package netns

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

const small = `
steps = 400

[batch]
start = 8

[members]
min = 2
start = 2
overlap = 0

[times]
waiting = "1s"
round_train = "20s"
epoch = "10m"

[trust]
verification_percent = 0
`

// Two members behind NATs of their own take part together: with NATs that map alike for all by a punched hole, with symmetric
// ones through the relay. Nobody else could pass on what they train.
func TestTwoMembersBehindNATsTrainTogether(t *testing.T) {
	for name, random := range map[string]bool{"punched": false, "symmetric": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1)
			link := Link{Rate: Home.Rate, Delay: Home.Delay} // what is lost does not matter here
			f := s.found("stage", small, s.machine("chain", "45.0.0.1", link))
			f.relay(s.machine("relay", "45.0.0.2", link))
			a := f.join(s.behindNAT("a", "45.0.1.1", link, random), "--no-relay")
			b := f.join(s.behindNAT("b", "45.0.1.2", link, random), "--no-relay")
			begun := time.Now()
			for _, p := range []*process{a, b} {
				p.until(2*time.Minute, "five steps with both results", func() bool { return countOf(p.events, bothApplied) >= 5 })
			}
			t.Logf("five steps of two members behind NATs, %s, after %s", name, time.Since(begun).Round(time.Second))
			// Each has the relay, and the other one.
			want := map[string]int{"direct": 2}
			if random {
				want = map[string]int{"direct": 1, "relay": 1}
			}
			for _, p := range []*process{a, b} {
				s.eventually(time.Minute, fmt.Sprintf("%s connected %v", p.name, want), func() bool { return maps.Equal(p.ways(), want) })
			}
			t.Logf("ways: a %v, b %v", a.ways(), b.ways())
		})
	}
}

// bothApplied tells whether an accepted set with the results of two was applied.
func bothApplied(ev timed) bool { return ev.Kind == "applied" && ev.Results == 2 }

func countOf(events []timed, f func(timed) bool) (n int) {
	for _, ev := range events {
		if f(ev) {
			n++
		}
	}
	return n
}
