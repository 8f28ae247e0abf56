package vulkan

import (
	"errors"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
)

// adapters is what a model of adapters has on a device besides the merged model: see llama.Adapted,
// whose operations these are.
type adapters struct {
	all    []adapter
	plain  []tensor.Tensor // of the frozen model, without adapters
	scaled gpu.Words       // S of one of them
	scale  gpu.Words       // Alpha/Rank, as often as a row has elements
	ones   gpu.Words       // +1 for each row of an A
}

// An adapter is one matrix with its A and B.
type adapter struct {
	frozen, merged, grad gpu.Words // (out, in)
	a, da                gpu.Words // (rank, in)
	b, db                gpu.Words // (out, rank)
	out, in, from        int       // from is the place of the matrix in the frozen model
}

// frozen reports whether the model trains adapters alone.
func (s sizes) frozen() bool { return s.trained.LoRA != (llama.LoRA{}) }

// own makes memory for what is trained: the parameters, or the adapters, layer by layer.
func (s sizes) own(alloc func(n int) gpu.Words) (all parts) {
	if !s.frozen() {
		return s.weights(alloc, false).parts
	}
	t := s.trained.Layout().Tensors()
	each := len(t) / s.Layers
	for l := range s.Layers {
		first, last := t[l*each], t[(l+1)*each-1]
		all = append(all, part{first.Offset, alloc(last.Offset + last.Len - first.Offset)})
	}
	return all
}

// adapt makes what merging takes.
func (s sizes) adapt(m *memory, alloc func(n int) gpu.Words) {
	t, most := s.trained.Layout().Tensors(), 0
	m.adapters.plain = slices.Clone(s.Layout().Tensors())
	for _, x := range s.trained.Adapters() {
		a, b := t[x.A].Offset, t[x.B].Offset
		of := adapter{
			frozen: alloc(x.W.Len), merged: at(m.params.parts, x.W.Offset), grad: at(m.grad.parts, x.W.Offset),
			a: at(m.own, a), da: at(m.ownGrad, a), b: at(m.own, b), db: at(m.ownGrad, b),
			out: x.W.Shape[0], in: x.W.Shape[1], from: x.W.Offset,
		}
		most = max(most, of.in)
		m.adapters.plain = slices.DeleteFunc(m.adapters.plain, func(p tensor.Tensor) bool { return p.Name == x.W.Name })
		m.adapters.all = append(m.adapters.all, of)
	}
	rank := s.trained.LoRA.Rank
	m.adapters.scaled, m.adapters.scale, m.adapters.ones = alloc(rank*most), alloc(most), alloc(rank)
}

// NewAdapted is NewModel for a cfg with adapters of the model with the parameters frozen, which the
// caller does not change. Parameters and gradient of the Model are the adapters'.
func (d *Device) NewAdapted(cfg llama.Config, frozen []float32, seq, most int, inner bool, c codec.Codec) (*Model, error) {
	m, err := d.NewModel(cfg, seq, most, inner, c)
	if err != nil {
		return nil, err
	}
	if err := m.freeze(frozen); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// freeze writes the frozen model, and records what its adapters take.
func (m *Model) freeze(params []float32) error {
	if len(params) != m.Layout().Len() {
		panic("vulkan: a frozen model of another length")
	}
	m.frozenParams = params
	a, rank := &m.m.adapters, m.trained.LoRA.Rank
	err := errors.Join(m.m.params.parts.write(params), gpu.Write(a.ones, slices.Repeat([]float32{1}, rank)),
		gpu.Write(a.scale, slices.Repeat([]float32{m.trained.LoRA.Scale()}, a.scale.Len)))
	if err != nil {
		return err
	}
	if err := m.k.Device.Run(func(c *gpu.Commands) {
		for _, x := range a.all {
			c.Copy(x.frozen, x.merged, x.out*x.in)
		}
	}); err != nil {
		return err
	}
	if m.merge, err = m.k.Device.Record(func(c *gpu.Commands) {
		for _, x := range a.all {
			m.times(c, a.scaled, x.a, x.in)
			c.Copy(x.merged, x.frozen, x.out*x.in)
			m.k.Gemm(c, x.out, x.in, rank, kernel.Rows(x.b, rank), kernel.Rows(a.scaled, x.in), x.merged, x.in, true, kernel.Full, kernel.One)
			c.Cut()
		}
	}); err != nil {
		return err
	}
	m.part, err = m.k.Device.Record(func(c *gpu.Commands) {
		for _, x := range a.all {
			m.times(c, a.scaled, x.a, x.in)
			m.k.Gemm(c, x.out, rank, x.in, kernel.Rows(x.grad, x.in), kernel.Columns(a.scaled, x.in), x.db, rank, false, kernel.Full, kernel.One)
			m.k.Gemm(c, rank, x.in, x.out, kernel.Columns(x.b, rank), kernel.Rows(x.grad, x.in), x.da, x.in, false, kernel.Full, kernel.One)
			m.times(c, x.da, x.da, x.in)
			c.Cut()
		}
	})
	return err
}

// times records y = Alpha/Rank·x of (rank, in): a norm whose factor is 1 and whose gains are all
// the same.
func (m *Model) times(c *gpu.Commands, y, x gpu.Words, in int) {
	a := &m.m.adapters
	m.k.Normalize(c, y, x, a.scale, a.ones, m.trained.LoRA.Rank, in)
}

// Adapts implements cpu.Adapter.
func (m *Model) Adapts() bool { return m.frozen() }

// merged merges the adapters, unless it has.
func (m *Model) merged() error {
	if !m.frozen() || m.isMerged {
		return nil
	}
	if err := m.merge.Run(); err != nil {
		return err
	}
	m.isMerged = true
	return m.auditMerged()
}

// derived computes the adapters' gradient from the whole model's, unless it has.
func (m *Model) derived() error {
	if !m.frozen() || m.isDerived {
		return nil
	}
	if err := m.part.Run(); err != nil {
		return err
	}
	m.isDerived = true
	return m.auditDerived()
}

// auditFrozen finds parameters of the frozen model that the device has lost, in a tensor without an
// adapter: auditMerged looks at the others.
func (m *Model) auditFrozen() error {
	if !m.frozen() {
		return nil
	}
	t := m.m.adapters.plain[m.below(len(m.m.adapters.plain))]
	from, n := m.columns(t.Len)
	got := make([]float32, n)
	if err := gpu.Read(got, at(m.m.params.parts, t.Offset+from)); err != nil {
		return err
	}
	return same("the frozen model that it kept", got, t.Of(m.frozenParams)[from:][:n])
}

// auditMerged computes some elements of a merged matrix, and compares some of the frozen model.
func (m *Model) auditMerged() error {
	if !m.frozen() {
		return nil
	}
	x, rank := &m.m.adapters.all[m.below(len(m.m.adapters.all))], m.trained.LoRA.Rank
	i := m.below(x.out)
	from, n := m.columns(x.in)
	want, got, s := make([]float32, n), make([]float32, n), make([]float32, rank*n)
	b := make([]float32, rank)
	if err := read(want, x.frozen.At(i*x.in+from), b, x.b.At(i*rank), got, x.merged.At(i*x.in+from)); err != nil {
		return err
	}
	if err := gpu.ReadRows(s, x.a.At(from), x.in, n); err != nil {
		return err
	}
	if err := same("the frozen model that it kept", want, m.frozenParams[x.from+i*x.in+from:][:n]); err != nil {
		return err
	}
	m.timesHere(s)
	exact.Gemm(nil, 1, n, rank, b, rank, 1, s, n, 1, want, n, true)
	return same("a matrix merged with its adapter", got, want)
}

// auditDerived computes an element of the gradient of a B, and some of that of its A.
func (m *Model) auditDerived() error {
	x, rank := &m.m.adapters.all[m.below(len(m.m.adapters.all))], m.trained.LoRA.Rank
	i, k := m.below(x.out), m.below(rank)
	g, s, want, got := make([]float32, x.in), make([]float32, x.in), make([]float32, 1), make([]float32, 1)
	if err := read(g, x.grad.At(i*x.in), s, x.a.At(k*x.in), got, x.db.At(i*rank+k)); err != nil {
		return err
	}
	m.timesHere(s)
	exact.Gemm(nil, 1, 1, x.in, g, x.in, 1, s, 1, x.in, want, 1, false)
	if err := same("the gradient of an adapter's B", got, want); err != nil {
		return err
	}
	from, n := m.columns(x.in)
	b, columns := make([]float32, x.out), make([]float32, x.out*n)
	want, got = make([]float32, n), make([]float32, n)
	if err := gpu.Read(got, x.da.At(k*x.in+from)); err != nil {
		return err
	}
	if err := gpu.ReadRows(b, x.b.At(k), rank, 1); err != nil {
		return err
	}
	if err := gpu.ReadRows(columns, x.grad.At(from), x.in, n); err != nil {
		return err
	}
	exact.Gemm(nil, 1, n, x.out, b, x.out, 1, columns, n, 1, want, n, false)
	m.timesHere(want)
	return same("the gradient of an adapter's A", got, want)
}

// timesHere multiplies by Alpha/Rank on the processor.
func (m *Model) timesHere(x []float32) {
	for i := range x {
		x[i] *= m.trained.LoRA.Scale()
	}
}
