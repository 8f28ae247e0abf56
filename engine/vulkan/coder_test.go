package vulkan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/codectest"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// onDevice is codec distro whose Encode and Apply run on a device.
type onDevice struct {
	distro.Config
	t *testing.T
	k *kernel.Kernels
}

func (o onDevice) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	c, err := distro.New(layout, o.Config, pool)
	if err != nil {
		return nil, err
	}
	alloc := func(n int) gpu.Words {
		w, err := o.k.Device.New(n)
		if err != nil {
			o.t.Fatal(err)
		}
		o.t.Cleanup(w.Free)
		return w
	}
	parts := func() (parts []part) { // two, the second from the third tensor on
		from, n := layout.Tensors()[min(2, len(layout.Tensors())-1)].Offset, layout.Len()
		if from > 0 {
			parts = append(parts, part{0, alloc(from)})
		}
		return append(parts, part{from, alloc(n - from)})
	}
	random := prng.New(wire.Sum("coder"), "audit")
	d := newCoder(c, parts(), parts(), alloc)
	return &deviceCodec{Codec: c, d: d}, d.prepare(o.k, &random)
}

type deviceCodec struct {
	*distro.Codec
	mu sync.Mutex
	d  *coder
}

func (c *deviceCodec) write(parts []part, values []float32) {
	for _, p := range parts {
		if err := gpu.Write(p.at, values[p.from:p.from+p.at.Len]); err != nil {
			panic(err)
		}
	}
}

func (c *deviceCodec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := codec.CheckLR(lr, c.Config().WeightDecay); err != nil {
		return dst, err
	}
	scale, err := codec.Clip(nil, grad, c.Config().ClipNorm)
	if err != nil {
		return dst, err
	}
	c.write(c.d.state, state)
	c.write(c.d.grad, grad)
	payload, err := c.d.encode(state, lr*scale)
	if err != nil {
		return dst, err
	}
	if _, err := c.d.hashes(c.d.tables[1], c.d.grad, grad); err != nil {
		return dst, err
	}
	return append(dst, payload...), readFlat(state, c.d.state, 0)
}

func (c *deviceCodec) Apply(params []float32, payloads [][]byte, lr float32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := codec.CheckSet(c.Check, payloads, lr, c.Config().WeightDecay); err != nil {
		return err
	}
	c.write(c.d.params, params)
	if err := c.d.apply(params, payloads, lr); err != nil {
		return fmt.Errorf("on the device: %w", err)
	}
	return readFlat(params, c.d.params, 0)
}

// The codec on a device is the codec.
func TestTheCodecOnADevice(t *testing.T) {
	d := device(t)
	defer func(n int) { workFloats = n }(workFloats)
	workFloats = 1500
	codectest.Test(t, onDevice{distro.Config{Block: 16, TopK: 5, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1, VotesMax: 2}, t, d.k})
}

// A member is an engine with what it holds.
type member struct {
	*cpu.Engine
	params, state engine.Vector
	results       []engine.Result
}

// coded returns a member of a run whose codec a device runs, and the model on the device.
func coded(t *testing.T, on cpu.Model, failed func(error)) *member {
	t.Helper()
	e, err := cpu.New(engine.Run{Model: small, Codec: codedWith, Data: counted{}, Sequence: 20, Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}},
		cpu.Options{Workers: 1, Micro: 2, Device: on, DeviceFailed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &member{e, e.Load(llama.Init(small, wire.Sum("coded"))), e.NewVector(e.StateLen()), nil}
}

var codedWith = distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1}

func codedModel(t *testing.T) *Model {
	t.Helper()
	c, err := codedWith.New(small.Layout(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := device(t).NewModel(small, 20, 2, false, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	var taken uint64
	for _, x := range m.all {
		taken += 4 * uint64(x.Len)
	}
	if taken != m.Memory() || taken != Memory(small, 20, 2, false, c) {
		t.Errorf("%d bytes are taken, %d were estimated", taken, m.Memory())
	}
	return m
}

// round is a round as a node computes it: from one buffer to the next.
func (m *member) round(t *testing.T, n uint32) {
	t.Helper()
	state, params := m.NewVector(m.state.Len()), m.NewVector(m.params.Len())
	m.Copy(state, m.state)
	r, err := m.Step(t.Context(), m.params, state, []batch.Span{{Start: uint64(100 * n), Count: 5}}, n)
	if err != nil {
		t.Fatal(err)
	}
	m.Copy(params, m.params)
	if err := m.Apply(params, [][]byte{r.Payload, r.Payload}, n); err != nil {
		t.Fatal(err)
	}
	m.state, m.params, m.results = state, params, append(m.results, r)
}

// same reports whether two members have the same, by values and by hashes.
func (m *member) same(o *member) bool {
	last, other := m.results[len(m.results)-1], o.results[len(o.results)-1]
	return bytes.Equal(last.Payload, other.Payload) && last.Gradient == other.Gradient && last.Loss == other.Loss && last.GradNorm == other.GradNorm &&
		slices.Equal(engine.Values(m.state), engine.Values(o.state)) && slices.Equal(engine.Values(m.params), engine.Values(o.params)) &&
		slices.Equal(m.Leaves(m.state), o.Leaves(o.state)) && slices.Equal(m.Leaves(m.params), o.Leaves(o.params))
}

// Parameters and state go to the device once, and the gradient never leaves it.
func TestTheCodecStaysOnTheDevice(t *testing.T) {
	model := codedModel(t)
	plain, on := coded(t, nil, nil), coded(t, model, func(err error) { t.Error(err) })
	n := uint64(4 * small.Layout().Len())
	for round := range uint32(5) {
		if round == 3 { // another member's state, as a verifier computes with
			other := slices.Clone(engine.Values(plain.state))
			other[5] = 0.25
			plain.state, on.state = plain.Load(slices.Clone(other)), on.Load(other)
		}
		before := model.Traffic()
		on.round(t, round+1)
		plain.round(t, round+1)
		if !on.same(plain) {
			t.Fatalf("round %d: other bits than the processors'", round)
		}
		moved := model.Traffic().Since(before)
		to := uint64(3*4*model.words() + 2*2*model.codec.PicksLen())
		switch round {
		case 0:
			to += 2 * n
		case 3:
			to += n
		}
		// State and parameters, and of this small model a chunk of the gradient, which is all of it; losses, sums, picks and what is audited.
		most := 3*n + 3*4*uint64(2*model.rows()) + 4*uint64(model.m.squares.Len+small.Layout().Len()) + 32<<10
		t.Logf("round %d: %d bytes there and %d back, of %d of parameters", round, moved.To, moved.From, n)
		if moved.To > to || moved.From > most || moved.From < 2*n {
			t.Errorf("round %d: %+v, want at most %d there and %d back", round, moved, to, most)
		}
	}
}

func (s *spoiled) Encode(state, after []float32, version, next uint64, step float32) ([]byte, []wire.Hash, []wire.Hash, error) {
	if err := s.call("Encode"); err != nil {
		return nil, nil, nil, err
	}
	return s.Model.Encode(state, after, version, next, step)
}

func (s *spoiled) Apply(params, after []float32, next uint64, payloads [][]byte, lr float32) ([]wire.Hash, error) {
	if err := s.call("Apply"); err != nil {
		return nil, err
	}
	return s.Model.Apply(params, after, next, payloads, lr)
}

// However a device fails that has parameters and state, the member loses neither, and is told why.
func TestADeviceFailsThatRunsTheCodec(t *testing.T) {
	lost := func(*Model) error { return vk.DeviceLost.Err("submission") }
	forgets := func(of func(m *Model) []part) func(m *Model) error { // as after a sleep
		return func(m *Model) error {
			for _, p := range of(m) {
				if err := gpu.Write(p.at, make([]float32, p.at.Len)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	params := func(m *Model) []part { return m.m.params.parts }
	state := func(m *Model) []part { return m.m.coder.state }
	plain := coded(t, nil, nil)
	for n := range uint32(3) {
		plain.round(t, n+1)
	}
	for _, c := range []struct {
		before string
		left   int
		spoil  func(m *Model) error
		told   string
	}{
		{"Encode", 2, lost, "lost"},
		{"Apply", 2, lost, "lost"},
		{"Encode", 2, func(*Model) error { return vk.OutOfDeviceMemory.Err("submission") }, "memory"},
		{"Encode", 2, forgets(state), "state that it kept"},
		{"Apply", 2, forgets(params), "parameters that it kept"},
		{"Grad", 4, forgets(params), "parameters that it kept"},
		{"Encode", 2, func(m *Model) error { // sends by another basis
			for _, at := range m.m.coder.bases {
				if err := gpu.Write(at, make([]float32, at.Len)); err != nil {
					return err
				}
			}
			return nil
		}, "in a state"},
		{"Apply", 2, func(m *Model) error { // hashes other parts
			m.m.coder.tables[0] = m.m.coder.tables[2]
			return nil
		}, "hashes chunk"},
	} {
		var told []string
		on := coded(t, &spoiled{codedModel(t), c.before, c.left, c.spoil}, func(err error) { told = append(told, err.Error()) })
		for n := range uint32(3) {
			on.round(t, n+1)
		}
		if !on.same(plain) {
			t.Errorf("call %d of %s: other bits than the processors'", c.left, c.before)
		}
		if len(told) != 1 || !strings.Contains(told[0], c.told) {
			t.Errorf("call %d of %s: told %q, want %q", c.left, c.before, told, c.told)
		}
	}
}
