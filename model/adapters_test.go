package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// adapterKinds are models of several classes, and adapters of all and of some of their matrices.
func adapterKinds() map[string]llama.Config {
	c := llama.Config{Vocab: 260, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 128, Theta: 10000, Eps: 1e-5}
	qwen2, qwen3 := c, c
	c.LoRA = llama.LoRA{Rank: 8, Alpha: 24, Targets: llama.AllTargets}
	qwen2.Bias, qwen2.LoRA = true, llama.LoRA{Rank: 3, Alpha: 4, Targets: 1<<0 | 1<<2}
	qwen3.QKNorm, qwen3.Tied, qwen3.LoRA = true, true, llama.LoRA{Rank: 5, Alpha: 5, Targets: 1<<1 | 1<<3 | 1<<6}
	return map[string]llama.Config{"llama": c, "qwen2": qwen2, "qwen3": qwen3}
}

// noise returns n numbers between -by and by.
func noise(name string, n int, by float32) []float32 {
	source := prng.New(wire.Sum("entrain/test", []byte(name)), "adapters")
	x := make([]float32, n)
	for i := range x {
		x[i] = by * (float32(source.Uint64n(1<<20))/(1<<19) - 1)
	}
	return x
}

// save writes a checkpoint of params with cfg's layout.
func save(t *testing.T, dir string, cfg llama.Config, params []float32, base wire.Hash) {
	t.Helper()
	config := CheckpointConfig(cfg)
	if config.LoRA != nil {
		config.LoRA.Base = base
	}
	_, err := Write(t.Context(), dir, checkpoint.Model{Run: "test", Config: config, Tokenizer: tokenizer.Bytes{}, Layout: cfg.Layout(), Params: params}, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
}

// testAdapters talks to relatives.py, which has imported what it takes. What a run of adapters writes
// is to PEFT the model that the run trained: logits, loss and gradients of the adapters; and so is
// the merged model to transformers.
func testAdapters(t *testing.T, in io.Writer, out *bufio.Scanner) {
	dir := t.TempDir()
	tokens := make([]uint32, 2*97)
	source := prng.New(wire.Sum("entrain/test"), "tokens")
	for i := range tokens {
		tokens[i] = uint32(source.Uint64n(260))
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "tokens.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "adapters", list)
	for name, cfg := range adapterKinds() {
		t.Run(name, func(t *testing.T) {
			base, own := llama.Init(cfg.Base(), wire.Sum("base")), noise(name, cfg.Layout().Len(), 0.2)
			for i, v := range noise("base"+name, len(base), 0.15) {
				base[i] += v
			}
			path := func(what string) string { return filepath.Join(dir, name+"-"+what) }
			save(t, path("base"), cfg.Base(), base, wire.Hash{})
			save(t, path("adapters"), cfg, own, merkle.BlobRoot(tensor.Bytes(base)))
			m, err := OpenOn(path("adapters"), path("base"))
			if err != nil {
				t.Fatal(err)
			}
			if err := WriteAs(t.Context(), path("merged"), m, checkpoint.F32); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(in, path("base"), path("adapters"), path("merged"), path("theirs"))
			var worst float64
			var trained int
			if !out.Scan() {
				t.Fatal("PEFT did not load what was written")
			}
			if _, err := fmt.Sscan(out.Text(), &worst, &trained); err != nil || worst > 1e-4 || trained != len(own) {
				t.Errorf("PEFT says %q, %v: the merged model is another, or it trains other adapters than %d numbers", out.Text(), err, len(own))
			}
			grad, dst := compareAnswers(t, m.Config, m.Params, path("theirs")), make([]float32, len(own))
			a, err := llama.NewAdapted(cfg, nil, base)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Gradient(dst, own, grad); err != nil {
				t.Fatal(err)
			}
			if far, where := gradientsApart(t, path("theirs")+".grad", cfg.Layout(), dst); !(far <= 1e-4) {
				t.Errorf("the gradient of %s differs by %g of its norm", where, far)
			}
		})
	}
}

// A merged model that is written again still says what it was made of.
func TestAModelWrittenAgainKeepsItsCard(t *testing.T) {
	cfg, at := adapterKinds()["llama"], filepath.Join(t.TempDir(), "merged")
	dir := t.TempDir()
	base := noise("base", cfg.Base().Layout().Len(), 0.1)
	save(t, filepath.Join(dir, "base"), cfg.Base(), base, wire.Hash{})
	save(t, filepath.Join(dir, "adapters"), cfg, noise("own", cfg.Layout().Len(), 0.1), merkle.BlobRoot(tensor.Bytes(base)))
	m, err := OpenOn(filepath.Join(dir, "adapters"), filepath.Join(dir, "base"))
	if err != nil {
		t.Fatal(err)
	}
	adapters := m.Saved.Manifest.Params.String()
	for range 2 {
		if err := WriteAs(t.Context(), at, m, checkpoint.BF16); err != nil {
			t.Fatal(err)
		}
		if m, err = Open(at); err != nil {
			t.Fatal(err)
		}
		card, err := m.Saved.Card()
		if want := []checkpoint.Fact{{Name: checkpoint.MergedWith, Value: adapters}}; err != nil || !slices.Equal(card.Facts, want) {
			t.Errorf("the card has %+v, %v, want %+v", card.Facts, err, want)
		}
		at += "-again"
	}
}

// Adapters are refused with a model whose parameters are others, one of another shape, other adapters, and none.
func TestAdaptersTakeNoOtherModel(t *testing.T) {
	dir := t.TempDir()
	cfg := adapterKinds()["llama"]
	base, own := noise("base", cfg.Base().Layout().Len(), 0.1), noise("own", cfg.Layout().Len(), 0.1)
	at := func(name string) string { return filepath.Join(dir, name) }
	hash := merkle.BlobRoot(tensor.Bytes(base))
	save(t, at("adapters"), cfg, own, hash)
	save(t, at("base"), cfg.Base(), base, wire.Hash{})
	base[7]++
	save(t, at("other"), cfg.Base(), base, wire.Hash{})
	for base, want := range map[string]string{"": "not on this machine", at("other"): "has the parameters", at("adapters"): "holds adapters too", at("none"): "not on this machine"} {
		if _, err := OpenOn(at("adapters"), base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q", base, err, want)
		}
	}
	if _, err := OpenOn(at("base"), at("base")); err == nil {
		t.Error("a whole model was taken as adapters")
	}
	if _, err := OpenOn(at("adapters"), at("base")); err != nil {
		t.Error(err)
	}
}
