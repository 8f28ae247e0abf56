package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	Partial *float64 `json:"partial_rotary_factor"`

	Full    json.RawMessage `json:"full_attention"` // parameters of some layers
	Sliding json.RawMessage `json:"sliding_attention"`
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

// same reports whether r and o, whose missing theta is theta, say the same.
func (r *readRope) same(o *readRope, theta *float64) bool {
	var thetas [2]float64
	for i, t := range []*float64{r.Theta, o.Theta} {
		if t == nil {
			t = theta
		}
		if t != nil {
			thetas[i] = *t
		}
	}
	return r.plain() == o.plain() && (r.plain() || r.name() == o.name()) && thetas[0] == thetas[1] &&
		r.Factor == o.Factor && r.Low == o.Low && r.High == o.High && r.Original == o.Original
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
	if more, ok := folded[r.ModelType]; ok {
		for _, name := range append([]string{"max_position_embeddings", "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings"}, more...) {
			if v, ok := said[name]; !ok || string(v) == "null" {
				r.missing = append(r.missing, name)
			}
		}
		if r.Theta == nil && (r.Rope == nil || r.Rope.Theta == nil) && (r.RopeScaling == nil || r.RopeScaling.Theta == nil) {
			r.missing = append(r.missing, "rope_theta")
		}
	}
	_, window := said["sliding_window"]
	switch {
	case r.ModelType == mistral && !window:
		r.Window = new(4096)
	case r.ModelType == "llama" && r.UseWindow != nil && !*r.UseWindow:
		r.Window = nil
	case strings.HasPrefix(r.ModelType, "qwen"):
		if r.UseWindow == nil || !*r.UseWindow {
			r.Window = nil
		} else if !window {
			r.Window = new(4096)
		}
		if r.WindowsFrom == nil {
			r.WindowsFrom = new(28)
		}
		if len(r.LayerTypes) == 0 && *r.WindowsFrom >= r.Layers || len(r.LayerTypes) > 0 && !slices.Contains(r.LayerTypes, slidingLayer) {
			r.Window = nil // of no layer
		}
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
	Original      *int            `json:"original_max_position_embeddings"` // beside rope_parameters
	Tied          bool            `json:"tie_word_embeddings"`
	BOS           *uint32         `json:"bos_token_id"`
	EOS           json.RawMessage `json:"eos_token_id"` // one id, several, or null
	Numerics      string          `json:"numerics"`     // entrain's own
	LoRA          *LoRA           `json:"lora"`         // entrain's own

	// Factors of a Granite.
	Embedding float64 `json:"embedding_multiplier"`
	Attention float64 `json:"attention_multiplier"`
	Residual  float64 `json:"residual_multiplier"`
	Scaling   float64 `json:"logits_scaling"`

	missing []string // fields that config.json must say

	// Fields that select a different model.
	OutBias       bool            `json:"attention_out_bias"`
	UseBias       bool            `json:"use_bias"`
	Architectures []string        `json:"architectures"`
	Window        *int            `json:"sliding_window"`
	UseWindow     *bool           `json:"use_sliding_window"`
	WindowsFrom   *int            `json:"max_window_layers"`
	LayerTypes    []string        `json:"layer_types"`
	Quantization  json.RawMessage `json:"quantization_config"`
	PartialRotary *float64        `json:"partial_rotary_factor"`
	Causal        *bool           `json:"is_causal"`
	Code          struct {
		Model string `json:"AutoModelForCausalLM"`
	} `json:"auto_map"`
}

// The values of model_type with windows. A Phi-3 is a Mistral some of whose matrices are joined in
// files of weights.
const (
	mistral = "mistral"
	phi3    = "phi3"
)

// The values of layer_types that are known.
const (
	fullLayer    = "full_attention"
	slidingLayer = "sliding_attention"
)

// classes are the known values of model_type, and their classes in transformers.
var classes = map[string]string{
	"llama": "LlamaForCausalLM", mistral: "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
	phi3: "Phi3ForCausalLM", "granite": "GraniteForCausalLM", "ernie4_5": "Ernie4_5ForCausalLM", "helium": "HeliumForCausalLM", "seed_oss": "SeedOssForCausalLM",
}

// window returns the sliding window, or 0.
func (r *readConfig) window() int {
	if r.Window == nil {
		return 0
	}
	return *r.Window
}

// rope returns how angles are scaled, and rope_theta. Of the two places that have both, each
// version of transformers prefers another, so they may not differ.
func (r *readConfig) rope() (scaled Rope, theta float64, err error) {
	said, theta := r.Rope, 10000.0
	if r.RopeScaling != nil {
		if said = r.RopeScaling; r.Rope != nil && !r.Rope.same(said, r.Theta) {
			return Rope{}, 0, errors.New("config.json: rope_parameters and rope_scaling differ: delete the one that is wrong")
		}
	}
	if r.Theta != nil {
		theta = *r.Theta
	}
	if said == nil {
		return Rope{}, theta, nil
	}
	if said.Theta != nil {
		if r.Theta != nil && *r.Theta != *said.Theta {
			return Rope{}, 0, fmt.Errorf("config.json: rope_theta is %v, and %v beside rope_type", *r.Theta, *said.Theta)
		}
		theta = *said.Theta
	}
	switch {
	case said.plain() || said.name() == ropeDynamic:
		return Rope{}, theta, nil
	case said.name() == ropeLinear:
		return linearRope(said.Factor), theta, nil
	}
	scaled = Rope{said.Factor, said.Low, said.High, said.Original}
	switch {
	case scaled == Rope{}:
		return Rope{}, 0, fmt.Errorf("config.json: rope_type is %q without its factors", ropeLlama3)
	case r.Original != nil && scaled.Original != 0 && scaled.Original != *r.Original:
		return Rope{}, 0, fmt.Errorf("config.json: original_max_position_embeddings is %d, and %d beside rope_type", *r.Original, scaled.Original)
	case r.Original != nil:
		scaled.Original = *r.Original
	case scaled.Original == 0:
		scaled.Original = r.Context
	}
	return scaled, theta, nil
}

// unsupported returns every feature that entrain does not compute.
func (r *readConfig) unsupported() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("config.json: "+format, args...))
		}
	}
	class := classes[r.ModelType]
	fault(len(r.Architectures) > 0 && !slices.Contains(r.Architectures, class),
		"architectures is %.80q, only %q is known", r.Architectures, class)
	code := r.Code.Model[strings.LastIndexByte(r.Code.Model, '.')+1:]
	fault(code != "" && code != class, "auto_map: the model has code of its own, %.80q, which may compute what %s does not; if it does not, delete auto_map", code, class)
	fault(r.Act != "silu" && r.Act != "swish", "hidden_act is %.80q, only %q is known", r.Act, "silu")
	fault(r.ModelType != "llama" && r.KVHeads == nil, "num_key_value_heads is missing")
	fault(len(r.missing) > 0, "of a %s these must be there: %s", r.ModelType, strings.Join(r.missing, ", "))
	for _, f := range []float64{r.Embedding, r.Attention, r.Residual, r.Scaling} {
		fault(r.ModelType == "granite" && !(f > 0 && f < 1e6), "a multiplier of a granite is %v, not above 0 and below 1e6", f)
	}
	fault(r.OutBias || r.UseBias, "attention_out_bias, use_bias: of layers with biases only Qwen2's are known")
	fault(r.AttentionBias && r.ModelType != "qwen2" && r.ModelType != "seed_oss", "attention_bias: of layers with biases only Qwen2's are known")
	fault(r.MLPBias, "mlp_bias: layers with biases are not known")
	fault(r.Causal != nil && !*r.Causal, "is_causal: a model whose tokens see those after them writes no text")
	for _, rope := range []*readRope{r.Rope, r.RopeScaling} {
		if rope == nil {
			continue
		}
		if !rope.plain() && !slices.Contains([]string{ropeLlama3, ropeLinear, ropeDynamic}, rope.name()) {
			short := ""
			if rope.name() == "yarn" {
				short = "; if the model's card says that short texts need no scaling, as Qwen's do, delete it and set max_position_embeddings to the context without it"
			}
			fault(true, "rotary embeddings scaled by %.80q are not known, only by %q, %q and %q%s", rope.name(), ropeLlama3, ropeLinear, ropeDynamic, short)
			break
		}
		fault(len(rope.Full) > 0 || len(rope.Sliding) > 0, "rope_parameters differ by layers: only the same in all layers are known")
		if rope.Partial != nil {
			r.PartialRotary = rope.Partial
		}
	}
	fault(r.PartialRotary != nil && *r.PartialRotary != 1, "partial_rotary_factor: only heads that are turned as a whole are known")
	w, windows := r.window(), r.ModelType == mistral || r.ModelType == phi3
	for _, t := range r.LayerTypes {
		fault(t != fullLayer && t != slidingLayer, "layer_types: %.80q is not known", t)
	}
	fault(w == 0 && slices.Contains(r.LayerTypes, slidingLayer), "layer_types has sliding windows, but sliding_window says no width")
	fault(w > 0 && w < r.Context && (!windows || slices.Contains(r.LayerTypes, fullLayer)),
		"sliding windows are known in Mistral and Phi-3 only, and the same in every layer; in texts of up to %d tokens they change nothing: set max_position_embeddings to that", w)
	fault(w > 0 && w < r.Context && windows && r.UseWindow != nil && !*r.UseWindow,
		"use_sliding_window is false, which transformers ignores in a %s: set sliding_window to null", r.ModelType)
	if q := strings.TrimSpace(string(r.Quantization)); q != "" && q != "null" {
		fault(true, "quantization_config: take the weights as they were before they were quantized")
	}
	return errors.Join(faults...)
}

// ParseConfig reads a config.json, from entrain or another program, of a model that entrain can
// compute: a Llama, Mistral, Phi-3, Qwen2 or Qwen3, or another class whose parameters an import
// makes those of a Llama, with SiLU, and angles that are not scaled, scaled as in Llama 3, or all
// by one factor. Its error lists every difference of a model of these
// classes. A window as wide as the context is none, and so is a scaling that begins behind the
// context (dynamic).
func ParseConfig(b []byte) (Config, error) {
	c, _, err := parseConfig(b)
	return c, err
}

// parseConfig is ParseConfig, and returns what an import does to the parameters.
func parseConfig(b []byte) (Config, fold, error) {
	if len(b) > ConfigBytesMax {
		return Config{}, fold{}, fmt.Errorf("config.json has %d bytes, more than %d", len(b), ConfigBytesMax)
	}
	var kind struct {
		ModelType string `json:"model_type"`
	}
	// Of another class, fields may have other types: only its name matters.
	if json.Unmarshal(b, &kind) == nil && classes[kind.ModelType] == "" {
		return Config{}, fold{}, fmt.Errorf("config.json: model_type is %.80q; entrain computes %s: choose a model of these", kind.ModelType,
			strings.Join(slices.Sorted(maps.Keys(classes)), ", "))
	}
	r := readConfig{Act: "silu"}
	if err := json.Unmarshal(b, &r); err != nil {
		if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s: a %s is not what belongs there", other.Field, other.Value)
		}
		return Config{}, fold{}, fmt.Errorf("config.json: %w", err)
	}
	r.fill(b)
	if err := r.unsupported(); err != nil {
		return Config{}, fold{}, err
	}
	c := Config{
		Vocab: r.Vocab, Hidden: r.Hidden, FFN: r.FFN, Layers: r.Layers, Heads: r.Heads, Context: r.Context, Tied: r.Tied, BOS: r.BOS, Numerics: r.Numerics, LoRA: r.LoRA,
		KVHeads: r.Heads, Eps: 1e-6,
	}
	c.Bias, c.QKNorm = r.ModelType == "qwen2" || r.ModelType == "seed_oss" && r.AttentionBias, r.ModelType == "qwen3"
	if w := r.window(); w < c.Context {
		c.Window = w
	}
	var err error
	if c.Rope, c.Theta, err = r.rope(); err != nil {
		return Config{}, fold{}, err
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
	if len(r.EOS) > 0 {
		if err := json.Unmarshal(r.EOS, &c.EOS); err != nil {
			var several []uint32
			if json.Unmarshal(r.EOS, &several) != nil || len(several) == 0 {
				return Config{}, fold{}, fmt.Errorf("config.json: eos_token_id: %w", err)
			}
			c.EOS = &several[0]
		}
	}
	if err := c.Check(); err != nil {
		return Config{}, fold{}, fmt.Errorf("config.json: %w", err)
	}
	return c, r.fold(c), nil
}
