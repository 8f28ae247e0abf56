package llama

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/tensor"
)

// referenceLoss is the model once more, in float64, token by token, with the platform's functions
// and no thought of speed or order: what Model must agree with but for rounding. It shares only the
// names and shapes of the tensors. Its mean is over all tokens, of which masked ones have no loss.
func referenceLoss(c Config, layout tensor.Layout, params []float64, tokens []uint32, batch, seq int) float64 {
	p := func(format string, args ...any) []float64 {
		t, ok := layout.Find(fmt.Sprintf(format, args...))
		if !ok {
			panic("no tensor " + fmt.Sprintf(format, args...))
		}
		return params[t.Offset : t.Offset+t.Len]
	}
	var total float64
	for b := range batch {
		sequence := tokens[b*(seq+1) : (b+1)*(seq+1)]
		x := make([][]float64, seq)
		for t := range x {
			x[t] = append([]float64(nil), p("model.embed_tokens.weight")[int(sequence[t]&^Masked)*c.Hidden:][:c.Hidden]...)
		}
		for l := range c.Layers {
			layer := func(name string) []float64 { return p("model.layers.%d.%s.weight", l, name) }
			bias := func(name string) []float64 { return p("model.layers.%d.%s.bias", l, name) }
			referenceAttention(c, x, layer, bias)
			for t := range x {
				h := referenceNorm(c, x[t], layer("post_attention_layernorm"))
				gate, up := matVec(layer("mlp.gate_proj"), h), matVec(layer("mlp.up_proj"), h)
				for i := range gate {
					gate[i] = gate[i] / (1 + math.Exp(-gate[i])) * up[i]
				}
				addTo(x[t], matVec(layer("mlp.down_proj"), gate))
			}
		}
		head := p("model.embed_tokens.weight")
		if !c.Tied {
			head = p("lm_head.weight")
		}
		for t := range x {
			if sequence[t+1]&Masked != 0 {
				continue
			}
			logits := matVec(head, referenceNorm(c, x[t], p("model.norm.weight")))
			var z float64
			for _, v := range logits {
				z += math.Exp(v)
			}
			total += math.Log(z) - logits[sequence[t+1]]
		}
	}
	return total / float64(batch*seq)
}

// referenceAttention adds the attention of one layer to the stream x, one row a token.
func referenceAttention(c Config, x [][]float64, layer, bias func(string) []float64) {
	var qs, ks, vs [][]float64
	for t := range x {
		h := referenceNorm(c, x[t], layer("input_layernorm"))
		q, k, v := matVec(layer("self_attn.q_proj"), h), matVec(layer("self_attn.k_proj"), h), matVec(layer("self_attn.v_proj"), h)
		if c.Bias {
			addTo(q, bias("self_attn.q_proj"))
			addTo(k, bias("self_attn.k_proj"))
			addTo(v, bias("self_attn.v_proj"))
		}
		if c.QKNorm {
			for i := 0; i < len(q); i += c.HeadDim {
				copy(q[i:], referenceNorm(c, q[i:i+c.HeadDim], layer("self_attn.q_norm")))
			}
			for i := 0; i < len(k); i += c.HeadDim {
				copy(k[i:], referenceNorm(c, k[i:i+c.HeadDim], layer("self_attn.k_norm")))
			}
		}
		for _, heads := range [][]float64{q, k} {
			for ; len(heads) > 0; heads = heads[c.HeadDim:] {
				referenceRotate(c, heads[:c.HeadDim], t)
			}
		}
		qs, ks, vs = append(qs, q), append(ks, k), append(vs, v)
	}
	for t := range x {
		out := make([]float64, c.Heads*c.HeadDim)
		for h := range c.Heads {
			kv := h * c.KVHeads / c.Heads * c.HeadDim
			p, z := make([]float64, t+1), 0.0
			for j := range p {
				if c.Window > 0 && t-j >= c.Window {
					continue
				}
				var dot float64
				for i := range c.HeadDim {
					dot += qs[t][h*c.HeadDim+i] * ks[j][kv+i]
				}
				p[j] = math.Exp(dot / math.Sqrt(float64(c.HeadDim)))
				z += p[j]
			}
			for j := range p {
				for i := range c.HeadDim {
					out[h*c.HeadDim+i] += p[j] / z * vs[j][kv+i]
				}
			}
		}
		addTo(x[t], matVec(layer("self_attn.o_proj"), out))
	}
}

// referenceRotate turns one head at a position: complex numbers x[i] + i·x[i+half] times
// e^(i·angle).
func referenceRotate(c Config, x []float64, position int) {
	half := c.HeadDim / 2
	for i := range half {
		frequency := math.Pow(c.Theta, -2*float64(i)/float64(c.HeadDim))
		if r := c.Rope; r.Factor > 0 {
			turns := float64(r.Original) * frequency / (2 * math.Pi)
			share := max(0, min(1, (turns-r.Low)/(r.High-r.Low)))
			frequency = (1-share)*frequency/r.Factor + share*frequency
		}
		angle := float64(position) * frequency
		z := complex(x[i], x[i+half]) * complex(math.Cos(angle), math.Sin(angle))
		x[i], x[i+half] = real(z), imag(z)
	}
}

func referenceNorm(c Config, x, gain []float64) []float64 {
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	rms := math.Sqrt(squares/float64(len(x)) + float64(c.Eps))
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / rms * gain[i]
	}
	return y
}

// matVec multiplies w, as many columns as x is long, by x.
func matVec(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j, v := range x {
			y[i] += w[i*len(x)+j] * v
		}
	}
	return y
}

func addTo(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}
