package trace

import "github.com/entrain-network/entrain/llama"

// adding appends an operation of a layer, or of none if that is -1, and returns its value.
type adding func(what string, layer int, g grid, k kernel) value

// adapted are the operations that adapters add to a program: the matrices that a step computes with
// are made once, and the gradients of the adapters from the matrices' at the end.
type adapted struct {
	llama.Adapter
	scale  float32
	s, b   value // s·A, and B
	gA, gB grid
}

// adapt lists the operations that load the adapters and merge them into the matrices in b.params.
func (b *builder) adapt(cfg llama.Config, add adding) (list []adapted) {
	tensors := cfg.Layout().Tensors()
	rank := whole(cfg.LoRA.Rank)
	for _, at := range cfg.Adapters() {
		w := b.grids[at.Tensor]
		a := adapted{Adapter: at, scale: cfg.LoRA.Scale(), gA: grid{rows: rank, cols: w.cols}, gB: grid{rows: w.rows, cols: rank}}
		load := func(i int, g grid) value { return loadTensor(tensors[i].Name, tensors[i].Offset, g, Params, add) }
		a.s = add("scaled A of "+at.Name, at.Layer, a.gA, a.scaled(load(at.A, a.gA)))
		a.b = load(at.B, a.gB)
		b.params[at.Tensor] = add("merged "+at.Name, at.Layer, w, &product{
			out: w, a: one(a.b), b: one(a.s), depth: rank.tiles(), start: b.params[at.Tensor].ref,
		})
		list = append(list, a)
	}
	return list
}

// scaled is the operation that multiplies a matrix of A's shape by the scale.
func (a adapted) scaled(x value) kernel {
	return &elementwise{function: scaled, out: a.gA, m: []value{x}, gains: none, scale: a.scale}
}

// backward lists the operations that make the gradients of A and of B from that of the merged
// matrix.
func (a adapted) backward(gradient value, add adding) (dA, dB value) {
	w := gradient.grid
	dB = add("gradient of B of "+a.Name, a.Layer, a.gB, &product{out: a.gB, a: one(gradient), b: one(a.s).t(), depth: w.cols.tiles(), start: none})
	plain := add("gradient of A of "+a.Name+" before its scale", a.Layer, a.gA,
		&product{out: a.gA, a: one(a.b).t(), b: one(gradient), depth: w.rows.tiles(), start: none})
	return add("gradient of A of "+a.Name, a.Layer, a.gA, a.scaled(plain)), dB
}
