package vulkan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// A Writer reads one text as it grows, to predict its next token: an llama.Elsewhere. Keys and
// values of what it has read stay on the device.
type Writer struct{ *Model }

// block is the number of tokens that are read at once at most, and where the next ones begin.
const block = 64

// NewWriter returns a Writer of the parameters, for texts of up to a context.
func (d *Device) NewWriter(cfg llama.Config, params []float32) (*Writer, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	s := newSizes(cfg, cfg.Context, 1, false, nil)
	s.reads, s.few = true, min(block, cfg.Context)
	m, err := newStage(d.k, s)
	if err != nil {
		return nil, err
	}
	if err := m.Start(params, 1, false); err != nil {
		m.Close()
		return nil, err
	}
	return &Writer{m}, nil
}

// Rows implements llama.Elsewhere.
func (w *Writer) Rows(at int) int { return block - at%block }

// ReadAt implements llama.Elsewhere.
func (w *Writer) ReadAt(at int, tokens []uint32, want int) ([]float32, error) {
	s := w.sizes
	s.few, s.at = len(tokens), at
	if err := w.auditParams(); err != nil {
		return nil, err
	}
	if err := gpu.Write(w.m.tokens, append(slices.Clone(tokens), 0)); err != nil {
		return nil, err
	}
	logits := make([]float32, want*s.Vocab)
	record := func(f func(r *recorder)) error {
		return w.k.Device.Run(func(c *gpu.Commands) { f(&recorder{Kernels: w.k, sizes: s, m: w.m, c: c}) })
	}
	if err := record(func(r *recorder) { r.read() }); err != nil {
		return nil, err
	}
	for first := 0; first < want; first += s.chunk() {
		n := min(s.chunk(), want-first)
		err := record(func(r *recorder) { r.logits(len(tokens)-want+first, n) })
		if err = errors.Join(err, gpu.Read(logits[first*s.Vocab:(first+n)*s.Vocab], w.m.logits)); err != nil {
			return nil, err
		}
	}
	if k := exact.Finite(logits); k >= 0 {
		return nil, fmt.Errorf("the logit of token %d is %g: %w", k%s.Vocab, logits[k], llama.ErrNotFinite)
	}
	return logits, w.auditLogits(len(tokens)-1, logits)
}

// auditLogits computes one of the logits of the last row, if there are any.
func (w *Writer) auditLogits(row int, logits []float32) error {
	if len(logits) == 0 {
		return nil
	}
	k, d := w.below(w.Vocab), w.Hidden
	h, head, want := make([]float32, d), make([]float32, d), make([]float32, 1)
	if err := read(h, w.m.h.At(row*d), head, w.m.params.head.At(k*d)); err != nil {
		return err
	}
	w.gemm(1, 1, d, h, d, 1, head, 1, d, want, 1, false)
	return same("a logit", logits[len(logits)-w.Vocab+k:], want)
}
