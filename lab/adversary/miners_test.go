package adversary

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

var minerModel = llama.Config{Vocab: 48, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 12, Theta: 10000, Eps: 1e-5}

// counted is a text in which each token follows from the one before.
type counted struct{}

func (counted) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("miners-test", wire.AppendU64(nil, i)), "sequence")
	t := random.Uint64n(48)
	for k := range dst {
		dst[k] = uint32(t)
		t = (t*5 + 1) % 48
	}
	return nil
}

func minerConfig(t *testing.T) (engine.Run, *slice.Codec) {
	t.Helper()
	cfg := slice.Config{Compression: 4, Leaf: 16, Decay: 1, WeightDecay: 0.1, ClipNorm: 1}
	c, err := slice.New(minerModel.Layout(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Run{Model: minerModel, Codec: cfg, Data: counted{}, Sequence: 12,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}}, c
}

func newEngine(t *testing.T, run engine.Run) *cpu.Engine {
	t.Helper()
	e, err := cpu.New(run, cpu.Options{Workers: 1, Micro: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// dishonest is a member of a kind, outside of any network.
func dishonest(t *testing.T, name string, run engine.Run) (*member, *cpu.Engine) {
	t.Helper()
	e := newEngine(t, run)
	k, ok := FindMiner(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	made, err := run.Codec.New(run.Model.Layout(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{self: key.Public{1}, o: Options{Run: run}, codec: made, honest: e, random: prng.New(wire.Sum(name), "adversary")}
	if m.hooks, err = k.make(m); err != nil {
		t.Fatal(err)
	}
	return m, e
}

// TestMinersAreToldFromTheHonest says of each kind which of its results show what: those whose
// work is wrong are proven, those who computed and sealed something else are worth nothing by
// what they reveal.
func TestMinersAreToldFromTheHonest(t *testing.T) {
	cfg, c := minerConfig(t)
	params := llama.Init(minerModel, wire.Sum("miners-test"))
	spans := []batch.Span{{Start: 40, Count: 6}}
	ref := newEngine(t, cfg)
	g, err := ref.Gradient(t.Context(), cpu.Floats(params), spans)
	if err != nil {
		t.Fatal(err)
	}
	gradient := bytes.Clone(g.Root[:])
	values := append([]float32(nil), engine.Values(g.Values)...)
	honest, err := ref.Step(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, ref.StateLen())), spans, 1)
	if err != nil {
		t.Fatal(err)
	}
	seed := wire.Sum("slice")
	whole := func(sealed []byte) float64 {
		reveal := c.Reveal(nil, sealed, seed)
		if root, s, err := c.Open(reveal); err != nil || s != seed || root != c.Root(sealed) {
			t.Fatalf("what it seals does not open: %v", err)
		}
		var at []float32
		for _, r := range c.Ranges(seed) {
			at = append(at, values[r.From:r.To]...)
		}
		l, err := score.Compare([]int{len(at)}, c.Values(nil, reveal), at)
		if err != nil {
			t.Fatal(err)
		}
		return l.Whole
	}
	fair := whole(honest.Payload)
	if fair < 0.3 {
		t.Fatalf("an honest first step is worth %v", fair)
	}
	for _, k := range sealers() {
		m, _ := dishonest(t, k.Name, cfg)
		state := make([]float32, ref.StateLen())
		before := params
		if k.Name == "stale" { // of some window before
			if _, err := m.hooks.own(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, ref.StateLen())), []batch.Span{{Start: 900, Count: 6}}, 1); err != nil {
				t.Fatal(err)
			}
		}
		if k.Name == "copy" { // others revealed something of other pages
			other, err := ref.Step(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, ref.StateLen())), []batch.Span{{Start: 700, Count: 6}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			m.hooks.check(c.Reveal(nil, other.Payload, wire.Sum("earlier")))
		}
		r, err := m.hooks.own(t.Context(), cpu.Floats(before), cpu.Floats(state), spans, 2)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		computed := bytes.Equal(r.Gradient[:], gradient)
		if computes := slices.Contains([]string{"sign-flip", "scale", "vanish", "gradient", "blend", "earlier", "long"}, k.Name); computes != computed {
			t.Errorf("%s: its work is right: %v", k.Name, computed)
		}
		s := whole(r.Payload)
		switch k.Name {
		case "sign-flip":
			if s > -fair/2 {
				t.Errorf("turned around it is worth %v, honest %v", s, fair)
			}
		case "gradient":
			if s < 0.95 {
				t.Errorf("the gradient is worth %v", s)
			}
		case "noise":
			if s > fair/4 || s < -fair/4 {
				t.Errorf("noise is worth %v, honest work %v", s, fair)
			}
		case "scale":
			if a, b := norm(c, r.Payload, seed), norm(c, honest.Payload, seed); a < 4*b {
				t.Errorf("scaled it has norm %v, honest %v", a, b)
			}
		case "long":
			if a, b := norm(c, r.Payload, seed), norm(c, honest.Payload, seed); a < 3*b || a >= 4*b {
				t.Errorf("lengthened it has norm %v, honest %v", a, b)
			}
		case "wrong-data", "stale", "copy":
			if s >= fair {
				t.Errorf("%s is worth %v, honest work %v", k.Name, s, fair)
			}
		}
		if r.Tokens != 72 && computed {
			t.Errorf("%s says %d tokens", k.Name, r.Tokens)
		}
	}
}

func norm(c *slice.Codec, sealed []byte, seed wire.Hash) float64 {
	return score.Norm(c.Values(nil, c.Reveal(nil, sealed, seed)))
}

func TestCopiesAreOfWhatWasRevealed(t *testing.T) {
	cfg, c := minerConfig(t)
	params := llama.Init(minerModel, wire.Sum("miners-test"))
	m, e := dishonest(t, "copy", cfg)
	victim, err := e.Step(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, e.StateLen())), []batch.Span{{Start: 3, Count: 4}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(200) {
		m.hooks.check(c.Reveal(nil, victim.Payload, wire.Sum("window", wire.AppendU32(nil, i))))
	}
	m.hooks.check([]byte("not a reveal"))
	r, err := m.hooks.own(t.Context(), cpu.Floats(params), cpu.Floats(make([]float32, e.StateLen())), []batch.Span{{Start: 90, Count: 4}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.Payload, victim.Payload) {
		t.Error("after everything was revealed the copy is another")
	}
}

func TestBentUpdatesStayUpdates(t *testing.T) {
	sealed := make([]byte, codec.HeaderLen+256)
	for i := range 256 {
		sealed[codec.HeaderLen+i] = byte(max(-127, i-128))
	}
	scaled := bytes.Clone(sealed)
	Scaled(scaled)
	flipped := bytes.Clone(sealed)
	Flipped(flipped)
	noise := bytes.Clone(sealed)
	random := prng.New(wire.Sum("bent"), "noise")
	Noise(noise, 24, random.Uint64)
	for i := range sealed {
		v, s, f, n := int8(sealed[i]), int8(scaled[i]), int8(flipped[i]), int8(noise[i])
		if i < codec.HeaderLen {
			if s != v || f != v || n != v {
				t.Fatal("the header was changed")
			}
			continue
		}
		if f != -v || s == -128 || int(s)*int(v) < 0 || v != 0 && s == 0 || n < -24 || n > 24 {
			t.Errorf("%d becomes %d scaled, %d turned around, %d noise", v, s, f, n)
		}
	}
}

func TestMinersNeedTheirCodec(t *testing.T) {
	cfg, c := minerConfig(t)
	if _, err := Wrap("free-rider", node.Config{}, Options{Run: cfg}); err == nil || !strings.Contains(err.Error(), "half-data") {
		t.Errorf("a kind of peers in a run of buckets: %v", err)
	}
	other := cfg
	other.Codec = distro.Config{Block: 16, TopK: 8, Decay: 0.9}
	if _, err := Wrap("half-data", node.Config{}, Options{Run: other}); err == nil {
		t.Error("a kind of buckets in a run of peers")
	}
	e := newEngine(t, cfg)
	wrapped, err := Wrap("half-data", node.Config{Engine: e, Key: key.FromSeed([32]byte{1})}, Options{Run: cfg})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := wrapped.Engine.(interface {
		Slicer() (engine.Slicer, bool)
	}); !ok {
		t.Error("a wrapped engine is not a slicer")
	} else if slicer, ok := s.Slicer(); !ok || slicer.RevealLen() != c.RevealLen() {
		t.Error("a wrapped engine reveals otherwise")
	}
	for _, k := range Miners() {
		if k.Tries == "" || strings.HasSuffix(k.Tries, ".") || k.Checked && !k.Provable() {
			t.Errorf("%+v", k)
		}
	}
}

// A commitment that one of two kinds in turn held back is published by that kind alone: the other would sign a second one.
func TestSwitchedKindsPublishOnce(t *testing.T) {
	m := &member{pending: map[coordinator.Round]dispute.Signed{}}
	for round := coordinator.Round(0); round < 4*switchRounds; round++ {
		m.pending[round] = dispute.Signed{Commitment: dispute.Commitment{Round: round}}
	}
	var by [2][]coordinator.Round
	publish := func(kind int) hooks {
		return hooks{see: func() (out []dispute.Signed) {
			for round, s := range m.pending {
				by[kind], out = append(by[kind], round), append(out, s)
			}
			clear(m.pending)
			return out
		}}
	}
	if out := m.switched(publish(0), publish(1)).see(); len(out) != 4*switchRounds || len(m.pending) != 0 {
		t.Errorf("%d commitments are published, %d are still held back", len(out), len(m.pending))
	}
	for kind, rounds := range by {
		for _, round := range rounds {
			if int(round/switchRounds%2) != kind {
				t.Errorf("kind %d publishes the commitment of round %d", kind, round)
			}
		}
	}
}
