package distro

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// big returns a as a big.Int.
func (a number) big() *big.Int {
	v := new(big.Int)
	for i := numberWords - 1; i >= 0; i-- {
		v.Lsh(v, 64)
		v.Or(v, new(big.Int).SetUint64(a[i]))
	}
	return v
}

// decoded returns what a code stands for, which is the same for every kernel, alone and among other codes.
func decoded(t rapid.TB, s *shape, c number) *votes {
	t.Helper()
	var alone [1]reading
	alone[0].rest = c
	s.decode(new(vec.Kernel), alone[:])
	other := s.total
	other.sub([]uint64{1})
	for _, kernel := range exact.Kernels() {
		loop := vec.For(kernel)
		for _, at := range []int{0, 5} {
			var several [vec.Numbers]reading
			for i := range several {
				several[i].rest = c
				if i%3 == 1 {
					several[i].rest = other
				}
			}
			s.decode(&loop, several[:])
			if v := &several[at].votes; v.n != alone[0].votes.n || v.negative != alone[0].votes.negative || v.positions != alone[0].votes.positions {
				t.Fatalf("%s: code %v among others stands for %v, alone for %v", kernel.Name(), c.big(), v, alone[0].votes)
			}
		}
	}
	return &alone[0].votes
}

func shapeOf(h, w, topK int) *shape {
	return newShape(h, w, topK, nil, nil, newBinomials(h*w, min(topK, h*w)))
}

func TestExampleOfThePackageComment(t *testing.T) {
	s := shapeOf(4, 4, 2)
	if s.total != (number{513}) || s.bits != 10 {
		t.Errorf("a block of 4 by 4 has %v codes of %d bits, want 513 of 10", s.total.big(), s.bits)
	}
	v := votes{n: 2, negative: 0b10}
	v.positions[0], v.positions[1] = 5, 9
	if got := s.code(&v); got != (number{199}) {
		t.Errorf("5 up, 9 down has code %v, want 199", got.big())
	}
}

// Every number below the total stands for something, everything that can be said has a number, and no two have the same.
func TestCodesAreABijection(t *testing.T) {
	for _, s := range []*shape{shapeOf(1, 1, 1), shapeOf(1, 1, 5), shapeOf(1, 7, 3), shapeOf(3, 4, 2), shapeOf(2, 3, 6), shapeOf(4, 4, 1), shapeOf(9, 9, 2)} {
		n := s.h * s.w
		count := countVotes(n, s.k)
		if s.total.big().Cmp(big.NewInt(int64(count))) != 0 {
			t.Fatalf("%d of %d: %v codes, want %d", s.k, n, s.total.big(), count)
		}
		for i := range count {
			v := decoded(t, s, number{uint64(i)})
			checkVotes(t, v, n, s.k)
			if back := s.code(v); back != (number{uint64(i)}) {
				t.Fatalf("%d of %d: code %d stands for %d positions %v, which have code %v", s.k, n, i, v.n, v.positions[:v.n], back.big())
			}
		}
	}
}

// countVotes counts the choices of up to k signed positions below n by taking them one position at a time.
func countVotes(n, k int) int {
	if n == 0 || k == 0 {
		return 1
	}
	return countVotes(n-1, k) + 2*countVotes(n-1, k-1)
}

func checkVotes(t testing.TB, v *votes, n, k int) {
	t.Helper()
	if v.n > k {
		t.Fatalf("%d positions, more than %d", v.n, k)
	}
	for i, p := range v.positions[:v.n] {
		if int(p) >= n || i > 0 && p <= v.positions[i-1] {
			t.Fatalf("positions %v are not ascending and below %d", v.positions[:v.n], n)
		}
	}
	if v.n < 64 && v.negative>>uint(v.n) != 0 {
		t.Fatalf("%d positions have signs %b", v.n, v.negative)
	}
}

// The largest shapes, so that numbers have all their words; the reference is Pascal's formula in math/big.
func TestCodesAgreeWithBigIntegers(t *testing.T) {
	shapes := []*shape{shapeOf(64, 64, 8), shapeOf(64, 64, 64), shapeOf(128, 128, 64), shapeOf(57, 58, 16), shapeOf(8, 8, 64)}
	for _, s := range shapes {
		total := new(big.Int)
		for j := range s.k + 1 {
			total.Add(total, shifted(binomial(s.h*s.w, j), j))
		}
		if s.total.big().Cmp(total) != 0 || s.bits != new(big.Int).Sub(total, big.NewInt(1)).BitLen() || s.words > numberWords {
			t.Errorf("blocks of (%d, %d) have %v codes of %d bits in %d words, want %v", s.h, s.w, s.total.big(), s.bits, s.words, total)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(shapes).Draw(t, "shape")
		n := s.h * s.w
		positions := rapid.SliceOfNDistinct(rapid.Uint16Range(0, uint16(n-1)), 0, s.k, rapid.ID[uint16]).Draw(t, "positions")
		slices.Sort(positions)
		v := votes{n: len(positions), negative: rapid.Uint64().Draw(t, "signs")}
		v.negative &= 1<<uint(v.n) - 1
		copy(v.positions[:], positions)

		want := new(big.Int)
		for i, p := range positions {
			want.Add(want, binomial(int(p), i+1))
		}
		want = shifted(want, v.n)
		want.Or(want, new(big.Int).SetUint64(v.negative))
		for j := range v.n {
			want.Add(want, shifted(binomial(n, j), j))
		}
		code := s.code(&v)
		if code.big().Cmp(want) != 0 {
			t.Fatalf("code %v, want %v", code.big(), want)
		}
		back := decoded(t, s, code)
		if back.n != v.n || back.negative != v.negative || !slices.Equal(back.positions[:back.n], positions) {
			t.Fatalf("%v with signs %b comes back as %v with signs %b", positions, v.negative, back.positions[:back.n], back.negative)
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
		b := make([]byte, (bits+7)/8) // no byte more, so that reading beyond the end panics
		numbers := make([]number, len(widths))
		offset := 0
		for i, w := range widths {
			for j := range numbers[i] {
				numbers[i][j] = rapid.Uint64().Draw(t, "word")
				if rest := w - 64*j; rest < 64 {
					numbers[i][j] &= 1<<uint(max(0, rest)) - 1
				}
			}
			writeNumber(b, offset, w, numbers[i][:])
			offset += w
		}
		offset = 0
		for i, w := range widths {
			got := number{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}
			if readNumber(&got, b, offset, w, (w+63)/64); got != numbers[i] {
				t.Fatalf("number %d of %d bits at bit %d is %x, want %x", i, w, offset, got, numbers[i])
			}
			offset += w
		}
	})
}

// TestGuides looks at numbers at random and around every cell, beside a search of the cells, for the largest tables. newGuide has proven it already; this is
// another proof, by other means.
func TestGuides(t *testing.T) {
	tables := []binomials{newBinomials(64*64, 32), newBinomials(1, 1), newBinomials(70, 64), newBinomials(128*128, 64)}
	for _, table := range tables {
		for i := range table.rows {
			if lead := table.rows[i].guide.lead; lead > 7 {
				t.Errorf("the guide of C(., %d) needs %d leading bits", i+1, lead)
			}
		}
	}
}
