package checkpoint

import (
	"math"
	"strings"

	"github.com/entrain-network/entrain/tensor"
)

// A fold makes the parameters of another class those of a Llama (or, with biases, of a Qwen2) that
// computes the same: its factors go into the parameters that they multiply. A factor of 0 is none.
type fold struct {
	embedding float64 // of the embedding's rows
	query     float64 // of queries
	residual  float64 // of what a layer's attention and feed-forward net add
	norm      float64 // of the last norm, and so of logits
	// pairs is set if rotary embeddings turn adjacent elements of a head: its rows are ordered as
	// if they turned the two halves.
	pairs bool
}

// folded are the classes that are read by folding, with what config.json must say of them: the
// defaults of transformers are other ones than Llama's.
var folded = map[string][]string{
	"granite":  {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"},
	"ernie4_5": {"head_dim"},
	"helium":   {"head_dim"},
	"seed_oss": {"head_dim", "attention_bias", "attention_out_bias"},
}

// fold returns how the parameters of r become those of c.
func (r *readConfig) fold(c Config) (f fold) {
	switch r.ModelType {
	case "granite":
		f = fold{embedding: r.Embedding, query: r.Attention * math.Sqrt(float64(c.HeadDim)), residual: r.Residual, norm: 1 / r.Scaling}
		if c.Tied { // the head has the embedding's factor, too
			f.norm /= r.Embedding
		}
	case "ernie4_5", "helium":
		f.pairs = true
	}
	return f
}

// apply folds the parameters of a model, laid out as c's.
func (f fold) apply(c Config, layout tensor.Layout, params []float32) {
	for _, t := range layout.Tensors() {
		x := t.Of(params)
		queries, keys := strings.HasSuffix(t.Name, ".q_proj.weight"), strings.HasSuffix(t.Name, ".k_proj.weight")
		factor := 0.0
		switch {
		case queries:
			factor = f.query
		case strings.HasSuffix(t.Name, ".o_proj.weight") || strings.HasSuffix(t.Name, ".down_proj.weight"):
			factor = f.residual
		case t.Name == "model.embed_tokens.weight":
			factor = f.embedding
		case t.Name == "model.norm.weight":
			factor = f.norm
		}
		if factor != 0 {
			for i, v := range x {
				x[i] = float32(float64(v) * factor)
			}
		}
		if f.pairs && (queries || keys) {
			halves(x, c.HeadDim, t.Shape[1])
		}
	}
}

// halves orders the rows of each head: those with even numbers, then those with odd ones.
func halves(x []float32, headDim, cols int) {
	head := make([]float32, headDim*cols)
	for ; len(x) > 0; x = x[len(head):] {
		copy(head, x)
		for row := range headDim {
			to := row/2 + row%2*(headDim/2)
			copy(x[to*cols:(to+1)*cols], head[row*cols:(row+1)*cols])
		}
	}
}
