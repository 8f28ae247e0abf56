package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/study"
)

func TestLearningComparesAndKeeps(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model for some steps")
	}
	text := writeText(t, strings.Repeat("One line after another, and all of them the same.\n", 2000))
	args := []string{"learning", "--members", "2", "--steps", "40", "--batch", "2", "--data", text, "--results", filepath.Join(t.TempDir(), "kept.jsonl")}
	var r study.Learning
	if err := json.Unmarshal([]byte(ok(t, append(args, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 3 || r.Tokens != 40*2*64 || r.Runs[0].Relative != 1 || r.Runs[2].Rounds != 8 {
		t.Fatalf("%+v", r)
	}
	table := ok(t, args...)
	for _, want := range []string{
		"2 layers of 64, 90,432 parameters; 40 steps of 2 x 64 tokens, 5,120 in all;",
		"method members rate rounds 1/8 1/4 1/2 3/4 all to adamw bytes a round bits a parameter and step bytes in all",
	} {
		if !containsWords(table, want) {
			t.Errorf("no line begins with %q in\n%s", want, table)
		}
	}
	if n := strings.Count(table, "\n"); n != 6 {
		t.Errorf("%d lines, want a sentence, a heading and three rows:\n%s", n, table)
	}
}

// Another model, text and arithmetic; only the methods that --rates names, at its rates.
func TestLearningOfAnotherModel(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model for some steps")
	}
	dir := t.TempDir()
	config, text := filepath.Join(dir, "small.json"), filepath.Join(dir, "corpus.jsonl")
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "{\"text\": \"Line %d is like all others.\"}\n", i)
	}
	for path, s := range map[string]string{
		config: `{"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1,
			"num_key_value_heads": 1, "head_dim": 32, "intermediate_size": 64, "max_position_embeddings": 40, "rms_norm_eps": 1e-5}`,
		text: lines.String(),
	} {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"learning", "--model", config, "--data", text, "--members", "2", "--steps", "10", "--batch", "2", "--rates", "distro=0.002,sparseloco=0.004", "--sparseloco", "inner_steps=1", "--json"}
	var exact, eight study.Learning
	if err := json.Unmarshal([]byte(ok(t, args...)), &exact); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(ok(t, append(args, "--numerics", "exact8")...)), &eight); err != nil {
		t.Fatal(err)
	}
	for _, r := range []study.Learning{exact, eight} {
		if r.Model != "1 layers of 32" || r.Sequence != 40 || len(r.Runs) != 2 || r.Runs[0].Method != study.MethodDistro || r.Runs[1].Tried != 1 || float32(r.Runs[1].Rate) != .004 {
			t.Errorf("%+v", r)
		}
	}
	if off := eight.Start/exact.Start - 1; off == 0 || math.Abs(off) > .02 || exact.Numerics != "exact" || eight.Numerics != "exact8" {
		t.Errorf("before training the loss is %g in %s and %g in %s", exact.Start, exact.Numerics, eight.Start, eight.Numerics)
	}
	var table strings.Builder
	if err := writeLearning(&table, eight, false); err != nil || !containsWords(table.String(), "1 layers of 32 in exact8,") || !containsWords(table.String(), "method members rate rounds 1/8 1/4 1/2 3/4 all to distro") {
		t.Errorf("%v; wrote\n%s", err, table.String())
	}
}

// containsWords reports whether a line of text begins with the words of want, whatever the space between them.
func containsWords(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.Join(strings.Fields(line), " "), want) {
			return true
		}
	}
	return false
}

func TestLearningRefusesWhatCannotBe(t *testing.T) {
	text := writeText(t, strings.Repeat("A line.\n", 4000))
	fails(t, []string{"learning", "--steps", "0"}, "--steps 0")
	fails(t, []string{"learning", "--batch", "-1"}, "--batch -1")
	fails(t, []string{"learning", "--threads", "0"}, "--threads 0")
	fails(t, []string{"learning", "--members", "3", "--data", text}, "3 members do not divide a batch of 16")
	fails(t, []string{"learning", "--members", "2", "--vary"}, "members", "vary")
	fails(t, []string{"learning", "--rates", "adamw=0.002", "--vary"}, "rates", "vary")
	fails(t, []string{"learning", "--rates", "muon=0.002"}, "--rates muon", "distro")
	fails(t, []string{"learning", "--numerics", "bf16"}, "--numerics", "bf16")
	fails(t, []string{"learning", "--numerics", "exact8"}, "head_dim", "exact8")
	fails(t, []string{"learning", "--sparseloco", "outer_rate=17"}, "sparseloco with 1 members", "outer_rate is 17")
	fails(t, []string{"learning", "--sparseloco", "clip_chunks=-1"}, "sparseloco with 1 members", "clip_chunks is -1")
	fails(t, []string{"learning", "--sparseloco", "outer_rate=fast"}, "--sparseloco outer_rate=fast")
	fails(t, []string{"learning", "--sparseloco", "rank=2"}, "--sparseloco rank")
}
