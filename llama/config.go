package llama

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/tensor"
)

// Config is the shape of a model.
type Config struct {
	Vocab   int     // vocabulary size, 2 to MaxVocab
	Hidden  int     // floats in a token's vector
	Layers  int     // blocks of attention and feed-forward
	Heads   int     // query heads, a multiple of KVHeads
	KVHeads int     // key and value heads
	HeadDim int     // floats in a head, even; Heads·HeadDim need not be Hidden
	FFN     int     // width of the feed-forward net's middle
	Context int     // most tokens in a sequence
	Theta   float64 // base of the rotary frequencies, usually 10000
	Eps     float32 // added to the mean square in every norm, usually 1e-5
	Tied    bool    // the head is the embedding
	Bias    bool    // queries, keys and values have biases, as in Qwen2
	QKNorm  bool    // each head of queries and of keys passes a norm before rope, as in Qwen3
	Window  int     // tokens that a token attends to, itself included; 0: all up to it
	Rope    Rope    // how the rotary frequencies are stretched; zero: not at all
	// Numerics is the arithmetic of the linear products. It is not a part of a model's shape: the same
	// parameters may be trained and used with either.
	Numerics Numerics
	// LoRA, if not zero, freezes the model: the parameters of a run are adapters. The tensors of
	// Layout are theirs.
	LoRA LoRA
}

// Numerics names the arithmetic in which the linear products of a step are computed: those of
// projections and of the head, forward and backward. Everything else is computed by package exact.
type Numerics uint8

// The kinds of Numerics.
const (
	Exact  Numerics = iota // binary32, by package exact
	Exact8                 // block-scaled 8-bit integers, by package exact8
)

// String returns the name of n in specifications.
func (n Numerics) String() string {
	switch n {
	case Exact:
		return "exact"
	case Exact8:
		return "exact8"
	}
	return fmt.Sprintf("Numerics(%d)", uint8(n))
}

// ParseNumerics returns the Numerics of that name; "" is Exact.
func ParseNumerics(name string) (Numerics, error) {
	switch name {
	case "", "exact":
		return Exact, nil
	case "exact8":
		return Exact8, nil
	}
	return 0, fmt.Errorf("numerics: %q is neither \"exact\" nor \"exact8\"", name)
}

// Limits of a Config. They bound how much memory a Config from an untrusted source can make anyone
// allocate, and keep every count within an int32.
const (
	MaxVocab   = 1 << 20 // four times the largest vocabulary in use
	MaxHidden  = 1 << 16 // four times that of a 405B model
	MaxLayers  = 1 << 10
	MaxHeads   = 1 << 10
	MaxHeadDim = 1 << 10
	MaxFFN     = 1 << 18
	MaxContext = 1 << 20
)

// Rope stretches the rotary frequencies as Llama 3 does (rope_type llama3 in transformers): slow
// rotations, of fewer than Low turns in Original tokens, become Factor times slower; those of more
// than High turns stay; between the two, the frequency moves from one to the other. The zero value
// leaves all frequencies as they are.
type Rope struct {
	Factor    float64 // at least 1; 0: not stretched
	Low, High float64 // 0 < Low < High
	Original  int     // the context that the model was trained with at first, in tokens
}

// check returns the faults of r.
func (r Rope) check() (faults []error) {
	if r == (Rope{}) {
		return nil
	}
	if !(r.Factor >= 1 && r.Factor <= 1e6) {
		faults = append(faults, fmt.Errorf("rope_factor: %g must be 1 to 1e6", r.Factor))
	}
	if !(r.Low > 0 && r.Low < r.High && r.High <= 1e6) {
		faults = append(faults, fmt.Errorf("rope_low, rope_high: %g and %g must be above 0 and at most 1e6, the first the smaller", r.Low, r.High))
	}
	if r.Original < 1 || r.Original > MaxContext {
		faults = append(faults, fmt.Errorf("rope_original: %d must be 1 to %d", r.Original, MaxContext))
	}
	return faults
}

// Check returns all faults of c, joined, or nil.
func (c Config) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name             string
		value, low, high int
	}{
		{"vocab", c.Vocab, 2, MaxVocab}, {"hidden", c.Hidden, 1, MaxHidden}, {"layers", c.Layers, 1, MaxLayers}, {"heads", c.Heads, 1, MaxHeads},
		{"kv_heads", c.KVHeads, 1, MaxHeads}, {"head_dim", c.HeadDim, 2, MaxHeadDim}, {"ffn", c.FFN, 1, MaxFFN},
		{"context", c.Context, 1, MaxContext},
	} {
		if f.value < f.low || f.value > f.high {
			fault("%s: %d must be %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		fault("heads: %d must be a multiple of kv_heads, %d", c.Heads, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		fault("head_dim: %d must be even, because rotary embedding turns pairs", c.HeadDim)
	}
	if c.Numerics == Exact8 {
		for _, f := range []struct {
			name  string
			value int
		}{{"head_dim", c.HeadDim}, {"ffn", c.FFN}} {
			if f.value%exact8.Block != 0 {
				fault("%s: %d must be a multiple of %d with numerics = \"exact8\": a block of one scale must not span two heads, or gate and up", f.name, f.value, exact8.Block)
			}
		}
	}
	if !(c.Theta >= 1 && c.Theta <= 1e12) {
		fault("theta: %g must be 1 to 1e12", c.Theta)
	}
	if !(c.Eps > 0 && c.Eps <= 1) {
		fault("eps: %g must be above 0 and at most 1", c.Eps)
	}
	if c.Window < 0 || c.Window > MaxContext {
		fault("window: %d must be 0, for none, to %d", c.Window, MaxContext)
	}
	if c.Bias && c.QKNorm || c.Window > 0 && (c.Bias || c.QKNorm) {
		fault("bias, qk_norm, window: at most one of them: no architecture that other programs know has two")
	}
	faults = append(faults, c.Rope.check()...)
	if len(faults) == 0 {
		if err := tensor.Check(c.specs()); err != nil {
			fault("the model is too large: %w", err)
		}
		faults = append(faults, c.LoRA.check(c)...)
	}
	return errors.Join(faults...)
}

// Preset returns a Config by its name: "tiny" (35k parameters, for bytes: it learns next to
// nothing, quickly), "nano" (1M, for bytes), "10m", "50m", "124m", "350m" or "1b". Those from 50m
// to 350m have GPT-2's vocabulary and the head tied to the embedding; 1b has TinyLlama's shape.
func Preset(name string) (Config, error) {
	c := Config{Theta: 10000, Eps: 1e-5}
	switch name {
	case "tiny":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 256, 32, 2, 2, 1, 16, 64, 128
	case "nano":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 256, 128, 5, 4, 2, 32, 352, 128
	case "10m":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 8192, 256, 6, 8, 4, 32, 768, 256
	case "50m":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 50257, 512, 8, 8, 4, 64, 1408, 1024
		c.Tied = true
	case "124m":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 50257, 768, 12, 12, 12, 64, 2048, 1024
		c.Tied = true
	case "350m":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 50257, 1024, 24, 16, 16, 64, 2816, 2048
		c.Tied = true
	case "1b":
		c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Context = 32000, 2048, 22, 32, 4, 64, 5632, 2048
	default:
		return Config{}, fmt.Errorf("unknown model preset %q: choose tiny, nano, 10m, 50m, 124m, 350m or 1b", name)
	}
	return c, nil
}

// Layout lays out the parameters, under Hugging Face's names, in the order of the package comment.
// With LoRA they are the adapters alone. It panics if c.Check finds a fault.
func (c Config) Layout() tensor.Layout {
	if err := c.Check(); err != nil {
		panic("llama: " + err.Error())
	}
	if c.LoRA != (LoRA{}) {
		return tensor.NewLayout(c.adapterSpecs())
	}
	return tensor.NewLayout(c.specs())
}

// Matrices returns the matrices of the layers, among the tensors of Layout: all tensors of two
// dimensions but the embeddings and the output layer, whose rows are tokens.
func (c Config) Matrices() (matrices []tensor.Tensor) {
	for _, t := range c.Layout().Tensors() {
		if len(t.Shape) == 2 && strings.Contains(t.Name, ".layers.") {
			matrices = append(matrices, t)
		}
	}
	return matrices
}

// specs lists the tensors. Tensors that one product computes together, q with k and v, gate with
// up, must be adjacent, and so must their biases.
func (c Config) specs() []tensor.Spec {
	d, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	specs := []tensor.Spec{{Name: "model.embed_tokens.weight", Shape: []int{c.Vocab, d}}}
	for l := range c.Layers {
		add := func(name string, shape ...int) {
			specs = append(specs, tensor.Spec{Name: fmt.Sprintf("model.layers.%d.%s", l, name), Shape: shape})
		}
		add("input_layernorm.weight", d)
		add("self_attn.q_proj.weight", q, d)
		add("self_attn.k_proj.weight", kv, d)
		add("self_attn.v_proj.weight", kv, d)
		if c.Bias {
			add("self_attn.q_proj.bias", q)
			add("self_attn.k_proj.bias", kv)
			add("self_attn.v_proj.bias", kv)
		}
		if c.QKNorm {
			add("self_attn.q_norm.weight", c.HeadDim)
			add("self_attn.k_norm.weight", c.HeadDim)
		}
		add("self_attn.o_proj.weight", d, q)
		add("post_attention_layernorm.weight", d)
		add("mlp.gate_proj.weight", c.FFN, d)
		add("mlp.up_proj.weight", c.FFN, d)
		add("mlp.down_proj.weight", d, c.FFN)
	}
	specs = append(specs, tensor.Spec{Name: "model.norm.weight", Shape: []int{d}})
	if !c.Tied {
		specs = append(specs, tensor.Spec{Name: "lm_head.weight", Shape: []int{c.Vocab, d}})
	}
	return specs
}

// heads returns the number of heads in a row of queries, keys and values together.
func (c Config) heads() int { return c.Heads + 2*c.KVHeads }

// scale returns the factor of attention scores, 1/√HeadDim.
func (c Config) scale() float32 { return float32(1 / math.Sqrt(float64(c.HeadDim))) }
