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

// The places of ten members are those of Psyche's committee selection for round seed 12345, and of its shuffle for two plain
// seeds; the others are printed by testdata/vectors.py, another implementation.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		role    Role
		n       uint32
		members []uint32
		want    []uint32
	}{
		{Trainers, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{1, 7, 2, 9, 5, 0, 8, 3, 4, 6}},
		{Witnesses, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{7, 4, 9, 2, 6, 1, 0, 3, 5, 8}},
		{Verifiers, 10, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []uint32{2, 6, 3, 1, 5, 4, 7, 0, 8, 9}},
		{Trainers, 257, []uint32{0, 1, 255, 256}, []uint32{210, 213, 144, 64}},
		{Witnesses, 257, []uint32{0, 1, 255, 256}, []uint32{100, 249, 189, 50}},
		{Trainers, 10_000, []uint32{0, 1, 255, 256, 257, 9999}, []uint32{6751, 2760, 4519, 9303, 5477, 8107}},
		{Verifiers, 10_000, []uint32{0, 1, 255, 256, 257, 9999}, []uint32{8256, 2477, 6282, 835, 9721, 5010}},
	} {
		var got []uint32
		for _, m := range c.members {
			got = append(got, Position(roundSeed(12345), c.role, c.n, m))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: members %d of %d stand at %d, want %d", c.role, c.members, c.n, got, c.want)
		}
	}
}

func TestShuffleVectorsForPlainSeeds(t *testing.T) {
	for fill, want := range [][]uint32{{9, 7, 4, 1, 8, 0, 5, 6, 3, 2}, {8, 5, 4, 7, 1, 2, 6, 9, 0, 3}} {
		var got []uint32
		for i := range uint32(10) {
			s := shuffle{n: 10}
			for j := range 32 {
				s.src[j] = byte(fill)
			}
			for r := range uint8(Rounds) {
				i = s.round(r, i)
			}
			got = append(got, i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed of bytes %d: places are %d, want %d", fill, got, want)
		}
	}
}

func anySeed(t *rapid.T) wire.Hash {
	return roundSeed(rapid.Uint64().Draw(t, "seed"))
}

func anyRole(t *rapid.T) Role {
	return rapid.SampledFrom([]Role{Trainers, Witnesses, Verifiers}).Draw(t, "role")
}

func TestEveryPlaceIsTakenByOneMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, role := anySeed(t), anyRole(t)
		n := rapid.Uint32Range(0, 700).Draw(t, "n")
		places := Positions(seed, role, n)
		taken := make([]bool, n)
		for m, at := range places {
			if at >= n || taken[at] {
				t.Fatalf("member %d stands at %d, which is taken or does not exist: %d", m, at, places)
			}
			taken[at] = true
		}
	})
}

func TestOneMemberAtATimeAgreesWithTheWholeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, role := anySeed(t), anyRole(t)
		n := rapid.Uint32Range(1, 3000).Draw(t, "n")
		m := rapid.Uint32Range(0, n-1).Draw(t, "member")
		at := Position(seed, role, n, m)
		if whole := Positions(seed, role, n)[m]; at != whole {
			t.Errorf("Position is %d, Positions says %d", at, whole)
		}
		if back := Member(seed, role, n, at); back != m {
			t.Errorf("member %d stands at %d, where Member finds %d", m, at, back)
		}
	})
}

func TestLargestLine(t *testing.T) {
	seed := roundSeed(1)
	for _, m := range []uint32{0, 1, MembersMax / 2, MembersMax - 1} {
		at := Position(seed, Trainers, MembersMax, m)
		if back := Member(seed, Trainers, MembersMax, at); at >= MembersMax || back != m {
			t.Errorf("member %d stands at %d, where Member finds %d", m, at, back)
		}
	}
}

func TestElectionsAreFair(t *testing.T) {
	const n, seats, rounds = 20, 4, 5000
	elected := make([]int, n)
	for r := range uint64(rounds) {
		inRound := 0
		for m, at := range Positions(roundSeed(r), Witnesses, n) {
			if at < seats {
				elected[m]++
				inRound++
			}
		}
		if inRound != seats {
			t.Fatalf("round %d elects %d members to %d seats", r, inRound, seats)
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
		if Position(roundSeed(r), Trainers, n, 3) == Position(roundSeed(r), Witnesses, n, 3) {
			same++
		}
	}
	// Binomial with mean 400 and deviation 19.
	if same < 305 || same > 495 {
		t.Errorf("member 3 stands at the same place in both lines in %d of %d rounds, about 400 expected", same, rounds)
	}
}

func TestWitnessIsWhoStandsInFront(t *testing.T) {
	const n = 40
	seed := roundSeed(5)
	for w := range uint32(n + 3) {
		elected := uint32(0)
		for m := range uint32(n) {
			if Witness(seed, n, m, w) {
				elected++
			}
		}
		if elected != min(w, n) {
			t.Errorf("%d members hold %d seats", elected, w)
		}
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

func TestImpossiblePlacesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"member beyond the line":  func() { Position(wire.Hash{}, Trainers, 5, 5) },
		"place beyond the line":   func() { Member(wire.Hash{}, Trainers, 5, 5) },
		"place in an empty line":  func() { Position(wire.Hash{}, Trainers, 0, 0) },
		"too long a line":         func() { Position(wire.Hash{}, Trainers, MembersMax+1, 0) },
		"too long a line at once": func() { Positions(wire.Hash{}, Trainers, MembersMax+1) },
		"no role":                 func() { Position(wire.Hash{}, 0, 5, 0) },
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

func ExamplePosition() {
	seed := wire.Sum("example", []byte("round 7"))
	for member := range uint32(4) {
		fmt.Print(Position(seed, Trainers, 4, member), " ")
	}
	// Output: 1 2 0 3
}

func BenchmarkPosition(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Position(wire.Hash{}, Trainers, 10_000, 17)
	}
}

func BenchmarkPositions10000(b *testing.B) {
	for b.Loop() {
		Positions(wire.Hash{}, Trainers, 10_000)
	}
}
