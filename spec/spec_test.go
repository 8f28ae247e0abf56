package spec

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

const small = `
name = "test"
steps = 50

[model]
preset = "nano"
layers = 2
seed = "a"

[data]
sequence = 64
seed = "b"

[learning_rate]
schedule = "wsd"
base = 0.003
warmup = 5
final = 0.0003
`

func TestParseFillsInWhatIsNotSaid(t *testing.T) {
	s, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if s.Model.Layers != 2 || s.Model.Hidden == 0 || s.Model.Theta == 0 {
		t.Errorf("the preset does not show through: %+v", s.Model)
	}
	if s.Batch.End != s.Batch.Start || s.Members.Start != s.Members.Min {
		t.Errorf("batch %+v, members %+v", s.Batch, s.Members)
	}
	if s.LearningRate.Stable != 50-10-5 {
		t.Errorf("wsd is stable for %d steps", s.LearningRate.Stable)
	}
	limits, config := s.Coordinator(key.Public{1}, wire.Hash{2}, wire.Hash{3})
	if faults := config.Check(limits); len(faults) > 0 {
		t.Errorf("the coordinator refuses it: %v", faults)
	}
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	s, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again != s {
		t.Errorf("got %+v, want %+v", again, s)
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	_, err := Parse([]byte(`
name = "No Such Name"
steps = 0
[model]
heads = 3
[data]
sequence = 100000
manifest = "xyz"
[optimizer]
codec = "zip"
[learning_rate]
schedule = "up"
[batch]
start = 0
[members]
min = 0
[times]
epoch = "0s"
`))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{"name", "TotalSteps", "model", "data.sequence", "data.manifest", "codec", "learning_rate", "BatchStart", "MinMembers", "EpochMs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not mentioned in:\n%v", want, err)
		}
	}
}

func TestErrorsOfFormNameTheLine(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown key":  "name = \"a\"\n[model]\npreest = \"nano\"\n",
		"a wrong type":    "name = \"a\"\nsteps = \"many\"\n",
		"no toml at all":  "name = \"a\"\n[[[\n",
		"a bad duration":  "name = \"a\"\n[times]\nepoch = \"soon\"\n",
		"half a millisec": "name = \"a\"\n[times]\nepoch = \"1500us\"\n",
	} {
		_, err := Parse([]byte(text))
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if !strings.Contains(err.Error(), "2|") && !strings.Contains(err.Error(), "3|") {
			t.Errorf("%s: no line in:\n%v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Parse(b); err == nil {
			text, err := s.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Parse(text); err != nil || again != s {
				t.Fatalf("parses, and what it writes does not read the same: %v", err)
			}
		}
	})
}
