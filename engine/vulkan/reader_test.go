package vulkan

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// A device reads a text to the logits of package llama, also where they come in parts.
func TestADeviceReadsTexts(t *testing.T) {
	d := device(t)
	defer func(n int) { logitsFloats = n }(logitsFloats)
	for _, cfg := range []llama.Config{
		with(tied(untied), func(c *llama.Config) { c.Window = 23 }),
		with(eight(untied, 64), func(c *llama.Config) { c.QKNorm = true }),
	} {
		params := llama.Init(cfg, wire.Sum("read"))
		g, err := llama.NewGenerator(cfg, params, exact.NewPool(1))
		if err != nil {
			t.Fatal(err)
		}
		logitsFloats = 33 * cfg.Vocab
		m, err := d.NewReader(cfg, 60)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(params, 1, false); err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct{ n, from int }{{1, 0}, {60, 19}, {30, 29}} {
			text := random(cfg, v.n, rand.New(rand.NewPCG(9, uint64(v.n))))
			var want [][]float32
			if err := g.Follow(text, v.from, func(_ int, logits []float32) bool {
				want = append(want, slices.Clone(logits))
				return true
			}); err != nil {
				t.Fatal(err)
			}
			seen := 0
			if err := m.Follow(text, v.from, func(i int, logits []float32) bool {
				if i != v.from+seen || !slices.Equal(logits, want[seen]) {
					t.Errorf("%v: other logits after token %d of %d", cfg.Numerics, i, v.n)
				}
				seen++
				return i != 40
			}); err != nil || seen != min(len(want), max(41-v.from, 1)) {
				t.Errorf("the logits after %d of %d tokens are seen: %v", seen, v.n, err)
			}
		}
		if err := m.Follow(make([]uint32, 61), 1, nil); err == nil {
			t.Error("a text that is too long is read")
		}
		if err := m.Start(slices.Repeat([]float32{float32(math.Inf(1))}, len(params)), 0, false); err != nil {
			t.Fatal(err)
		}
		if err := m.Follow(make([]uint32, 5), 1, nil); !errors.Is(err, llama.ErrNotFinite) {
			t.Errorf("infinite parameters: %v", err)
		}
		m.Close()
	}
}

// A device continues a text to the logits of package llama, however many tokens it reads at once, and
// also after it has forgotten some, and where the context is full.
func TestADeviceWritesTexts(t *testing.T) {
	d := device(t)
	for name, cfg := range map[string]llama.Config{
		"tied, a window": with(tied(untied), func(c *llama.Config) { c.Window = 23 }),
		"biases":         with(untied, func(c *llama.Config) { c.Bias = true }),
		"8 bits, norms":  with(eight(untied, 64), func(c *llama.Config) { c.QKNorm = true }),
	} {
		cfg.Context = 150
		params := llama.Init(cfg, wire.Sum("write"))
		host, err := llama.NewGenerator(cfg, params, exact.NewPool(1))
		if err != nil {
			t.Fatal(err)
		}
		w, err := d.NewWriter(cfg, params)
		if err != nil {
			t.Fatal(err)
		}
		on := llama.NewGeneratorOn(cfg, w)
		text := random(cfg, 400, rand.New(rand.NewPCG(3, 9)))
		read := func(tokens []uint32) {
			want, err := host.Read(tokens...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := on.Read(tokens...); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: other logits after %d tokens: %v", name, len(tokens), err)
			}
		}
		for _, n := range []int{1, 70, 1, 1, 58, 30, 1} { // over blocks of 64, and beyond the context
			read(text[:n])
			text = text[n:]
		}
		start := random(cfg, 100, rand.New(rand.NewPCG(3, 10)))
		for _, again := range [][]uint32{start, append(slices.Clone(start[:40]), 1, 2, 3), start[:39]} {
			if host.Keep(again) != on.Keep(again) {
				t.Errorf("%s: keeps another part", name)
			}
			read(again[host.Keep(again):])
		}
		if _, err := on.Read(uint32(cfg.Vocab)); err == nil {
			t.Errorf("%s: a token beyond the vocabulary is read", name)
		}
		if w.Memory() == 0 {
			t.Error("no memory")
		}
		w.Close()
	}
}
