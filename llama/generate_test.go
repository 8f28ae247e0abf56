package llama

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

func newGenerator(t testing.TB, cfg Config, params []float32) *Generator {
	t.Helper()
	pool := exact.NewPool(2)
	t.Cleanup(pool.Close)
	g, err := NewGenerator(cfg, params, pool)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A generator that reads a text token by token sees the logits that training computes for the whole
// text at once, bit for bit.
func TestAGeneratorSeesTheLogitsOfTraining(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	eight := Config{Vocab: 131, Hidden: 50, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 96, Context: 90, Theta: 10000, Eps: 1e-5, Numerics: Exact8}
	for _, cfg := range []Config{goldenConfig, withTiedHead(goldenConfig), biasConfig, headsConfig, windowConfig, eight, withTiedHead(eight)} {
		const seq = 90
		params, tokens := randomParams(cfg, r), randomTokens(cfg, 1, seq, r)
		m := newModel(t, cfg, nil, 1, seq)
		if err := m.enter(params, tokens, 1, seq); err != nil {
			t.Fatal(err)
		}
		m.forward(tokens, false)
		want := make([]float32, seq*cfg.Vocab)
		m.batch.linear(want, m.h, m.params.head, cfg.Hidden, cfg.Vocab, false, nil, nil)
		g := newGenerator(t, cfg, params)
		for i, token := range tokens[:seq] {
			got, err := g.Read(token)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[i*cfg.Vocab:(i+1)*cfg.Vocab]) {
				t.Fatalf("%+v: at position %d the generator sees other logits", cfg, i)
			}
		}
		// So does another that shares the parameters and reads many tokens at once.
		f := g.decoder.Generator()
		for _, n := range []int{1, 40, seq} {
			got, err := f.Read(tokens[f.text.Len():n]...)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[(n-1)*cfg.Vocab:n*cfg.Vocab]) {
				t.Fatalf("%+v: after %d tokens at once the generator sees other logits", cfg, n)
			}
		}
	}
}

// Texts that are read side by side, in parts of any size, some beginning while others are under way,
// have the logits that each has alone.
func TestTextsSideBySideHaveTheLogitsOfEachAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	eight := with(goldenConfig8, func(c *Config) { c.Window = 9 })
	for _, cfg := range []Config{goldenConfig, biasConfig, headsConfig, windowConfig, eight} {
		params := randomParams(cfg, r)
		alone := newGenerator(t, cfg, params)
		d := alone.decoder.Fork(24)
		type reading struct {
			text   Text
			tokens []uint32
		}
		var all []*reading
		for range 9 {
			all = append(all, &reading{tokens: randomTokens(cfg, 1, 1+r.IntN(cfg.Context-1), r)})
		}
		for steps := 0; len(all) > 0; steps++ {
			var parts []Part
			room := d.Rows()
			under := all[:1+r.IntN(len(all))]
			for _, one := range under {
				if n := min(room, len(one.tokens)-one.text.Len(), 1+r.IntN(1+r.IntN(20))); n > 0 {
					parts = append(parts, Part{Text: &one.text, Tokens: one.tokens[one.text.Len():][:n], Want: r.IntN(n + 1)})
					room -= n
				}
			}
			if err := d.Step(parts); err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				for i := range p.Want {
					alone.Reset()
					want, err := alone.Read(p.Text.read[:p.Text.Len()-p.Want+i+1]...)
					if err != nil || p.Err != nil || !slices.Equal(want, p.Logits[i*cfg.Vocab:(i+1)*cfg.Vocab]) {
						t.Fatalf("%+v: step %d: after %d tokens a text beside %d others has other logits, %v, %v", cfg, steps, p.Text.Len(), len(parts)-1, err, p.Err)
					}
				}
			}
			all = slices.DeleteFunc(all, func(one *reading) bool { return one.text.Len() == len(one.tokens) })
		}
	}
}

// What one text makes of the parameters is no matter of another's.
func TestATextWithoutLogitsLeavesOthersAlone(t *testing.T) {
	cfg := goldenConfig
	params := randomParams(cfg, rand.New(rand.NewPCG(1, 9)))
	var w weights
	w.point(cfg, cfg.Layout(), params)
	w.embed[0], w.norm[0] = 1e3, 1e38 // token 0 is far out where the last norm has a great gain
	d := newGenerator(t, cfg, params).decoder
	var a, b Text
	parts := []Part{{Text: &a, Tokens: []uint32{0}, Want: 1}, {Text: &b, Tokens: []uint32{1, 2}, Want: 1}}
	if err := d.Step(parts); err != nil || !errors.Is(parts[0].Err, ErrNotFinite) || parts[1].Err != nil {
		t.Errorf("%v, %v, %v", err, parts[0].Err, parts[1].Err)
	}
	for what, parts := range map[string][]Part{
		"twice at once": {{Text: &a, Tokens: []uint32{1}}, {Text: &a, Tokens: []uint32{1}}}, "more than 32": {{Text: &a, Tokens: make([]uint32, 33)}},
		"room for 100": {{Text: &a, Tokens: make([]uint32, 100)}}, "logits of 2": {{Text: &a, Tokens: make([]uint32, 1), Want: 2}},
		"no tokens": {{Text: &a}}, "vocabulary": {{Text: &a, Tokens: []uint32{53}}},
	} {
		if err := d.Step(parts); err == nil || !strings.Contains(err.Error(), what) || a.Len() != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b.Keep([]uint32{1, 2, 3}, 3); d.Step([]Part{{Text: &b, Tokens: []uint32{3, 4}}}) == nil {
		t.Error("a text outgrows the memory that it may have")
	}
}

func TestAFullContextIsHalved(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	cfg := goldenConfig
	cfg.Context = 10
	params, tokens := randomParams(cfg, r), randomTokens(cfg, 1, 16, r)
	g := newGenerator(t, cfg, params)
	got, err := g.Read(tokens[:11]...)
	if err != nil {
		t.Fatal(err)
	}
	fresh := newGenerator(t, cfg, params)
	want, err := fresh.Read(tokens[5:11]...)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("after 11 tokens in a context of 10 the logits are not those of the last 6, %v", err)
	}
	if _, err := g.Read(tokens...); err != nil {
		t.Error(err)
	}
	got, err = g.Read(tokens[5+g.Keep(tokens[5:11]) : 11]...) // which it remembers in part, if at all
	if err != nil || !slices.Equal(got, want) {
		t.Error("what is kept changes the logits")
	}
	if _, err := g.Read(tokens[:2]...); err != nil {
		t.Error(err)
	}
	if n := g.Keep(append(slices.Clone(tokens[5:11]), tokens[2:5]...)); n != 6 {
		t.Errorf("of a text that continues it keeps %d tokens, want 6", n)
	}
	if got, err = g.Read(tokens[2:5]...); err != nil {
		t.Error(err)
	}
	if want, err := newGenerator(t, cfg, params).Read(append(slices.Clone(tokens[5:11]), tokens[2:5]...)...); err != nil || !slices.Equal(got, want) {
		t.Error("a text after one that was longer has other logits")
	}
	g.Reset()
	got, _ = g.Read(tokens[5:11]...)
	if !slices.Equal(got, want) {
		t.Error("after Reset something is remembered")
	}
}

func TestSamplingFollowsTheLogits(t *testing.T) {
	logits := []float32{0, 2, 1, 2, -50}
	counts := func(s Sampling) (n [5]float64) {
		source := prng.New(wire.Sum("sampling"), "test")
		for range 20000 {
			n[s.Choose(logits, &source)] += 1.0 / 20000
		}
		return n
	}
	expect := func(got [5]float64, temperature float64, in ...int) {
		t.Helper()
		var z float64
		for _, i := range in {
			z += math.Exp(float64(logits[i]) / temperature)
		}
		for i, share := range got {
			want := 0.0
			if slices.Contains(in, i) {
				want = math.Exp(float64(logits[i])/temperature) / z
			}
			if math.Abs(share-want) > 0.015 {
				t.Errorf("temperature %g, from %v: token %d has a share of %.3f, want %.3f", temperature, in, i, share, want)
			}
		}
	}
	expect(counts(Sampling{Temperature: 0}), 1e-3, 1)
	expect(counts(Sampling{Temperature: 1}), 1, 0, 1, 2, 3)
	expect(counts(Sampling{Temperature: 2, TopK: 3}), 2, 1, 2, 3)
	expect(counts(Sampling{Temperature: 1, TopK: 1}), 1, 1)
	expect(counts(Sampling{Temperature: 1, TopK: 99}), 1, 0, 1, 2, 3)
	expect(counts(Sampling{Temperature: 1, TopP: 0.7}), 1, 1, 3)
	expect(counts(Sampling{Temperature: 1, TopP: 0.9}), 1, 1, 2, 3)
	expect(counts(Sampling{Temperature: 1, TopP: 0.1}), 1, 1)
	expect(counts(Sampling{Temperature: 1, TopP: 1}), 1, 0, 1, 2, 3)
	for _, s := range []Sampling{{TopP: -0.1}, {TopP: 1.1}, {Temperature: -1}, {Temperature: float32(math.NaN())}, {Temperature: 101}, {TopK: -1}} {
		if s.Check() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

// However many choices are asked for, they are the first of all choices in order.
func TestTheLikeliestAreTheFirstInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32}
	for range 200 {
		logits := make([]float32, 1+r.IntN(3000))
		for i := range logits {
			logits[i] = float32(r.NormFloat64())
			if r.IntN(3) == 0 {
				logits[i] = special[r.IntN(len(special))]
			}
		}
		var all []Choice
		for i, l := range logits {
			all = append(all, Choice{uint32(i), l})
		}
		slices.SortFunc(all, better)
		for _, n := range []int{0, 1, 2, 1 + r.IntN(len(logits)), 1 + len(logits)/10, len(logits), len(logits) + 1} {
			if !slices.Equal(Likeliest(logits, n), all[:min(n, len(logits))]) {
				t.Fatalf("the %d likeliest of %d are others", n, len(logits))
			}
		}
	}
}

func TestGenerateRepeatsItselfFromTheSameSeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	cfg := goldenConfig
	params := randomParams(cfg, r)
	text := func(seed string, n int) (out []uint32) {
		source := prng.New(wire.Sum(seed), "generate")
		err := newGenerator(t, cfg, params).Generate([]uint32{1, 2, 3}, 50, Sampling{Temperature: 1}, &source, func(token uint32) bool {
			out = append(out, token)
			return len(out) < n
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b, c := text("a", 99), text("a", 99), text("b", 99)
	if len(a) != 50 || !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("texts of seeds a, a and b: %v, %v, %v", a, b, c)
	}
	if d := text("a", 7); !slices.Equal(d, a[:7]) {
		t.Errorf("stopped after 7 tokens: %v, want %v", d, a[:7])
	}
}

func TestAGeneratorRefusesBadInput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	cfg := goldenConfig
	params := randomParams(cfg, r)
	if _, err := NewGenerator(cfg, params[1:], nil); err == nil || !strings.Contains(err.Error(), "parameters for a model of") {
		t.Errorf("too few parameters: %v", err)
	}
	if _, err := NewGenerator(Config{}, nil, nil); err == nil {
		t.Error("an empty Config is accepted")
	}
	g := newGenerator(t, cfg, params)
	if _, err := g.Read(); err == nil {
		t.Error("no tokens are accepted")
	}
	if _, err := g.Read(1, 53); err == nil || !strings.Contains(err.Error(), "token 53 at position 1") {
		t.Errorf("a token beyond the vocabulary: %v", err)
	}
	if g.text.Len() != 0 {
		t.Error("a refused text was read in part")
	}
	if err := g.Generate([]uint32{1}, 1, Sampling{TopK: -1}, nil, nil); err == nil {
		t.Error("a bad Sampling is accepted")
	}
	params[7] = float32(math.NaN())
	if _, err := NewGenerator(cfg, params, nil); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN among the parameters: %v", err)
	}
}
