package codec_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

func TestNormIsNearTheRealNumberForAnyWorkers(t *testing.T) {
	pool := exact.NewPool(3)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		v := make([]float32, rapid.IntRange(0, 40_000).Draw(t, "length"))
		pattern := rapid.SliceOfN(rapid.Float32Range(-1e30, 1e30), 1, 9).Draw(t, "pattern")
		for i := range v {
			v[i] = pattern[i%len(pattern)]
		}
		sum := new(big.Float).SetPrec(400)
		for _, x := range v {
			f := new(big.Float).SetPrec(400).SetFloat64(float64(x))
			sum.Add(sum, f.Mul(f, f))
		}
		want, _ := sum.Sqrt(sum).Float64()
		got := codec.Norm(pool, v)
		// Each partial sum has 1024 additions of 2^-53 at most, all of one sign, the folds and the
		// segments few more; the root halves that.
		if math.Abs(got-want) > 1100*0x1p-54*want {
			t.Fatalf("norm of %d elements %v... is %v, want %v", len(v), pattern, got, want)
		}
		if one := codec.Norm(nil, v); one != got {
			t.Fatalf("one worker says %v, three say %v", one, got)
		}
	})
}

// The order of the sum is the definition: this is the docstring of Norm written down once more,
// slowly.
func TestNormAddsInTheDefinedOrder(t *testing.T) {
	v := make([]float32, 3*16384+1237)
	for i := range v {
		v[i] = float32(math.Ldexp(1+float64(i*i%977)/977, i%23)) // sums of such squares are rounded
	}
	var total float64
	for from := 0; from < len(v); from += 16384 {
		partial := make([]float64, 16)
		for i, x := range v[from:min(from+16384, len(v))] {
			square := float64(x) * float64(x)
			partial[i%16] += square
		}
		for len(partial) > 1 {
			half := len(partial) / 2
			for i := range half {
				partial[i] += partial[half+i]
			}
			partial = partial[:half]
		}
		total += partial[0]
	}
	if got, want := codec.Norm(nil, v), math.Sqrt(total); got != want {
		t.Errorf("norm %v, want %v", got, want)
	}
	slices.Reverse(v)
	if codec.Norm(nil, v) == math.Sqrt(total) {
		t.Error("the order makes no difference to these numbers, so the test shows nothing")
	}
}

func TestClip(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []struct {
		grad []float32
		max  float32
		want float32
		err  string
	}{
		{[]float32{3, 4}, 0, 1, ""},
		{[]float32{3, 4}, 5, 1, ""},
		{[]float32{3, 4}, 1, .2, ""},
		{[]float32{-3, 4}, 2.5, .5, ""},
		{nil, 1, 1, ""},
		{[]float32{0, 0}, 1, 1, ""},
		{[]float32{1, nan}, 1, 0, "gradient at element 1: not a finite number"},
		{[]float32{-inf, inf}, 0, 0, "gradient at element 0: not a finite number"},
		{[]float32{math.MaxFloat32, math.MaxFloat32}, 1, 0, "gradient has norm 4.8123"},
	} {
		got, err := codec.Clip(nil, v.grad, v.max)
		if got != v.want || (err == nil) != (v.err == "") || err != nil && !strings.HasPrefix(err.Error(), v.err) {
			t.Errorf("Clip of %v to %v is %v, error %v; want %v, error %q", v.grad, v.max, got, err, v.want, v.err)
		}
		if errors.Is(err, codec.ErrNotFinite) != strings.Contains(v.err, "finite") {
			t.Errorf("Clip of %v: error %v is ErrNotFinite: %v", v.grad, err, errors.Is(err, codec.ErrNotFinite))
		}
	}
}

func TestHeadersDiffer(t *testing.T) {
	a := tensor.Spec{Name: "a", Shape: []int{2, 3}}
	seen := map[codec.Header]string{}
	for _, v := range []struct {
		magic    string
		specs    []tensor.Spec
		settings []uint32
	}{
		{"eDT1", []tensor.Spec{a}, []uint32{64, 8}},
		{"eDT2", []tensor.Spec{a}, []uint32{64, 8}},
		{"eDT1", []tensor.Spec{a}, []uint32{8, 64}},
		{"eDT1", []tensor.Spec{a}, []uint32{64}},
		{"eDT1", nil, []uint32{64, 8}},
		{"eDT1", []tensor.Spec{{Name: "b", Shape: []int{2, 3}}}, []uint32{64, 8}},
		{"eDT1", []tensor.Spec{{Name: "a", Shape: []int{3, 2}}}, []uint32{64, 8}},
		{"eDT1", []tensor.Spec{{Name: "a", Shape: []int{6}}}, []uint32{64, 8}},
		{"eDT1", []tensor.Spec{a, {Name: "c"}}, []uint32{64, 8}},
	} {
		h := codec.NewHeader(v.magic, tensor.NewLayout(v.specs), v.settings...)
		what := fmt.Sprint(v)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same header", what, other)
		}
		seen[h] = what
		if err := h.Check(h[:], codec.HeaderLen); err != nil {
			t.Errorf("%s refuses its own header: %v", what, err)
		}
	}
}

func TestCheckLR(t *testing.T) {
	for _, v := range []struct {
		lr, decay float32
		ok        bool
	}{
		{0, 0, true}, {codec.LRMax, 0, true}, {1, 1, true}, {10, .1, true}, {math.SmallestNonzeroFloat32, 1, true},
		{-math.SmallestNonzeroFloat32, 0, false}, {codec.LRMax + 1, 0, false}, {float32(math.NaN()), 0, false}, {float32(math.Inf(1)), 0, false}, {1.5, 1, false},
	} {
		if err := codec.CheckLR(v.lr, v.decay); (err == nil) != v.ok {
			t.Errorf("rate %v with decay %v: error %v", v.lr, v.decay, err)
		}
	}
}
