package vulkan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// readers are the kinds of models that read texts differently.
var readers = map[string]llama.Config{
	"tied, a window": with(tied(untied), func(c *llama.Config) { c.Window, c.Context = 23, 150 }),
	"biases":         with(untied, func(c *llama.Config) { c.Bias, c.Context = true, 150 }),
	"8 bits, norms":  with(eight(untied, 64), func(c *llama.Config) { c.QKNorm, c.Context = true, 150 }),
}

// onBoth returns decoders of a model on the processors and on a device.
func onBoth(t *testing.T, cfg llama.Config, rows, texts int, failed func(error)) (host, on *llama.Decoder, w *Writer) {
	t.Helper()
	params := llama.Init(cfg, wire.Sum("read"))
	host, err := llama.NewDecoder(cfg, params, exact.NewPool(1), rows)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = device(t).NewWriter(cfg, params, rows, texts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if on, err = llama.NewDecoderOn(cfg, params, exact.NewPool(1), w, failed); err != nil {
		t.Fatal(err)
	}
	return host, on, w
}

// A device continues a text to the logits of package llama, however many tokens it reads at once, and
// also after it has forgotten some, and where the context is full.
func TestADeviceWritesTexts(t *testing.T) {
	for name, cfg := range readers {
		onHost, onDevice, w := onBoth(t, cfg, 64, 1, func(err error) { t.Error(err) })
		host, on := onHost.Generator(), onDevice.Generator()
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
		var taken uint64
		for _, x := range w.all {
			taken += 4 * uint64(x.Len)
		}
		if taken != w.Memory() {
			t.Errorf("%s: %d bytes are taken, %d were estimated", name, taken, w.Memory())
		}
	}
}

// A device reads several texts at once, more of them by turns than it has slots, to the logits of
// package llama. When it fails, the processors go on with all of them.
func TestADeviceReadsSeveralTexts(t *testing.T) {
	defer func(n int) { logitsFloats = n }(logitsFloats)
	for name, cfg := range readers {
		logitsFloats = 5 * cfg.Vocab
		var told []error
		host, on, w := onBoth(t, cfg, 90, 3, func(err error) { told = append(told, err) })
		r := rand.New(rand.NewPCG(4, 9))
		var hosts, texts [5]llama.Text
		for step := range 24 {
			var want, got []llama.Part
			for _, i := range r.Perm(len(texts))[:1+r.IntN(3)] {
				n := min(1+r.IntN(30)*r.IntN(2), cfg.Context-texts[i].Len())
				if step%5 == 4 || n == 0 { // an answer ends, and another text begins likewise
					n = 1
					part := random(cfg, 3, r)
					if hosts[i].Keep(part, 0) != texts[i].Keep(part, 0) {
						t.Fatal("keeps another part")
					}
				}
				tokens := random(cfg, n, r)
				want = append(want, llama.Part{Text: &hosts[i], Tokens: tokens, Want: r.IntN(n + 1)})
				got = append(got, llama.Part{Text: &texts[i], Tokens: tokens, Want: want[len(want)-1].Want})
			}
			if step == 18 { // memory that a machine's sleep has lost
				if err := w.m.params.parts.write(make([]float32, w.Layout().Len())); err != nil {
					t.Fatal(err)
				}
			}
			if err := host.Step(want); err != nil {
				t.Fatal(err)
			}
			if err := on.Step(got); err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if !slices.Equal(got[k].Logits, want[k].Logits) {
					t.Errorf("%s, step %d: other logits of part %d of %d", name, step, k, len(want))
				}
			}
			if failed := step >= 18; failed != (len(told) == 1) {
				t.Errorf("%s, step %d: told %v", name, step, told)
			}
		}
	}
}
