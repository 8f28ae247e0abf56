package distro

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// A vectorCase is a case of testdata/vectors.json; testdata/vectors.py, which writes it, says what
// it means.
type vectorCase struct {
	Name        string
	Tensors     []tensor.Spec
	Chunk, TopK int
	Decay       float32
	WeightDecay float32 `json:"weight_decay"`
	Clip        float32
	Exponent    int
	Seed        uint64
	Members     int
	LRs         []float32
	Rounds      []struct {
		Payloads []string
		Params   []float64
	}
	Deltas [][]float64
}

func loadVectors(t testing.TB) []vectorCase {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vectorCase }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

func (v vectorCase) codec(t testing.TB, pool *exact.Pool) *Codec {
	t.Helper()
	c, err := New(tensor.NewLayout(v.Tensors), Config{Block: v.Chunk, TopK: v.TopK, Decay: v.Decay, WeightDecay: v.WeightDecay, ClipNorm: v.Clip}, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// splitmix returns n numbers in [-1, 1), as vectors.py makes them.
func splitmix(seed uint64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		out[i] = float32(int64(z>>40)-1<<23) / (1 << 23)
	}
	return out
}

func (v vectorCase) gradient(round, member, n int) []float32 {
	common := splitmix(v.Seed*1000003, n)
	noise := splitmix(v.Seed*1000003+7919*uint64(round)+uint64(member)+1, n)
	for i := range common {
		common[i] = float32(math.Ldexp(float64(common[i]/2+noise[i]/2), v.Exponent))
	}
	return common
}

func TestAgreesWithTheIndependentScript(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			c := v.codec(t, pool)
			params := splitmix(v.Seed, c.n)
			states := make([][]float32, v.Members)
			for m := range states {
				states[m] = make([]float32, c.StateLen())
			}
			for r, round := range v.Rounds {
				payloads := make([][]byte, v.Members)
				for m := range payloads {
					p, err := c.Encode(nil, states[m], v.gradient(r, m, c.n), v.LRs[r])
					if err != nil {
						t.Fatal(err)
					}
					if got := hex.EncodeToString(p); got != round.Payloads[m] {
						t.Fatalf("round %d, member %d: payload\n%s, the script has\n%s", r, m, got, round.Payloads[m])
					}
					payloads[m] = p
				}
				if err := c.Apply(params, payloads, v.LRs[r]); err != nil {
					t.Fatal(err)
				}
				// 5 rounds of two roundings of numbers below 1.2, and the script's 8 decimals
				near(t, fmt.Sprintf("round %d: parameter", r), params, round.Params, 1e-6)
			}
			scale := math.Ldexp(1, v.Exponent)
			for m := range states {
				// The script keeps the momentum among the weights; a coefficient is a sum of up to
				// 4096 products of rounded numbers.
				near(t, fmt.Sprintf("momentum of member %d", m), weights(c, states[m]), v.Deltas[m], 1e-5*scale)
			}
		})
	}
}

// weights transforms a state back to the weights, in binary64 by the formula.
func weights(c *Codec, state []float32) []float32 {
	out := make([]float32, c.n)
	for _, b := range c.table() {
		h, w := b.shape.h, b.shape.w
		for x := range h {
			for y := range w {
				var sum float64
				for u := range h {
					for v := range w {
						sum += float64(state[b.state+u*w+v]) * dctReal(h, u, x) * dctReal(w, v, y)
					}
				}
				out[b.offset+x*b.stride+y] = float32(sum)
			}
		}
	}
	return out
}

// dctReal is element (u, x) of the DCT-II of n points in binary64.
func dctReal(n, u, x int) float64 {
	if u == 0 {
		return math.Sqrt(1 / float64(n))
	}
	return math.Sqrt(2/float64(n)) * math.Cos(math.Pi*float64(2*x+1)*float64(u)/float64(2*n))
}

func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tolerance) {
			t.Fatalf("%s %d is %v, want %v within %g", what, i, got[i], want[i], tolerance)
		}
	}
}
