package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// imported is a model that no preset describes.
var imported = llama.Config{Vocab: 301, Hidden: 48, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 8, FFN: 96, Context: 64, Theta: 500000, Eps: 1e-6, Tied: true}

// A run that goes on from a checkpoint has its shape and its hash, and says so in a text that reads
// the same.
func TestARunGoesOnFromACheckpoint(t *testing.T) {
	params, words := wire.Sum("params"), wire.Sum("words")
	s, err := Continue([]byte("name = \"on\"\n[model]\nfrom_location = \"/models/a\"\nhidden = 48\n[data]\nsequence = 32\n"), ModelOf(imported, params, words), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text, all.Kinds())
	if err != nil || again != s {
		t.Fatalf("%+v is read as %+v, %v\n%s", s, again, err, text)
	}
	if cfg, err := again.Llama(); err != nil || cfg != imported {
		t.Errorf("the model is %+v, %v", cfg, err)
	}
	if got, err := again.ModelHash(); err != nil || got != params {
		t.Errorf("it begins with %v, %v", got, err)
	}
	if from, ok := again.From(); !ok || from != params || again.Model.FromLocation != "/models/a" || again.Model.Tokenizer != words.String() {
		t.Errorf("it goes on from %+v", again.Model)
	}
	if p, err := again.InitialParams(); !errors.Is(err, ErrFrom) || p != nil {
		t.Errorf("its first parameters are computed: %v", err)
	}
	if state, err := again.StateHash(); err != nil || state.IsZero() {
		t.Errorf("a fresh optimizer has no state: %v", err)
	}
	for _, change := range []func(c *llama.Config){
		func(c *llama.Config) { c.Bias, c.Rope = true, llama.Rope{Factor: 8, Low: 1, High: 4, Original: 32} },
		func(c *llama.Config) { c.QKNorm = true },
		func(c *llama.Config) { c.Window = 20 },
	} {
		relative := imported
		change(&relative)
		s, err := Continue([]byte("name = \"on\"\n[data]\nsequence = 32\n"), ModelOf(relative, params, words), all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text, all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		if cfg, err := again.Llama(); err != nil || cfg != relative {
			t.Errorf("the model is %+v, %v, want %+v", cfg, err, relative)
		}
		if _, err := Continue([]byte("name = \"on\"\n[model]\nwindow = 3\nbias = true\nqk_norm = true\nrope_low = 0.5\n"), ModelOf(relative, params, words), all.Kinds()); err == nil {
			t.Error("a specification that differs from the checkpoint is accepted")
		}
	}
	if name := again.Model.Name(); !strings.Contains(name, params.String()[:12]) {
		t.Errorf("the model is called %q", name)
	}
}

// A preset may be said if it is what the checkpoint has.
func TestAPresetMayAgree(t *testing.T) {
	nano, err := llama.Preset("nano")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Continue([]byte("name = \"on\"\n[model]\npreset = \"nano\"\n"), ModelOf(nano, wire.Sum("a"), wire.Sum("b")), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := s.Llama(); err != nil || cfg != nano {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if _, ok := Default(all.Kinds()).From(); ok {
		t.Error("a run from a seed goes on from a checkpoint")
	}
}

func TestWhatDisagreesWithACheckpointIsNamed(t *testing.T) {
	for text, want := range map[string][]string{
		"hidden = 49\nlayers = 2":                       {"model.hidden: the specification says 49, the checkpoint has 48", "model.layers"},
		"preset = \"nano\"":                             {"model.vocab", "model.eps", "model.head", `leave out preset "nano"`},
		"preset = \"huge\"":                             {"huge"},
		"theta = 10000.0":                               {"model.theta"},
		"head = \"own\"":                                {"model.head"},
		"from = \"" + wire.Sum("other").String() + "\"": {"model.from"},
	} {
		_, err := Continue([]byte("name = \"on\"\n[data]\nsequence = 32\n[model]\n"+text), ModelOf(imported, wire.Sum("a"), wire.Sum("b")), all.Kinds())
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want an error with %q", text, err, w)
			}
		}
	}
	for text, want := range map[string]string{
		"from = \"abc\"":                            "model.from: \"abc\" is not a hash",
		"from_location = \"/x\"":                    "entrain run create --from",
		"tokenizer = \"x\"":                         "model.tokenizer",
		"head = \"both\"":                           "model.head",
		"from = \"" + wire.Sum("a").String() + "\"": "vocab: 0",
	} {
		if _, err := Parse([]byte("name = \"on\"\n[model]\n"+text), all.Kinds()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestNumericsReachTheModelAndTheChain(t *testing.T) {
	for text, want := range map[string]llama.Numerics{"": llama.Exact, "numerics = \"exact\"\n": llama.Exact, "numerics = \"exact8\"\n": llama.Exact8} {
		s, err := Parse([]byte("name = \"a\"\n"+text), all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := s.Llama()
		if _, c := s.Coordinator(key.Public{}, wire.Hash{}, wire.Hash{}); err != nil || cfg.Numerics != want || c.Numerics != uint8(want) {
			t.Errorf("%q: the model has %v, the coordinator %d, %v", text, cfg.Numerics, c.Numerics, err)
		}
	}
	for text, want := range map[string]string{
		"numerics = \"int4\"\n":                           `numerics: "int4" is neither`,
		"numerics = \"exact8\"\n[model]\nhead_dim = 40\n": "head_dim: 40 must be a multiple of 32",
	} {
		if _, err := Parse([]byte("name = \"a\"\n"+text), all.Kinds()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
}
