package llama

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// randomParams returns parameters far from their initial values, so that no gradient is small by
// accident.
func randomParams(cfg Config, r *rand.Rand) []float32 {
	params := Init(cfg, wire.Sum("test"))
	for i := range params {
		params[i] = params[i] + float32(0.15*r.NormFloat64())
	}
	return params
}

func randomTokens(cfg Config, batch, seq int, r *rand.Rand) []uint32 {
	tokens := make([]uint32, batch*(seq+1))
	for i := range tokens {
		tokens[i] = uint32(r.IntN(cfg.Vocab))
	}
	return tokens
}

// mask masks about percent of tokens.
func mask(tokens []uint32, percent int, r *rand.Rand) {
	for i := range tokens {
		if r.IntN(100) < percent {
			tokens[i] |= Masked
		}
	}
}

func toFloat64(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func newModel(t testing.TB, cfg Config, pool *exact.Pool, batch, seq int) *Model {
	t.Helper()
	m, err := New(cfg, pool, batch, seq)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var gradientCases = []struct {
	name       string
	cfg        Config
	batch, seq int
	masked     int // percent of the tokens
}{
	{"untied, grouped queries", Config{Vocab: 11, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 10, Context: 9, Theta: 100, Eps: 1e-5}, 2, 9, 0},
	{"a mask", Config{Vocab: 11, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 10, Context: 9, Theta: 100, Eps: 1e-5}, 2, 9, 60},
	{"a mask, tied", Config{Vocab: 7, Hidden: 10, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 4, FFN: 18, Context: 8, Theta: 10000, Eps: 1e-3, Tied: true}, 3, 5, 40},
	{"tied, one head of keys", Config{Vocab: 7, Hidden: 10, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 4, FFN: 18, Context: 8, Theta: 10000, Eps: 1e-3, Tied: true}, 3, 5, 0},
	{"as many heads of keys, one layer", Config{Vocab: 9, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 2, HeadDim: 2, FFN: 7, Context: 70, Theta: 10, Eps: 1e-6}, 1, 70, 0},
	{"biases, tied", Config{Vocab: 9, Hidden: 8, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 4, FFN: 7, Context: 70, Theta: 10, Eps: 1e-6, Bias: true, Tied: true}, 2, 67, 0},
	{"norms of heads", Config{Vocab: 9, Hidden: 8, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 7, Context: 70, Theta: 10, Eps: 1e-6, QKNorm: true}, 2, 67, 0},
	{"a window and stretched angles", Config{Vocab: 9, Hidden: 8, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 7, Context: 90, Theta: 100, Eps: 1e-6, Window: 7, Rope: Rope{8, 1, 4, 30}}, 1, 67, 0},
}

func TestTheLossIsThatOfTheReference(t *testing.T) {
	for _, c := range gradientCases {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			m := newModel(t, c.cfg, nil, c.batch, c.seq)
			params, tokens := randomParams(c.cfg, r), randomTokens(c.cfg, c.batch, c.seq, r)
			mask(tokens, c.masked, r)
			want := referenceLoss(c.cfg, m.layout, toFloat64(params), tokens, c.batch, c.seq) * float64(c.batch*c.seq) / float64(Learnt(tokens, c.seq))
			loss, err := m.Loss(params, tokens, c.batch, c.seq)
			if err != nil || math.Abs(float64(loss)-want) > 2e-6*want {
				t.Errorf("Loss = %.8g, %v; the reference says %.8g", loss, err, want)
			}
			withGrad, err := m.Grad(params, make([]float32, len(params)), tokens, c.batch, c.seq, c.batch)
			if err != nil || withGrad != loss {
				t.Errorf("Grad's loss = %g, %v; Loss says %g", withGrad, err, loss)
			}
		})
	}
}

// Every tensor's gradient against central differences of the reference's loss: some of its
// elements, and the direction of the gradient itself, in which all elements count.
func TestGradientsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	const step = 1e-5
	for _, c := range gradientCases {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 2))
			m := newModel(t, c.cfg, nil, c.batch, c.seq)
			params, tokens := randomParams(c.cfg, r), randomTokens(c.cfg, c.batch, c.seq, r)
			mask(tokens, c.masked, r)
			grad := make([]float32, len(params))
			if _, err := m.Grad(params, grad, tokens, c.batch, c.seq, c.batch); err != nil {
				t.Fatal(err)
			}
			at := toFloat64(params)
			moved := make([]float64, len(at))
			slope := func(offset int, direction []float64) float64 {
				var loss [2]float64
				for side, sign := range []float64{1, -1} {
					copy(moved, at)
					for i, d := range direction {
						moved[offset+i] += sign * step * d
					}
					loss[side] = referenceLoss(c.cfg, m.layout, moved, tokens, c.batch, c.seq)
				}
				return (loss[0] - loss[1]) / (2 * step)
			}
			for _, tensor := range m.layout.Tensors() {
				g := tensor.Of(grad)
				var norm float64
				for _, v := range g {
					norm += float64(v) * float64(v)
				}
				norm = math.Sqrt(norm)
				if norm == 0 {
					t.Errorf("%s: the gradient is zero", tensor.Name)
					continue
				}
				direction := toFloat64(g)
				for i := range direction {
					direction[i] /= norm
				}
				if got := slope(tensor.Offset, direction); math.Abs(got-norm) > 1e-4*norm {
					t.Errorf("%s: the slope along the gradient is %.8g, its norm %.8g", tensor.Name, got, norm)
				}
				for range 6 {
					i := r.IntN(tensor.Len)
					if want := slope(tensor.Offset+i, []float64{1}); math.Abs(float64(g[i])-want) > 1e-4*(math.Abs(want)+norm/math.Sqrt(float64(tensor.Len))) {
						t.Errorf("%s: element %d of the gradient is %.8g, the slope %.8g", tensor.Name, i, g[i], want)
					}
				}
			}
		})
	}
}
