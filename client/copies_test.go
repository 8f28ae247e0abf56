package client

import (
	"bytes"
	"fmt"
	"slices"
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

// BenchmarkHiding has a third of the members hide their results from another third, and say that they lack everything, in a run by buckets. It
// prints what an honest witness that holds them does in a window: lists it reads, results it copies, copies that others take from it; and how
// many windows a victim goes without a result of its own.
func BenchmarkHiding(b *testing.B) {
	for _, n := range []uint32{30, 100, 300, 1000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			for b.Loop() {
				hiding(b, n)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func hiding(b *testing.B, n uint32) {
	const windows = 6
	net := newNetwork(b, n, 1, windows, 1, byBuckets, func(cfg *coordinator.Config) {
		cfg.Witnesses, cfg.RoundTrainMs = uint16(min(n, 32)), 40*stepMs
	})
	gang, victims, others := net.peers[:n/3], net.peers[n/3:2*(n/3)], net.peers[2*(n/3):]
	everybody := slices.Repeat([][]byte{bytes.Repeat([]byte{255}, int(n)/8)}, len(gang))
	for i, p := range net.peers {
		p.slow = 1000
		if i < len(gang) {
			p.shelves.hides = func(from *peer) bool { return slices.Contains(victims, from) }
		}
		p.shelves.lists = func() [][]byte { return everybody }
	}
	net.run(120_000, net.finished)
	var served, read, copied, mostCopied, sent, mostSent float64
	for _, p := range others {
		for round, lists := range p.shelves.read {
			copies := 0
			for _, a := range p.shelves.copied {
				if a.Round == round {
					copies++
				}
			}
			served, read, copied, sent = served+1, read+float64(lists), copied+float64(copies), sent+float64(p.shelves.sent[round])
			mostCopied, mostSent = max(mostCopied, float64(copies)), max(mostSent, float64(p.shelves.sent[round]))
		}
	}
	missed := func(of []*peer) (sum float64) {
		for _, p := range of {
			sum += float64(windows - p.results())
		}
		return sum / float64(len(of)*windows)
	}
	b.ReportMetric(read/served, "lists/witness")
	b.ReportMetric(copied/served, "copies/witness")
	b.ReportMetric(mostCopied, "copies-most")
	b.ReportMetric(sent/served, "sent/witness")
	b.ReportMetric(mostSent, "sent-most")
	b.ReportMetric(100*missed(victims), "%victims-missed")
	b.ReportMetric(100*missed(others), "%others-missed")
	b.ReportMetric(100*missed(gang), "%gang-missed")
}

// TestHiddenCommitmentsTakeNoRoom has 300 of 1,000 members hide their commitments. A member that asks for 256 at a time asks for those of all
// others, without a pause longer than the first, before it asks for a hidden one again.
func TestHiddenCommitmentsTakeNoRoom(t *testing.T) {
	const members, hidden = 1000, 300
	m := New(Config{})
	m.run.RoundTrainMs = 64_000
	m.exchange = &bucketExchange{Machine: m}
	rs := &results{number: 1, members: members}
	asked := map[coordinator.Member]int{}
	for range (members + askMax - 1) / askMax {
		m.out = nil
		m.now += reAskMs
		m.askMissing(rs, func() (missing []coordinator.Member) {
			for i := range coordinator.Member(members) {
				if i < hidden || asked[i] == 0 {
					missing = append(missing, i)
				}
			}
			return missing
		})
		for _, a := range m.out {
			for _, i := range a.(AskCommitments).Of {
				asked[i]++
			}
		}
	}
	for i := range coordinator.Member(members) {
		if asked[i] == 0 || i >= hidden && asked[i] > 1 {
			t.Errorf("member %d was asked for %d times", i, asked[i])
		}
	}
}
