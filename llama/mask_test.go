package llama

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Tokens that are only read add nothing: the gradients of two halves of a mask are those of all
// tokens, in binary32 and in 8 bits, but for rounding.
func TestTheGradientsOfTwoMasksAddUp(t *testing.T) {
	for _, numerics := range []Numerics{0, Exact8} {
		cfg := Config{Vocab: 70, Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 64, Context: 40, Theta: 100, Eps: 1e-5, Numerics: numerics}
		r := rand.New(rand.NewPCG(3, 3))
		const batch, seq = 2, 37
		m := newModel(t, cfg, nil, batch, seq)
		params, tokens := randomParams(cfg, r), randomTokens(cfg, batch, seq, r)
		grad := func(masked func(i int) bool) ([]float32, float64) {
			some := slices.Clone(tokens)
			for i := range some {
				if masked(i) {
					some[i] |= Masked
				}
			}
			g := make([]float32, len(params))
			loss, err := m.Grad(params, g, some, batch, seq, batch)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := m.Loss(params, some, batch, seq); err != nil || again != loss {
				t.Errorf("%v: Grad's loss is %g, Loss says %g, %v", numerics, loss, again, err)
			}
			return g, float64(loss) * float64(Learnt(some, seq))
		}
		all, sum := grad(func(int) bool { return false })
		odd, sumOdd := grad(func(i int) bool { return i%2 == 1 })
		even, sumEven := grad(func(i int) bool { return i%2 == 0 })
		if math.Abs(sum-sumOdd-sumEven) > 1e-4*sum {
			t.Errorf("%v: the losses are %g and %g, together %g", numerics, sumOdd, sumEven, sum)
		}
		both := make([]float32, len(all))
		for i := range both {
			both[i] = odd[i] + even[i]
		}
		least := 1 - 1e-6
		if numerics == Exact8 {
			least = .999
		}
		if c := cosine(all, both); c < least {
			t.Errorf("%v: the cosine of the gradient and the parts' sum is %g", numerics, c)
		}
		if c := cosine(odd, even); c > .99 {
			t.Errorf("%v: the gradients of two masks are the same: %g", numerics, c)
		}
		none, sum := grad(func(int) bool { return true })
		if sum != 0 || slices.ContainsFunc(none, func(x float32) bool { return x != 0 }) {
			t.Errorf("%v: what is not learnt has a gradient, and loss %g", numerics, sum)
		}
		bad := slices.Clone(tokens)
		bad[1] = 70 | Masked
		if _, err := m.Loss(params, bad, batch, seq); err == nil || errors.Is(err, ErrNotFinite) {
			t.Errorf("%v: a masked token beyond the vocabulary: %v", numerics, err)
		}
	}
}
