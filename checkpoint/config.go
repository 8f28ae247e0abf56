package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Config describes a Llama or one of its relatives, as config.json of Hugging Face does. Bias
// makes it a Qwen2, QKNorm a Qwen3, and Window a Mistral.
type Config struct {
	Vocab   int     // vocab_size
	Hidden  int     // hidden_size
	Layers  int     // num_hidden_layers
	Heads   int     // num_attention_heads
	KVHeads int     // num_key_value_heads
	HeadDim int     // head_dim
	FFN     int     // intermediate_size
	Context int     // max_position_embeddings
	Theta   float64 // rope_theta
	Eps     float32 // rms_norm_eps
	Tied    bool    // tie_word_embeddings
	BOS     *uint32 // bos_token_id; nil if texts begin with no token
	EOS     *uint32 // eos_token_id; nil if texts end with no token
	Bias    bool    // q_proj, k_proj and v_proj have biases
	QKNorm  bool    // heads of queries and keys have norms
	Window  int     // sliding_window of all layers; 0: none
	Rope    Rope    // rope_parameters; zero: the angles are not scaled
	// Numerics is "exact8" if the run computed its linear products in 8 bits, which other programs
	// ignore: numerics. "" is binary32.
	Numerics string
	LoRA     *LoRA // nil if the weights are a whole model's
}

// Rope is the scaling of rotary embeddings of rope_type llama3.
type Rope struct {
	Factor   float64 // factor
	Low      float64 // low_freq_factor
	High     float64 // high_freq_factor
	Original int     // original_max_position_embeddings
}

// architecture returns model_type and the class of transformers.
func (c Config) architecture() (kind, class string) {
	switch {
	case c.Bias:
		return "qwen2", "Qwen2ForCausalLM"
	case c.QKNorm:
		return "qwen3", "Qwen3ForCausalLM"
	case c.Window > 0:
		return "mistral", "MistralForCausalLM"
	}
	return "llama", "LlamaForCausalLM"
}

// Check returns everything that is wrong with c, or nil.
func (c Config) Check() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, d := range []struct {
		name  string
		value int
	}{
		{"vocab_size", c.Vocab}, {"hidden_size", c.Hidden}, {"num_hidden_layers", c.Layers}, {"num_attention_heads", c.Heads},
		{"num_key_value_heads", c.KVHeads}, {"head_dim", c.HeadDim}, {"intermediate_size", c.FFN}, {"max_position_embeddings", c.Context},
	} {
		fault(d.value < 1 || d.value > dimensionMax, "%s is %d, not in 1..%d", d.name, d.value, dimensionMax)
	}
	fault(c.Heads > 0 && c.Hidden%c.Heads != 0, "hidden_size %d is not a multiple of num_attention_heads %d, as transformers wants", c.Hidden, c.Heads)
	fault(c.KVHeads > 0 && c.Heads%c.KVHeads != 0, "num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	fault(c.HeadDim%2 != 0, "head_dim %d is odd", c.HeadDim)
	fault(!(c.Theta > 0) || math.IsInf(c.Theta, 0), "rope_theta %v is not positive", c.Theta)
	fault(!(c.Eps > 0) || math.IsInf(float64(c.Eps), 0), "rms_norm_eps %v is not positive", c.Eps)
	fault(c.Window < 0 || c.Window > dimensionMax, "sliding_window is %d, not in 0..%d", c.Window, dimensionMax)
	fault(c.Bias && c.QKNorm || c.Window > 0 && (c.Bias || c.QKNorm), "biases, norms of heads and a window: transformers has no class with two of them")
	if r := c.Rope; r != (Rope{}) {
		fault(!(r.Factor >= 1) || math.IsInf(r.Factor, 0), "factor of rope_parameters is %v, not at least 1", r.Factor)
		fault(!(r.Low > 0 && r.Low < r.High) || math.IsInf(r.High, 0), "low_freq_factor %v and high_freq_factor %v are not positive and ascending", r.Low, r.High)
		fault(r.Original < 1 || r.Original > dimensionMax, "original_max_position_embeddings is %d, not in 1..%d", r.Original, dimensionMax)
	}
	fault(c.Numerics != "" && c.Numerics != numerics8, "numerics is %.80q; it is %q, or missing", c.Numerics, numerics8)
	fault(c.BOS != nil && int64(*c.BOS) >= int64(c.Vocab), "bos_token_id is not below vocab_size %d", c.Vocab)
	fault(c.EOS != nil && int64(*c.EOS) >= int64(c.Vocab), "eos_token_id is not below vocab_size %d", c.Vocab)
	return errors.Join(append(errs, c.LoRA.check())...)
}

// numerics8 is the name of products in 8 bits.
const numerics8 = "exact8"

// float is a number that is written with a point or an exponent: transformers refuses whole numbers
// in fields of type float.
type float string

func newFloat(v float64, bits int) float {
	s := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return float(s)
}

// MarshalJSON writes the number as it is.
func (f float) MarshalJSON() ([]byte, error) { return []byte(f), nil }

// ropeJSON is rope_parameters of transformers 5, and rope_scaling of transformers 4.
type ropeJSON struct {
	Factor   float  `json:"factor,omitempty"`
	High     float  `json:"high_freq_factor,omitempty"`
	Low      float  `json:"low_freq_factor,omitempty"`
	Original int    `json:"original_max_position_embeddings,omitempty"`
	Theta    float  `json:"rope_theta"`
	Type     string `json:"rope_type"`
}

// The values of rope_type that are known. ropeDynamic changes nothing within the context.
const (
	ropeLlama3  = "llama3"
	ropeLinear  = "linear"
	ropeDynamic = "dynamic"
)

// linearRope returns the Rope that makes all rotations slower: the fastest is of less than a turn
// in one token.
func linearRope(factor float64) Rope { return Rope{Factor: factor, Low: 1, High: 2, Original: 1} }

// configJSON is config.json. Fields that were renamed between transformers 4 and 5 appear under
// both names. Token ids that do not exist are null: if omitted, they would default to Llama's 1 and
// 2.
type configJSON struct {
	Architectures    []string  `json:"architectures"`
	AttentionBias    bool      `json:"attention_bias"`
	AttentionDropout float     `json:"attention_dropout"`
	BOS              *uint32   `json:"bos_token_id"`
	DType            string    `json:"dtype"`
	EOS              *uint32   `json:"eos_token_id"`
	HeadDim          int       `json:"head_dim"`
	Act              string    `json:"hidden_act"`
	Hidden           int       `json:"hidden_size"`
	InitializerRange float     `json:"initializer_range"`
	FFN              int       `json:"intermediate_size"`
	Context          int       `json:"max_position_embeddings"`
	MLPBias          bool      `json:"mlp_bias"`
	ModelType        string    `json:"model_type"`
	Heads            int       `json:"num_attention_heads"`
	Layers           int       `json:"num_hidden_layers"`
	LoRA             *LoRA     `json:"lora,omitempty"`
	KVHeads          int       `json:"num_key_value_heads"`
	Numerics         string    `json:"numerics,omitempty"`
	PAD              *uint32   `json:"pad_token_id"`
	PretrainingTP    int       `json:"pretraining_tp"`
	Eps              float     `json:"rms_norm_eps"`
	Rope             ropeJSON  `json:"rope_parameters"`
	RopeScaling      *ropeJSON `json:"rope_scaling"`
	Theta            float     `json:"rope_theta"`
	Window           int       `json:"sliding_window,omitempty"`
	Tied             bool      `json:"tie_word_embeddings"`
	TorchDType       string    `json:"torch_dtype"`
	UseCache         bool      `json:"use_cache"`
	Vocab            int       `json:"vocab_size"`
}

// configBytes returns config.json for weights of type d.
func (c Config) configBytes(d DType) []byte {
	theta := newFloat(c.Theta, 64)
	rope := ropeJSON{Theta: theta, Type: "default"}
	var scaling *ropeJSON
	if r := c.Rope; r != (Rope{}) {
		rope.Type, rope.Factor = ropeLinear, newFloat(r.Factor, 64)
		if r != linearRope(r.Factor) {
			rope.Type, rope.Original, rope.Low, rope.High = ropeLlama3, r.Original, newFloat(r.Low, 64), newFloat(r.High, 64)
		}
		scaling = &rope
	}
	kind, class := c.architecture()
	return indent(configJSON{
		Architectures: []string{class}, ModelType: kind, Act: "silu", Window: c.Window, RopeScaling: scaling,
		Vocab: c.Vocab, Hidden: c.Hidden, FFN: c.FFN, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Context: c.Context,
		Numerics: c.Numerics, LoRA: c.LoRA, Eps: newFloat(float64(c.Eps), 32), Theta: theta, Rope: rope, Tied: c.Tied, BOS: c.BOS, EOS: c.EOS,
		AttentionDropout: "0.0", InitializerRange: "0.02", DType: d.torch(), TorchDType: d.torch(), PretrainingTP: 1, UseCache: true,
	})
}

// generationBytes returns generation_config.json. It selects sampling, because a small model that
// always takes the likeliest token repeats itself.
func (c Config) generationBytes() []byte {
	return indent(struct {
		BOS         *uint32 `json:"bos_token_id"`
		DoSample    bool    `json:"do_sample"`
		EOS         *uint32 `json:"eos_token_id"`
		Temperature float   `json:"temperature"`
	}{c.BOS, true, c.EOS, "0.8"})
}

// indent returns JSON for people: two spaces, and a newline at the end.
func indent(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("checkpoint: a value has no JSON: " + err.Error())
	}
	return append(b, '\n')
}
