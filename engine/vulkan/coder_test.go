package vulkan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/codectest"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// distroOnDevice and sparselocoOnDevice are codecs whose Encode and Apply run on a device.
type distroOnDevice struct {
	distro.Config
	*testing.T
}

func (o distroOnDevice) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	c, err := distro.New(layout, o.Config, pool)
	if err != nil {
		return nil, err
	}
	d := &deviceCodec{Codec: c}
	d.clip, d.weightDecay = c.Clipping()
	return &disputable{c, d}, d.open(o.T, layout)
}

// disputable has the other methods of distro.Codec.
type disputable struct {
	*distro.Codec
	on *deviceCodec
}

func (c *disputable) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	return c.on.Encode(dst, state, grad, lr)
}

func (c *disputable) Apply(params []float32, payloads [][]byte, lr float32) error {
	return c.on.Apply(params, payloads, lr)
}

type sparselocoOnDevice struct {
	sparseloco.Options
	*testing.T
}

func (o sparselocoOnDevice) New(layout tensor.Layout, pool *exact.Pool) (codec.Codec, error) {
	c, err := o.Options.New(layout, pool)
	if err != nil {
		return nil, err
	}
	d := &deviceCodec{Codec: c}
	if f, ok := c.(sparseloco.Followable); ok {
		return &followable{f, d}, d.open(o.T, layout)
	}
	return d, d.open(o.T, layout)
}

// followable has the other methods of sparseloco.Followable.
type followable struct {
	sparseloco.Followable
	on *deviceCodec
}

func (c *followable) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	return c.on.Encode(dst, state, grad, lr)
}

func (c *followable) Apply(params []float32, payloads [][]byte, lr float32) error {
	return c.on.Apply(params, payloads, lr)
}

type deviceCodec struct {
	codec.Codec
	clip, weightDecay float32
	mu                sync.Mutex
	d                 *coder
}

func (c *deviceCodec) open(t *testing.T, layout tensor.Layout) error {
	k := device(t).k
	alloc := func(n int) gpu.Words {
		w, err := k.Device.New(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Free)
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
	c.d = newCoder(c.Codec, parts(), parts(), nil, alloc)
	return c.d.prepare(k, &random)
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
	if err := codec.CheckLR(lr, c.weightDecay); err != nil {
		return dst, err
	}
	step, err := codec.Clip(nil, grad, c.clip)
	if err != nil {
		return dst, err
	}
	if _, ok := c.d.does.(*blocks); ok {
		step *= lr
	}
	c.write(c.d.state, state)
	c.write(c.d.grad, grad)
	payload, err := c.d.encode(state, step)
	if err != nil {
		return dst, err
	}
	if _, err := c.d.hashes(&c.d.hashed[1], grad); err != nil {
		return dst, err
	}
	return append(dst, payload...), readFlat(state, c.d.state, 0)
}

func (c *deviceCodec) Apply(params []float32, payloads [][]byte, lr float32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := codec.CheckSet(c.Check, payloads, lr, c.weightDecay); err != nil {
		return err
	}
	c.write(c.d.params, params)
	if err := c.d.apply(params, payloads, lr); err != nil {
		return fmt.Errorf("on the device: %w", err)
	}
	return readFlat(params, c.d.params, 0)
}

// The codecs on a device are the codecs.
func TestCodecsOnADevice(t *testing.T) {
	device(t) // skips this test, which no test below it can
	defer func(n int) { workFloats = n }(workFloats)
	workFloats = 1500
	for name, o := range map[string]codec.Options{
		"distro":                   distroOnDevice{distro.Config{Block: 16, TopK: 5, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1, VotesMax: 2}, t},
		"sparseloco":               sparselocoOnDevice{sparseloco.Options{Chunk: 100, TopK: 5, Decay: 0.9, OuterRate: 0.9, InnerSteps: 1}, t},
		"sparseloco, integer sums": sparselocoOnDevice{sparseloco.Options{Chunk: 100, TopK: 5, Decay: 0.9, OuterRate: 0.9, InnerSteps: 1, ClipChunks: 3}, t},
	} {
		t.Run(name, func(t *testing.T) { codectest.Test(t, o) })
	}
}

// A member is an engine with what it holds.
type member struct {
	*cpu.Engine
	params, state engine.Vector
	results       []engine.Result
}

// A method is how a member of a run trains.
type method struct {
	codec codec.Options
	inner *optim.Inner
	lora  llama.LoRA
}

// model returns what a member trains, and frozen the model that its adapters belong to, if any.
func (m method) model() llama.Config { return with(small, func(c *llama.Config) { c.LoRA = m.lora }) }
func (m method) frozen() []float32 {
	if m.lora == (llama.LoRA{}) {
		return nil
	}
	return llama.Init(small, wire.Sum("frozen"))
}

var gradients = method{codec: distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1}}

var innerSteps = func() method {
	o := sparseloco.Options{Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 0.9, InnerSteps: 3, WeightDecay: 0.1, ClipNorm: 1}
	return method{codec: o, inner: o.Inner()}
}()

// coded returns a member of a run whose codec a device runs, and the model on the device.
func coded(t *testing.T, by method, on cpu.Model, failed func(error)) *member {
	t.Helper()
	e, err := cpu.New(engine.Run{Model: by.model(), Base: by.frozen(), Codec: by.codec, Inner: by.inner, Data: counted{}, Sequence: 20,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}}, cpu.Options{Workers: 1, Micro: 2, Device: on, DeviceFailed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &member{e, e.Load(llama.Init(by.model(), wire.Sum("coded"))), e.NewVector(e.StateLen()), nil}
}

func codedModel(t *testing.T, by method) *Model {
	t.Helper()
	c, err := by.codec.New(by.model().Layout(), nil)
	if err != nil {
		t.Fatal(err)
	}
	on, err := Devices{device(t)}.NewModel(by.model(), by.frozen(), 20, 2, by.inner != nil, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(on.Close)
	m := on.(*Model)
	var taken uint64
	for _, x := range m.all {
		taken += 4 * uint64(x.Len)
	}
	if taken != m.Memory() || taken != Memory(by.model(), 20, 2, by.inner != nil, c) {
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

// Parameters and state go to the device once, and the gradient never leaves it, nor what inner steps
// have changed.
func TestTheCodecStaysOnTheDevice(t *testing.T) {
	n := uint64(4 * small.Layout().Len())
	for name, by := range map[string]method{"distro": gradients, "sparseloco": innerSteps} {
		model := codedModel(t, by)
		plain, on := coded(t, by, nil, nil), coded(t, by, model, func(err error) { t.Error(err) })
		passes, vectors := uint64(3), uint64(1) // of a round; and of n bytes in a state
		if by.inner != nil {
			passes, vectors = 5, 3
		}
		for round := range uint32(5) {
			if round == 3 { // another member's state, as a verifier computes with
				other := slices.Clone(engine.Values(plain.state))
				other[5], other[len(other)-2] = 0.25, 0.25
				plain.state, on.state = plain.Load(slices.Clone(other)), on.Load(other)
			}
			before := model.Traffic()
			on.round(t, round+1)
			plain.round(t, round+1)
			if !on.same(plain) {
				t.Fatalf("%s, round %d: other bits than the processors'", name, round)
			}
			moved := model.Traffic().Since(before)
			to := 4*passes*uint64(model.words()) + 16<<10 // and picks
			switch round {
			case 0:
				to += (1 + vectors) * n
			case 3:
				to += vectors * n
			}
			// State and parameters, and of this small model a chunk of gradient and state, which is all of it; losses, sums, picks and what is audited.
			least := (1 + vectors) * n
			most := least + (1+vectors)*n + 4*passes*uint64(2*model.rows()+model.m.squares.Len+small.Layout().Len()) + 48<<10
			t.Logf("%s, round %d: %d bytes there and %d back, of %d of parameters", name, round, moved.To, moved.From, n)
			if moved.To > to || moved.From > most || moved.From < least {
				t.Errorf("%s, round %d: %+v, want at most %d there and %d to %d back", name, round, moved, to, least, most)
			}
		}
	}
}

// In a run by buckets the gradient comes from the device each window, and only the slice that a window
// has changed goes there.
func TestOnlyASliceGoesToTheDevice(t *testing.T) {
	by := method{codec: slice.Config{Compression: 4, Leaf: 32, Decay: 1, WeightDecay: 0.1, ClipNorm: 1}}
	model := codedModel(t, by)
	plain, on := coded(t, by, nil, nil), coded(t, by, model, func(err error) { t.Error(err) })
	n := uint64(4 * small.Layout().Len())
	for window := range uint32(4) {
		before := model.Traffic()
		for _, m := range []*member{plain, on} {
			s, _ := m.Slicer()
			seed := wire.Sum("window", []byte{byte(window)})
			r, err := m.Step(t.Context(), m.params, m.state, []batch.Span{{Start: uint64(100 * window), Count: 5}}, window+1)
			if err != nil {
				t.Fatal(err)
			}
			s.Settle(m.state, seed)
			params := m.NewVector(m.params.Len())
			m.Copy(params, m.params)
			if err := m.Apply(params, [][]byte{s.Reveal(nil, r.Payload, seed)}, window+1); err != nil {
				t.Fatal(err)
			}
			m.params, m.results = params, append(m.results, r)
		}
		if !on.same(plain) {
			t.Fatalf("window %d: other bits than the processors'", window)
		}
		moved := model.Traffic().Since(before)
		to := 3*4*uint64(model.words()) + n*2/5 // a quarter, rounded up to whole leaves of each tensor
		if window == 0 {
			to += n
		}
		t.Logf("window %d: %d bytes there and %d back, of %d of parameters", window, moved.To, moved.From, n)
		if moved.To > to || moved.To < n/4 || moved.From < n {
			t.Errorf("window %d: %+v, want at most %d there", window, moved, to)
		}
	}
}

func (s *spoiled) Change() error { return errors.Join(s.call("Change"), s.Model.Change()) }

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
	grad := func(m *Model) []part { return m.m.grad.parts }
	plain := map[*method]*member{}
	for _, by := range []*method{&gradients, &innerSteps, &adapting} {
		plain[by] = coded(t, *by, nil, nil)
		for n := range uint32(3) {
			plain[by].round(t, n+1)
		}
	}
	for _, c := range []struct {
		by     *method
		before string
		left   int
		spoil  func(m *Model) error
		told   string
	}{
		{&gradients, "Encode", 2, lost, "lost"},
		{&gradients, "Apply", 2, lost, "lost"},
		{&gradients, "Encode", 2, func(*Model) error { return vk.OutOfDeviceMemory.Err("submission") }, "memory"},
		{&gradients, "Encode", 2, forgets(state), "state that it kept"},
		{&gradients, "Encode", 1, forgets(grad), "gradient that it kept"},
		{&gradients, "Apply", 2, forgets(params), "parameters that it kept"},
		{&gradients, "Grad", 4, forgets(params), "parameters that it kept"},
		{&innerSteps, "Change", 2, lost, "lost"},
		{&innerSteps, "Change", 2, forgets(params), "parameters that an inner step left"},
		{&innerSteps, "Change", 2, forgets(func(m *Model) []part { return m.m.begun }), "what inner steps have changed"},
		{&innerSteps, "Encode", 2, forgets(state), "state that it kept"},
		{&innerSteps, "Encode", 1, forgets(grad), "gradient that it kept"},
		{&innerSteps, "Updated", 2, lost, "lost"},
		{&innerSteps, "Apply", 2, forgets(params), "parameters that it kept"},
		{&gradients, "Encode", 2, func(m *Model) error { // sends by another basis
			for _, at := range m.m.coder.does.(*blocks).bases {
				if err := gpu.Write(at, make([]float32, at.Len)); err != nil {
					return err
				}
			}
			return nil
		}, "in a state"},
		{&adapting, "Grad", 4, forgets(params), "frozen model that it kept"},
		{&adapting, "Update", 1, forgets(func(m *Model) []part { return frozenOf(m) }), "frozen model that it kept"},
		{&gradients, "Apply", 2, func(m *Model) error { // hashes other parts
			m.m.coder.hashed[0].table = m.m.coder.hashed[2].table
			return nil
		}, "hashes chunk"},
	} {
		var told []string
		on := coded(t, *c.by, &spoiled{codedModel(t, *c.by), c.before, c.left, c.spoil}, func(err error) { told = append(told, err.Error()) })
		for n := range uint32(3) {
			on.round(t, n+1)
		}
		if !on.same(plain[c.by]) {
			t.Errorf("call %d of %s: other bits than the processors'", c.left, c.before)
		}
		if len(told) != 1 || !strings.Contains(told[0], c.told) {
			t.Errorf("call %d of %s: told %q, want %q", c.left, c.before, told, c.told)
		}
	}
}
