package checkpoint

import (
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/tensor"
)

// granite is smol as a Granite.
var granite = strings.NewReplacer("LlamaForCausalLM", "GraniteForCausalLM", `"model_type": "llama"`,
	`"model_type": "granite", "embedding_multiplier": 12, "attention_multiplier": 0.25, "residual_multiplier": 0.5, "logits_scaling": 8`).Replace(smol)

// A class that is folded says all of its factors, and no checkpoint of ours is of one. What it
// computes is compared with transformers in package model.
func TestFoldedClassesSayWhatTheyAre(t *testing.T) {
	c, f, err := parseConfig([]byte(granite))
	if want := (fold{embedding: 12, query: 0.25 * 8, residual: 0.5, norm: 1. / 8 / 12}); err != nil || f != want || !c.Tied {
		t.Errorf("%+v, %v", f, err)
	}
	if kind, _ := c.architecture(); kind != "llama" {
		t.Errorf("it becomes a %s", kind)
	}
	for old, want := range map[string]string{
		`"logits_scaling": 8`: "logits_scaling", `"embedding_multiplier": 12, `: "embedding_multiplier", `, "rope_theta": 100000`: "rope_theta",
		`"tie_word_embeddings": true,`: "tie_word_embeddings", `"rms_norm_eps": 1e-05, `: "rms_norm_eps",
	} {
		text := strings.Replace(strings.Replace(granite, old, "", 1), `0.5, ,`, `0.5,`, 1)
		if _, _, err := parseConfig([]byte(text)); text == granite || err == nil || !strings.Contains(err.Error(), "must be there: "+want) {
			t.Errorf("without %s: %v", old, err)
		}
	}
	if _, _, err := parseConfig([]byte(strings.Replace(granite, `"residual_multiplier": 0.5`, `"residual_multiplier": -1`, 1))); err == nil {
		t.Error("a multiplier below 0 is taken")
	}
	seed := strings.NewReplacer("LlamaForCausalLM", "SeedOssForCausalLM", `"model_type": "llama"`, `"model_type": "seed_oss", "attention_out_bias": false, "head_dim": 64`,
		`"attention_bias": false`, `"attention_bias": true`).Replace(smol)
	if c, f, err := parseConfig([]byte(seed)); err != nil || !c.Bias || f != (fold{}) {
		t.Errorf("a Seed-OSS: %+v, %+v, %v", c, f, err)
	}
}

// Rows of a head come in the order of llama.cpp's, turned back.
func TestHalvesOfHeads(t *testing.T) {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "model.layers.0.self_attn.k_proj.weight", Shape: []int{8, 2}}})
	x := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	fold{pairs: true}.apply(Config{HeadDim: 4}, layout, x)
	if want := []float32{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}; !slices.Equal(x, want) {
		t.Errorf("%v", x)
	}
}
