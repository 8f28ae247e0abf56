package checkpoint

import (
	"strings"
	"testing"
)

// Whatever makes another model of a Llama is named, all of it at once; what others write of a plain one is no obstacle.
func TestWhatIsNotSupportedIsNamed(t *testing.T) {
	with := func(field string) []byte { return []byte(strings.Replace(smol, "{", "{"+field+",", 1)) }
	for field, want := range map[string]string{
		`"sliding_window": 4096`:                                                                "sliding windows",
		`"layer_types": ["full_attention", "sliding_attention"]`:                                "sliding windows",
		`"quantization_config": {"bits": 4}`:                                                    "quantized",
		`"partial_rotary_factor": 0.5`:                                                          "partial_rotary_factor",
		`"mlp_bias": true`:                                                                      "mlp_bias",
		`"is_causal": false`:                                                                    "is_causal",
		`"layer_types": ["chunked_attention"]`:                                                  "chunked_attention",
		`"layer_types": ["sliding_attention"]`:                                                  "says no width",
		`"auto_map": {"AutoModelForCausalLM": "modeling_my.MyForCausalLM"}`:                     "MyForCausalLM",
		`"rope_parameters": {"full_attention": {"rope_type": "default"}}`:                       "differ by layers",
		`"rope_parameters": {"rope_type": "linear", "factor": 2, "partial_rotary_factor": 0.5}`: "partial_rotary_factor",
	} {
		if _, err := ParseConfig(with(field)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", field, err, want)
		}
	}
	for _, field := range []string{`"sliding_window": null`, `"sliding_window": 4096, "use_sliding_window": false`, `"quantization_config": null`,
		`"layer_types": ["full_attention"]`, `"hidden_act": "swish"`,
		`"auto_map": {"AutoConfig": "configuration_my.MyConfig", "AutoModelForCausalLM": "modeling_my.LlamaForCausalLM"}`, `"is_causal": true`, `"partial_rotary_factor": 1.0`,
		`"rope_scaling": {"type": "dynamic", "factor": 2.0}`, `"rope_scaling": {"type": "linear", "factor": 2.0}`} {
		if _, err := ParseConfig(with(field)); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := ParseConfig([]byte(`{"model_type": "llama", "attention_bias": true, "hidden_act": "gelu", "rope_scaling": {"type": "yarn"}, "sliding_window": 7}`))
	for _, want := range []string{"attention_bias", "gelu", "yarn", "sliding"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, without %q", err, want)
		}
	}
	_, err = ParseConfig([]byte(`{"model_type": "gemma3n_text", "intermediate_size": [8, 8], "hidden_act": "gelu"}`))
	if err == nil || !strings.Contains(err.Error(), "gemma3n_text") || strings.Contains(err.Error(), "gelu") {
		t.Errorf("a class that is not known: %v", err)
	}
	phi := strings.NewReplacer("LlamaForCausalLM", "Phi3ForCausalLM", `"model_type": "llama"`, `"model_type": "phi3"`,
		`"rope_scaling": null`, `"rope_parameters": {"partial_rotary_factor": 0.75}`).Replace(smol)
	if _, err := ParseConfig([]byte(phi)); err == nil || !strings.Contains(err.Error(), "partial_rotary_factor") {
		t.Errorf("a Phi-3 that turns a part of each head: %v", err)
	}
	other := strings.Replace(smol, "LlamaForCausalLM", "LlamaForSequenceClassification", 1)
	if _, err := ParseConfig([]byte(other)); other == smol || err == nil || !strings.Contains(err.Error(), "SequenceClassification") {
		t.Errorf("a Llama that writes nothing: %v", err)
	}
}
