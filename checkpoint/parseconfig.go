package checkpoint

import (
	"encoding/json"
	"fmt"
)

// readRope is what rope_parameters and rope_scaling may say.
type readRope struct {
	Theta   *float64 `json:"rope_theta"`
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
}

// plain tells whether the angles are not scaled.
func (r *readRope) plain() bool {
	return r == nil || (r.Type == "" || r.Type == "default") && (r.OldType == "" || r.OldType == "default")
}

// readConfig is config.json as others write it: fields that are not there have their defaults in transformers.
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
}

// ParseConfig reads a config.json, ours or another's, of a Llama that entrain can compute: no biases, SiLU, unscaled rotary embeddings.
func ParseConfig(b []byte) (Config, error) {
	if len(b) > ConfigBytesMax {
		return Config{}, fmt.Errorf("config.json has %d bytes, more than %d", len(b), ConfigBytesMax)
	}
	r := readConfig{Act: "silu", Context: 2048}
	if err := json.Unmarshal(b, &r); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	switch {
	case r.ModelType != "llama":
		return Config{}, fmt.Errorf("config.json: model_type is %.80q, only %q is known", r.ModelType, "llama")
	case r.Act != "silu":
		return Config{}, fmt.Errorf("config.json: hidden_act is %.80q, only %q is known", r.Act, "silu")
	case r.AttentionBias || r.MLPBias:
		return Config{}, fmt.Errorf("config.json: layers with biases are not known")
	case !r.Rope.plain() || !r.RopeScaling.plain():
		return Config{}, fmt.Errorf("config.json: scaled rotary embeddings are not known")
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
