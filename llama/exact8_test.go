package llama

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// The gradient in 8 bits points where that in binary32 does, also with the whole batch in one call,
// with chunks of the loss that end within a sequence, and with sequences that end within a block.
func TestTheGradientInEightBitsIsCloseToThatInBinary32(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, c := range []struct {
		name            string
		batch, seq, cut int
	}{{"whole sequences", 3, 64, 0}, {"chunks within a sequence", 2, 200, 64}, {"chunks of several sequences", 5, 40, 96}, {"short", 4, 9, 0}} {
		for _, tied := range []bool{false, true} {
			cfg := Config{Vocab: 300, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 160, Context: 200, Theta: 10000, Eps: 1e-5, Tied: tied}
			params, tokens := Init(cfg, wire.Sum("near")), randomTokens(cfg, c.batch, c.seq, rand.New(rand.NewPCG(1, 2)))
			grad := func(n Numerics, cut int) ([]float32, float32) {
				cfg.Numerics = n
				m := newModel(t, cfg, pool, c.batch, c.seq)
				if cut > 0 {
					m.loss.chunk = min(cut, m.loss.chunk)
				}
				g := make([]float32, len(params))
				loss, err := m.Grad(params, g, tokens, c.batch, c.seq, c.batch)
				if err != nil {
					t.Fatal(err)
				}
				return g, loss
			}
			want, loss := grad(Exact, 0)
			got, loss8 := grad(Exact8, 0)
			if cosine := cosine(got, want); cosine < 0.998 || cosine > 0.99999 {
				t.Errorf("%s, tied=%v: the cosine with the gradient in binary32 is %.5f", c.name, tied, cosine)
			}
			if math.Abs(float64(loss8-loss)) > 0.002 || loss8 == loss {
				t.Errorf("%s, tied=%v: the loss is %g, %g in binary32", c.name, tied, loss8, loss)
			}
			cut, _ := grad(Exact8, c.cut)
			for i := range cut {
				if math.Float32bits(cut[i]) != math.Float32bits(got[i]) {
					t.Fatalf("%s, tied=%v: computed in chunks of %d rows, element %d is %g, not %g", c.name, tied, c.cut, i, cut[i], got[i])
				}
			}
		}
	}
}

func cosine(x, y []float32) float64 {
	var xy, xx, yy float64
	for i := range x {
		xy += float64(x[i]) * float64(y[i])
		xx += float64(x[i]) * float64(x[i])
		yy += float64(y[i]) * float64(y[i])
	}
	return xy / math.Sqrt(xx*yy)
}

func TestShapesThatBlocksDoNotFitAreRefused(t *testing.T) {
	cfg := goldenConfig
	cfg.Numerics = Exact8
	err := cfg.Check()
	if err == nil || !strings.Contains(err.Error(), "head_dim: 10 must be a multiple of 32") || !strings.Contains(err.Error(), "ffn: 41 must be a multiple of 32") {
		t.Errorf("the error is %v", err)
	}
	for _, name := range []string{"nano", "10m", "50m", "124m", "350m", "1b"} {
		preset, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		preset.Numerics = Exact8
		if err := preset.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumericsAreNamed(t *testing.T) {
	for _, n := range []Numerics{Exact, Exact8} {
		if got, err := ParseNumerics(n.String()); err != nil || got != n {
			t.Errorf("%v is parsed as %v, %v", n, got, err)
		}
	}
	if _, err := ParseNumerics("int4"); err == nil || !strings.Contains(err.Error(), `"int4"`) {
		t.Errorf("the error is %v", err)
	}
}
