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
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original int     `json:"original_max_position_embeddings"`

	Theta   *float64 `json:"rope_theta"`
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
	Partial *float64 `json:"partial_rotary_factor"` // of Phi-3; Llama and the others ignore it
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

// fill sets fields that are missing in b where transformers has other defaults than Llama's.
func (r *readConfig) fill(b []byte) {
	if r.Context == 0 {
		r.Context = map[string]int{mistral: 131072, phi3: 4096, "qwen2": 32768, "qwen3": 32768}[r.ModelType]
		if r.Context == 0 {
			r.Context = 2048
		}
	}
	if r.ModelType == "qwen3" && r.HeadDim == nil {
		r.HeadDim = new(128)
	}
	if r.ModelType == phi3 && r.KVHeads == nil {
		r.KVHeads = &r.Heads
	}
	if r.ModelType == phi3 && r.Eps == nil {
		r.Eps = new(1e-5)
	}
	var said map[string]json.RawMessage
	_ = json.Unmarshal(b, &said) // it is an object: r was read from it
	_, window := said["sliding_window"]
	switch {
	case r.ModelType == mistral && !window:
		r.Window = new(4096)
	case strings.HasPrefix(r.ModelType, "qwen") && r.UseWindow == nil:
		r.Window = nil // the missing use_sliding_window is false
	}
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
	Numerics      string          `json:"numerics"`     // entrain's own
	LoRA          *LoRA           `json:"lora"`         // entrain's own

	// Fields that select a different model.
	Architectures []string        `json:"architectures"`
	Window        *int            `json:"sliding_window"`
	UseWindow     *bool           `json:"use_sliding_window"`
	LayerTypes    []string        `json:"layer_types"`
	Quantization  json.RawMessage `json:"quantization_config"`
	PartialRotary *float64        `json:"partial_rotary_factor"`
}

// The values of model_type with windows. A Phi-3 is a Mistral some of whose matrices are joined in
// files of weights.
const (
	mistral = "mistral"
	phi3    = "phi3"
)

// classes are the known values of model_type, and their classes in transformers.
var classes = map[string]string{
	"llama": "LlamaForCausalLM", mistral: "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
	phi3: "Phi3ForCausalLM",
}

// window returns the sliding window, or 0.
func (r *readConfig) window() int {
	if r.Window == nil || r.UseWindow != nil && !*r.UseWindow {
		return 0
	}
	return *r.Window
}

// rope returns how angles are scaled.
func (r *readConfig) rope() (Rope, error) {
	var found []Rope
	for _, x := range []*readRope{r.Rope, r.RopeScaling} {
		switch {
		case x.plain() || x.name() == ropeDynamic:
		case x.name() == ropeLinear:
			found = append(found, linearRope(x.Factor))
		default:
			found = append(found, Rope{x.Factor, x.Low, x.High, x.Original})
		}
	}
	switch {
	case len(found) == 0:
		return Rope{}, nil
	case found[0] == Rope{}:
		return Rope{}, fmt.Errorf("config.json: rope_type is %q without its factors", ropeLlama3)
	case len(found) == 2 && found[0] != found[1]:
		return Rope{}, errors.New("config.json: rope_parameters and rope_scaling differ")
	}
	return found[0], nil
}

// unsupported returns every feature that entrain does not compute.
func (r *readConfig) unsupported() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("config.json: "+format, args...))
		}
	}
	class, known := classes[r.ModelType]
	fault(!known, "model_type is %.80q; known are llama, mistral, phi3, qwen2 and qwen3", r.ModelType)
	fault(known && len(r.Architectures) > 0 && !slices.Contains(r.Architectures, class),
		"architectures is %.80q, only %q is known", r.Architectures, class)
	fault(r.Act != "silu", "hidden_act is %.80q, only %q is known", r.Act, "silu")
	fault(known && r.ModelType != "llama" && r.KVHeads == nil, "num_key_value_heads is missing")
	fault(r.AttentionBias, "attention_bias: of layers with biases only Qwen2's are known")
	fault(r.MLPBias, "mlp_bias: layers with biases are not known")
	for _, rope := range []*readRope{r.Rope, r.RopeScaling} {
		if !rope.plain() && !slices.Contains([]string{ropeLlama3, ropeLinear, ropeDynamic}, rope.name()) {
			fault(true, "rotary embeddings scaled by %.80q are not known, only by %q, %q and %q", rope.name(), ropeLlama3, ropeLinear, ropeDynamic)
			break
		}
	}
	if r.ModelType == phi3 && r.Rope != nil && r.Rope.Partial != nil {
		r.PartialRotary = r.Rope.Partial
	}
	fault(r.PartialRotary != nil && *r.PartialRotary != 1, "partial_rotary_factor: only heads that are turned as a whole are known")
	full := r.ModelType != mistral && r.ModelType != phi3 && r.window() > 0 && r.window() < r.Context
	some := slices.ContainsFunc(r.LayerTypes, func(t string) bool {
		return t != "full_attention" && (t != "sliding_attention" || r.window() == 0)
	}) || r.window() > 0 && slices.Contains(r.LayerTypes, "full_attention")
	fault(full || some, "sliding windows are known in Mistral and Phi-3 only, and the same in every layer")
	if q := strings.TrimSpace(string(r.Quantization)); q != "" && q != "null" {
		fault(true, "quantization_config: take the weights as they were before they were quantized")
	}
	return errors.Join(faults...)
}

// ParseConfig reads a config.json, from entrain or another program, of a model that entrain can
// compute: a Llama, Mistral, Phi-3, Qwen2 or Qwen3 with SiLU, and angles that are not scaled,
// scaled as in Llama 3, or all by one factor. Its error lists every difference. A window as wide as
// the context is none, and so is a scaling that begins behind the context (dynamic).
func ParseConfig(b []byte) (Config, error) {
	if len(b) > ConfigBytesMax {
		return Config{}, fmt.Errorf("config.json has %d bytes, more than %d", len(b), ConfigBytesMax)
	}
	r := readConfig{Act: "silu"}
	if err := json.Unmarshal(b, &r); err != nil {
		if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s: a %s is not what belongs there", other.Field, other.Value)
		}
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	r.fill(b)
	if err := r.unsupported(); err != nil {
		return Config{}, err
	}
	c := Config{
		Vocab: r.Vocab, Hidden: r.Hidden, FFN: r.FFN, Layers: r.Layers, Heads: r.Heads, Context: r.Context, Tied: r.Tied, BOS: r.BOS, Numerics: r.Numerics, LoRA: r.LoRA,
		KVHeads: r.Heads, Theta: 10000, Eps: 1e-6,
	}
	c.Bias, c.QKNorm = r.ModelType == "qwen2", r.ModelType == "qwen3"
	if w := r.window(); w < c.Context {
		c.Window = w
	}
	var err error
	if c.Rope, err = r.rope(); err != nil {
		return Config{}, err
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
