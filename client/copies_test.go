package client

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
)

// TestFalseListsCostLittle has members of 16 say that they lack everything. A witness copies eight results for one of them, and at most ten for
// all, each time it reads the lists: none twice, none of its own, and none that it does not hold.
func TestFalseListsCostLittle(t *testing.T) {
	const members = 16
	everybody := bytes.Repeat([]byte{255}, members/8+100) // and some that there are not
	for _, c := range []struct{ liars, most int }{{1, lacksServed}, {5, copiesMax + members/copiesPer}} {
		net := newNetwork(t, members, 1, 6, 1, byBuckets, func(cfg *coordinator.Config) { cfg.Witnesses = 0 })
		witness := net.peers[3]
		asked, before, most := 0, 0, 0
		witness.shelves.lists = func() (lists [][]byte) {
			most = max(most, len(witness.shelves.copied)-before)
			asked, before = asked+1, len(witness.shelves.copied)
			for range c.liars {
				lists = append(lists, everybody, nil)
			}
			return lists
		}
		net.run(60_000, net.finished)
		self, _ := net.state.Find(witness.key.Public())
		seen := map[Share]bool{}
		for _, a := range witness.shelves.copied {
			share := Share{Round: a.Round, Member: a.Member}
			if seen[share] || a.Member == self || a.Member >= members || !witness.held[a.Payload] {
				t.Errorf("%d liars: it copies %+v; again: %v, held: %v", c.liars, share, seen[share], witness.held[a.Payload])
			}
			seen[share] = true
		}
		if asked < 3 || most != c.most {
			t.Errorf("%d liars: it reads %d times and makes %d copies, want %d", c.liars, asked, most, c.most)
		}
	}
}
