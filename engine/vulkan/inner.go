package vulkan

import (
	"errors"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// prepareNorm records the sums of the gradient's squares. A segment of codec.Norm may lie in
// several parts, whose order is that of the parameters.
func (m *Model) prepareNorm() (err error) {
	m.norm, err = m.k.Device.Record(func(c *gpu.Commands) {
		c.Clear(m.m.squares)
		for _, p := range m.m.ownGrad {
			first, lead := p.from/codec.NormSegment, p.from%codec.NormSegment
			m.k.Squares(c, p.at, m.m.squares.At(kernel.SquaresLen(first*codec.NormSegment)), p.at.Len, lead)
		}
	})
	return err
}

// A sample is some parameters as an inner step left them, or part of a gradient. The device alone
// has them then, so no other audit would find a memory that loses them, such as that of a machine
// which has slept.
type sample struct {
	at     gpu.Words // of parameters
	from   int       // among all parameters
	values []float32
}

// auditKept finds parameters of the last inner step that are not there any more.
func (m *Model) auditKept() error {
	if m.kept.values == nil {
		return nil
	}
	got := make([]float32, len(m.kept.values))
	if err := gpu.Read(got, m.kept.at); err != nil {
		return err
	}
	return same("parameters that an inner step left in its memory", got, m.kept.values)
}

// auditNormed finds a gradient that is not there any more.
func (m *Model) auditNormed() error {
	got := make([]float32, len(m.normed.values))
	if err := readFlat(got, m.m.ownGrad, m.normed.from); err != nil {
		return err
	}
	return same("a gradient that it kept", got, m.normed.values)
}

// Moments implements cpu.Model.
func (m *Model) Moments(mean, square []float32) error {
	if err := m.m.mean.write(mean); err != nil {
		return err
	}
	return m.m.square.write(square)
}

// Norm implements cpu.Model. The device adds the squares, 16 sums for each segment; what is left to
// add is added here.
func (m *Model) Norm() (float64, error) {
	if err := m.derived(); err != nil {
		return 0, err
	}
	if err := m.norm.Run(); err != nil {
		return 0, err
	}
	segments, err := kernel.ReadSquares(m.m.squares)
	if err != nil {
		return 0, err
	}
	if err := m.auditSquares(segments); err != nil {
		return 0, err
	}
	var total float64
	for i := range segments {
		total += (*codec.Squares)(&segments[i]).Sum()
	}
	if math.IsNaN(total) {
		return 0, fmt.Errorf("the gradient is NaN or infinite: %w", llama.ErrNotFinite)
	}
	return math.Sqrt(total), nil
}

// auditSquares computes the sums of a random segment.
func (m *Model) auditSquares(segments []kernel.Squares) error {
	i := m.below(len(segments))
	from := i * codec.NormSegment
	values := make([]float32, min(codec.NormSegment, m.trained.Layout().Len()-from))
	if err := readFlat(values, m.m.ownGrad, from); err != nil {
		return err
	}
	var want codec.Squares
	want.Add(0, values)
	if !segments[i].Same(&want) {
		return differs(fmt.Sprintf("vulkan: the device computes %x where the processor computes %x, in the norm of the gradient", segments[i], want))
	}
	m.normed = sample{from: from, values: values}
	return nil
}

// Update implements cpu.Model. Some parameters are computed again on the processor.
func (m *Model) Update(clip float32, s exact.AdamWStep) error {
	if err := errors.Join(m.auditKept(), m.derived()); err != nil {
		return err
	}
	p := m.below(len(m.m.own))
	from, n := m.columns(m.m.own[p].at.Len)
	var want, got [4][]float32
	at := func(of int) gpu.Words {
		return [4]parts{m.m.own, m.m.mean, m.m.square, m.m.ownGrad}[of][p].at.At(from)
	}
	for i := range want {
		want[i], got[i] = make([]float32, n), make([]float32, n)
	}
	places := []gpu.Words{at(0), at(1), at(2), at(3)}
	if err := gpu.ReadParts(want[:], places); err != nil {
		return err
	}
	m.params, m.version, m.kept.values, m.normed.values, m.fresh, m.isMerged = nil, 0, nil, nil, true, false
	err := m.k.Device.Run(func(c *gpu.Commands) {
		for i, x := range m.m.own {
			m.k.AdamW(c, x.at, m.m.mean[i].at, m.m.square[i].at, m.m.ownGrad[i].at, x.at.Len, clip, s)
		}
	})
	if err != nil {
		return err
	}
	if clip != 1 {
		for i := range want[3] {
			want[3][i] *= clip
		}
	}
	exact.NewWorker(exact.Kernels()[0]).AdamW(want[0], want[1], want[2], want[3], s)
	clear(want[3])
	if err := gpu.ReadParts(got[:], places); err != nil {
		return err
	}
	for i := range got {
		if err := same("an inner step", got[i], want[i]); err != nil {
			return err
		}
	}
	m.kept = sample{at(0), m.m.own[p].from + from, want[0]}
	if !m.frozen() {
		return nil
	}
	return errors.Join(m.clear.Run(), m.merged())
}

// Change implements cpu.Coder.
func (m *Model) Change() error {
	if err := m.auditKept(); err != nil {
		return err
	}
	if err := m.k.Device.Run(func(c *gpu.Commands) {
		for i, p := range m.m.own {
			begun := m.m.begun[i].at
			m.k.MeanStep(c, m.m.ownGrad[i].at, begun, p.at, p.at.Len, 1, 1)
			c.Copy(p.at, begun, p.at.Len)
		}
	}); err != nil {
		return err
	}
	m.params, m.version, m.isMerged = m.start.params, m.start.version, false
	kept := m.kept
	m.kept.values, m.normed.values = nil, nil
	if kept.values == nil {
		return nil
	}
	got, want := make([]float32, len(kept.values)), make([]float32, len(kept.values))
	for i := range want {
		want[i] = m.params[kept.from+i] - kept.values[i]
	}
	if err := readFlat(got, m.m.ownGrad, kept.from); err != nil {
		return err
	}
	m.normed = sample{from: kept.from, values: want}
	return same("what inner steps have changed", got, want)
}

// Updated implements cpu.Model.
func (m *Model) Updated(params, mean, square []float32) error {
	if params == nil { // after Change
		return errors.Join(m.m.mean.read(mean), m.m.square.read(square))
	}
	for _, x := range []struct {
		of parts
		to []float32
	}{{m.m.own, params}, {m.m.mean, mean}, {m.m.square, square}} {
		if err := x.of.read(x.to); err != nil {
			return err
		}
	}
	return same("parameters that an inner step left in its memory", params[m.kept.from:], m.kept.values)
}
