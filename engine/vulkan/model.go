package vulkan

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Model computes losses and gradients of package llama on a device, to the same bits. It is a
// cpu.Model: parameters, gradient and activations stay on the device, and a pass is recorded once
// for each number of sequences.
type Model struct {
	sizes
	name   string
	k      *kernel.Kernels
	m      *memory
	all    []gpu.Words
	passes map[shape]*gpu.Commands
	clear  *gpu.Commands
	norm   *gpu.Commands // of inner steps
	params []float32     // of the current share; nil after inner steps, which only the device has
	// What the parameters and the coder's state are, as the caller numbers them; 0: nothing with a
	// number.
	version, stateVersion uint64
	start                 struct { // what Start was called with
		params  []float32
		version uint64
	}
	kept   sample // of the last inner step's parameters; no values before the first
	normed sample // of the gradient, as Norm or Change found it; no values if it has changed since
	fresh  bool   // the gradient is still zero

	// Of a model of adapters: what is recorded, and whether it is done since adapters or gradient have
	// changed.
	frozenParams        []float32
	merge, part         *gpu.Commands
	isMerged, isDerived bool

	random prng.Source
}

// A shape is what a pass, or a stage of one, is recorded for.
type shape struct {
	stage     stage
	slot      int
	sequences int
	backward  bool
}

// A stage is a part of a pass. A device that has the whole model computes all of it at once.
type stage int

const (
	all      stage = iota
	layersOn       // layers, from the embedding on or from the device before
	lossOf         // last norm, head and loss
	layersBack
)

// newModel allocates a model for sequences of seq tokens, at most most of them at once, or fewer if
// the device has too little memory.
func newModel(k *kernel.Kernels, cfg llama.Config, seq, most int, inner bool, c codec.Codec) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return newStage(k, newSizes(cfg, seq, most, inner, c))
}

// newStage allocates what a device has of a model.
func newStage(k *kernel.Kernels, s sizes) (*Model, error) {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	m := &Model{k: k, sizes: s, passes: make(map[shape]*gpu.Commands), random: prng.New(wire.Hash(seed), "audit")}
	for m.sequences > 1 && (m.bytes() > k.Device.MemoryBytes/10*9 || m.loops() > kernel.LoopsMost) {
		m.sequences = (m.sequences + 1) / 2
	}
	if m.loops() > kernel.LoopsMost {
		return nil, fmt.Errorf("sequences of %d tokens from a vocabulary of %d take %d iterations of a loop, of which some drivers compute only %d",
			m.seq, m.Vocab, m.loops(), kernel.LoopsMost)
	}
	if m.bytes() > k.Device.MemoryBytes {
		return nil, fmt.Errorf("one sequence of the model takes %d MB of the device's memory, of which there are %d: %w",
			m.bytes()>>20, k.Device.MemoryBytes>>20, vk.OutOfDeviceMemory)
	}
	err := m.allocate()
	for err != nil && m.sequences > 1 && errors.Is(err, vk.OutOfDeviceMemory) {
		m.sequences = (m.sequences + 1) / 2
		err = m.allocate()
	}
	if err == nil {
		err = m.prepare()
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("a model that takes %d MB of the device's memory: %w", m.bytes()>>20, err)
	}
	return m, nil
}

// allocate takes the device's memory. After an error it has taken none.
func (m *Model) allocate() (err error) {
	m.m = m.sizes.allocate(func(n int) (x gpu.Words) {
		if err == nil {
			if x, err = m.k.Device.New(n); err == nil {
				m.all = append(m.all, x)
			}
		}
		return x
	})
	if err != nil {
		m.free()
	}
	return err
}

// prepare writes what never changes, and records how the gradient is cleared.
func (m *Model) prepare() (err error) {
	cosine, sine := llama.Angles(m.Config, m.seq)
	if err := errors.Join(gpu.Write(m.m.cosine, cosine), gpu.Write(m.m.sine, sine)); err != nil {
		return err
	}
	if m.few > 0 {
		return nil
	}
	m.clear, err = m.k.Device.Record(func(c *gpu.Commands) {
		for _, p := range m.m.grad.parts {
			c.Clear(p.at)
		}
	})
	if err == nil && m.m.squares.Len > 0 {
		err = m.prepareNorm()
	}
	if err == nil && m.m.coder != nil {
		err = m.m.coder.prepare(m.k, &m.random)
	}
	return err
}

func (m *Model) free() {
	for _, x := range m.all {
		x.Free()
	}
	m.all = nil
}

// Close frees the device's memory.
func (m *Model) Close() {
	for _, c := range m.passes {
		c.Free()
	}
	for _, c := range []*gpu.Commands{m.clear, m.norm, m.merge, m.part} {
		if c != nil {
			c.Free()
		}
	}
	m.free()
}

// String returns what computes.
func (m *Model) String() string { return m.name }

// Memory returns the bytes of the device's memory that the model takes.
func (m *Model) Memory() uint64 { return m.bytes() }

// Memory returns the bytes that a Model takes of a device's memory for most sequences of seq tokens
// at once, with inner also for inner steps, and with the run's codec unless it is nil. The kernels
// take some MB more.
func Memory(cfg llama.Config, seq, most int, inner bool, c codec.Codec) uint64 {
	return newSizes(cfg, seq, most, inner, c).bytes()
}

// Traffic returns how many bytes have gone to the device and come from it since it was opened.
func (m *Model) Traffic() gpu.Traffic { return m.k.Device.Traffic() }

// write sets parts to flat values.
func (all parts) write(values []float32) error {
	for _, p := range all {
		if err := gpu.Write(p.at, values[p.from:p.from+p.at.Len]); err != nil {
			return err
		}
	}
	return nil
}

// read fills flat values.
func (all parts) read(values []float32) error {
	for _, p := range all {
		if err := gpu.Read(values[p.from:p.from+p.at.Len], p.at); err != nil {
			return err
		}
	}
	return nil
}

// Patch implements cpu.Patcher.
func (m *Model) Patch(params []float32, version, next uint64, ranges []codec.Range) error {
	if version == 0 || version != m.version {
		return nil
	}
	m.params, m.version, m.isMerged = nil, 0, false
	var to []gpu.Words
	var from [][]float32
	for _, p := range m.m.own {
		for _, r := range ranges {
			if low, high := max(r.From, p.from), min(r.To, p.from+p.at.Len); low < high {
				to, from = append(to, p.at.At(low-p.from)), append(from, params[low:high])
			}
		}
	}
	if err := gpu.WriteParts(to, from); err != nil {
		return err
	}
	m.version = next
	return nil
}

// Start implements cpu.Model.
func (m *Model) Start(params []float32, version uint64, gradient bool) error {
	if len(params) != m.trained.Layout().Len() {
		panic("vulkan: parameters of another model's length")
	}
	m.params, m.kept.values, m.normed.values = params, nil, nil
	m.start.params, m.start.version = params, version
	if version != 0 && version == m.version {
		if err := m.auditParams(); err != nil {
			return err
		}
	} else {
		m.version, m.isMerged = 0, false
		if err := m.m.own.write(params); err != nil {
			return err
		}
		m.version = version
	}
	if err := m.merged(); err != nil || !gradient {
		return err
	}
	m.fresh, m.isDerived = true, false
	if len(m.m.begun) > 0 {
		if err := m.k.Device.Run(func(c *gpu.Commands) {
			for i, p := range m.m.own {
				c.Copy(m.m.begun[i].at, p.at, p.at.Len)
			}
		}); err != nil {
			return err
		}
	}
	return m.clear.Run()
}

// Grad implements cpu.Model.
func (m *Model) Grad(tokens []uint32, n, total int) (float32, error) {
	return m.run(tokens, n, 1/(float32(total)*float32(m.seq)), true)
}

// Loss implements cpu.Model.
func (m *Model) Loss(tokens []uint32, n int) (float32, error) { return m.run(tokens, n, 1, false) }

// run computes the passes of n sequences, and returns their mean loss as package llama does: the
// sum over the rows in order, for a tied model over each sequence's sum.
func (m *Model) run(tokens []uint32, n int, weight float32, backward bool) (float32, error) {
	if err := m.check(tokens, n); err != nil {
		return 0, err
	}
	var all [][]float32
	for part := range slices.Chunk(tokens, m.sequences*(m.seq+1)) {
		results, err := m.pass(part, shape{sequences: len(part) / (m.seq + 1), backward: backward}, weight)
		if err != nil {
			return 0, err
		}
		all = append(all, results)
	}
	return m.mean(tokens, all)
}

// check returns an error unless tokens are n sequences.
func (s sizes) check(tokens []uint32, n int) error {
	if len(tokens) != n*(s.seq+1) {
		return fmt.Errorf("%d tokens, want %d sequences of %d and one more", len(tokens), n, s.seq)
	}
	if i := slices.IndexFunc(tokens, func(t uint32) bool { return int64(t&^llama.Masked) >= int64(s.Vocab) }); i >= 0 {
		return fmt.Errorf("token %d at position %d is beyond the vocabulary of %d", tokens[i], i, s.Vocab)
	}
	return nil
}

// mean returns the mean loss of the results of all passes over tokens.
func (s sizes) mean(tokens []uint32, all [][]float32) (float32, error) {
	var sum float64
	for _, results := range all {
		each := len(results)
		if s.Tied {
			each = 2 * s.seq
		}
		for part := range slices.Chunk(results, each) {
			of := &sum
			if s.Tied {
				of = new(float64)
			}
			for r := range len(part) / 2 {
				*of += float64(exact.Log(part[2*r]) - part[2*r+1])
			}
			if s.Tied {
				sum += *of
			}
		}
	}
	learnt := llama.Learnt(tokens, s.seq)
	if learnt == 0 {
		return 0, nil
	}
	loss := float32(sum / float64(learnt))
	if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
		return loss, fmt.Errorf("the loss is %g: %w", loss, llama.ErrNotFinite)
	}
	return loss, nil
}

// pass runs one pass, and computes parts of it again.
func (m *Model) pass(tokens []uint32, s shape, weight float32) ([]float32, error) {
	c, err := m.recorded(s)
	if err != nil {
		return nil, err
	}
	if err := gpu.Write(m.m.tokens, m.input(tokens, weight)); err != nil {
		return nil, err
	}
	if err := c.Run(); err != nil {
		return nil, err
	}
	results := make([]float32, 2*s.sequences*m.seq)
	if err := gpu.Read(results, m.m.results); err != nil {
		return nil, err
	}
	if s.backward {
		err = m.audit(s.sequences)
		m.fresh, m.normed.values, m.isDerived = false, nil, false
	}
	return results, err
}

// recorded returns the commands of a pass.
func (m *Model) recorded(s shape) (*gpu.Commands, error) {
	if c := m.passes[s]; c != nil {
		return c, nil
	}
	c, err := m.k.Device.Record(func(c *gpu.Commands) {
		r := &recorder{Kernels: m.k, sizes: m.sizes, m: m.m, c: c}
		r.sequences = s.sequences
		if m.outer && (s.stage == all || s.stage == layersOn) {
			r.embed()
		}
		if s.stage == all || s.stage == layersOn {
			r.forward()
		}
		if s.stage == all || s.stage == lossOf {
			r.loss(s.backward)
		}
		if s.stage == all && s.backward || s.stage == layersBack {
			r.backward()
			if m.outer {
				r.embedBackward()
			}
		}
	})
	if err == nil {
		m.passes[s] = c
	}
	return c, err
}

// input returns what a pass takes from the host, as sizes.words says.
func (s sizes) input(tokens []uint32, weight float32) []uint32 {
	s.sequences = len(tokens) / (s.seq + 1)
	token := func(r uint32) uint32 { return tokens[int(r)+int(r)/s.seq] &^ llama.Masked }
	w := slices.Grow(slices.Clone(tokens), s.words()-len(tokens))
	for r := range s.rows() {
		w = append(w, uint32(r))
	}
	for order := range slices.Chunk(w[len(tokens):], s.sorted()) {
		slices.SortStableFunc(order, func(a, b uint32) int { return int(token(a)) - int(token(b)) })
		groups := len(w)
		w = append(w, 0)
		for i := 1; i <= len(order); i++ {
			if i == len(order) || token(order[i]) != token(order[i-1]) {
				w = append(w, uint32(i))
			}
		}
		for len(w) <= groups+len(order) { // groups without rows
			w = append(w, uint32(len(order)))
		}
	}
	return append(w, math.Float32bits(weight))
}

// Gradient implements cpu.Model.
func (m *Model) Gradient(grad []float32) error {
	if err := errors.Join(m.derived(), m.m.ownGrad.read(grad)); err != nil {
		return err
	}
	return m.finite(grad)
}

func (s sizes) finite(grad []float32) error {
	for _, t := range s.trained.Layout().Tensors() {
		if i := exact.Finite(grad[t.Offset : t.Offset+t.Len]); i >= 0 {
			return fmt.Errorf("element %d of the gradient of %q is %g: %w", i, t.Name, grad[t.Offset+i], llama.ErrNotFinite)
		}
	}
	return nil
}
