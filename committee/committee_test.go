package committee

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// roundSeed returns the seed that Psyche derives from a round's random number.
func roundSeed(n uint64) wire.Hash {
	return wire.SHA256(binary.LittleEndian.AppendUint64(nil, n))
}

// The vectors are printed by testdata/vectors.py, another implementation.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		role   Role
		n      uint32
		places []uint32
		want   []uint32
	}{
		{Trainers, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{7, 1, 6, 3, 9, 2, 0, 5, 4, 8}},
		{Witnesses, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{6, 0, 9, 5, 7, 4, 8, 2, 1, 3}},
		{Verifiers, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{2, 4, 1, 3, 5, 9, 0, 6, 8, 7}},
		{Trainers, 257, []uint32{0, 1, 255, 256}, []uint32{197, 22, 237, 140}},
		{Witnesses, 257, []uint32{0, 1, 255, 256}, []uint32{179, 158, 198, 41}},
		{Trainers, 10_000, []uint32{0, 1, 255, 9999}, []uint32{7677, 840, 605, 5722}},
		{Verifiers, 10_000, []uint32{0, 1, 255, 9999}, []uint32{2756, 3987, 1825, 9736}},
	} {
		line := Line(roundSeed(12345), c.role, c.n, c.n)
		var got []uint32
		for _, p := range c.places {
			got = append(got, line[p])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: at the places %d of %d stand %d, want %d", c.role, c.places, c.n, got, c.want)
		}
	}
}

func anySeed(t *rapid.T) wire.Hash {
	return roundSeed(rapid.Uint64().Draw(t, "seed"))
}

func anyRole(t *rapid.T) Role {
	return rapid.SampledFrom([]Role{Trainers, Witnesses, Verifiers}).Draw(t, "role")
}

func TestEveryMemberHasOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, role := anySeed(t), anyRole(t)
		n := rapid.Uint32Range(0, 700).Draw(t, "n")
		line := Line(seed, role, n, n)
		if uint32(len(line)) != n {
			t.Fatalf("the line of %d members has %d places", n, len(line))
		}
		taken := make([]bool, n)
		for p, i := range line {
			if i >= n || taken[i] {
				t.Fatalf("at place %d stands %d, who has a place or does not exist: %d", p, i, line)
			}
			taken[i] = true
		}
	})
}

func TestSeatIsTheLineOfTheMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, role := anySeed(t), anyRole(t)
		members := rapid.SliceOfN(rapid.Uint64(), 0, 300).Draw(t, "members")
		w := rapid.Uint32Range(0, 303).Draw(t, "w")
		var want []uint64
		for _, i := range Line(seed, role, uint32(len(members)), w) {
			want = append(want, members[i])
		}
		if got := Seat(seed, role, slices.Clone(members), w); !slices.Equal(got, want) {
			t.Fatalf("the first %d places are %d, want %d", w, got, want)
		}
	})
}

func TestFirstPlacesAreThoseOfTheWholeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, role := anySeed(t), anyRole(t)
		n := rapid.Uint32Range(0, 3000).Draw(t, "n")
		w := rapid.Uint32Range(0, n+3).Draw(t, "w")
		if got, whole := Line(seed, role, n, w), Line(seed, role, n, n); !slices.Equal(got, whole[:min(w, n)]) {
			t.Errorf("the first %d of %d are %d", w, n, got)
		}
	})
}

func TestElectionsAreFair(t *testing.T) {
	const n, seats, rounds = 20, 4, 5000
	elected := make([]int, n)
	for r := range uint64(rounds) {
		for _, m := range Line(roundSeed(r), Witnesses, n, seats) {
			elected[m]++
		}
	}
	const mean = rounds * seats / n
	x := 0.0
	for _, c := range elected {
		x += float64(c-mean) * float64(c-mean) / (mean * (1 - float64(seats)/n))
	}
	// About 19 degrees of freedom: more than 60 in fewer than one of 100,000 fair lotteries.
	if x > 60 {
		t.Errorf("members are elected %v times, about %d expected each (chi-square %.1f)", elected, mean, x)
	}
}

func TestRolesAreIndependent(t *testing.T) {
	const n, rounds = 10, 4000
	same := 0
	for r := range uint64(rounds) {
		if Line(roundSeed(r), Trainers, n, 4)[3] == Line(roundSeed(r), Witnesses, n, 4)[3] {
			same++
		}
	}
	// Binomial with mean 400 and deviation 19.
	if same < 305 || same > 495 {
		t.Errorf("one member stands at place 3 of both lines in %d of %d rounds, about 400 expected", same, rounds)
	}
}

func TestQuorumIsMoreThanTwoThirds(t *testing.T) {
	for w, want := range []uint32{1, 1, 2, 3, 3, 4, 5, 5, 6, 7} {
		if got := Quorum(uint32(w)); got != want {
			t.Errorf("Quorum(%d) = %d, want %d", w, got, want)
		}
	}
	check := func(w uint64) {
		q := uint64(Quorum(uint32(w)))
		if 3*q <= 2*w || 3*(q-1) > 2*w || w > 0 && q > w {
			t.Errorf("Quorum(%d) = %d is not the least number above two thirds", w, q)
		}
		// Two quorums share more witnesses than may be faulty, if fewer than a third are.
		if w > 0 && 3*(2*q-w) <= w {
			t.Errorf("two quorums of %d of %d share too few", q, w)
		}
	}
	for w := range uint64(10_000) {
		check(w)
	}
	check(1<<32 - 1)
}

func TestImpossibleLinesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"too long a line": func() { Line(wire.Hash{}, Trainers, MembersMax+1, 0) },
		"no role":         func() { Line(wire.Hash{}, 0, 5, 5) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

func ExampleLine() {
	seed := wire.Sum("example", []byte("round 7"))
	fmt.Println(Line(seed, Trainers, 4, 4))
	fmt.Println(Line(seed, Witnesses, 1000, 3))
	// Output:
	// [3 0 1 2]
	// [588 239 826]
}

func BenchmarkLine10000(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Line(wire.Hash{}, Trainers, 10_000, 10_000)
	}
}
