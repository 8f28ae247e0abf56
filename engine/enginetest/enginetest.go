// Package enginetest has the tests that every [engine.Engine] must pass. An engine passes if it
// computes the bits of engine/cpu, whose results the golden hashes record, and leaves its arguments
// as the interface promises.
//
//	func TestEngine(t *testing.T) { enginetest.Test(t, newEngine) }
package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// New makes an engine for a run. It releases what the engine takes when the test ends.
type New func(t testing.TB, r engine.Run) engine.Engine

// errMissing is the error of a sequence that cannot be read.
var errMissing = errors.New("shard is missing")

// missing is the number of the sequence that [counted] cannot read.
const missing = 1 << 20

// counted is a text in which each token follows from the one before it.
type counted struct{ vocab uint64 }

// Read implements [engine.Source].
func (c counted) Read(i uint64, dst []uint32) error {
	if i == missing {
		return errMissing
	}
	random := prng.New(wire.Sum("enginetest", wire.AppendU64(nil, i)), "sequence")
	t := random.Uint64n(c.vocab)
	for k := range dst {
		dst[k] = uint32(t)
		t = (t*5 + 1) % c.vocab
	}
	return nil
}

// model is small, with sizes that no vector length divides.
var model = llama.Config{
	Vocab: 47, Hidden: 18, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 6, FFN: 25, Context: 21,
	Theta: 10000, Eps: 1e-5,
}

// model8 is a model whose linear products are in 8 bits.
var model8 = llama.Config{
	Vocab: 47, Hidden: 18, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 32, FFN: 32, Context: 21,
	Theta: 10000, Eps: 1e-5, Numerics: llama.Exact8,
}

// adapters are a model's, of a rank that no vector length divides.
var adapters = func() llama.Config {
	c := model
	c.LoRA = llama.LoRA{Rank: 5, Alpha: 12, Targets: 1<<0 | 1<<2 | 1<<4 | 1<<6}
	return c
}()

// kinds are the models and the codecs' options that engines are tested with. A golden hash is that
// of the payloads, states and parameters of three members in four steps.
var kinds = []struct {
	name   string
	model  llama.Config
	codec  codec.Options
	golden string
}{
	{"distro", model, distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1},
		"ea3ddf0948a841f2207de619dc537dfabc92f1b4d7257c62ccd207839165ac4c"},
	{"slice", model, slice.Config{Compression: 4, Leaf: 32, Decay: 1, WeightDecay: 0.1, ClipNorm: 1},
		"8b1a6ef3953ae4515ac68b08ee5839d73a2b5136010a5f34dcc150eff1035d76"},
	{"sparseloco", model, sparseloco.Options{
		Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: 3, WeightDecay: 0.1, ClipNorm: 1,
	}, "3a3ea62c2a6a6b1602c9909b322d85964382899d54cac521fdccb27e387681da"},
	{"sparseloco, muon", model, sparseloco.Options{
		Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: 3, InnerOptimizer: sparseloco.InnerMuon, WeightDecay: 0.1, ClipNorm: 1,
	}, "19e3b535f47e98e751aa693b3d877684227f9f9e445f0e0db69c54e4744f4949"},
	{"sparseloco, integer sums", model, sparseloco.Options{
		Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, ClipChunks: 4, InnerSteps: 3, WeightDecay: 0.1, ClipNorm: 1,
	}, "6d35e70f4340c20289b0f3be7630f099017227d22ef2cb705f7357f51867297b"},
	{"exact8", model8, distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1},
		"858e46e45554dac07002972d739a5a248cecfe5b4d2cc4701ff6eb80431e6f89"},
	{"adapters", adapters, distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1},
		"eb342ba6653b190ddea8c83404a0a13420719b030126ff1844a93b43219f2c73"},
	{"adapters, sparseloco", adapters, sparseloco.Options{
		Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: 3, WeightDecay: 0.1, ClipNorm: 1,
	}, "9acc719fd24a2866a863779bc9fe255bbad5c59a2b02829b98608306257a2fe1"},
}

func newRun(m llama.Config, o codec.Options) engine.Run {
	r := engine.Run{
		Model: m, Codec: o, Sequence: 19, Data: counted{uint64(m.Vocab)},
		HeldOut: counted{uint64(m.Vocab)}, HeldOutSequences: 5,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3, WarmupSteps: 2},
	}
	if m.LoRA != (llama.LoRA{}) {
		r.Base = llama.Init(m.Base(), wire.Sum("enginetest"))
	}
	if trains, ok := o.(interface{ Inner() *optim.Inner }); ok {
		r.Inner = trains.Inner()
	}
	return r
}

// initial returns the first parameters.
func initial(r engine.Run) []float32 { return llama.Init(r.Model, wire.Sum("enginetest")) }

// share is a share of 7 sequences in two spans.
func share(first uint64) []batch.Span {
	return []batch.Span{{Start: first, Count: 4}, {Start: first + 900, Count: 3}}
}

// Test runs all tests on engines that make makes.
func Test(t *testing.T, make New) {
	t.Run("vectors", func(t *testing.T) {
		r := newRun(model, kinds[0].codec)
		testVectors(t, make(t, r), r)
	})
	for _, k := range kinds {
		r := newRun(k.model, k.codec)
		t.Run(k.name, func(t *testing.T) {
			t.Run("golden", func(t *testing.T) { testGolden(t, make(t, r), r, k.golden) })
			t.Run("failures", func(t *testing.T) { testFailures(t, make(t, r), r) })
			t.Run("beside", func(t *testing.T) { testBeside(t, make(t, r), r) })
			t.Run("judges", func(t *testing.T) { testJudges(t, make(t, r), r) })
			t.Run("trace", func(t *testing.T) { testTrace(t, make(t, r), r) })
		})
	}
}

// testVectors moves values in and out of vectors.
func testVectors(t *testing.T, e engine.Engine, r engine.Run) {
	values := initial(r)
	if e.ParamsLen() != len(values) {
		t.Fatalf("%d parameters, want %d", e.ParamsLen(), len(values))
	}
	loaded, read, zeros := e.Load(slices.Clone(values)), e.NewVector(len(values)), e.NewVector(len(values))
	if err := e.Fill(read, func(b []byte) error { copy(b, tensor.Bytes(values)); return nil }); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := e.Fill(zeros, func(b []byte) error { b[7] = 1; return broken }); err != broken {
		t.Errorf("filling that failed: %v", err)
	}
	e.Copy(zeros, nil)
	copied := e.NewVector(len(values))
	e.Copy(copied, loaded)
	for name, v := range map[string]engine.Vector{"Load": loaded, "Fill": read, "Copy": copied} {
		if v.Len() != len(values) || !slices.Equal(engine.Values(v), values) || !slices.Equal(v.Host(3, 70), values[3:70]) {
			t.Errorf("%s: other values", name)
		}
		if !slices.Equal(e.Leaves(v), merkle.BlobLeaves(tensor.Bytes(values))) {
			t.Errorf("%s: other leaves", name)
		}
	}
	e.Copy(copied, nil)
	for name, v := range map[string]engine.Vector{"a vector cleared": zeros, "NewVector": e.NewVector(len(values)), "Copy of nil": copied} {
		if !slices.Equal(engine.Values(v), make([]float32, len(values))) {
			t.Errorf("%s: no zeros", name)
		}
	}
	if !slices.Equal(engine.Values(loaded), values) {
		t.Error("the source of a copy changed with the copy")
	}
	if engine.Values(nil) != nil {
		t.Error("no vector has values")
	}
}

// revealed returns what an accepted set holds of a payload, and settles it in the state.
func revealed(e engine.Engine, payload []byte, state engine.Vector, seed wire.Hash) []byte {
	s, ok := e.Slicer()
	if !ok {
		return payload
	}
	s.Settle(state, seed)
	return s.Reveal(nil, payload, seed)
}

// testGolden trains three members and compares the bits.
func testGolden(t *testing.T, e engine.Engine, run engine.Run, golden string) {
	params := e.Load(initial(run))
	states := []engine.Vector{e.NewVector(e.StateLen()), e.NewVector(e.StateLen()), e.NewVector(e.StateLen())}
	sum := wire.Sum("enginetest")
	add := func(b []byte) { sum = wire.Sum("enginetest", sum[:], b) }
	addVector := func(v engine.Vector) {
		root := merkle.Root(e.Leaves(v))
		add(root[:])
	}
	for step := uint32(1); step <= 4; step++ {
		var set [][]byte
		seed := wire.Sum("enginetest", wire.AppendU32(nil, step))
		for i, state := range states {
			r, err := e.Step(t.Context(), params, state, share(uint64(100*step)+uint64(10*i)), step)
			if err != nil {
				t.Fatal(err)
			}
			add(r.Payload)
			add(r.Gradient[:])
			body := revealed(e, r.Payload, state, seed)
			if err := e.Check(body); err != nil || len(body) > e.PayloadMax() {
				t.Fatalf("an honest payload of %d bytes, at most %d: %v", len(body), e.PayloadMax(), err)
			}
			set = append(set, body)
		}
		before := slices.Clone(engine.Values(params))
		if err := e.Apply(params, set, step); err != nil {
			t.Fatal(err)
		}
		if f, ok := e.Follower(); ok {
			followed := e.Load(slices.Clone(before))
			update, err := f.Update(nil, set)
			if err := errors.Join(err, f.Follow(followed, update, step)); err != nil || !slices.Equal(e.Leaves(followed), e.Leaves(params)) {
				t.Errorf("step %d: who follows the update has other parameters: %v", step, err)
			}
		}
		if s, ok := e.Slicer(); ok {
			if err := s.PatchState(before, s.StateSlice(params, seed)); err != nil || !slices.Equal(before, engine.Values(params)) {
				t.Errorf("step %d: a state slice does not carry the step: %v", step, err)
			}
		}
	}
	for _, v := range append(states, params) {
		addVector(v)
	}
	if sum.String() != golden {
		t.Errorf("payloads, states and parameters have the hash %s, want %s", sum, golden)
	}
}

// testFailures gives the engine what it must refuse, and looks at what it left.
func testFailures(t *testing.T, e engine.Engine, run engine.Run) {
	params, state := e.Load(initial(run)), e.NewVector(e.StateLen())
	r, err := e.Step(t.Context(), params, state, share(0), 1)
	if err != nil {
		t.Fatal(err)
	}
	heldParams, heldState := slices.Clone(engine.Values(params)), slices.Clone(engine.Values(state))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range []struct {
		name  string
		ctx   context.Context
		spans []batch.Span
		want  error
	}{
		{"no sequences", t.Context(), nil, nil},
		{"a missing sequence", t.Context(), []batch.Span{{Start: missing - 5, Count: 6}}, errMissing},
		{"a context that has ended", ended, share(0), context.Canceled},
	} {
		if _, err := e.Step(v.ctx, params, state, v.spans, 2); err == nil || v.want != nil && !errors.Is(err, v.want) {
			t.Errorf("%s: %v, want %v", v.name, err, v.want)
		}
	}
	broken := slices.Clone(heldState)
	broken[len(broken)/3] = float32(1e38)
	wrong := e.Load(slices.Clone(broken))
	if _, err := e.Step(t.Context(), params, wrong, share(0), 2); err == nil {
		t.Error("a state that no step leaves behind was taken")
	} else if !slices.Equal(engine.Values(wrong), broken) {
		t.Error("a refused state was changed")
	}
	if !slices.Equal(engine.Values(state), heldState) {
		t.Error("a step that failed changed the state")
	}
	body := revealed(e, r.Payload, state, wire.Sum("seed"))
	for name, set := range map[string][][]byte{
		"rubbish": {[]byte("rubbish")}, "one byte more": {append(slices.Clone(body), 0)}, "one honest": {body, nil},
	} {
		if e.Check(set[len(set)-1]) == nil || e.Apply(params, set, 1) == nil {
			t.Errorf("%s was applied", name)
		}
	}
	if !slices.Equal(engine.Values(params), heldParams) {
		t.Error("a set that was refused changed the parameters")
	}
}
