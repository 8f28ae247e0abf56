package llama

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

func TestPresetsHaveTheSizesTheyAreNamedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
	}{{"tiny", 34976}, {"nano", 988544}, {"10m", 8916224}, {"50m", 49333248}, {"124m", 123551232}, {"350m", 359794688}, {"1b", 1100048384}} {
		cfg, err := Preset(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := cfg.Layout().Len(); got != c.want {
			t.Errorf("%s has %d parameters, want %d", c.name, got, c.want)
		}
	}
	if _, err := Preset("2b"); err == nil || !strings.Contains(err.Error(), `"2b"`) {
		t.Errorf("Preset of an unknown name: %v", err)
	}
}

func TestCheckReportsAllFaults(t *testing.T) {
	err := Config{Vocab: 1, Hidden: 0, Layers: MaxLayers + 1, Heads: 3, KVHeads: 2, HeadDim: 7, FFN: -1, Context: 1, Theta: math.NaN(), Eps: 0}.Check()
	if err == nil {
		t.Fatal("no error")
	}
	faults := strings.Split(err.Error(), "\n")
	for _, want := range []string{"vocab: 1", "hidden: 0", "layers: 1025", "heads: 3 must be a multiple of kv_heads, 2", "head_dim: 7 must be even",
		"ffn: -1", "theta: NaN", "eps: 0"} {
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("no fault begins %q in:\n%v", want, err)
		}
	}
	if len(faults) != 8 {
		t.Errorf("%d faults, want 8:\n%v", len(faults), err)
	}
	large := Config{Vocab: MaxVocab, Hidden: MaxHidden, Layers: MaxLayers, Heads: 1, KVHeads: 1, HeadDim: 2, FFN: MaxFFN, Context: 1, Theta: 1, Eps: 1}
	if err := large.Check(); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a model beyond any memory: %v", err)
	}
	if _, err := New(Config{}, nil, 1, 1); err == nil {
		t.Error("New accepts an empty Config")
	}
	if _, err := New(goldenConfig, nil, 1, goldenConfig.Context+1); err == nil {
		t.Error("New accepts a sequence longer than the context")
	}
}

func TestTensorsHaveTheNamesOfHuggingFace(t *testing.T) {
	cfg := Config{Vocab: 11, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 10, Context: 9, Theta: 100, Eps: 1e-5}
	for name, shape := range map[string][]int{
		"model.embed_tokens.weight":                      {11, 12},
		"model.layers.1.input_layernorm.weight":          {12},
		"model.layers.1.self_attn.q_proj.weight":         {24, 12},
		"model.layers.1.self_attn.k_proj.weight":         {12, 12},
		"model.layers.1.self_attn.v_proj.weight":         {12, 12},
		"model.layers.1.self_attn.o_proj.weight":         {12, 24},
		"model.layers.1.post_attention_layernorm.weight": {12},
		"model.layers.1.mlp.gate_proj.weight":            {10, 12},
		"model.layers.1.mlp.up_proj.weight":              {10, 12},
		"model.layers.1.mlp.down_proj.weight":            {12, 10},
		"model.norm.weight":                              {12},
		"lm_head.weight":                                 {11, 12},
	} {
		if got, ok := cfg.Layout().Find(name); !ok || !slices.Equal(got.Shape, shape) {
			t.Errorf("%s has shape %v, want %v", name, got.Shape, shape)
		}
	}
	if n := len(cfg.Layout().Tensors()); n != 3+2*cfg.tensorsPerLayer() {
		t.Errorf("%d tensors", n)
	}
	cfg.Tied = true
	if _, ok := cfg.Layout().Find("lm_head.weight"); ok {
		t.Error("a tied model has a head of its own")
	}
}

func TestInitPartsAreInit(t *testing.T) {
	cfg := Config{Vocab: 20000, Hidden: 64, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 50, Context: 9, Theta: 100, Eps: 1e-5,
		LoRA: LoRA{Rank: 4, Alpha: 8, Targets: AllTargets}}
	for _, cfg := range []Config{cfg, cfg.Base()} {
		var parts []float32
		InitParts(cfg, wire.Sum("a"), func(x []float32) { parts = append(parts, x...) })
		if !slices.Equal(parts, Init(cfg, wire.Sum("a"))) {
			t.Errorf("%d parameters differ from Init", len(parts))
		}
	}
}

func TestInitHasTheDeviationsItStates(t *testing.T) {
	cfg := Config{Vocab: 300, Hidden: 160, Layers: 8, Heads: 4, KVHeads: 2, HeadDim: 40, FFN: 300, Context: 9, Theta: 100, Eps: 1e-5}
	params := Init(cfg, wire.Sum("a"))
	if other := Init(cfg, wire.Sum("b")); slices.Equal(params, other) {
		t.Error("two seeds give the same parameters")
	}
	for _, tensor := range cfg.Layout().Tensors() {
		x := tensor.Of(params)
		want := math.Sqrt(2.0 / 5 / 160)
		switch {
		case len(tensor.Shape) == 1:
			if slices.Min(x) != 1 || slices.Max(x) != 1 {
				t.Errorf("%s: gains from %g to %g", tensor.Name, slices.Min(x), slices.Max(x))
			}
			continue
		case strings.Contains(tensor.Name, "embed"):
			want = 0.02
		case strings.Contains(tensor.Name, "o_proj"), strings.Contains(tensor.Name, "down_proj"):
			want /= 4
		}
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(len(x))
		if deviation := math.Sqrt(squares / n); math.Abs(deviation-want) > 0.04*want || math.Abs(sum/n) > 4*want/math.Sqrt(n) {
			t.Errorf("%s: mean %g, deviation %g, want 0 and %g", tensor.Name, sum/n, deviation, want)
		}
	}
}
