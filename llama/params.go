package llama

import (
	"github.com/entrain-network/entrain/tensor"
)

// weights are views of a model's parameters, or of their gradient, in one flat slice.
type weights struct {
	embed  []float32 // (Vocab, Hidden)
	layers []layerWeights
	norm   []float32 // (Hidden)
	head   []float32 // (Vocab, Hidden), embed if tied
}

type layerWeights struct {
	norm1 []float32 // (Hidden)
	qkv   []float32 // ((Heads + 2·KVHeads)·HeadDim, Hidden): q_proj, k_proj, v_proj
	bias  []float32 // ((Heads + 2·KVHeads)·HeadDim): their biases; nil without Bias
	q, k  []float32 // (HeadDim): gains of q_norm and k_norm; nil without QKNorm
	o     []float32 // (Hidden, Heads·HeadDim)
	norm2 []float32 // (Hidden)
	gu    []float32 // (2·FFN, Hidden): gate_proj, up_proj
	down  []float32 // (Hidden, FFN)
}

// tensorsPerLayer returns the number of tensors in a layer; point relies on their order in
// Config.specs.
func (c Config) tensorsPerLayer() int {
	n := 9
	if c.Bias {
		n += 3
	}
	if c.QKNorm {
		n += 2
	}
	return n
}

// point makes w refer to the parts of flat.
func (w *weights) point(c Config, layout tensor.Layout, flat []float32) {
	if len(flat) != layout.Len() {
		panic("llama: parameters or gradient of another model's length")
	}
	t := layout.Tensors()
	span := func(from, to int) []float32 {
		return flat[t[from].Offset : t[to].Offset+t[to].Len : t[to].Offset+t[to].Len]
	}
	if w.layers == nil {
		w.layers = make([]layerWeights, c.Layers)
	}
	w.embed = span(0, 0)
	for l := range w.layers {
		i := 1 + l*c.tensorsPerLayer()
		layer := layerWeights{norm1: span(i, i), qkv: span(i+1, i+3)}
		i += 4
		if c.Bias {
			layer.bias = span(i, i+2)
			i += 3
		}
		if c.QKNorm {
			layer.q, layer.k = span(i, i), span(i+1, i+1)
			i += 2
		}
		layer.o, layer.norm2, layer.gu, layer.down = span(i, i), span(i+1, i+1), span(i+2, i+3), span(i+4, i+4)
		w.layers[l] = layer
	}
	last := 1 + c.Layers*c.tensorsPerLayer()
	w.norm, w.head = span(last, last), w.embed
	if !c.Tied {
		w.head = span(last+1, last+1)
	}
}
