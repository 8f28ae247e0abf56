package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer"
)

// testdata/contexts.json was printed by tests/interop/harness.py without our scores: the contexts that lm-evaluation-harness 0.4 makes of the same records.
func TestContextsAreThoseOfTheHarness(t *testing.T) {
	b, err := os.ReadFile("testdata/contexts.json")
	if err != nil {
		t.Fatal(err)
	}
	var contexts map[string][]string
	if err := json.Unmarshal(b, &contexts); err != nil {
		t.Fatal(err)
	}
	if len(contexts) != 5 {
		t.Fatalf("contexts of %d tasks", len(contexts))
	}
	for task, want := range contexts {
		items := read(t, task, 0)
		if len(items) != len(want) {
			t.Fatalf("%s: %d items, want %d", task, len(items), len(want))
		}
		for i, item := range items {
			// The anatomy of MMLU's prompt differs by subject, of which the harness was told one for all.
			got := item.Prompt(0)
			if task == "mmlu" {
				_, got, _ = strings.Cut(got, "\n\n")
				_, want[i], _ = strings.Cut(want[i], "\n\n")
			}
			if got != want[i] {
				t.Errorf("%s: context %d is %q, want %q", task, i, got, want[i])
			}
		}
	}
}

// testdata/pairs.json has what lm-evaluation-harness 0.4.13 asks a model about the same records: each context with its continuation, and the right one.
func TestQuestionsAreThoseOfTheHarness(t *testing.T) {
	b, err := os.ReadFile("testdata/pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var tasks map[string][]struct {
		Pairs [][2]string
		Gold  int
	}
	if err := json.Unmarshal(b, &tasks); err != nil || len(tasks) != 5 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	for task, want := range tasks {
		items := read(t, task, 0)
		if len(items) != len(want) {
			t.Fatalf("%s: %d items, want %d", task, len(items), len(want))
		}
		for i, item := range items {
			if item.Gold != want[i].Gold || len(item.Choices) != len(want[i].Pairs) {
				t.Fatalf("%s: item %d is %+v, want %+v", task, i, item, want[i])
			}
			for k, pair := range want[i].Pairs {
				before := item.Prompt(k)
				if before != pair[0] || item.Choices[k] != pair[1] {
					t.Errorf("%s: choice %d of item %d is %q after %q, want %q", task, k, i, item.Choices[k], before, pair)
				}
			}
		}
	}
}

// testdata/shots.json was printed by tests/interop/shots.py: the prompts that lm-evaluation-harness 0.4.13 makes with examples. Those of ARC
// are drawn from 40, of which it takes few by a set and many by a pool.
func TestPromptsWithExamplesAreThoseOfTheHarness(t *testing.T) {
	b, err := os.ReadFile("testdata/shots.json")
	if err != nil {
		t.Fatal(err)
	}
	var tasks map[string]map[int][][][2]string
	if err := json.Unmarshal(b, &tasks); err != nil || len(tasks) != 5 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	for task, byShots := range tasks {
		items, examples := read(t, task, 0), read(t, task, 0)
		if _, err := os.Stat("testdata/" + task + ".examples.jsonl"); err == nil {
			examples = readFile(t, task, "testdata/"+task+".examples.jsonl", 0)
		}
		if task == "mmlu" { // the harness was asked for one subject
			items = items[len(items)-1:]
		}
		for n, want := range byShots {
			got, err := Shots(task, items, examples, n)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s with %d examples: %d items, want %d; %v", task, n, len(got), len(want), err)
			}
			for i, item := range got {
				for k, pair := range want[i] {
					if before := item.Prompt(k); before != pair[0] || item.Choices[k] != pair[1] {
						t.Errorf("%s with %d examples: choice %d of item %d is %q after %q, want %q", task, n, k, i, item.Choices[k], before, pair)
					}
				}
			}
		}
	}
	for _, n := range []int{0, shotsMax + 1, 4} {
		if _, err := Shots("arc_easy", read(t, "arc_easy", 0), read(t, "arc_easy", 0), n); err == nil {
			t.Errorf("%d examples of 3 are not errors", n)
		}
	}
}

func read(t *testing.T, task string, limit int) []Item {
	t.Helper()
	return readFile(t, task, "testdata/"+task+".jsonl", limit)
}

func readFile(t *testing.T, task, path string, limit int) []Item {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	items, err := Read(task, f, limit)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func TestChoicesAndAnswers(t *testing.T) {
	hs := read(t, "hellaswag", 0)
	if got := hs[1].Choices; got[0] != "  Do not use sand." || got[1] != " Rub the glass with stones. until dull." {
		t.Errorf("endings are %q", got)
	}
	if hs[0].Gold != 3 || hs[2].Gold != 0 {
		t.Errorf("right endings are %d and %d", hs[0].Gold, hs[2].Gold)
	}
	if arc := read(t, "arc_easy", 0); arc[0].Gold != 3 || arc[1].Gold != 0 || len(arc[1].Choices) != 3 {
		t.Errorf("answers of ARC are %+v", arc)
	}
	if mmlu := read(t, "mmlu", 1); len(mmlu) != 1 || mmlu[0].Choices[0] != " A" || !strings.Contains(mmlu[0].Head, "about world history.") {
		t.Errorf("MMLU is read as %+v", mmlu)
	}
	for i, item := range read(t, "boolq", 0) {
		if item.Gold != 1-i || item.Choices[item.Gold] != []string{" yes", " no"}[i] {
			t.Errorf("answer %d of BoolQ is %q", i, item.Choices[item.Gold])
		}
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ task, text, want string }{
		"unknown task":   {"trivia", "{}", "choose from arc_challenge"},
		"no JSON":        {"piqa", "goal", "line 1"},
		"second line":    {"piqa", `{"goal":"a","sol1":"b","sol2":"c","label":0}` + "\n{", "line 2"},
		"another task's": {"hellaswag", `{"goal":"a","sol1":"b","sol2":"c","label":0}`, "0 choices"},
		"no such answer": {"arc_easy", `{"question":"a","choices":{"text":["b","c"],"label":["A","B"]},"answerKey":"D"}`, "right choice is"},
		"three choices":  {"mmlu", `{"question":"a","choices":["b","c","d"],"answer":0}`, "3 choices"},
		"empty":          {"piqa", "\n\n", "no records"},
		"long line":      {"piqa", strings.Repeat(" ", lineBytesMax+1), "longer than"},
		"no gap":         {"winogrande", `{"sentence":"a","option1":"b","option2":"c","answer":"1"}`, "no gap"},
		"nothing right":  {"sciq", `{"question":"a"}`, "no correct_answer"},
		"four choices":   {"commonsense_qa", `{"question":"a","choices":{"text":["b","c","d","e"],"label":["A","B","C","D"]},"answerKey":"A"}`, "4 choices"},
		"no label":       {"social_iqa", `{"context":"a","question":"b"}`, "right choice is -1"},
		"label":          {"boolq", `{"passage":"a","question":"b"}`, "right choice is"},
	} {
		_, err := Read(c.task, strings.NewReader(c.text), 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, c.want)
		}
	}
}

func tiny() (llama.Config, []float32) {
	c := llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 32, Theta: 10000, Eps: 1e-5}
	params := make([]float32, c.Layout().Len())
	x := uint32(1)
	for i := range params {
		x = x*1664525 + 1013904223
		params[i] = float32(x>>8)/(1<<24) - 0.5
	}
	return c, params
}

func newTinyScorer(t *testing.T) *Scorer {
	t.Helper()
	c, params := tiny()
	model, err := llama.NewGenerator(c, params, exact.NewPool(1))
	if err != nil {
		t.Fatal(err)
	}
	return &Scorer{Model: model, Tokenizer: tokenizer.Bytes{}, Context: c.Context}
}

// The log-likelihood of a choice is that of the whole text less that of the context, both by the loss that training computes.
func TestLogLikelihoodsAreThoseOfTraining(t *testing.T) {
	s := newTinyScorer(t)
	c, params := tiny()
	model, err := llama.New(c, exact.NewPool(1), 1, c.Context)
	if err != nil {
		t.Fatal(err)
	}
	total := func(text string) float64 {
		tokens := tokenizer.Bytes{}.Encode(nil, []byte(text))
		loss, err := model.Loss(params, tokens, 1, len(tokens)-1)
		if err != nil {
			t.Fatal(err)
		}
		return -float64(loss) * float64(len(tokens)-1)
	}
	for _, item := range []Item{
		{Context: "a lens bends", Choices: []string{" light", " a wish"}},
		{Context: "spaces at the end ", Choices: []string{" of it", "x"}},
		{Context: strings.Repeat("a long text ", 5), Choices: []string{" cut", " in front"}},
	} {
		scores, err := s.item(item)
		if err != nil {
			t.Fatal(err)
		}
		for k, got := range scores {
			text := strings.TrimRight(item.Context, " ")
			rest := item.Context[len(text):] + item.Choices[k]
			text = text[max(0, len(text)+len(rest)-1-c.Context):]
			if want := total(text+rest) - total(text); math.Abs(got-want) > 1e-3 {
				t.Errorf("%q after %q has %g, want %g", rest, text, got, want)
			}
		}
	}
}

func TestAccuracies(t *testing.T) {
	s := newTinyScorer(t)
	items := read(t, "piqa", 0)
	for i := range items { // short enough for the tiny model
		items[i].Context, items[i].Choices = "ab", []string{" a", " bcdefgh"}
	}
	told := 0
	r, err := s.Run(context.Background(), "piqa", items, func(done int) { told += done })
	if err != nil || told != 3 {
		t.Fatalf("%+v, %v; progress adds up to %d", r, err, told)
	}
	best, bestNorm := 0, 0
	if r.Scores[0][1] > r.Scores[0][0] {
		best = 1
	}
	if r.Scores[0][1]/7 > r.Scores[0][0] {
		bestNorm = 1
	}
	// One item has the first choice right, one the second, so that each accuracy is a half, whichever is preferred.
	if r.Acc != 0.5 || r.Norm != 0.5 || r.AccErr != 0.5 {
		t.Errorf("accuracies %g ± %g, %g", r.Acc, r.AccErr, r.Norm)
	}
	items = items[:1]
	items[0].Gold = best
	if r, err = s.Run(context.Background(), "piqa", items, nil); err != nil || r.Acc != 1 {
		t.Errorf("the preferred choice is right, and acc is %g, %v", r.Acc, err)
	}
	if want := map[bool]float64{true: 1, false: 0}[best == bestNorm]; r.Norm != want {
		t.Errorf("acc_norm is %g, want %g", r.Norm, want)
	}
}

func TestAnItemTooLongIsAnError(t *testing.T) {
	s := newTinyScorer(t)
	if _, err := s.item(Item{Context: "a", Choices: []string{strings.Repeat("b", 40)}}); err == nil {
		t.Error("a choice longer than the context is scored")
	}
	if _, err := s.item(Item{Context: "a", Choices: []string{""}}); err == nil {
		t.Error("an empty choice is scored")
	}
	if _, err := s.item(Item{Context: "a", Choices: []string{" b"}, Gold: 1}); err == nil {
		t.Error("an item without a right choice is scored")
	}
}

func FuzzRead(f *testing.F) {
	for _, task := range []string{"hellaswag", "arc_easy", "piqa", "boolq", "mmlu", "winogrande", "sciq"} {
		b, err := os.ReadFile("testdata/" + task + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(task, b)
	}
	f.Fuzz(func(t *testing.T, task string, b []byte) {
		items, err := Read(task, strings.NewReader(string(b)), 0)
		if (err == nil) != (len(items) > 0) {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for _, item := range items {
			if item.Gold < 0 || item.Gold >= len(item.Choices) {
				t.Fatalf("choice %d of %d is right", item.Gold, len(item.Choices))
			}
		}
	})
}
