package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// tinyTrainer computes for a run of the demo's smallest model.
func tinyTrainer(t *testing.T) *trainer.Trainer {
	t.Helper()
	text := writeFile(t, filepath.Join(t.TempDir(), "text.txt"), strings.Repeat("It was the best of times, it was the worst of times. ", 2000))
	return trainerOn(t, text, data.PrepareOptions{Name: "times", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 50})
}

// trainerOn is tinyTrainer for the data in a file.
func trainerOn(t *testing.T, file string, o data.PrepareOptions) *trainer.Trainer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	m, err := data.Prepare(t.Context(), dir, []string{file}, o)
	if err != nil {
		t.Fatal(err)
	}
	s := demo.Settings{Clients: 1, Rounds: 10, Preset: "tiny", Exchange: demo.Peers}.Specification()
	s.Data.Manifest = m.Hash().String()
	s.Model.Vocab = int(m.Vocab)
	whole, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = spec.Parse(whole, all.Kinds()); err != nil { // also fills in what follows from the preset
		t.Fatal(err)
	}
	trainer, err := trainer.New(t.Context(), s, data.Place{Location: dir}, trainer.Machine{Workers: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trainer.Close)
	return trainer
}

// A look at the model happens when a hundredth of the training pays for it, says the same of the same model, and is charged.
func TestLooksArePaidByTraining(t *testing.T) {
	tiny := tinyTrainer(t)
	params := tiny.Initial()
	tasks := []string{"piqa=" + filepath.Join("..", "..", "eval", "testdata", "piqa.jsonl")}
	i, err := participant.NewInspector(participant.Inspection{Tasks: tasks}, tiny)
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Inspect(t.Context(), 1, wire.Hash{}, params); len(got) != 0 {
		t.Fatalf("before anything was trained it told %+v", got)
	}
	i.Trained(1e6)
	if i.Credit != time.Duration(1e6*participant.InspectShare*float64(time.Second)) {
		t.Errorf("a million seconds of training are worth %v", i.Credit)
	}
	before := i.Credit
	got := i.Inspect(t.Context(), 2, wire.Hash{}, params)
	if len(got) != 3 || got[0].Kind() != "sample" || got[1].Kind() != "sample" || got[2].Kind() != "scored" {
		t.Fatalf("told %+v", got)
	}
	if i.Credit >= before {
		t.Errorf("the look cost nothing of %v", before)
	}
	for _, ev := range got[:2] {
		ev := ev.(event.Sample)
		if len(ev.Prompt) < 10 || len(ev.Prompt) > participant.PromptBytes || !strings.Contains("It was the best of times, it was the worst of times. It was the best of times, it was the worst of times.", ev.Prompt) || ev.Text == "" {
			t.Errorf("sample %+v", ev)
		}
	}
	if s := got[2].(event.Scored); s.Task != "piqa" || s.Items != 2 || !(s.Acc >= 0 && s.Acc <= 1) || !(s.AccNorm >= 0 && s.AccNorm <= 1) {
		t.Errorf("scored %+v", s)
	}
	again := i.Inspect(t.Context(), 2, wire.Hash{}, params)
	for k := range got {
		if again[k] != got[k] {
			t.Errorf("of the same model it told %+v and %+v", got[k], again[k])
		}
	}
	// When there is not enough for it, it waits.
	i.Credit = 0
	if got := i.Inspect(t.Context(), 4, wire.Hash{}, params); len(got) != 0 {
		t.Errorf("without credit it told %+v", got)
	}
	if got := i.Inspect(t.Context(), 10, wire.Hash{}, params); len(got) != 3 {
		t.Errorf("of the last step it told %+v", got)
	}
	params[7] = float32(math.Inf(1))
	i.Credit = time.Hour
	if got := i.Inspect(t.Context(), 5, wire.Hash{}, params); len(got) != 1 || !strings.Contains(got[0].(event.Note).Text, "looking at the model") {
		t.Errorf("of a broken model it told %+v", got)
	}
	if got := i.Inspect(t.Context(), 6, wire.Hash{}, params); len(got) != 0 {
		t.Errorf("it repeats itself: %+v", got)
	}
}

// Prompts come from held-out conversations too, of which most tokens are masked.
func TestConversationsAreContinued(t *testing.T) {
	made := filepath.Join("..", "..", "data", "source", "testdata", "chat")
	words, err := data.ReadTokenizer(filepath.Join(made, "bytes"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := data.ReadChat(filepath.Join(made, "bytes"))
	if err != nil {
		t.Fatal(err)
	}
	tiny := trainerOn(t, filepath.Join(made, "messages.jsonl"), data.PrepareOptions{Name: "chat", Tokenizer: words, Format: source.Auto, HeldOutPermille: 300, Chat: template})
	i, err := participant.NewInspector(participant.Inspection{}, tiny)
	if err != nil {
		t.Fatal(err)
	}
	i.Trained(1e6)
	got := i.Inspect(t.Context(), 1, wire.Hash{}, tiny.Initial())
	if len(got) != 2 || got[0].Kind() != "sample" || len(got[0].(event.Sample).Prompt) < 10 {
		t.Errorf("told %+v", got)
	}
}

func TestNothingToLookAt(t *testing.T) {
	tiny := tinyTrainer(t)
	if _, err := participant.NewInspector(participant.Inspection{Tasks: []string{"chess=x"}}, tiny); err == nil || !strings.Contains(err.Error(), "--task") {
		t.Errorf("of a file that is none: %v", err)
	}
	s := newShell(t)
	for args, want := range map[string]string{
		"join r --sample x":          "--evaluate N",
		"join r --task piqa=x.jsonl": "--evaluate N",
	} {
		s.fails(strings.Fields(args), want)
	}
}

// The share of the peak is between nothing and all.
func TestShareOfThePeak(t *testing.T) {
	tiny := tinyTrainer(t)
	c := trainer.NewStepCost(tiny)
	if c.Peak < 1e7 || c.PerToken < float64(tiny.Engine.ParamsLen()) {
		t.Fatalf("%+v", c)
	}
	if got := c.Share(1000, 1000*c.PerToken/c.Peak); got < 0.999 || got > 1.001 {
		t.Errorf("at the peak the share is %v", got)
	}
	if got := c.Share(1000, 0); got != 0 {
		t.Errorf("in no time it is %v", got)
	}
}
