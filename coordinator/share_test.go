package coordinator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// paced is a run whose shares go by these speeds, in its first round.
func paced(t testingT, c Config, speeds []uint32) *world {
	t.Helper()
	n := uint32(len(speeds))
	c.Sharing, c.StartMembers, c.MinMembers = SpeedShares, n, 1
	w := newWorld(t, Limits{Members: n, Witnesses: 4, Speeds: true}, c, fmt.Sprint("paced", speeds))
	p := &player{w: w}
	for i, speed := range speeds {
		p.must(w.applyWith(testKey(fmt.Sprint("player", i)), c.Stake, Join{Speed: speed}))
	}
	w.now += c.WaitingMs
	p.must(w.apply(key.Public{}, Tick{}))
	p.honest()
	if w.s.Phase() != RoundTrain {
		t.Fatalf("the run is in %v", w.s.Phase())
	}
	return w
}

func TestSharesByKnownSpeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		speed := rapid.OneOf(rapid.Uint32Range(0, 2), rapid.Uint32Range(500, 4000), rapid.Uint32())
		speeds := rapid.SliceOfN(speed, 1, 40).Draw(t, "speeds")
		n := Member(len(speeds))
		c := testConfig()
		c.BatchStart = rapid.Uint32Range(1, 10*uint32(n)).Draw(t, "batch")
		c.BatchEnd = c.BatchStart
		w := paced(t, c, speeds)
		r, _ := w.s.At(w.s.Round())
		total, least, most := uint32(0), uint32(1), (ShareMost*r.Batch()+uint32(n)-1)/uint32(n)
		if r.Batch() < uint32(n) {
			least, most = 0, 1
		}
		var given []batch.Span
		r.Shares(func(i Member, spans []batch.Span) {
			if share := r.Share(i); !slices.Equal(share, spans) {
				t.Fatalf("the share of member %d is %v by itself, %v among all", i, share, spans)
			}
			given = append(given, spans...)
		})
		for i := range n {
			count := batch.Total(r.Share(i))
			if total += count; count < least || count > most || r.Expected(i) != (count > 0) || r.Speed(i) != speeds[i] {
				t.Fatalf("member %d at %d has %d of %d sequences, with %d members: %d", i, r.Speed(i), count, r.Batch(), n, speeds)
			}
		}
		if joined := joinAll(given); total != r.Batch() || !slices.Equal(joined, r.Spans()) {
			t.Fatalf("the shares %v are %d sequences, the batch %v has %d", joined, total, r.Spans(), r.Batch())
		}
	})
}

func joinAll(spans []batch.Span) []batch.Span {
	var list []batch.Span
	for _, v := range spans {
		list = batch.Join(list, v)
	}
	return list
}

// Who are equally fast have the shares that they would have if speeds did not matter.
func TestEqualSpeedsGiveEqualShares(t *testing.T) {
	for _, speed := range []uint32{0, 1, 1000, 1<<32 - 1} {
		for total := uint32(1); total < 30; total++ {
			c := testConfig()
			c.BatchStart, c.BatchEnd = total, total
			w := paced(t, c, slices.Repeat([]uint32{speed}, 7))
			r, _ := w.s.At(1)
			for i := range Member(7) {
				p, _ := r.Position(i)
				from, count := batch.Split(total, 7, p)
				if got, want := r.Share(i), batch.Cut(r.Spans(), from, count); !slices.Equal(got, want) {
					t.Errorf("at speed %d the share of %d of %d sequences is %v, equal ones are %v", speed, i, total, got, want)
				}
			}
		}
	}
}

// What is said during an epoch is kept until the next one, whoever leaves meanwhile.
func TestSharesKeepTheSpeedsOfTheEpoch(t *testing.T) {
	c := testConfig()
	c.BatchStart, c.BatchEnd = 60, 60
	w := paced(t, c, []uint32{1000, 1000, 500, 500})
	p := &player{w: w}
	for i, speed := range []uint32{1, 5000, 1<<32 - 1} {
		p.must(w.apply(testKey(fmt.Sprint("player", i)), SetSpeed{Speed: speed}))
	}
	p.must(w.apply(testKey("player3"), Withdraw{}))
	for w.s.Round() < 5 {
		p.honest()
		r, _ := w.s.At(w.s.Round())
		for i, want := range []uint32{1000, 1000, 500} {
			if got := r.Speed(Member(i)); got != want {
				t.Fatalf("in round %d member %d goes by %d, want %d", r.Number(), i, got, want)
			}
		}
		if r.Speed(3) != 0 && !r.Active(3) {
			t.Fatalf("round %d knows the speed of who has left", r.Number())
		}
	}
}

// A check goes to somebody who computes the share in about its author's time, if there is one who has no other check.
func TestVerifiersKeepUp(t *testing.T) {
	speeds := []uint32{8000, 4000, 4000, 1000, 1000, 1000, 500, 500, 250, 250, 250, 250}
	slow, checks := 0, 0
	for seed := range 30 {
		c := testConfig()
		c.VerificationPercent, c.VerifyMs, c.DisputeMs, c.StateHash = 25, 60_000, 60_000, wire.Sum("test/fresh")
		c.BatchStart, c.BatchEnd = 120+uint32(seed), 120+uint32(seed)
		w := paced(t, c, speeds)
		p := &player{w: w}
		for len(w.s.Checks()) == 0 && w.s.Round() < 6 {
			p.honest()
		}
		busy := map[Member]bool{}
		for _, k := range w.s.Checks() {
			busy[k.Verifier] = true
		}
		for _, k := range w.s.Checks() {
			checks++
			if k.Verifier == k.Member {
				t.Fatalf("member %d checks itself", k.Member)
			}
			if dispute.Nearly(speeds[k.Verifier], speeds[k.Member]) {
				continue
			}
			slow++
			for i := range speeds {
				if i := Member(i); i != k.Member && !busy[i] && dispute.Nearly(speeds[i], speeds[k.Member]) {
					t.Errorf("member %d, at %d, checks %d, at %d, while %d, at %d, has nothing to do",
						k.Verifier, speeds[k.Verifier], k.Member, speeds[k.Member], i, speeds[i])
				}
			}
		}
	}
	if checks < 30 || slow > checks/3 {
		t.Errorf("%d of %d checks went to who is too slow", slow, checks)
	}
}

// Tie-breakers too are those who keep up, unless nobody does.
func TestTieBreakersKeepUp(t *testing.T) {
	w := paced(t, testConfig(), []uint32{4000, 3000, 1000, 900, 1<<32 - 1})
	for _, c := range []struct {
		of   Member
		want []Member
	}{
		{0, []Member{0, 1, 4}}, {2, []Member{0, 1, 2, 3, 4}}, {4, []Member{4}},
	} {
		if got := w.s.cases().KeepUp([]Member{0, 1, 2, 3, 4}, c.of); !slices.Equal(got, c.want) {
			t.Errorf("with %d %d keep up, want %d", c.of, got, c.want)
		}
	}
	if got := w.s.cases().KeepUp([]Member{0, 1, 2, 3}, 4); len(got) != 4 {
		t.Errorf("nobody keeps up with who boasts, and %d are asked", got)
	}
}

// TestOpenRefusesShares changes one field of what shares by speed have written.
func TestOpenRefusesShares(t *testing.T) {
	c := testConfig()
	c.BatchStart, c.BatchEnd = 60, 60
	w := paced(t, c, []uint32{1000, 1000, 500, 500})
	p := &player{w: w}
	p.must(w.apply(testKey("player3"), Withdraw{}))
	for w.s.Round() < 2 {
		p.honest()
	}
	r, _ := w.s.At(2)
	entry := func(i Member) uint32 { return w.s.l.Shares + uint32(record.ShareBytes*i) }
	gone := entry(3)
	for _, x := range []struct {
		what  string
		at    uint32
		value uint32
	}{
		{"a speed of who is not there", gone + eSpeed, 1},
		{"a share of who is not there", gone + eCount, 1},
		{"a begin of no share", gone + eFrom, 1},
		{"no share of who is expected to have one", entry(0) + eCount, 0},
		{"shares that are less than the batch", entry(0) + eCount, 1},
		{"a share beyond the batch", entry(1) + eFrom, 60},
		{"a share beyond all numbers", entry(1) + eFrom, 1<<32 - 1},
	} {
		b := slices.Clone(w.s.Bytes())
		putU32(b, slotAt(r)+x.at, x.value)
		if _, err := Open(b); err != ErrCorrupt {
			t.Errorf("%s: opened with %v", x.what, err)
		}
	}
}
