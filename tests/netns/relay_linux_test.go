package netns

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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

// bothApplied reports whether an accepted set with the results of two was applied.
func bothApplied(ev timed) bool { return ev.Kind == "applied" && ev.Results == 2 }

func countOf(events []timed, f func(timed) bool) (n int) {
	for _, ev := range events {
		if f(ev) {
			n++
		}
	}
	return n
}

// Without a relay of anybody's, members with public addresses serve as such: one behind a NAT finds two of them on the chain, and
// is reached through them.
func TestMembersServeAsRelays(t *testing.T) {
	s := newStage(t, 2)
	f := s.found("helpful", small, s.machine("chain", "45.0.0.1", Home))
	for i := range 2 {
		f.join(s.machine(fmt.Sprintf("m%d", i), fmt.Sprintf("45.0.2.1%d", i), Home))
	}
	behind := f.join(s.behindNAT("nat", "45.0.1.1", Home, false))
	s.eventually(2*time.Minute, "places at two relays", func() bool { return len(behind.relays()) == 2 })
	t.Logf("reached through %v", behind.relays())
}

// relays are those through which a participant says it is reached.
func (m *machine) relays() map[string]bool {
	b, err := os.ReadFile(filepath.Join(m.state(), "peers.json"))
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for _, hop := range regexp.MustCompile(`/p2p/([^/"]+)/p2p-circuit`).FindAllSubmatch(b, -1) {
		found[string(hop[1])] = true
	}
	return found
}
