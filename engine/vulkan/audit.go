package vulkan

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/llama"
)

// audited is the number of columns of an audited tile, which has one row.
const audited = 16

// audit computes random tiles of the pass that has just run again on the processor: of a layer's
// forward product, of attention's probabilities, of the product that gives an input's gradient, and
// of one that gives a weight's. A device that is right in its proof may be wrong later: memory that
// loses bits, overclocking, heat.
func (m *Model) audit(sequences int) error {
	m.sizes.sequences, sequences = sequences, m.sizes.sequences
	defer func() { m.sizes.sequences = sequences }()
	for _, check := range []func() error{m.auditParams, m.auditMerged, m.auditForward, m.auditAttention, m.auditInput, m.auditWeight} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) below(n int) int { return int(m.random.Uint64n(uint64(n))) }

// columns draws audited columns of n, or all if there are fewer.
func (m *Model) columns(n int) (from, count int) {
	count = min(n, audited)
	return m.below(n - count + 1), count
}

// weights returns rows of width parameters of a tensor of layer l, the first of them number from of
// the tensor, and each stride behind the one before. They are those of the host, if it has them:
// then the audit also finds parameters that the device has lost.
func (m *Model) weights(l int, of func(w *layerWeights) gpu.Words, from, rows, stride, width int) ([]float32, error) {
	x, at := make([]float32, rows*width), of(&m.m.params.layers[l]).At(from)
	if m.params == nil || m.frozen() {
		return x, gpu.ReadRows(x, at, stride, width)
	}
	part := l
	if m.outer {
		part++ // behind the embedding
	}
	host := m.params[m.m.params.parts[part].from+at.Offset():]
	for i := range rows {
		copy(x[i*width:(i+1)*width], host[i*stride:])
	}
	return x, nil
}

// auditParams finds parameters that the device has lost: where all are zeros, so is what it
// computes, here and there.
func (m *Model) auditParams() error {
	if err := m.auditFrozen(); err != nil || m.params == nil {
		return err
	}
	p := m.m.own[m.below(len(m.m.own))]
	from, n := m.columns(p.at.Len)
	got := make([]float32, n)
	if err := gpu.Read(got, p.at.At(from)); err != nil {
		return err
	}
	return same("parameters that it kept", got, m.params[p.from+from:][:n])
}

// auditForward computes x2 = x + att·oᵀ of a row of a layer.
func (m *Model) auditForward() error {
	l, row, d, q := m.below(len(m.m.layers)), m.below(m.rows()), m.Hidden, m.q()
	from, n := m.columns(d)
	a := &m.m.layers[l]
	att, want, got := make([]float32, q), make([]float32, n), make([]float32, n)
	if err := read(att, a.att.At(row*q), want, a.x.At(row*d+from), got, a.x2.At(row*d+from)); err != nil {
		return err
	}
	o, err := m.weights(l, func(w *layerWeights) gpu.Words { return w.o }, from*q, n, q, q)
	if err != nil {
		return err
	}
	m.gemm(1, n, q, att, q, 1, o, 1, q, want, n, true)
	return same("attention's output", got, want)
}

// auditInput computes dh = dqkv·w of a row of the first layer, the last that the backward pass
// treats.
func (m *Model) auditInput() error {
	row, d, width := m.below(m.rows()), m.Hidden, m.width()
	from, n := m.columns(d)
	dqkv, want, got := make([]float32, width), make([]float32, n), make([]float32, n)
	if err := read(dqkv, m.m.dqkv.At(row*width), got, m.m.dh.At(row*d+from)); err != nil {
		return err
	}
	w, err := m.weights(0, func(w *layerWeights) gpu.Words { return w.qkv }, from, width, d, n)
	if err != nil {
		return err
	}
	m.gemm(1, n, width, dqkv, width, 1, w, n, 1, want, n, false)
	return same("the gradient of an input", got, want)
}

// auditWeight computes a row of the gradient of the first layer's queries, keys and values, while
// it has nothing of an earlier pass.
func (m *Model) auditWeight() error {
	if !m.fresh || m.m.grad.layers[0].qkv.Len == 0 {
		return nil
	}
	rows, d, width := m.rows(), m.Hidden, m.width()
	i := m.below(width)
	from, n := m.columns(d)
	dqkv, h := make([]float32, rows), make([]float32, rows*n)
	want, got := make([]float32, n), make([]float32, n)
	if err := read(got, m.m.grad.layers[0].qkv.At(i*d+from)); err != nil {
		return err
	}
	if err := gpu.ReadRows(dqkv, m.m.dqkv.At(i), width, 1); err != nil {
		return err
	}
	if err := gpu.ReadRows(h, m.m.h.At(from), d, n); err != nil {
		return err
	}
	for from := 0; from < rows; from += m.seq { // in 8 bits a block ends with a sequence
		m.gemm(1, n, m.seq, dqkv[from:], m.seq, 1, h[from*n:], n, 1, want, n, true)
	}
	return same("the gradient of a weight", got, want)
}

// auditAttention computes the probabilities of a row of the first layer that are still there: those
// of the heads that the backward pass treated last.
func (m *Model) auditAttention() error {
	var u heads
	m.eachHeads(func(last heads) { u = last })
	s, g, e, row := m.below(u.count), m.below(u.groups), m.below(u.each), m.below(u.size)
	a, d, width, n := &m.m.layers[0], m.HeadDim, m.width(), u.low+row+1
	q, keys := make([]float32, d), make([]float32, n*d)
	want, got := make([]float32, n), make([]float32, n)
	at := s * m.seq * width
	place := (s*u.groups+g)*u.each + e
	if err := read(q, u.query(a.qkv, width).At(at+row*width+(g*u.each+e)*d), got, m.m.p.At((place*u.size+row)*m.seq)); err != nil {
		return err
	}
	if err := gpu.ReadRows(keys, u.key(a.qkv).At(at+g*d), width, d); err != nil {
		return err
	}
	exact.Gemm(nil, 1, n, d, q, d, 1, keys, 1, d, want, n, false)
	first := 0
	if m.Window > 0 {
		first = max(0, n-m.Window)
	}
	for i := range want[:first] {
		want[i] = float32(math.Inf(-1)) // as package llama does: their probabilities are +0
	}
	exact.NewWorker(exact.Kernels()[0]).Softmax(want, m.scale())
	return same("attention's probabilities", got, want)
}

// gemm is exact.Gemm or exact8.Gemm, as the model computes linear products.
func (m *Model) gemm(rows, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, add bool) {
	if m.Numerics == llama.Exact8 {
		exact8.Gemm(rows, n, k, a, ars, acs, b, brs, bcs, c, ldc, add)
		return
	}
	exact.Gemm(nil, rows, n, k, a, ars, acs, b, brs, bcs, c, ldc, add)
}

// read reads pairs of a slice and where its elements are.
func read(pairs ...any) error {
	var dst [][]float32
	var src []gpu.Words
	for i := 0; i < len(pairs); i += 2 {
		dst, src = append(dst, pairs[i].([]float32)), append(src, pairs[i+1].(gpu.Words))
	}
	return gpu.ReadParts(dst, src)
}

// differs is the error of a device that computed other bits.
type differs string

// Error implements error.
func (d differs) Error() string { return string(d) }

// same returns an error if the device computed something else.
func same(what string, got, want []float32) error {
	for i := range want {
		if !kernel.Same(got[i], want[i]) {
			return differs(fmt.Sprintf("vulkan: the device computes %x where the processor computes %x, in %s", got[i], want[i], what))
		}
	}
	return nil
}
