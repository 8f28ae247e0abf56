package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// readRope is the contents of rope_parameters and rope_scaling.
type readRope struct {
	Theta   *float64 `json:"rope_theta"`
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
}

// name returns the type of scaling.
func (r *readRope) name() string {
	if r.Type != "" {
		return r.Type
	}
	return r.OldType
}

// plain reports whether the angles are not scaled.
func (r *readRope) plain() bool {
	return r == nil || (r.Type == "" || r.Type == "default") && (r.OldType == "" || r.OldType == "default")
}

// readConfig is config.json as other programs write it: missing fields have their defaults in
// transformers.
type readConfig struct {
	ModelType     string          `json:"model_type"`
	Act           string          `json:"hidden_act"`
	AttentionBias bool            `json:"attention_bias"`
	MLPBias       bool            `json:"mlp_bias"`
	Vocab         int             `json:"vocab_size"`
	Hidden        int             `json:"hidden_size"`
	FFN           int             `json:"intermediate_size"`
	Layers        int             `json:"num_hidden_layers"`
	Heads         int             `json:"num_attention_heads"`
	KVHeads       *int            `json:"num_key_value_heads"`
	HeadDim       *int            `json:"head_dim"`
	Context       int             `json:"max_position_embeddings"`
	Eps           *float64        `json:"rms_norm_eps"`
	Theta         *float64        `json:"rope_theta"`
	Rope          *readRope       `json:"rope_parameters"`
	RopeScaling   *readRope       `json:"rope_scaling"`
	Tied          bool            `json:"tie_word_embeddings"`
	BOS           *uint32         `json:"bos_token_id"`
	EOS           json.RawMessage `json:"eos_token_id"` // one id, several, or null

	// Fields that select a different model.
	Architectures []string        `json:"architectures"`
	Window        *int            `json:"sliding_window"`
	UseWindow     *bool           `json:"use_sliding_window"`
	LayerTypes    []string        `json:"layer_types"`
	Quantization  json.RawMessage `json:"quantization_config"`
	PartialRotary *float64        `json:"partial_rotary_factor"`
}

// unsupported returns every feature that entrain does not compute.
func (r *readConfig) unsupported() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("config.json: "+format, args...))
		}
	}
	const causal = "LlamaForCausalLM"
	fault(r.ModelType != "llama", "model_type is %.80q, only %q is known", r.ModelType, "llama")
	fault(r.ModelType == "llama" && len(r.Architectures) > 0 && !slices.Contains(r.Architectures, causal),
		"architectures is %.80q, only %q is known", r.Architectures, causal)
	fault(r.Act != "silu", "hidden_act is %.80q, only %q is known", r.Act, "silu")
	fault(r.AttentionBias, "attention_bias: layers with biases are not known")
	fault(r.MLPBias, "mlp_bias: layers with biases are not known")
	for _, rope := range []*readRope{r.Rope, r.RopeScaling} {
		if !rope.plain() {
			fault(true, "scaled rotary embeddings (%.80q) are not known", rope.name())
			break
		}
	}
	fault(r.PartialRotary != nil && *r.PartialRotary != 1, "partial_rotary_factor: only heads that are turned as a whole are known")
	windows := r.Window != nil && (r.UseWindow == nil || *r.UseWindow)
	others := slices.ContainsFunc(r.LayerTypes, func(t string) bool { return t != "full_attention" })
	fault(windows || others, "sliding windows are not known: every layer has to attend to all that came before")
	if q := strings.TrimSpace(string(r.Quantization)); q != "" && q != "null" {
		fault(true, "quantization_config: take the weights as they were before they were quantized")
	}
	return errors.Join(faults...)
}

// ParseConfig reads a config.json, from entrain or another program, of a Llama that entrain can
// compute: no biases, SiLU, unscaled rotary embeddings, full causal attention. Its error lists
// every difference.
func ParseConfig(b []byte) (Config, error) {
	if len(b) > ConfigBytesMax {
		return Config{}, fmt.Errorf("config.json has %d bytes, more than %d", len(b), ConfigBytesMax)
	}
	r := readConfig{Act: "silu", Context: 2048}
	if err := json.Unmarshal(b, &r); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	if err := r.unsupported(); err != nil {
		return Config{}, err
	}
	c := Config{
		Vocab: r.Vocab, Hidden: r.Hidden, FFN: r.FFN, Layers: r.Layers, Heads: r.Heads, Context: r.Context, Tied: r.Tied, BOS: r.BOS,
		KVHeads: r.Heads, Theta: 10000, Eps: 1e-6,
	}
	if r.KVHeads != nil {
		c.KVHeads = *r.KVHeads
	}
	if r.Eps != nil {
		c.Eps = float32(*r.Eps)
	}
	if r.HeadDim != nil {
		c.HeadDim = *r.HeadDim
	} else if c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if r.Theta != nil {
		c.Theta = *r.Theta
	}
	if r.Rope != nil && r.Rope.Theta != nil {
		if r.Theta != nil && *r.Theta != *r.Rope.Theta {
			return Config{}, fmt.Errorf("config.json: rope_theta is %v and in rope_parameters %v", *r.Theta, *r.Rope.Theta)
		}
		c.Theta = *r.Rope.Theta
	}
	if len(r.EOS) > 0 {
		if err := json.Unmarshal(r.EOS, &c.EOS); err != nil {
			var several []uint32
			if json.Unmarshal(r.EOS, &several) != nil || len(several) == 0 {
				return Config{}, fmt.Errorf("config.json: eos_token_id: %w", err)
			}
			c.EOS = &several[0]
		}
	}
	if err := c.Check(); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}
