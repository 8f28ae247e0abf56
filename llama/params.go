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
	o     []float32 // (Hidden, Heads·HeadDim)
	norm2 []float32 // (Hidden)
	gu    []float32 // (2·FFN, Hidden): gate_proj, up_proj
	down  []float32 // (Hidden, FFN)
}

// tensorsPerLayer is the number of tensors in a layer; parts relies on their order in Config.specs.
const tensorsPerLayer = 9

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
		i := 1 + l*tensorsPerLayer
		w.layers[l] = layerWeights{norm1: span(i, i), qkv: span(i+1, i+3), o: span(i+4, i+4), norm2: span(i+5, i+5), gu: span(i+6, i+7), down: span(i+8, i+8)}
	}
	last := 1 + c.Layers*tensorsPerLayer
	w.norm, w.head = span(last, last), w.embed
	if !c.Tied {
		w.head = span(last+1, last+1)
	}
}
