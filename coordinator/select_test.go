package coordinator

import (
	"testing"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// selecting makes a run of seven members, all witnesses (quorum 5), in which witness i holds of member 0's result of round 1
// the commitments filters[i]; of all others the honest one. Round 1 is final when it returns.
func selecting(t *testing.T, overlap uint8, held [7][]wire.Hash) *world {
	t.Helper()
	c := testConfig()
	c.Overlap, c.BatchStart, c.BatchEnd, c.StartMembers = overlap, 7, 7, 7
	w := newWorld(t, Limits{Members: 7, Witnesses: 7}, c, "select2")
	for _, name := range []string{"ann", "bob", "cat", "dan", "eve", "fay", "gus"} {
		if err := w.apply(testKey(name), Join{}); err != nil {
			t.Fatal(err)
		}
	}
	w.now += c.WaitingMs
	if err := w.apply(key.Public{}, Tick{}); err != nil {
		t.Fatal(err)
	}
	p := &player{w: w}
	p.honest()
	if overlap == 1 {
		p.honest()
	}
	w.now += c.RoundTrainMs // so that witnesses may report without holding everything
	if err := w.apply(key.Public{}, Tick{}); err != nil {
		t.Fatal(err)
	}
	r, _ := w.s.At(w.s.Round())
	dims := r.Filter()
	for i := range Member(7) {
		m := w.report(i, func(j Member) bool { return j != 0 || len(held[i]) > 0 })
		f := bloom.New(dims)
		salt := w.s.Key(i)
		a, _ := w.s.At(1)
		for j := Member(1); j < 7; j++ {
			f.Add(dims, salt[:], commitment(a, j).ID())
		}
		for _, id := range held[i] {
			f.Add(dims, salt[:], id)
		}
		m.Commitments = f
		if err := w.apply(w.s.Key(i), m); err != nil {
			t.Fatal(err)
		}
	}
	if a, _ := w.s.At(1); !a.Final() {
		t.Fatal("round 1 is not final")
	}
	return w
}

func TestSelect(t *testing.T) {
	small, large, unseen := wire.Hash{1}, wire.Hash{2}, wire.Hash{3}
	only := func(n int, ids ...wire.Hash) (held [7][]wire.Hash) {
		for i := range n {
			held[i] = ids
		}
		return held
	}
	split := only(4, small)
	for i := 4; i < 7; i++ {
		split[i] = []wire.Hash{large}
	}
	for _, c := range []struct {
		name       string
		held       [7][]wire.Hash
		candidates []wire.Hash
		want       int // -1: none
	}{
		{"all hold it", only(7, small), []wire.Hash{small}, 0},
		{"just a quorum holds it", only(5, small), []wire.Hash{unseen, small}, 1},
		{"one less than a quorum holds it, so it is not accepted", only(4, small), []wire.Hash{small}, -1},
		{"the caller lacks the right one", only(7, small), []wire.Hash{unseen, large}, -1},
		{"the caller has none", only(7, small), nil, -1},
		{"both have a quorum: the smaller wins, whatever the order", only(7, small, large), []wire.Hash{large, small}, 1},
		{"both have a quorum: the smaller wins, other order", only(7, small, large), []wire.Hash{small, large}, 0},
		{"different ones for different witnesses: none has a quorum", split, []wire.Hash{small, large}, -1},
	} {
		for _, overlap := range []uint8{0, 1} {
			w := selecting(t, overlap, c.held)
			i, ok := w.s.Select(1, 0, c.candidates)
			if !ok {
				i = -1
			}
			if i != c.want {
				t.Errorf("overlap %d, %s: selected %d, want %d", overlap, c.name, i, c.want)
			}
			a, _ := w.s.At(1)
			for j := Member(1); j < 7; j++ {
				if i, ok := w.s.Select(1, j, []wire.Hash{unseen, commitment(a, j).ID()}); !ok || i != 1 {
					t.Errorf("overlap %d, %s: selected %d, %t for member %d, want 1", overlap, c.name, i, ok, j)
				}
			}
		}
	}
}

func TestSelectOfOtherRounds(t *testing.T) {
	held := [7][]wire.Hash{}
	for i := range held {
		held[i] = []wire.Hash{{1}}
	}
	w := selecting(t, 1, held)
	for _, a := range []Round{0, 2, 3, 4, 99} {
		if _, ok := w.s.Select(a, 0, []wire.Hash{{1}}); ok {
			t.Errorf("selected a result of round %d, of which nothing is accepted yet", a)
		}
	}
	if _, ok := w.s.Select(1, 7, []wire.Hash{{1}}); ok {
		t.Error("selected a result of a member that does not exist")
	}
}
