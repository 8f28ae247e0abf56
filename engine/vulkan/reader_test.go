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
