package prng

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// counting is the seed 00 01 02 ... 1f of testdata/vectors.py.
func counting() wire.Hash {
	var h wire.Hash
	for i := range h {
		h[i] = byte(i)
	}
	return h
}

// The vector is the one that the crate rand_xoshiro tests against the authors' C code, from the state 1, 2, 3, 4.
func TestReferenceVector(t *testing.T) {
	p := Source{s: [4]uint64{1, 2, 3, 4}}
	for i, want := range []uint64{11520, 0, 1509978240, 1215971899390074240, 1216172134540287360, 607988272756665600,
		16172922978634559625, 8476171486693032832, 10595114339597558777, 2904607092377533576} {
		if got := p.Uint64(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

func TestVectorsOfAnotherImplementation(t *testing.T) {
	p := New(counting(), "shuffle")
	var outputs []uint64
	for range 4 {
		outputs = append(outputs, p.Uint64())
	}
	if want := []uint64{603840833246239139, 7316932594724172701, 8455788600008695725, 4773411378402522245}; !slices.Equal(outputs, want) {
		t.Errorf("Uint64 gives %d, want %d", outputs, want)
	}
	p = New(counting(), "shuffle")
	order := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	p.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if want := []int{3, 9, 1, 5, 7, 8, 6, 11, 2, 10, 4, 0}; !slices.Equal(order, want) {
		t.Errorf("Shuffle gives %d, want %d", order, want)
	}
	p = New(counting(), "")
	var numbers []uint64
	for range 6 { // a quarter of the draws is rejected
		numbers = append(numbers, p.Uint64n(3<<62))
	}
	if want := []uint64{5002005835703641919, 4394561554796015360, 1805693239550069429, 6842881745665102463,
		6297292351342015498, 11876500019842937684}; !slices.Equal(numbers, want) {
		t.Errorf("Uint64n gives %d, want %d", numbers, want)
	}
}

func TestStreamsDifferBySeedAndLabel(t *testing.T) {
	first := map[uint64]string{}
	for _, seed := range []wire.Hash{{}, {0: 1}, {31: 1}, counting()} {
		for _, label := range []string{"", "a", "b", "ab"} {
			p := New(seed, label)
			q := p // a copy repeats the stream
			x := p.Uint64()
			if y := q.Uint64(); x != y {
				t.Errorf("a copy draws %d where the original draws %d", y, x)
			}
			name := fmt.Sprintf("seed %v label %q", seed, label)
			if other, ok := first[x]; ok {
				t.Errorf("%s and %s begin with the same number", name, other)
			}
			first[x] = name
		}
	}
}

func TestUint64nStaysBelowItsBound(t *testing.T) {
	p := New(counting(), "bound")
	for _, n := range []uint64{1, 2, 3, 10, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64} {
		for range 1000 {
			if x := p.Uint64n(n); x >= n {
				t.Fatalf("Uint64n(%d) = %d", n, x)
			}
		}
	}
}

// chiSquare returns the statistic of counts that should be equal.
func chiSquare(counts []int) float64 {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	mean := float64(sum) / float64(len(counts))
	x := 0.0
	for _, c := range counts {
		x += (float64(c) - mean) * (float64(c) - mean) / mean
	}
	return x
}

// Of 2^64 products with n = 3 * 2^62 twice as many fall on multiples of three as on the other numbers: what a generator that
// never draws again would show.
func TestUint64nIsUnbiased(t *testing.T) {
	p := New(counting(), "bias")
	for _, n := range []uint64{3, 6, 3 << 62} {
		counts := make([]int, 3)
		for range 60_000 {
			counts[p.Uint64n(n)%3]++
		}
		if x := chiSquare(counts); x > 21 { // 2 degrees of freedom: fewer than one in 30,000
			t.Errorf("Uint64n(%d) modulo 3: chi-square of %v is %.1f", n, counts, x)
		}
	}
}

func TestShuffleGivesEveryOrderEquallyOften(t *testing.T) {
	p := New(counting(), "orders")
	counts := map[[4]int]int{}
	for range 24_000 {
		order := [4]int{0, 1, 2, 3}
		p.Shuffle(4, func(i, j int) { order[i], order[j] = order[j], order[i] })
		counts[order]++
	}
	var list []int
	for _, c := range counts {
		list = append(list, c)
	}
	if len(list) != 24 {
		t.Fatalf("%d of 24 orders occur", len(list))
	}
	if x := chiSquare(list); x > 65 { // 23 degrees of freedom: fewer than one in 100,000
		t.Errorf("chi-square of the orders is %.1f", x)
	}
}

func TestShuffleOfNothing(t *testing.T) {
	p := New(counting(), "")
	before := p
	for n := range 2 {
		p.Shuffle(n, func(i, j int) { t.Errorf("Shuffle(%d) swaps %d and %d", n, i, j) })
	}
	if p != before {
		t.Error("a shuffle that has nothing to choose draws a number")
	}
}

func TestImpossibleChoicesPanic(t *testing.T) {
	for name, f := range map[string]func(p *Source){
		"Uint64n(0)":  func(p *Source) { p.Uint64n(0) },
		"Shuffle(-1)": func(p *Source) { p.Shuffle(-1, func(i, j int) {}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			p := New(wire.Hash{}, "")
			f(&p)
		}()
	}
}

func ExampleSource_Shuffle() {
	seed := wire.Sum("example", []byte("round 7"))
	source := New(seed, "speakers")
	names := []string{"ann", "bob", "cat", "dan"}
	source.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	fmt.Println(names)
	// Output: [ann dan bob cat]
}

func BenchmarkUint64(b *testing.B) {
	p := New(wire.Hash{}, "")
	for b.Loop() {
		p.Uint64()
	}
}

// TestProduct compares the short way with the long one, at the ends of what it is for.
func TestProduct(t *testing.T) {
	p := New(counting(), "product")
	for range 1000 {
		x := p.Uint64()
		for _, n := range []uint64{1, 2, 10_000, 1<<32 - 1, 1 << 32, 1<<32 + 1, math.MaxUint64, p.Uint64(), p.Uint64() >> 32} {
			for _, x := range []uint64{x, 0, 1<<32 - 1, 1 << 32, math.MaxUint64} {
				hi, lo := product(x, n)
				if wantHi, wantLo := bits.Mul64(x, n); hi != wantHi || lo != wantLo {
					t.Fatalf("%d times %d is %d, %d, want %d, %d", x, n, hi, lo, wantHi, wantLo)
				}
			}
		}
	}
}
