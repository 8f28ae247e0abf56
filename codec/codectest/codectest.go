// Package codectest has the tests that every [codec.Codec] must pass, and those for a
// [codec.Disputable], a [codec.Sliceable] and a [codec.Followable]. A codec's own tests need only
// its rule, golden bytes that pin its format, and the payloads that its decoder refuses.
//
//	func TestCodec(t *testing.T) { codectest.Test(t, Config{Block: 8, TopK: 3}) }
package codectest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Layout has tensors of zero to three dimensions. Vector lengths divide only the last one.
var Layout = tensor.NewLayout([]tensor.Spec{
	{Name: "embed", Shape: []int{67, 33}}, {Name: "norm", Shape: []int{37}},
	{Name: "experts", Shape: []int{2, 3, 129}}, {Name: "scale"}, {Name: "whole", Shape: []int{64, 64}},
})

// another has as many parameters as Layout.
var another = tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{Layout.Len()}}})

const rate = 0.01

// Test runs all tests on the codec of some options.
func Test(t *testing.T, o codec.Options) {
	t.Run("options", func(t *testing.T) { testOptions(t, o) })
	t.Run("rounds", func(t *testing.T) { testRounds(t, o) })
	t.Run("machines", func(t *testing.T) { testMachines(t, o) })
	t.Run("beside", func(t *testing.T) { testBeside(t, o) })
	t.Run("states", func(t *testing.T) { testStates(t, o) })
	t.Run("gradients", func(t *testing.T) { testGradients(t, o) })
	t.Run("payloads", func(t *testing.T) { testPayloads(t, o) })
	t.Run("sets", func(t *testing.T) { testSets(t, o) })
	made := newCodec(t, o, nil)
	if d, ok := made.(codec.Disputable); ok {
		t.Run("parts", func(t *testing.T) { testParts(t, d) })
	}
	if f, ok := made.(codec.Followable); ok {
		t.Run("updates", func(t *testing.T) { testUpdates(t, o, f) })
	}
	if s, ok := made.(codec.Sliceable); ok {
		t.Run("reveals", func(t *testing.T) { testReveals(t, s) })
		t.Run("slices", func(t *testing.T) { testSlices(t, s) })
	}
}

func newCodec(t testing.TB, o codec.Options, pool *exact.Pool) codec.Codec {
	t.Helper()
	c, err := o.New(Layout, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// random returns n numbers between -1 and 1.
func random(n int, seed ...uint64) []float32 {
	r := prng.New(wire.Sum("codectest", fmt.Append(nil, seed)), "values")
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(int32(r.Uint64()>>32)) / (1 << 31)
	}
	return v
}

func encode(t testing.TB, c codec.Codec, state, grad []float32) []byte {
	t.Helper()
	p, err := c.Encode(nil, state, grad, rate)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// windowSeed is the seed of a round's slice.
func windowSeed(round uint64) wire.Hash { return wire.Sum("codectest", wire.AppendU64(nil, round)) }

// sent returns what the others get of a payload, and settles it in the state.
func sent(c codec.Codec, payload []byte, state []float32, seed wire.Hash) []byte {
	s, ok := c.(codec.Sliceable)
	if !ok {
		return payload
	}
	s.Settle(state, seed)
	return s.Reveal(nil, payload, seed)
}

// body returns what the others get of a fresh member's random gradient.
func body(t testing.TB, c codec.Codec, member uint64) []byte {
	t.Helper()
	state := make([]float32, c.StateLen())
	return sent(c, encode(t, c, state, random(Layout.Len(), member)), state, windowSeed(0))
}

// same reports whether two vectors have the same bits.
func same(a, b []float32) bool { return bytes.Equal(tensor.Bytes(a), tensor.Bytes(b)) }

func testOptions(t *testing.T, o codec.Options) {
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	if _, followable := newCodec(t, o, nil).(codec.Followable); followable != o.Kind().Followable {
		t.Errorf("the options say that the codec is followable: %v", !followable)
	}
	inner := 0 // what the steps between two rounds keep
	if trains, ok := o.(interface{ Inner() *optim.Inner }); ok {
		inner = trains.Inner().StateLen(Layout.Len())
	}
	if got, want := o.StateLen(Layout.Len()), newCodec(t, o, nil).StateLen()+inner; got != want {
		t.Errorf("the options say that a state has %d floats, it has %d", got, want)
	}
	for _, lr := range []float32{float32(math.NaN()), -1, 2 * codec.LRMax} {
		if o.CheckLR(lr) == nil {
			t.Errorf("the learning rate %v passes", lr)
		}
	}
	if err := o.CheckLR(rate); err != nil {
		t.Error(err)
	}
}

// A play is the bits of some rounds.
type play struct {
	payloads [][]byte
	states   [3][]float32
	params   []float32
}

// rounds plays rounds of three members.
func rounds(t *testing.T, c codec.Codec, n uint64) (p play) {
	t.Helper()
	p.params = random(Layout.Len(), 99)
	for i := range p.states {
		p.states[i] = make([]float32, c.StateLen())
	}
	for round := range n {
		var set [][]byte
		for m, state := range p.states {
			grad := random(Layout.Len(), round, uint64(m))
			for i := range grad {
				grad[i] += float32(p.params[i] * .5)
			}
			grad[5], grad[6] = 0, -1e-42
			made := encode(t, c, state, grad)
			p.payloads = append(p.payloads, made)
			set = append(set, sent(c, made, state, windowSeed(round)))
		}
		if err := c.Apply(p.params, set, rate); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// testRounds encodes, checks and applies, and looks at what each leaves alone.
func testRounds(t *testing.T, o codec.Options) {
	c, n := newCodec(t, o, nil), Layout.Len()
	state, grad := make([]float32, c.StateLen()), random(n, 1)
	kept := slices.Clone(grad)
	made, err := c.Encode([]byte("abc"), state, grad, rate)
	if err != nil || !bytes.HasPrefix(made, []byte("abc")) {
		t.Fatalf("Encode does not append: %v", err)
	}
	if !same(grad, kept) {
		t.Error("Encode changed the gradient")
	}
	p := sent(c, made[3:], state, windowSeed(0))
	if err := c.Check(p); err != nil || len(p) > c.PayloadMax() {
		t.Fatalf("an honest payload of %d bytes, at most %d: %v", len(p), c.PayloadMax(), err)
	}
	if allocs := testing.AllocsPerRun(5, func() { _ = c.Check(p) }); allocs != 0 {
		t.Errorf("Check allocates %v times", allocs)
	}
	params := make([]float32, n) // zeros do not decay
	if err := c.Apply(params, [][]byte{p}, rate); err != nil {
		t.Fatal(err)
	}
	var along float64
	for i, x := range params {
		along += float64(x) * float64(grad[i])
	}
	if !(along < 0) || exact.Finite(params) >= 0 {
		t.Errorf("the update has the product %v with the gradient, want less than 0", along)
	}
	kept = slices.Clone(params)
	if err := c.Apply(params, nil, rate); err != nil || !same(params, kept) {
		t.Errorf("no payloads change the parameters: %v", err)
	}
}

// testMachines compares the bits of all kernels and numbers of workers with those of one worker.
func testMachines(t *testing.T, o codec.Options) {
	want := rounds(t, newCodec(t, o, nil), 3)
	numbers := []int{1, 5} // with the fastest kernel
	for _, kernel := range exact.Kernels() {
		for _, workers := range numbers {
			pool := exact.NewPoolOf(workers, kernel)
			got := rounds(t, newCodec(t, o, pool), 3)
			pool.Close()
			for i, p := range got.payloads {
				if !bytes.Equal(p, want.payloads[i]) {
					t.Fatalf("%s, %d workers: payload %d has other bits", kernel.Name(), workers, i)
				}
			}
			for i, s := range got.states {
				if !same(s, want.states[i]) {
					t.Errorf("%s, %d workers: state %d has other bits", kernel.Name(), workers, i)
				}
			}
			if !same(got.params, want.params) {
				t.Errorf("%s, %d workers: the parameters have other bits", kernel.Name(), workers)
			}
		}
		numbers = []int{2}
	}
}

// testBeside uses one codec in several subtests at once.
func testBeside(t *testing.T, o codec.Options) {
	pool := exact.NewPool(3)
	t.Cleanup(pool.Close)
	c := newCodec(t, o, pool)
	grad := random(Layout.Len(), 3)
	want := encode(t, c, make([]float32, c.StateLen()), grad)
	set := [][]byte{body(t, c, 3), body(t, c, 4)}
	for range 6 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if p := encode(t, c, make([]float32, c.StateLen()), grad); !bytes.Equal(p, want) {
				t.Error("a payload made beside others has other bits")
			}
			if err := errors.Join(c.Check(set[0]), c.Apply(make([]float32, Layout.Len()), set, rate)); err != nil {
				t.Error(err)
			}
		})
	}
}

// testStates continues from a copy of a state, as a member does after a restart, with a codec that
// has seen nothing.
func testStates(t *testing.T, o codec.Options) {
	c := newCodec(t, o, nil)
	state := make([]float32, c.StateLen())
	for round := range uint64(3) {
		sent(c, encode(t, c, state, random(Layout.Len(), round)), state, windowSeed(round))
	}
	if exact.Finite(state) >= 0 {
		t.Error("the state is not finite")
	}
	restored := slices.Clone(state)
	for round := uint64(3); round < 5; round++ {
		fresh := newCodec(t, o, nil)
		grad := random(Layout.Len(), round)
		a, b := encode(t, c, state, grad), encode(t, fresh, restored, grad)
		if !bytes.Equal(a, b) {
			t.Fatalf("round %d: a member that restarted sends something else", round)
		}
		sent(c, a, state, windowSeed(round))
		sent(fresh, b, restored, windowSeed(round))
		if !same(state, restored) {
			t.Fatalf("round %d: a member that restarted has another state", round)
		}
	}
}

// testGradients encodes gradients and states that must be refused, and the largest that are not.
func testGradients(t *testing.T, o codec.Options) {
	c, n := newCodec(t, o, nil), Layout.Len()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []struct {
		what     string
		at       int // in the state if inState
		inState  bool
		value    float32
		lr       float32
		finite   bool // the error is not ErrNotFinite
		accepted bool // may be accepted
	}{
		{what: "NaN", at: 17, value: nan, lr: rate},
		{what: "infinity", at: 0, value: inf, lr: rate},
		{what: "negative infinity", at: n - 1, value: -inf, lr: rate},
		{what: "a norm above the limit", at: 5, value: 2 * codec.NormMax, lr: rate, finite: true},
		{what: "the largest norm", at: 5, value: codec.NormMax, lr: rate, finite: true, accepted: true},
		{what: "NaN", inState: true, at: 9, value: nan, lr: rate},
		{what: "a large value", inState: true, at: 1, value: 1e38, lr: rate, finite: true},
		{what: "a rate of NaN", value: 1, lr: nan, finite: true},
		{what: "a negative rate", value: 1, lr: -1, finite: true},
		{what: "a rate above the limit", value: 1, lr: 2 * codec.LRMax, finite: true},
	} {
		grad, state := random(n, 1), make([]float32, c.StateLen())
		of, name := grad, "gradient"
		if v.inState {
			if len(state) == 0 {
				continue
			}
			of, name = state, "state"
		}
		of[v.at] = v.value
		kept := slices.Clone(state)
		dst, err := c.Encode([]byte("abc"), state, grad, v.lr)
		if err == nil && v.accepted {
			if exact.Finite(state) >= 0 || c.Check(sent(c, dst[3:], state, windowSeed(0))) != nil {
				t.Errorf("%s: %s leaves a broken payload or state", name, v.what)
			}
			continue
		}
		if err == nil || errors.Is(err, codec.ErrNotFinite) == v.finite {
			t.Errorf("%s: %s: error %v", name, v.what, err)
		}
		if string(dst) != "abc" || !same(state, kept) {
			t.Errorf("%s: %s: after the error dst is %d bytes, state unchanged: %v", name, v.what, len(dst), same(state, kept))
		}
	}
}

// testPayloads checks and applies payloads that strangers made up.
func testPayloads(t *testing.T, o codec.Options) {
	pool := exact.NewPool(1) // quicker than none
	defer pool.Close()
	c := newCodec(t, o, pool)
	valid := body(t, c, 1)
	refused := func(what string, p []byte) {
		t.Helper()
		if c.Check(p) == nil {
			t.Errorf("%s passes", what)
		}
	}
	for _, n := range []int{0, 1, codec.HeaderLen - 1, codec.HeaderLen, len(valid) / 2, len(valid) - 1} {
		refused(fmt.Sprintf("a payload cut to %d of %d bytes", n, len(valid)), valid[:n])
	}
	refused("one byte more", append(slices.Clone(valid), 0))
	refused("a payload of a megabyte", append(slices.Clone(valid), make([]byte, 1<<20)...))
	for i := range codec.HeaderLen {
		p := slices.Clone(valid)
		p[i] ^= 1
		refused(fmt.Sprintf("another header in byte %d", i), p)
	}
	if other, err := o.New(another, nil); err != nil {
		t.Error(err)
	} else if other.Check(valid) == nil {
		t.Error("a payload for another layout passes")
	}
	// What follows the header may happen to be well formed. Then Apply takes it.
	r := prng.New(wire.Sum("codectest"), "rubbish")
	for i := range 100 {
		p := slices.Clone(valid)
		if i%2 == 0 {
			at := codec.HeaderLen + int(r.Uint64n(uint64(len(p)-codec.HeaderLen)))
			p[at] ^= 1 << r.Uint64n(8)
		} else {
			for k := codec.HeaderLen; k < len(p); k++ {
				p[k] = byte(r.Uint64())
			}
		}
		params := random(Layout.Len(), 7)
		kept := slices.Clone(params)
		err := c.Apply(params, [][]byte{p}, rate)
		switch {
		case (err == nil) != (c.Check(p) == nil):
			t.Fatalf("rubbish %d: Check says %v, Apply %v", i, c.Check(p), err)
		case err != nil && !same(params, kept):
			t.Fatalf("rubbish %d was refused and changed the parameters", i)
		case exact.Finite(params) >= 0:
			t.Fatalf("rubbish %d makes the parameters infinite", i)
		}
	}
}

// testSets applies sets and rates that must be refused.
func testSets(t *testing.T, o codec.Options) {
	c := newCodec(t, o, nil)
	valid := body(t, c, 1)
	params := random(Layout.Len(), 7)
	kept := slices.Clone(params)
	for what, v := range map[string]struct {
		set [][]byte
		lr  float32
	}{
		"the last one of three is empty": {[][]byte{valid, valid, nil}, rate},
		"one too many":                   {slices.Repeat([][]byte{valid}, codec.PayloadsMax+1), rate},
		"a rate of NaN":                  {[][]byte{valid}, float32(math.NaN())},
		"a negative rate":                {[][]byte{valid}, -1},
		"a rate above the limit":         {[][]byte{valid}, 2 * codec.LRMax},
	} {
		if err := c.Apply(params, v.set, v.lr); err == nil || !same(params, kept) {
			t.Errorf("%s: %v, parameters unchanged: %v", what, err, same(params, kept))
		}
	}
}
