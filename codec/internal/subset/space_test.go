package subset

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// big returns a as a big.Int.
func (a Number) big() *big.Int {
	v := new(big.Int)
	for i := numberWords - 1; i >= 0; i-- {
		v.Lsh(v, 64)
		v.Or(v, new(big.Int).SetUint64(a[i]))
	}
	return v
}

// decoded returns what a code stands for, which is the same for every kernel, alone and among other
// codes.
func decoded(t rapid.TB, s *Space, c Number) *Signed {
	t.Helper()
	var alone [1]Reading
	alone[0].Rest = c
	s.Decode(new(vec.Kernel), alone[:])
	other := s.Total
	other.sub([]uint64{1})
	for _, kernel := range exact.Kernels() {
		loop := vec.For(kernel)
		for _, at := range []int{0, 5, Readings - 2} {
			var several [Readings]Reading
			for i := range several {
				several[i].Rest = c
				if i%3 == 1 {
					several[i].Rest = other
				}
			}
			s.Decode(&loop, several[:])
			if v := &several[at].Set; v.N != alone[0].Set.N || v.Negative != alone[0].Set.Negative || v.Positions != alone[0].Set.Positions {
				t.Fatalf("%s: code %v among others stands for %v, alone for %v", kernel.Name(), c.big(), v, alone[0].Set)
			}
		}
	}
	return &alone[0].Set
}

func spaceOf(n, k int) *Space {
	s := NewSpace(n, k, NewTable(n, min(k, n)))
	return &s
}

func TestExampleOfThePackageComment(t *testing.T) {
	s := spaceOf(4*4, 2)
	if s.Total != (Number{513}) || s.Bits != 10 {
		t.Errorf("a block of 4 by 4 has %v codes of %d bits, want 513 of 10", s.Total.big(), s.Bits)
	}
	v := Signed{N: 2, Negative: 0b10}
	v.Positions[0], v.Positions[1] = 5, 9
	if got := s.Code(&v); got != (Number{199}) {
		t.Errorf("5 up, 9 down has code %v, want 199", got.big())
	}
}

// Every number below the total stands for something, everything that can be said has a number, and
// no two have the same.
func TestCodesAreABijection(t *testing.T) {
	for _, s := range []*Space{spaceOf(1*1, 1), spaceOf(1*1, 5), spaceOf(1*7, 3), spaceOf(3*4, 2), spaceOf(2*3, 6), spaceOf(4*4, 1), spaceOf(9*9, 2)} {
		n := s.N
		count := countVotes(n, s.K)
		if s.Total.big().Cmp(big.NewInt(int64(count))) != 0 {
			t.Fatalf("%d of %d: %v codes, want %d", s.K, n, s.Total.big(), count)
		}
		for i := range count {
			v := decoded(t, s, Number{uint64(i)})
			checkVotes(t, v, n, s.K)
			if back := s.Code(v); back != (Number{uint64(i)}) {
				t.Fatalf("%d of %d: code %d stands for %d positions %v, which have code %v", s.K, n, i, v.N, v.Positions[:v.N], back.big())
			}
		}
	}
}

// countVotes counts the choices of up to k signed positions below n by taking them one position at
// a time.
func countVotes(n, k int) int {
	if n == 0 || k == 0 {
		return 1
	}
	return countVotes(n-1, k) + 2*countVotes(n-1, k-1)
}

func checkVotes(t testing.TB, v *Signed, n, k int) {
	t.Helper()
	if v.N > k {
		t.Fatalf("%d positions, more than %d", v.N, k)
	}
	for i, p := range v.Positions[:v.N] {
		if int(p) >= n || i > 0 && p <= v.Positions[i-1] {
			t.Fatalf("positions %v are not ascending and below %d", v.Positions[:v.N], n)
		}
	}
	if v.N < 64 && v.Negative>>uint(v.N) != 0 {
		t.Fatalf("%d positions have signs %b", v.N, v.Negative)
	}
}

// The largest shapes, so that numbers have all their words; the reference is Pascal's formula in
// math/big.
func TestCodesAgreeWithBigIntegers(t *testing.T) {
	shapes := []*Space{spaceOf(64*64, 8), spaceOf(64*64, 64), spaceOf(128*128, 64), spaceOf(57*58, 16), spaceOf(8*8, 64)}
	for _, s := range shapes {
		total := new(big.Int)
		for j := range s.K + 1 {
			total.Add(total, shifted(binomial(s.N, j), j))
		}
		if s.Total.big().Cmp(total) != 0 || s.Bits != new(big.Int).Sub(total, big.NewInt(1)).BitLen() || s.Words > numberWords {
			t.Errorf("%d positions have %v codes of %d bits in %d words, want %v", s.N, s.Total.big(), s.Bits, s.Words, total)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(shapes).Draw(t, "shape")
		n := s.N
		positions := rapid.SliceOfNDistinct(rapid.Uint16Range(0, uint16(n-1)), 0, s.K, rapid.ID[uint16]).Draw(t, "positions")
		slices.Sort(positions)
		v := Signed{N: len(positions), Negative: rapid.Uint64().Draw(t, "signs")}
		v.Negative &= 1<<uint(v.N) - 1
		copy(v.Positions[:], positions)

		want := new(big.Int)
		for i, p := range positions {
			want.Add(want, binomial(int(p), i+1))
		}
		want = shifted(want, v.N)
		want.Or(want, new(big.Int).SetUint64(v.Negative))
		for j := range v.N {
			want.Add(want, shifted(binomial(n, j), j))
		}
		code := s.Code(&v)
		if code.big().Cmp(want) != 0 {
			t.Fatalf("code %v, want %v", code.big(), want)
		}
		back := decoded(t, s, code)
		if back.N != v.N || back.Negative != v.Negative || !slices.Equal(back.Positions[:back.N], positions) {
			t.Fatalf("%v with signs %b comes back as %v with signs %b", positions, v.Negative, back.Positions[:back.N], back.Negative)
		}
	})
}

func binomial(n, k int) *big.Int         { return new(big.Int).Binomial(int64(n), int64(k)) }
func shifted(v *big.Int, n int) *big.Int { return new(big.Int).Lsh(v, uint(n)) }

func TestBitsComeBackFromAnyOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		widths := rapid.SliceOfN(rapid.IntRange(0, 64*numberWords), 1, 8).Draw(t, "widths")
		bits := 0
		for _, w := range widths {
			bits += w
		}
		b := make([]byte, (bits+7)/8) // no byte more, so that Reading beyond the end panics
		numbers := make([]Number, len(widths))
		offset := 0
		for i, w := range widths {
			for j := range numbers[i] {
				numbers[i][j] = rapid.Uint64().Draw(t, "word")
				if rest := w - 64*j; rest < 64 {
					numbers[i][j] &= 1<<uint(max(0, rest)) - 1
				}
			}
			WriteNumber(b, offset, w, numbers[i][:])
			offset += w
		}
		offset = 0
		for i, w := range widths {
			got := Number{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}
			if readNumber(&got, b, offset, w, (w+63)/64); got != numbers[i] {
				t.Fatalf("number %d of %d bits at bit %d is %x, want %x", i, w, offset, got, numbers[i])
			}
			offset += w
		}
	})
}

// TestGuides looks at numbers at random and around every cell, beside a search of the cells, for
// the largest tables. newGuide has proven it already; this is another proof, by other means.
func TestGuides(t *testing.T) {
	tables := []Table{NewTable(64*64, 32), NewTable(1, 1), NewTable(70, 64), NewTable(128*128, 64)}
	for _, table := range tables {
		for i := range table.rows {
			if lead := table.rows[i].guide.lead; lead > 7 {
				t.Errorf("the guide of C(., %d) needs %d leading bits", i+1, lead)
			}
		}
	}
}
