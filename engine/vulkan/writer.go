package vulkan

import (
	"errors"
	"fmt"
	"sync"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/llama"
)

// A Writer reads texts as they grow, to predict their next tokens: an llama.Elsewhere. Keys and
// values of what it has read stay on the device.
type Writer struct {
	*Model
	sync.Mutex
}

// NewWriter returns a Writer of the parameters, for texts texts of up to a context, of which it
// reads up to rows tokens at once.
func (d *Device) NewWriter(cfg llama.Config, params []float32, rows, texts int) (*Writer, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	s := newSizes(cfg, cfg.Context, 1, false, nil)
	s.few, s.texts = rows, texts
	m, err := newStage(d.k, s)
	if err != nil {
		return nil, err
	}
	if err := m.Start(params, 1, false); err != nil {
		m.Close()
		return nil, err
	}
	return &Writer{Model: m}, nil
}

// Slots implements llama.Elsewhere.
func (w *Writer) Slots() int { return w.texts }

// Rows implements llama.Elsewhere.
func (w *Writer) Rows() int { return w.few }

// Read implements llama.Elsewhere.
func (w *Writer) Read(parts []llama.Slotted) error {
	var tokens []uint32
	want := 0
	for _, p := range parts {
		tokens, want = append(tokens, p.Tokens...), want+p.Want
	}
	s := w.sizes
	s.few = len(tokens)
	if err := w.auditParams(); err != nil {
		return err
	}
	if err := gpu.Write(w.m.tokens, tokens); err != nil {
		return err
	}
	record := func(f func(r *recorder)) error {
		return w.k.Device.Run(func(c *gpu.Commands) { f(&recorder{Kernels: w.k, sizes: s, m: w.m, c: c, texts: parts}) })
	}
	if err := record(func(r *recorder) { r.read() }); err != nil {
		return err
	}
	logits := make([]float32, want*s.Vocab)
	for first := 0; first < want; first += s.chunk() {
		n := min(s.chunk(), want-first)
		err := record(func(r *recorder) { r.logits(first, n) })
		if err = errors.Join(err, gpu.Read(logits[first*s.Vocab:(first+n)*s.Vocab], w.m.logits)); err != nil {
			return err
		}
	}
	at := 0
	for _, p := range parts {
		p.Logits = logits[at : at+p.Want*s.Vocab]
		at += p.Want * s.Vocab
	}
	return w.auditLogits(want, logits)
}

// auditLogits computes one of the logits of a random row, if there are any.
func (w *Writer) auditLogits(rows int, logits []float32) error {
	if rows == 0 {
		return nil
	}
	row, k, d := w.below(rows), w.below(w.Vocab), w.Hidden
	h, head, want := make([]float32, d), make([]float32, d), make([]float32, 1)
	if err := read(h, w.m.dh.At(row*d), head, w.m.params.head.At(k*d)); err != nil {
		return err
	}
	w.gemm(1, 1, d, h, d, 1, head, 1, d, want, 1, false)
	return same("a logit", logits[row*w.Vocab+k:], want)
}
