package vulkan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// coder runs a codec where gradient and parameters are, and hashes there.
type coder struct {
	does
	k                   *kernel.Kernels
	random              *prng.Source
	params, grad, state []part // the codec's state, of the member that encoded last

	most, leaves gpu.Words
	hashed       [3]hashed // params, grad, and all of the state
}

// does is what a coder does for one codec.
type does interface {
	// write writes what never changes.
	write() error
	// use makes c the codec, and reports whether it is the same with the same settings.
	use(c codec.Codec) bool
	// encode updates the state by the gradient times step, and returns the payload. state is what the
	// host knows of the device's; only a sample is looked at.
	encode(state []float32, step float32) ([]byte, error)
	// apply updates the parameters by a set that Apply of the codec takes. params are what the host
	// knows of them; only a sample is looked at.
	apply(params []float32, payloads [][]byte, lr float32) error
}

// A hashed is parts that are hashed one after another, and where the device finds them.
type hashed struct {
	parts  []part
	length int
	table  gpu.Words
}

// coding reports whether a device can run c, with inner in a run whose shares are inner steps.
func coding(c codec.Codec, inner bool) bool {
	switch c.(type) {
	case *distro.Codec:
		return !inner
	case *sparseloco.Codec, sparseloco.Followable:
		return true
	}
	return false
}

// newCoder returns a coder whose memory alloc makes; prepare makes it ready. rest is what follows
// the codec's part of a state.
func newCoder(c codec.Codec, params, grad, rest []part, alloc func(n int) gpu.Words) *coder {
	d := &coder{params: params, grad: grad}
	ends := make([]int, len(params))
	length := c.StateLen()
	for i, p := range params {
		ends[i] = p.from
		d.state = append(d.state, part{p.from, alloc(p.at.Len)})
	}
	all := slices.Clone(d.state)
	for i, p := range rest {
		all = append(all, part{length*(1+i/len(params)) + p.from, p.at})
	}
	for i, parts := range [][]part{params, grad, all} {
		last := parts[len(parts)-1]
		d.hashed[i] = hashed{parts, last.from + last.at.Len, alloc(3 * len(parts))}
	}
	d.most, d.leaves = alloc(1), alloc(kernel.LeavesLen(d.hashed[2].length))
	switch c := c.(type) {
	case *distro.Codec:
		d.does = newBlocks(d, c, ends, alloc)
	case *sparseloco.Codec:
		d.does = newChunks(d, c, ends, alloc)
	case sparseloco.Followable:
		d.does = newChunks(d, c.Codec, ends, alloc)
	}
	return d
}

// prepare writes what never changes.
func (d *coder) prepare(k *kernel.Kernels, random *prng.Source) error {
	d.k, d.random = k, random
	for _, h := range d.hashed {
		var words []gpu.Words
		for _, p := range h.parts {
			words = append(words, p.at)
		}
		if err := gpu.Write(h.table, kernel.Table(words)); err != nil {
			return err
		}
	}
	return d.write()
}

// checkState returns an error if the state that Momentum has found was not finite, or beyond limit.
func (d *coder) checkState(limit float32) error {
	most := make([]float32, 1)
	if err := gpu.Read(most, d.most); err != nil {
		return err
	}
	if m := float64(most[0]); math.IsNaN(m) || math.IsInf(m, 0) {
		return fmt.Errorf("state: %w", codec.ErrNotFinite)
	}
	if err := codec.CheckRange("magnitude of the state", most[0], limit); err != nil {
		return fmt.Errorf("%w: %w", err, codec.ErrTooLarge)
	}
	return nil
}

// readPicks reads picks, two to a word.
func readPicks(at gpu.Words) ([]uint16, error) {
	words, picks := make([]uint32, at.Len), make([]uint16, 2*at.Len)
	err := gpu.Read(words, at)
	for i, w := range words {
		picks[2*i], picks[2*i+1] = uint16(w), uint16(w>>16)
	}
	return picks, err
}

// at returns where element number i is.
func at(parts []part, i int) gpu.Words {
	for _, p := range parts {
		if i < p.from+p.at.Len {
			return p.at.At(i - p.from)
		}
	}
	panic("vulkan: an element beyond the last")
}

// hashes returns the Merkle leaves of what h describes, and compares one with the processor's.
// values are the same in host memory, or not all of it.
func (d *coder) hashes(h *hashed, values []float32) ([]wire.Hash, error) {
	if err := d.k.Device.Run(func(c *gpu.Commands) { d.k.Leaves(c, d.leaves, h.table, h.length) }); err != nil {
		return nil, err
	}
	leaves, err := kernel.ReadLeaves(d.leaves, h.length)
	if err != nil {
		return nil, err
	}
	const floats = merkle.ChunkBytes / 4
	i := int(d.random.Uint64n(uint64(len(leaves))))
	from, to := i*floats, min((i+1)*floats, h.length)
	if len(values) != h.length {
		values, to, from = make([]float32, to-from), to-from, 0
		if err := readFlat(values, h.parts, i*floats); err != nil {
			return nil, err
		}
	}
	if merkle.Leaf(tensor.Bytes(values[from:to])) != leaves[i] {
		return nil, differs(fmt.Sprintf("vulkan: the device hashes chunk %d of a vector to other bits than the processor", i))
	}
	return leaves, nil
}

// readFlat fills dst with elements from number from on.
func readFlat(dst []float32, parts []part, from int) error {
	for _, p := range parts {
		low, high := max(p.from, from), min(p.from+p.at.Len, from+len(dst))
		if low >= high {
			continue
		}
		if err := gpu.Read(dst[low-from:high-from], p.at.At(low-p.from)); err != nil {
			return err
		}
	}
	return nil
}

// Code makes the model run c instead of the codec that it was made with, and reports whether it
// can.
func (m *Model) Code(c codec.Codec) bool { return m.m.coder != nil && m.m.coder.use(c) }

// Holds implements cpu.Coder.
func (m *Model) Holds(version uint64) bool { return version != 0 && version == m.version }

// Encode implements cpu.Coder.
func (m *Model) Encode(state, after []float32, version, next uint64, step float32) (payload []byte, gradient, leaves []wire.Hash, err error) {
	d := m.m.coder
	if version == 0 || version != m.stateVersion {
		for _, p := range d.state {
			if err := gpu.Write(p.at, state[p.from:p.from+p.at.Len]); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	m.stateVersion = 0
	if err = m.auditNormed(); err != nil {
		return nil, nil, nil, err
	}
	if payload, err = d.encode(state, step); err != nil {
		return nil, nil, nil, err
	}
	if gradient, err = d.hashes(&d.hashed[1], nil); err != nil {
		return nil, nil, nil, err
	}
	if err = readFlat(after, d.state, 0); err != nil {
		return nil, nil, nil, err
	}
	leaves, err = d.hashes(&d.hashed[2], after)
	if err == nil {
		m.stateVersion = next
	}
	return payload, gradient, leaves, err
}

// Apply implements cpu.Coder.
func (m *Model) Apply(params, after []float32, next uint64, payloads [][]byte, lr float32) (leaves []wire.Hash, err error) {
	d := m.m.coder
	m.params, m.version, m.isMerged = nil, 0, false
	if err := d.apply(params, payloads, lr); err != nil {
		return nil, err
	}
	if err := readFlat(after, d.params, 0); err != nil {
		return nil, err
	}
	leaves, err = d.hashes(&d.hashed[0], after)
	if err == nil {
		m.version = next
	}
	return leaves, err
}

// proveCodec encodes the model's gradient, or the change of an inner step by it, applies that
// twice, and compares what each step leaves and its hashes with the processor's.
func proveCodec(m *Model, grad, params []float32, class string) (f kernel.Finding, err error) {
	f = kernel.Finding{Operation: "codec, and hashes", Class: class, Compared: 2 * len(grad)}
	wrong := func(what string) {
		f.Wrong++
		f.Example = what
	}
	const lr, clip = 0.01, 1
	state, after := slices.Clone(params), make([]float32, len(params))
	norm, err := m.Norm()
	if err != nil {
		return f, err
	}
	step, err := codec.Factor(norm, clip)
	if err != nil {
		return f, err
	}
	var moments []float32
	if m.inner {
		moments = make([]float32, 2*len(params))
		if grad, err = proveInner(m, grad, params, moments, step); err != nil {
			return f, err
		}
		step = 1
	} else {
		step *= lr
	}
	payload, gradient, leaves, err := m.Encode(state, after, 1, 2, step)
	if errors.As(err, new(differs)) {
		wrong(err.Error())
		return f, nil
	}
	if err != nil {
		return f, err
	}
	want, err := m.codec.Encode(nil, state, grad, lr)
	if err != nil {
		return f, err
	}
	if !bytes.Equal(payload, want) || !slices.Equal(after, state) {
		wrong("the payload or the state")
	}
	if !slices.Equal(gradient, merkle.BlobLeaves(tensor.Bytes(grad))) || !slices.Equal(leaves, merkle.BlobLeaves(tensor.Bytes(append(state, moments...)))) {
		wrong("a hash")
	}
	next := slices.Clone(params)
	_, err = m.Apply(params, after, 2, [][]byte{want, want}, lr)
	if errors.As(err, new(differs)) {
		wrong(err.Error())
		return f, nil
	}
	if err := errors.Join(err, m.codec.Apply(next, [][]byte{want, want}, lr)); err != nil {
		return f, err
	}
	if !slices.Equal(after, next) {
		wrong("the parameters of a set")
	}
	return f, nil
}

// proveInner takes an inner step on the device and on the processor, which sets moments, and
// returns what it changes.
func proveInner(m *Model, grad, params, moments []float32, clip float32) ([]float32, error) {
	s := optim.DefaultAdamW().At(1, 0.01)
	mean, square := moments[:len(params)], moments[len(params):]
	err := m.Moments(mean, square)
	if err == nil {
		err = m.Update(clip, s)
	}
	if err == nil {
		err = m.Change()
	}
	local, change := slices.Clone(params), make([]float32, len(params))
	for i, g := range grad {
		change[i] = g * clip
	}
	exact.NewWorker(exact.Kernels()[0]).AdamW(local, mean, square, change, s)
	for i := range change {
		change[i] = params[i] - local[i]
	}
	return change, err
}
