package trace

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
)

// Setup determines the programs of a run's shares.
type Setup struct {
	Model    llama.Config
	Sequence int // tokens of a sequence that are trained on
}

// label describes an operation to people.
type label struct {
	what  string
	layer int // -1 for none
	head  int // -1 for none
}

func (l label) String() string {
	s := l.what
	if l.head >= 0 {
		s = fmt.Sprintf("head %d, %s", l.head, s)
	}
	if l.layer >= 0 {
		s = fmt.Sprintf("layer %d, %s", l.layer, s)
	}
	return s
}

// A node is an operation of a sequence, or one that runs once.
type node struct {
	kernel
	label label
}

// operation is a node at its place in the program.
type operation struct {
	placed
	label    label
	repeated bool // runs once a sequence
}

// Name implements Op.
func (o operation) Name() string {
	if o.repeated {
		return fmt.Sprintf("sequence %d, %s", o.at.sequence, o.label)
	}
	return o.label.String()
}

// A Model is what the programs of a run's shares have in common. It is immutable and safe for
// concurrent use.
type Model struct {
	setup     Setup
	names     []string // of the tensors of the whole model
	grids     []grid   // their tiles
	adapted   []adapted
	once      []node // operations that run once
	sequence  []node // operations of each sequence
	gradients []ref  // of each tensor, counted from the first operation of the last sequence
}

// NewModel prepares programs. The error explains why the setup cannot be traced.
func NewModel(s Setup) (*Model, error) {
	if err := s.Model.Check(); err != nil {
		return nil, fmt.Errorf("trace: model: %w", err)
	}
	if s.Sequence < 1 || s.Sequence > min(SequenceMax, s.Model.Context) {
		return nil, fmt.Errorf("trace: sequences of %d tokens, want 1 to %d", s.Sequence, min(SequenceMax, s.Model.Context))
	}
	if ops := sequenceOps(s.Model); ops > sequenceOpsMax {
		return nil, fmt.Errorf("trace: a sequence of this model has %d operations, more than %d", ops, sequenceOpsMax)
	}
	b := newBuilder(s)
	m := &Model{setup: s, grids: b.grids}
	for _, t := range b.tensors {
		m.names = append(m.names, t.Name)
	}
	m.once, m.adapted = b.once(s.Model)
	m.sequence = b.sequence(len(b.sequence(0)))
	m.gradients = b.grads
	return m, nil
}

// Program returns the program of a share with the given number of sequences: the gradient of their
// mean loss, as llama.Model.Grad defines it, and then tail.
func (m *Model) Program(sequences uint32, tail Tail) (Program, error) {
	if sequences == 0 {
		return nil, errors.New("trace: a share needs at least one sequence")
	}
	if uint64(len(m.once))+uint64(sequences)*uint64(len(m.sequence))+uint64(tail.Len()) > opsMax {
		return nil, fmt.Errorf("trace: %d sequences have more than %d operations", sequences, opsMax)
	}
	p := &steps{Model: m, sequences: sequences, weight: 1 / (float32(sequences) * float32(m.setup.Sequence)), tail: tail}
	p.recut, p.gradients = m.recut(ref(len(m.once)+int(sequences-1)*len(m.sequence)), ref(p.base()))
	return p, nil
}

// recut lists the operations that follow the sequences, starting with number at: those that make
// the gradients of adapters, and those that cut the gradients of matrices with heads into the tiles
// of Matrix. It returns where the gradient of each tensor of the layout is. last is the first
// operation of the last sequence.
func (m *Model) recut(last, at ref) (nodes []node, gradients []ref) {
	add := func(what string, layer int, g grid, k kernel) value {
		nodes = append(nodes, node{k, label{what, layer, -1}})
		return value{ref: fixed + at + ref(len(nodes)-1), grid: g}
	}
	of := func(tensor int) value { return value{ref: fixed + last + m.gradients[tensor], grid: m.grids[tensor]} }
	cut := func(name string, from value) {
		if to := matrix(from.grid.rows.len(), from.grid.cols.len()); m.setup.Model.HeadDim%Side != 0 && to != from.grid {
			from = add("gradient of "+name, -1, to, &regroup{from, to})
		}
		gradients = append(gradients, from.ref)
	}
	if m.setup.Model.LoRA != (llama.LoRA{}) {
		tensors := m.setup.Model.Layout().Tensors()
		for _, a := range m.adapted {
			dA, dB := a.backward(of(a.Tensor), add)
			cut(tensors[a.A].Name, dA)
			cut(tensors[a.B].Name, dB)
		}
		return nodes, gradients
	}
	for i, name := range m.names {
		cut(name, of(i))
	}
	return nodes, gradients
}

// steps is the program of a share: the operations that run once, the sequences, the gradients of
// adapters, the gradients in the tiles of Matrix, and the tail.
type steps struct {
	*Model
	recut     []node
	gradients []ref // of each tensor of the layout
	sequences uint32
	weight    float32
	tail      Tail
}

// base returns the number of the first operation after the sequences.
func (p *steps) base() uint32 { return uint32(len(p.once)) + p.sequences*uint32(len(p.sequence)) }

// Len implements Program.
func (p *steps) Len() uint32 { return p.base() + uint32(len(p.recut)) + p.tail.Len() }

// Op implements Program.
func (p *steps) Op(t uint32) Op {
	once, size := uint32(len(p.once)), uint32(len(p.sequence))
	if t < once {
		return operation{placed{p.once[t].kernel, spot{}}, p.once[t].label, false}
	}
	if t -= once; t < p.sequences*size {
		i := t / size
		n := p.sequence[t%size]
		return operation{placed{n.kernel, spot{base: once + i*size, sequence: i, weight: p.weight}}, n.label, true}
	}
	if t -= p.sequences * size; t < uint32(len(p.recut)) {
		return operation{placed{p.recut[t].kernel, spot{}}, p.recut[t].label, false}
	}
	t -= uint32(len(p.recut))
	return p.tail.Op(t, p.base()+uint32(len(p.recut)), func(tensor int) uint32 { return uint32(p.gradients[tensor] - fixed) })
}

// dims are the dimensions of a model's matrices.
type dims struct {
	tokens, hidden, middle, vocab dim
	q, kv, head                   dim // all query heads, all key heads, one head
}

func newDims(s Setup) dims {
	c := s.Model
	return dims{
		tokens: whole(s.Sequence), hidden: whole(c.Hidden), middle: whole(c.FFN), vocab: whole(c.Vocab),
		q: dim{c.Heads, c.HeadDim}, kv: dim{c.KVHeads, c.HeadDim}, head: whole(c.HeadDim),
	}
}

// builder lists the operations.
type builder struct {
	dims
	cfg      llama.Config    // of the whole model
	trained  llama.Targets   // matrices whose gradients are needed; 0: all tensors
	tensors  []tensor.Tensor // of its layout
	grids    []grid          // of each tensor
	perLayer []layerGrid     // the tensors of a layer
	params   []value         // the tensors that a step computes with
	angles   value
	scale    float32

	// The sequence being listed.
	nodes []node
	size  int // operations of a sequence
	layer int
	grads []ref // of each tensor
}

func newBuilder(s Setup) *builder {
	b := &builder{dims: newDims(s), cfg: s.Model.Base(), trained: s.Model.LoRA.Targets, tensors: s.Model.Base().Layout().Tensors(), scale: float32(1 / math.Sqrt(float64(s.Model.HeadDim)))}
	table := grid{rows: b.vocab, cols: b.hidden}
	b.perLayer = b.layerGrids()
	b.grids = append(b.grids, table)
	for range s.Model.Layers {
		for _, g := range b.perLayer {
			b.grids = append(b.grids, g.grid)
		}
	}
	b.grids = append(b.grids, grid{rows: whole(1), cols: b.hidden})
	if !s.Model.Tied {
		b.grids = append(b.grids, table)
	}
	return b
}

// once lists the operations that run once: the angles, the parameters of the whole model, and the
// adapters that cfg has.
func (b *builder) once(cfg llama.Config) (nodes []node, list []adapted) {
	add := func(what string, layer int, g grid, k kernel) value {
		nodes = append(nodes, node{k, label{what, layer, -1}})
		return value{ref: fixed + ref(len(nodes)-1), grid: g}
	}
	g := grid{rows: b.tokens, cols: whole(b.cfg.HeadDim / 2)}
	b.angles = add("angles", -1, g, newAngles(b.cfg, g))
	source := Params
	if cfg.LoRA != (llama.LoRA{}) {
		source = Base
	}
	for i, t := range b.tensors {
		b.params = append(b.params, loadTensor(t.Name, t.Offset, b.grids[i], source, add))
	}
	if source == Base {
		list = b.adapt(cfg, add)
	}
	return nodes, list
}
