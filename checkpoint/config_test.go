package checkpoint

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNumbersOfTypeFloatAreWrittenAsFloats(t *testing.T) {
	b := string(example().Config.configBytes(BF16))
	for _, want := range []string{
		`"rope_theta": 10000.0,`, `"rms_norm_eps": 1e-05,`, `"attention_dropout": 0.0,`, `"rope_type": "default"`, `"dtype": "bfloat16"`, `"torch_dtype": "bfloat16"`,
		`"bos_token_id": null`, `"eos_token_id": 0`, `"model_type": "llama"`,
	} {
		if !strings.Contains(b, want) {
			t.Errorf("%s is not in\n%s", want, b)
		}
	}
	for v, want := range map[float64]float{10000: "10000.0", 500000: "500000.0", 1e-6: "1e-06", 0.5: "0.5", 1e30: "1e+30"} {
		if got := newFloat(v, 64); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if !json.Valid(example().Config.generationBytes()) {
		t.Error("generation_config.json is not JSON")
	}
}

// smol is config.json of HuggingFaceTB/SmolLM2-135M as transformers 4 wrote it.
const smol = `{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
  "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": true,
  "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true, "vocab_size": 49152
}`

func TestNumericsAreWrittenAndRead(t *testing.T) {
	c := example().Config
	if strings.Contains(string(c.configBytes(F32)), "numerics") {
		t.Error("binary32 is named, which changes old checkpoints")
	}
	c.Numerics = "exact8"
	b := c.configBytes(F32)
	if got, err := ParseConfig(b); err != nil || got.Numerics != "exact8" {
		t.Errorf("read as %q, %v", got.Numerics, err)
	}
	if _, err := ParseConfig([]byte(strings.Replace(string(b), "exact8", "int4", 1))); err == nil || !strings.Contains(err.Error(), `numerics is "int4"`) {
		t.Errorf("other numerics: %v", err)
	}
}

func TestConfigsOfOthersAreRead(t *testing.T) {
	c, err := ParseConfig([]byte(smol))
	if err != nil {
		t.Fatal(err)
	}
	if c.BOS == nil || *c.BOS != 0 || c.EOS == nil || *c.EOS != 0 {
		t.Errorf("got %v, %v", c.BOS, c.EOS)
	}
	c.BOS, c.EOS = nil, nil
	if want := (Config{Vocab: 49152, Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, FFN: 1536, Context: 8192, Theta: 100000, Eps: 1e-5, Tied: true}); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	edit := func(old, new string) string {
		s := strings.Replace(smol, old, new, 1)
		if s == smol {
			t.Fatalf("%q is not in the example", old)
		}
		return s
	}
	c, err = ParseConfig([]byte(edit(`"rope_theta": 100000`, `"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}`)))
	if err != nil || c.Theta != 5000 {
		t.Errorf("spelling of transformers 5: got theta %v, %v", c.Theta, err)
	}
	c, err = ParseConfig([]byte(edit(`"eos_token_id": 0`, `"eos_token_id": [7, 8]`)))
	if err != nil || *c.EOS != 7 {
		t.Errorf("several end tokens: got %v", err)
	}
	c, err = ParseConfig([]byte(edit(`"rms_norm_eps": 1e-05, `, ``)))
	if err != nil || c.Eps != 1e-6 {
		t.Errorf("default eps: got %v, %v", c.Eps, err)
	}
	for _, r := range []struct{ old, new, want string }{
		{`"model_type": "llama"`, `"model_type": "gemma"`, "gemma"},
		{`"hidden_act": "silu"`, `"hidden_act": "gelu"`, "gelu"},
		{`"attention_bias": false`, `"attention_bias": true`, "biases"},
		{`"rope_scaling": null`, `"rope_scaling": {"rope_type": "llama3", "factor": 8}`, "low_freq_factor"},
		{`"rope_scaling": null`, `"rope_scaling": {"type": "yarn", "factor": 8}`, "scaled"},
		{`"rope_scaling": null`, `"rope_parameters": {"rope_theta": 5}`, "rope_theta"},
		{`"vocab_size": 49152`, `"vocab_size": 16777217`, "vocab_size"},
		{`"hidden_size": 576`, `"hidden_size": 577`, "multiple"},
		{`"num_key_value_heads": 3`, `"num_key_value_heads": 2`, "multiple"},
		{`"num_hidden_layers": 30, `, ``, "num_hidden_layers is 0"},
		{`"rope_theta": 100000`, `"rope_theta": -1`, "not positive"},
		{`"rms_norm_eps": 1e-05`, `"rms_norm_eps": 0.0`, "not positive"},
		{`"rms_norm_eps": 1e-05`, `"rms_norm_eps": 1e300`, "rms_norm_eps"},
		{`"eos_token_id": 0`, `"eos_token_id": 49152`, "eos_token_id"},
		{`"eos_token_id": 0`, `"eos_token_id": "x"`, "eos_token_id"},
		{`"hidden_size": 576`, `"hidden_size": "576"`, "hidden_size"},
	} {
		if _, err := ParseConfig([]byte(edit(r.old, r.new))); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: got %v, want an error with %q", r.new, err, r.want)
		}
	}
	if _, err := ParseConfig(make([]byte, ConfigBytesMax+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

// What config.json says of relatives of Llama is read and written again.
func TestRelativesOfLlamaAreRead(t *testing.T) {
	other := func(kind, class, more string) string {
		s := strings.Replace(smol, "LlamaForCausalLM", class, 1)
		s = strings.Replace(s, `"model_type": "llama"`, `"model_type": "`+kind+`"`, 1)
		return strings.Replace(s, "{", "{"+more, 1)
	}
	plain, err := ParseConfig([]byte(smol))
	if err != nil {
		t.Fatal(err)
	}
	llama3 := `{"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192`
	for name, c := range map[string]struct {
		text string
		want func(c *Config)
	}{
		"qwen2": {other("qwen2", "Qwen2ForCausalLM", `"sliding_window": 32768, "max_window_layers": 21, "use_sliding_window": false,`),
			func(c *Config) { c.Bias = true }},
		"qwen2, whose window reaches all": {other("qwen2", "Qwen2ForCausalLM", `"sliding_window": 8192, "use_sliding_window": true,`),
			func(c *Config) { c.Bias = true }},
		"qwen2, none of whose layers has a window": {other("qwen2", "Qwen2ForCausalLM", `"sliding_window": 512, "use_sliding_window": true, "max_window_layers": 30,`),
			func(c *Config) { c.Bias = true }},
		"qwen2, whose layers are all full": {other("qwen2", "Qwen2ForCausalLM", `"sliding_window": 512, "use_sliding_window": true, "layer_types": ["full_attention"],`),
			func(c *Config) { c.Bias = true }},
		"qwen2, which has biases anyway": {strings.Replace(other("qwen2", "Qwen2ForCausalLM", ``), `"attention_bias": false`, `"attention_bias": true`, 1),
			func(c *Config) { c.Bias = true }},
		"qwen3": {other("qwen3", "Qwen3ForCausalLM", `"sliding_window": null, "layer_types": ["full_attention"],`),
			func(c *Config) { c.QKNorm, c.HeadDim = true, 128 }},
		"mistral":           {other("mistral", "MistralForCausalLM", `"sliding_window": 1024,`), func(c *Config) { c.Window = 1024 }},
		"mistral, default":  {other("mistral", "MistralForCausalLM", ``), func(c *Config) { c.Window = 4096 }},
		"mistral, none":     {other("mistral", "MistralForCausalLM", `"sliding_window": null,`), func(*Config) {}},
		"mistral, as large": {other("mistral", "MistralForCausalLM", `"sliding_window": 8192,`), func(*Config) {}},
		"llama 3": {strings.Replace(smol, `"rope_scaling": null`, `"rope_scaling": `+llama3+"}", 1),
			func(c *Config) { c.Rope = Rope{32, 1, 4, 8192} }},
		"llama 3, transformers 5": {strings.Replace(smol, `"rope_scaling": null`, `"rope_parameters": `+llama3+`, "rope_theta": 100000.0}`, 1),
			func(c *Config) { c.Rope = Rope{32, 1, 4, 8192} }},
		"llama 3, its first context beside": {strings.Replace(smol, `"rope_scaling": null`,
			`"original_max_position_embeddings": 4096, "rope_scaling": `+strings.TrimSuffix(llama3, `, "original_max_position_embeddings": 8192`)+"}", 1),
			func(c *Config) { c.Rope = Rope{32, 1, 4, 4096} }},
		"llama 3, without its first context": {strings.Replace(smol, `"rope_scaling": null`,
			`"rope_scaling": `+strings.TrimSuffix(llama3, `, "original_max_position_embeddings": 8192`)+"}", 1),
			func(c *Config) { c.Rope = Rope{32, 1, 4, 8192} }},
		"theta in rope_scaling": {strings.Replace(smol, `"rope_scaling": null, "rope_theta": 100000`, `"rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 5000}`, 1),
			func(c *Config) { c.Theta, c.Rope = 5000, linearRope(2) }},
	} {
		got, err := ParseConfig([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := plain
		c.want(&want)
		want.BOS, want.EOS = got.BOS, got.EOS
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		again, err := ParseConfig(got.configBytes(BF16))
		again.BOS, again.EOS = got.BOS, got.EOS
		if err != nil || again != got {
			t.Errorf("%s: %+v is read back as %+v, %v", name, got, again, err)
		}
	}
	for text, want := range map[string]string{
		other("qwen2", "Qwen2ForCausalLM", `"use_sliding_window": true, "sliding_window": 512,`):                                                       "Mistral and Phi-3 only",
		other("mistral", "MistralForCausalLM", `"sliding_window": 512, "layer_types": ["full_attention"],`):                                            "same in every layer",
		strings.Replace(other("qwen3", "Qwen3ForCausalLM", ``), `"attention_bias": false`, `"attention_bias": true`, 1):                                "Qwen2's",
		strings.Replace(smol, `"rope_scaling": null`, `"rope_parameters": `+llama3+`}, "rope_scaling": {"rope_type": "llama3", "factor": 2}`, 1):       "differ",
		strings.Replace(smol, `"rope_scaling": null`, `"rope_parameters": {"rope_theta": 100000}, "rope_scaling": {"type": "linear", "factor": 2}`, 1): "delete the one",
		strings.Replace(smol, `"rope_scaling": null`, `"rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 5}`, 1):                           "5 beside rope_type",
		strings.Replace(smol, `"rope_scaling": null`, `"original_max_position_embeddings": 4096, "rope_scaling": `+llama3+`}`, 1):                      "8192 beside",
		other("mistral", "MistralForCausalLM", `"use_sliding_window": false, "sliding_window": 512,`):                                                  "to null",
		other("qwen2", "Qwen2ForCausalLM", `"use_sliding_window": true, "max_window_layers": 0,`):                                                      "4096 tokens",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(smol))
	f.Add(example().Config.configBytes(F32))
	f.Add([]byte(strings.Replace(strings.Replace(smol, "LlamaForCausalLM", "MistralForCausalLM", 1), `"llama"`, `"mistral"`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig(b)
		if err != nil {
			return
		}
		again, err := ParseConfig(c.configBytes(F32))
		if err != nil {
			t.Fatalf("%q is read, but not when written again: %v", b, err)
		}
		c.BOS, c.EOS, again.BOS, again.EOS = nil, nil, nil, nil
		if c != again {
			t.Fatalf("%+v is read back as %+v", c, again)
		}
	})
}
