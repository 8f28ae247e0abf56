package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// What is not said follows from the kind of exchange; what is said stays.
func TestDefaultsOfExchange(t *testing.T) {
	for _, c := range []struct {
		text   string
		blocks uint32
		codec  string
		decay  float32
		check  uint8
	}{
		{"", 0, "distro", 0.95, 5},
		{"[exchange]\nkind = \"peers\"\n", 0, "distro", 0.95, 5},
		{"[exchange]\nkind = \"bucket\"\n", 60, "slice", 1, 2},
		{"[exchange]\nkind = \"bucket\"\nwindow_blocks = 7\n[optimizer.slice]\ndecay = 0.5\n", 7, "slice", 0.5, 2},
		{"[optimizer]\ncodec = \"distro\"\n[exchange]\nkind = \"bucket\"\n", 60, "distro", 0.95, 2},
	} {
		s, err := Parse([]byte("name = \"test\"\n"+c.text), all.Kinds())
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if s.Exchange.WindowBlocks != c.blocks || s.Optimizer.Kind().Name != c.codec || decay(s) != c.decay || s.Trust.VerificationPercent != c.check {
			t.Errorf("%s: got %+v, codec %s with decay %v, %d %% checked", c.text, s.Exchange, s.Optimizer.Kind().Name, decay(s), s.Trust.VerificationPercent)
		}
		limits, config := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
		if limits.Buckets != s.Buckets() || config.WindowBlocks != c.blocks || (config.Exchange == coordinator.Buckets) != s.Buckets() {
			t.Errorf("%s: the coordinator is told %+v %+v", c.text, limits, config)
		}
	}
}

// Everything about scores and slots reaches the coordinator, each key its own field.
func TestScoresReachTheCoordinator(t *testing.T) {
	s, err := Parse([]byte(`
name = "test"
[members]
register_cost = 7
slots = 20
immune_windows = 30
[scores]
validators = 3
windows = 12
emission = 1000
validator_percent = 15
penalty_percent = 40
alpha = 0.5
`), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	limits, c := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
	if limits.Validators != 3 || c.Validators != 3 || c.ScoreWindows != 12 || c.Emission != 1000 || c.ValidatorPercent != 15 || c.Penalty != 40 ||
		c.RegisterCost != 7 || c.Slots != 20 || c.ImmuneWindows != 30 || s.Scores.Alpha != 0.5 {
		t.Errorf("the coordinator is told %+v %+v", limits, c)
	}
	if s, err = Parse([]byte("name = \"test\"\n[scores]\nvalidators = 1\n"), all.Kinds()); err != nil || s.Scores.Windows != scoreWindows || s.Scores.Alpha != scoreAlpha {
		t.Errorf("defaults are %+v, %v", s.Scores, err)
	}
}

// The bit of whose blocks a run counts changes no byte of runs that count the chain's.
func TestTheClockReachesTheCoordinator(t *testing.T) {
	for clock, want := range map[string]uint8{"": 0, "clock = \"bittensor\"": 1} {
		s, err := Parse([]byte("name = \"test\"\n[exchange]\nkind = \"bucket\"\n"+clock), all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		if _, c := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1}); c.Clock != want || s.Clocked() != (want == 1) {
			t.Errorf("%q: the coordinator is told %d", clock, c.Clock)
		}
		if wait := time.Duration(s.Times.RoundTrain); wait != map[uint8]time.Duration{0: 2 * time.Minute, 1: 12 * time.Minute}[want] {
			t.Errorf("%q: a window is taken to last %v", clock, wait)
		}
		if text, err := s.Append(nil); err != nil || strings.Contains(string(text), "clock") != (want == 1) {
			t.Errorf("%q is written as %s, %v", clock, text, err)
		}
	}
}

func TestFaultsOfScores(t *testing.T) {
	for text, want := range map[string]string{
		"[exchange]\naggregate = \"some\"":                                                                              "exchange.aggregate: \"some\" is unknown",
		"[exchange]\nkind = \"bucket\"\naggregate = \"followers\"":                                                      "exchange.aggregate: \"followers\" needs",
		"[exchange]\naggregate = \"followers\"\n[optimizer]\ncodec = \"sparseloco\"\n[trust]\nverification_percent = 0": "or optimizer.sparseloco.clip_chunks above 0",
		"[exchange]\nkind = \"bucket\"\naggregate = \"slices\"":                                                         "exchange.aggregate: \"slices\" needs exchange.kind",
		"[exchange]\naggregate = \"slices\"\n[members]\noverlap = 0":                                                    "exchange.aggregate: \"slices\" needs members.overlap = 1",
		"[exchange]\naggregate = \"slices\"\n[members]\noverlap = 1\ncapacity = 255":                                    "exchange.aggregators: 128 members for each slice, and members.capacity of 255",
		"[exchange]\naggregate = \"followers\"\naggregators = 8":                                                        "exchange.aggregators: has no effect",
		"[exchange]\nkind = \"bucket\"\nclock = \"bitensor\"":                                                           "exchange.clock: \"bitensor\" is unknown",
		"[exchange]\nclock = \"bittensor\"":                                                                             "exchange.clock: \"bittensor\" needs exchange.kind",
		"[exchange]\nkind = \"pigeons\"":                                                                                "exchange.kind",
		"[exchange]\nwindow_blocks = 9":                                                                                 "exchange.window_blocks",
		"[exchange]\nkind = \"bucket\"\nwindow_blocks = 0":                                                              "exchange.window_blocks",
		"[exchange]\nkind = \"bucket\"\n[members]\noverlap = 0":                                                         "members.overlap",
		"[exchange]\nkind = \"bucket\"\n[optimizer]\ncodec = \"sparseloco\"":                                            "trust.verification_percent",
		"[optimizer]\ncodec = \"slice\"\n[trust]\nverification_percent = 0":                                             "exchange.kind = \"bucket\"",
		"[scores]\nwindows = 5":                                                                                         "scores.windows",
		"[scores]\nemission = 5":                                                                                        "scores.emission",
		"[scores]\nvalidators = 1\nwindows = 1":                                                                         "scores.windows",
		"[scores]\nvalidators = 65":                                                                                     "limits",
		"[scores]\nvalidators = 1\nvalidator_percent = 101":                                                             "scores.validator_percent",
		"[scores]\nvalidators = 1\npenalty_percent = 101":                                                               "scores.penalty_percent",
		"[scores]\nvalidators = 1\nemission = 9223372036854775807":                                                      "scores.emission",
		"[scores]\nvalidators = 1\nalpha = 1.5":                                                                         "scores.alpha",
		"[scores]\nvalidators = 1\nalpha = -0.5":                                                                        "scores.alpha",
		"[scores]\nvalidators = 1\nalpha = nan":                                                                         "scores.alpha",
		"[scores]\nalpha = 0.5":                                                                                         "scores.alpha",
		"[scores]\nseats = 1":                                                                                           "seats",
		"[members]\nslots = 300":                                                                                        "members.slots",
		"[members]\nslots = 1":                                                                                          "members.slots",
		"[members]\nimmune_windows = 3":                                                                                 "members.immune_windows",
		"[members]\nregister_cost = 9223372036854775807":                                                                "members.register_cost",
	} {
		if _, err := Parse([]byte("name = \"test\"\n"+text), all.Kinds()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a fault of %q", text, err, want)
		}
	}
}

// The examples are specifications, and what they say about defaults is so.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../examples/*.toml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text, all.Kinds())
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if filepath.Base(file) == "bucket.toml" && (!s.Buckets() || s.Scores.Validators == 0) {
			t.Errorf("%s is %+v", file, s)
		}
	}
}

// decay returns the decay of a specification's codec.
func decay(s Spec) float32 {
	if o, ok := s.Optimizer.(slice.Config); ok {
		return o.Decay
	}
	return s.Optimizer.(distro.Config).Decay
}
