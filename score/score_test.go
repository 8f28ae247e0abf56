package score

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func TestCosinesAreThoseOfTheFormulas(t *testing.T) {
	// Two tensors: in the first d is g, in the second it is perpendicular; |g| is 5 in the first
	// and 1 in the second.
	l, err := Compare([]int{2, 2}, []float32{3, 4, 0, 5}, []float32{3, 4, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if want := 25 / (math.Sqrt(50) * math.Sqrt(26)); math.Abs(l.Whole-want) > 1e-15 {
		t.Errorf("whole is %v, want %v", l.Whole, want)
	}
	if want := 5.0 / 6; math.Abs(l.Tensors-want) > 1e-15 {
		t.Errorf("tensors is %v, want %v", l.Tensors, want)
	}
	if l.Each[0] != 1 || l.Each[1] != 0 || l.Norm != math.Sqrt(50) || l.Grad != math.Sqrt(26) {
		t.Errorf("got %+v", l)
	}
}

// TestAgainstExactNumbers compares with rational arithmetic of hundreds of bits.
func TestAgainstExactNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		value := rapid.Float32Range(-1e10, 1e10)
		d := rapid.SliceOfN(value, n, n).Draw(t, "d")
		g := rapid.SliceOfN(value, n, n).Draw(t, "g")
		l, err := Compare([]int{n}, d, g)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(a, b []float32) *big.Float {
			s := new(big.Float).SetPrec(600)
			for i := range a {
				x := new(big.Float).SetPrec(600).SetFloat64(float64(a[i]))
				s.Add(s, x.Mul(x, new(big.Float).SetPrec(600).SetFloat64(float64(b[i]))))
			}
			return s
		}
		dd, gg := sum(d, d), sum(g, g)
		if dd.Sign() == 0 || gg.Sign() == 0 {
			if l.Whole != 0 {
				t.Fatalf("a cosine of %v with nothing", l.Whole)
			}
			return
		}
		want, _ := new(big.Float).Quo(sum(d, g), new(big.Float).Mul(dd.Sqrt(dd), gg.Sqrt(gg))).Float64()
		if math.Abs(l.Whole-want) > 1e-13 {
			t.Fatalf("cosine %v, want %v", l.Whole, want)
		}
		if l.Whole < -1 || l.Whole > 1 || l.Tensors < -1 || l.Tensors > 1 {
			t.Fatalf("out of range: %+v", l)
		}
	})
}

func TestWhatIsNotComparableIsAnError(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		parts []int
		d, g  []float32
	}{
		"too few places": {[]int{1}, []float32{1, 2}, []float32{1, 2}},
		"too many":       {[]int{3}, []float32{1, 2}, []float32{1, 2}},
		"other lengths":  {[]int{2}, []float32{1, 2}, []float32{1}},
		"negative part":  {[]int{-1, 3}, []float32{1, 2}, []float32{1, 2}},
		"not a number":   {[]int{1}, []float32{nan}, []float32{1}},
		"infinite":       {[]int{1}, []float32{1}, []float32{float32(math.Inf(1))}},
	} {
		if l, err := Compare(c.parts, c.d, c.g); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestScoresAndWhatDecidesThem(t *testing.T) {
	fair := Evidence{Likeness: Likeness{Whole: 0.6, Tensors: 0.5, Norm: 2, Grad: 1}, Median: 2}
	with := func(f func(*Evidence)) Evidence { e := fair; f(&e); return e }
	losses := func(a, r float64) *Losses { return &Losses{Assigned: Change{5, 5 - a}, Random: Change{5, 5 - r}} }
	for _, c := range []struct {
		name string
		e    Evidence
		s    float64
		v    Verdict
	}{
		{"the lower of the two cosines", fair, 0.5, Fair},
		{"the other one", with(func(e *Evidence) { e.Whole = 0.1 }), 0.1, Fair},
		{"turned around", with(func(e *Evidence) { e.Whole = -0.6 }), -0.6, Fair},
		{"wrong work overrides all", with(func(e *Evidence) { e.WorkDiffers = true }), -1, WrongWork},
		{"four times as long", with(func(e *Evidence) { e.Norm = 8 }), 0.5, Fair},
		{"longer", with(func(e *Evidence) { e.Norm = 8.01 }), 0, TooLong},
		{"longer and turned around", with(func(e *Evidence) { e.Norm, e.Whole = 9, -0.3 }), -0.3, TooLong},
		{"a quarter as long", with(func(e *Evidence) { e.Norm = 0.5 }), 0.5, Fair},
		{"shorter", with(func(e *Evidence) { e.Norm = 0.49 }), 0, TooShort},
		{"nothing at all", with(func(e *Evidence) { e.Likeness = Likeness{} }), 0, TooShort},
		{"no median", with(func(e *Evidence) { e.Norm, e.Median = 100, 0 }), 0.5, Fair},
		{"helps its own pages only", with(func(e *Evidence) { e.Losses = losses(0.5, 0) }), 0.5, Fair},
		{"helps all alike", with(func(e *Evidence) { e.Losses = losses(0.5, 0.5) }), 0.45, Fair},
		{"helps others only", with(func(e *Evidence) { e.Losses = losses(0, 0.5) }), 0.4, Fair},
		{"moves nothing", with(func(e *Evidence) { e.Losses = losses(0, 0) }), 0.45, Fair},
		{"harms all", with(func(e *Evidence) { e.Losses = losses(-0.1, -0.5) }), 0, Harmful},
		{"a negative score is not made smaller", with(func(e *Evidence) { e.Whole, e.Losses = -0.5, losses(0, 0.5) }), -0.5, Fair},
	} {
		if s, v := Default().Score(c.e); math.Abs(s-c.s) > 1e-12 || v != c.v {
			t.Errorf("%s: %v %v, want %v %v", c.name, s, v, c.s, c.v)
		}
	}
	if s, v := (Rules{}).Score(with(func(e *Evidence) { e.Norm, e.Losses = 1e9, losses(-1, -1) })); s != 0.5 || v != Fair {
		t.Errorf("rules that are off: %v %v", s, v)
	}
}

func TestFixedPointIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(-1.5, 1.5).Draw(t, "s")
		v := Fixed(s)
		if want := max(-1, min(1, s)); math.Abs(Float(v)-want) > 0.5/One+1e-12 {
			t.Fatalf("%v becomes %d, which is %v", s, v, Float(v))
		}
		if Fixed(-s) != -v {
			t.Fatalf("%v and its opposite become %d and %d", s, v, Fixed(-s))
		}
		if Fixed(Float(v)) != v {
			t.Fatalf("%d does not come back", v)
		}
	})
	if Fixed(math.NaN()) != 0 || Fixed(math.Inf(1)) != One || Fixed(math.Inf(-1)) != -One || Float(math.MinInt16) != -1 {
		t.Error("what is not a score in range")
	}
}

func member(i byte) key.Public { return key.Public{i} }

func TestAverageForgetsAndDoesNotCountTwice(t *testing.T) {
	var b Book
	b.Note(member(2), 1, 1, Fair, 0)
	b.Note(member(1), 1, 0.5, Fair, 0)
	b.Note(member(2), 2, 0, Fair, 0)
	a, ok := b.Find(member(2))
	if !ok || math.Abs(Float(a.Value())-0.5) > 1e-4 {
		t.Errorf("mean of 1 and 0 is %v", Float(a.Value()))
	}
	before := b.Append(nil)
	b.Note(member(2), 2, 1, Fair, 0)
	b.Note(member(2), 1, 1, Fair, 0)
	if !bytes.Equal(before, b.Append(nil)) {
		t.Error("a window counts twice")
	}
	for w := uint32(3); w < 40; w++ {
		b.Note(member(2), w, 1, Fair, 0)
	}
	a, _ = b.Find(member(2))
	if v := Float(a.Value()); v < 0.99 {
		t.Errorf("after 37 windows at 1 the mean is %v", v)
	}
	b.Note(member(2), 40, 0, Absent, 0)
	a, _ = b.Find(member(2))
	if v := Float(a.Value()); math.Abs(v-0.8) > 0.01 {
		t.Errorf("one absence among many takes it to %v, want 4/5 of it", v)
	}
	if all := b.list; len(all) != 2 || all[0].Member != member(1) {
		t.Errorf("not in order of keys: %v", all)
	}
	b.Keep(func(k key.Public) bool { return k == member(1) })
	if _, ok := b.Find(member(2)); ok {
		t.Error("it is not forgotten")
	}
}

func TestWrongWorkIsNotAveragedAway(t *testing.T) {
	var b Book
	for w := uint32(1); w <= 20; w++ {
		b.Note(member(1), w, 1, Fair, 0)
	}
	b.Note(member(1), 21, -1, WrongWork, 0)
	a, _ := b.Find(member(1))
	if a.Value() != -One || a.Proven != 21 {
		t.Errorf("mean %d, proven in %d", a.Value(), a.Proven)
	}
	paid := uint32(0)
	for w := uint32(22); paid == 0; w++ {
		b.Note(member(1), w, 1, Fair, 0)
		if a, _ = b.Find(member(1)); a.Value() > 0 {
			paid = w
		}
	}
	if paid != 21+4 { // 1 - 2*(4/5)^n > 0
		t.Errorf("it is paid again in window %d", paid)
	}
}

func TestAlphaIsTheWeightOfTheNewest(t *testing.T) {
	for alpha, want := range map[float64]float64{1: 0, 0.5: 0.5, 0.1: 0.9, 0: 0.8, -1: 0.8} {
		var b Book
		for w := uint32(1); w <= 100; w++ {
			b.Note(member(1), w, 1, Fair, alpha)
		}
		b.Note(member(1), 101, 0, Fair, alpha)
		if a, _ := b.Find(member(1)); math.Abs(Float(a.Value())-want) > 1e-3 {
			t.Errorf("alpha %v: after one 0 among 1s the mean is %v, want %v", alpha, Float(a.Value()), want)
		}
	}
}

func TestValueIsAlwaysAScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Book
		low, high := 1.0, -1.0
		for w := range rapid.Uint32Range(1, 60).Draw(t, "windows") {
			s := rapid.Float64Range(-1, 1).Draw(t, "s")
			low, high = min(low, s), max(high, s)
			b.Note(member(1), w+1, s, Fair, 0)
			a, _ := b.Find(member(1))
			if v := Float(a.Value()); v < low-1e-4 || v > high+1e-4 {
				t.Fatalf("the mean of scores from %v to %v is %v", low, high, v)
			}
		}
	})
}

func FuzzBook(f *testing.F) {
	var b Book
	b.Note(member(1), 5, 0.3, Fair, 0)
	b.Note(member(9), 6, -0.3, WrongWork, 0)
	f.Add(b.Append(nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wire.NewReader(in)
		b := ReadBook(&r)
		if r.Done() == wire.OK && !bytes.Equal(b.Append(nil), in) {
			t.Errorf("%x parses and is written as %x", in, b.Append(nil))
		}
	})
}

func TestVerdictsHaveNames(t *testing.T) {
	for v := Fair; v <= Harmful; v++ {
		text, err := v.MarshalText()
		var back Verdict
		if err != nil || back.UnmarshalText(text) != nil || back != v {
			t.Errorf("verdict %d is written %q", v, text)
		}
	}
	if (new(Verdict)).UnmarshalText([]byte("fine")) == nil || Verdict(200).String() != "unknown" {
		t.Error("there are verdicts without a name")
	}
}
