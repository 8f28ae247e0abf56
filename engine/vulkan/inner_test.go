package vulkan

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// counted is a text in which each token follows from the one before it.
type counted struct{}

func (counted) Read(i uint64, dst []uint32) error {
	for k := range dst {
		dst[k] = uint32(i*7+uint64(k)*5) % uint32(small.Vocab)
	}
	return nil
}

// Inner steps give the bits of the processors, and move to the device parameters and tokens, and from it what a round needs, however many steps there
// are. Moments go there again only if they are other ones.
func TestInnerStepsStayOnTheDevice(t *testing.T) {
	d := device(t)
	const seq, micro, steps = 20, 2, 6
	o := sparseloco.Options{Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: steps, WeightDecay: 0.1, ClipNorm: 1}
	run := engine.Run{Model: small, Codec: o, Inner: o.Inner(), Data: counted{}, Sequence: seq,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}}
	m, err := d.NewModel(small, seq, micro, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var engines [2]*cpu.Engine
	var params, state [2]cpu.Floats
	for i, on := range []cpu.Model{nil, m} {
		engines[i], err = cpu.New(run, cpu.Options{Workers: 1, Micro: micro, Device: on, DeviceFailed: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		defer engines[i].Close()
		params[i], state[i] = llama.Init(small, wire.Sum("inner")), make(cpu.Floats, engines[i].StateLen())
	}
	n := uint64(4 * len(params[0]))
	for round := range uint32(4) {
		if round == 3 { // a state that the device has not made
			state[0][len(state[0])-2], state[1][len(state[1])-2] = 0.25, 0.25
		}
		var results [2]engine.Result
		before := m.Traffic()
		for i, e := range engines {
			if results[i], err = e.Step(t.Context(), params[i], state[i], []batch.Span{{Start: uint64(100 * round), Count: steps * micro}}, round+1); err != nil {
				t.Fatal(err)
			}
		}
		moved := m.Traffic().Since(before)
		for i, e := range engines {
			if err := e.Apply(params[i], [][]byte{results[i].Payload}, round+1); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(results[0].Payload, results[1].Payload) || results[0].Gradient != results[1].Gradient || results[0].Loss != results[1].Loss ||
			!slices.Equal(state[0], state[1]) || !slices.Equal(params[0], params[1]) {
			t.Errorf("round %d: other bits than the processors'", round)
		}
		to := n + steps*4*uint64(m.words())
		if round == 0 || round == 3 {
			to += 2 * n
		}
		// What comes back: parameters, moments, and for each step losses, sums of squares and what is audited, among it the sums of a segment.
		least := 3*n + steps*4*uint64(2*m.rows()+m.m.squares.Len)
		most := least + steps*n + steps*4*8192
		t.Logf("round %d: %d bytes to the device and %d from it, of %d of parameters; each step by itself: %d and %d", round, moved.To, moved.From, n, steps*n, steps*n)
		if moved.To != to || moved.From < least || moved.From > most {
			t.Errorf("round %d: %+v, want %d there and %d to %d back", round, moved, to, least, most)
		}
	}
}

// spoiled is a device that goes wrong before one of its calls.
type spoiled struct {
	*Model
	before string
	left   int // calls of that kind up to the one
	spoil  func(m *Model) error
}

func (s *spoiled) call(name string) error {
	if name == s.before {
		if s.left--; s.left == 0 {
			return s.spoil(s.Model)
		}
	}
	return nil
}

func (s *spoiled) Grad(tokens []uint32, n, total int) (float32, error) {
	if err := s.call("Grad"); err != nil {
		return 0, err
	}
	return s.Model.Grad(tokens, n, total)
}

func (s *spoiled) Norm() (float64, error) {
	if err := s.call("Norm"); err != nil {
		return 0, err
	}
	return s.Model.Norm()
}

func (s *spoiled) Update(clip float32, at exact.AdamWStep) error {
	return errors.Join(s.call("Update"), s.Model.Update(clip, at))
}

func (s *spoiled) Updated(params, mean, square []float32) error {
	return errors.Join(s.call("Updated"), s.Model.Updated(params, mean, square))
}

// However a device fails between inner steps, the member goes on with the processors' bits, and is told why: with the steps only on the device,
// what is wrong there is found by computing parts of them again.
func TestADeviceFailsBetweenInnerSteps(t *testing.T) {
	d := device(t)
	const seq, micro, steps = 20, 2, 3
	lost := func(*Model) error { return vk.DeviceLost.Err("submission") }
	full := func(*Model) error { return vk.OutOfDeviceMemory.Err("submission") }
	forgets := func(m *Model) error { return m.m.params.parts.write(make([]float32, m.Layout().Len())) } // as after a sleep
	o := sparseloco.Options{Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: steps, WeightDecay: 0.1, ClipNorm: 1}
	run := engine.Run{Model: small, Codec: o, Inner: o.Inner(), Data: counted{}, Sequence: seq, Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}}
	m, err := d.NewModel(small, seq, micro, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	norm := m.norm
	defer func() {
		m.norm = norm
		m.Close()
	}()
	round := func(on cpu.Model) (r engine.Result, state cpu.Floats, told []string) {
		e, err := cpu.New(run, cpu.Options{Workers: 1, Micro: micro, Device: on, DeviceFailed: func(err error) { told = append(told, err.Error()) }})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		state = make(cpu.Floats, e.StateLen())
		if r, err = e.Step(t.Context(), cpu.Floats(llama.Init(small, wire.Sum("inner"))), state, []batch.Span{{Count: steps * micro}}, 1); err != nil {
			t.Fatal(err)
		}
		return r, state, told
	}
	want, state, _ := round(nil)
	for _, c := range []struct {
		before string
		left   int
		spoil  func(m *Model) error
		told   string
	}{
		{"Grad", 2, lost, "lost"},
		{"Norm", 2, full, "memory"},
		{"Update", 1, lost, "lost"},
		{"Updated", 1, lost, "lost"},
		{"Grad", 3, forgets, "left in its memory"},
		{"Update", 2, forgets, "left in its memory"},
		{"Updated", 1, forgets, "left in its memory"},
		{"Norm", 2, func(m *Model) error { // sums of other squares
			m.norm = m.clear
			return nil
		}, "norm of the gradient"},
	} {
		r, got, told := round(&spoiled{m, c.before, c.left, c.spoil})
		if !bytes.Equal(r.Payload, want.Payload) || r.Gradient != want.Gradient || r.Loss != want.Loss || !slices.Equal(got, state) {
			t.Errorf("call %d of %s: other bits than the processors'", c.left, c.before)
		}
		if len(told) != 1 || !strings.Contains(told[0], c.told) {
			t.Errorf("call %d of %s: told %q, want %q", c.left, c.before, told, c.told)
		}
	}
}

// A device that takes a wrong step, or adds squares wrongly, is found out.
func TestTheAuditFindsWrongSteps(t *testing.T) {
	d := device(t)
	m, err := d.NewModel(small, 20, 2, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	values := llama.Init(small, wire.Sum("audit"))
	if err := errors.Join(m.Start(values, 0, true), m.Moments(values, values)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Norm(); err != nil {
		t.Fatal(err)
	}
	segments, err := kernel.ReadSquares(m.m.squares)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.auditSquares(segments); err != nil {
		t.Error(err)
	}
	segments[0][3] = math.Nextafter(segments[0][3]+1, 0)
	if err := m.auditSquares(segments); !errors.As(err, new(differs)) || !strings.Contains(err.Error(), "norm of the gradient") {
		t.Errorf("a wrong sum: %v", err)
	}
	// The memory of one part is another's: the step is computed from what was not there before.
	s := optim.DefaultAdamW().At(1, 1e-3)
	if err := m.Update(1, s); err != nil {
		t.Fatal(err)
	}
	right := m.m.mean
	m.m.mean = slices.Clone(right)
	for i := range m.m.mean {
		m.m.mean[i].at = m.m.params.parts[i].at
	}
	if err := m.Update(1, s); !errors.As(err, new(differs)) || !strings.Contains(err.Error(), "an inner step") {
		t.Errorf("a wrong step: %v", err)
	}
	m.m.mean = right
	broken := slices.Repeat([]float32{float32(math.Inf(1))}, len(values))
	if err := m.m.grad.parts.write(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Norm(); !errors.Is(err, llama.ErrNotFinite) {
		t.Errorf("an infinite gradient: %v", err)
	}
}
