package order

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPermutationAgreesWithThePythonOne(t *testing.T) {
	b, err := os.ReadFile("testdata/permutation.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Seed    wire.Hash
		Pass, N string
		Values  []string // at the places 0..9 and n-1
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		n := number(t, c.N)
		p := NewPermutation(c.Seed, number(t, c.Pass), n)
		for i, v := range c.Values {
			place := uint64(i)
			if i == len(c.Values)-1 {
				place = n - 1
			}
			if got, want := p.At(place), number(t, v); got != want {
				t.Errorf("pass %s of %d: got %d at place %d, want %d", c.Pass, n, got, place, want)
			}
		}
	}
}

func TestPermutationTakesEveryNumberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 300).Draw(t, "n")
		seed := wire.Hash{rapid.Byte().Draw(t, "seed")}
		p := NewPermutation(seed, rapid.Uint64().Draw(t, "pass"), n)
		seen := make([]bool, n)
		for place := range n {
			v := p.At(place)
			if v >= n || seen[v] {
				t.Fatalf("place %d has %d, out of range or taken", place, v)
			}
			seen[v] = true
			if got := p.Place(v); got != place {
				t.Fatalf("number %d is at %d, not at %d", v, place, got)
			}
		}
	})
}

func TestPermutationIsInvertibleAtAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Min(1).Draw(t, "n")
		place := rapid.Uint64Range(0, n-1).Draw(t, "place")
		p := NewPermutation(wire.Hash{1}, 0, n)
		if v := p.At(place); v >= n || p.Place(v) != place {
			t.Fatalf("of %d: place %d has %d, which is at %d", n, place, v, p.Place(v))
		}
	})
}

// Over many passes every number must come to every place equally often. With 6 numbers and 36,000 passes each cell expects 6000 and the
// statistic is chi-squared of 25 degrees of freedom, which exceeds 60 once in 10^4; the seed is fixed, so the test cannot flicker.
func TestPermutationIsUniformOverPasses(t *testing.T) {
	const n, passes = 6, 36_000
	var count [n][n]int
	for pass := range uint64(passes) {
		p := NewPermutation(wire.Hash{42}, pass, n)
		for place := range uint64(n) {
			count[place][p.At(place)]++
		}
	}
	var chi2 float64
	for _, row := range count {
		for _, c := range row {
			d := float64(c) - passes/n
			chi2 += d * d / (passes / n)
		}
	}
	if chi2 > 60 {
		t.Errorf("chi-squared is %.1f", chi2)
	}
}

func BenchmarkPermutation(b *testing.B) {
	p := NewPermutation(wire.Hash{1}, 0, 1<<40)
	var x uint64
	for b.Loop() {
		x = p.At(x)
	}
}

func BenchmarkNewPermutation(b *testing.B) {
	for b.Loop() {
		NewPermutation(wire.Hash{1}, 0, 1<<40)
	}
}
