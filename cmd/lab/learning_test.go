package main

import (
	"encoding/json"
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
	fails(t, []string{"learning", "--sparseloco", "outer_rate=17"}, "sparseloco with 1 members", "outer_rate is 17")
	fails(t, []string{"learning", "--sparseloco", "clip_chunks=-1"}, "sparseloco with 1 members", "clip_chunks is -1")
	fails(t, []string{"learning", "--sparseloco", "outer_rate=fast"}, "--sparseloco outer_rate=fast")
	fails(t, []string{"learning", "--sparseloco", "rank=2"}, "--sparseloco rank")
}
