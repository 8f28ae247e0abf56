package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tokenizer"
)

// writeCheckpoint writes one of a small model that learnt nothing.
func writeCheckpoint(t *testing.T) string {
	t.Helper()
	words := tokenizer.Bytes{}
	end := words.End()
	c := llama.Config{Vocab: int(words.Vocab()), Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 512, Theta: 10000, Eps: 1e-5}
	config := model.CheckpointConfig(c)
	config.EOS = &end
	m := checkpoint.Model{Run: "test", Step: 1, Config: config, Tokenizer: words, Layout: c.Layout(), Params: make([]float32, c.Layout().Len())}
	for i := range m.Params {
		m.Params[i] = float32(i%97)/97 - 0.5
	}
	dir := filepath.Join(t.TempDir(), "checkpoint")
	err := atomicfile.WriteDir(context.Background(), dir, func(create atomicfile.Create) error {
		_, err := checkpoint.Write(create, m, checkpoint.Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExport(t *testing.T) {
	sh, dir := newShell(t), writeCheckpoint(t)
	file := filepath.Join(t.TempDir(), "model.gguf")
	for _, typ := range []string{"f32", "Q8_0"} {
		sh.ok("model", "export", dir, "-o", file, "--type", typ)
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(b), "GGUF\x03") {
			t.Fatalf("as %s the file begins with %q, %v", typ, b[:min(len(b), 8)], err)
		}
		sh.fails([]string{"model", "export", dir, "-o", file}, "exists; remove it")
		os.Remove(file)
	}
	if _, _, err := sh.run("model", "export", dir, "-o", filepath.Join(t.TempDir(), "x"), "--type", "q4"); err == nil || !strings.Contains(err.Error(), "q8_0") {
		t.Errorf("an unknown type: %v", err)
	}
	weights := filepath.Join(dir, checkpoint.WeightsFile)
	b, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(weights, b, 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.gguf")
	if _, _, err := sh.run("model", "export", dir, "-o", other); err == nil || !strings.Contains(err.Error(), "corrupt") {
		t.Errorf("damaged weights: %v", err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file of damaged weights is left")
	}
}

func TestEval(t *testing.T) {
	sh, dir := newShell(t), writeCheckpoint(t)
	records := filepath.Join("..", "..", "eval", "testdata")
	out := sh.ok("model", "eval", dir, "--task", "piqa="+filepath.Join(records, "piqa.jsonl"), "--task", "arc_easy="+filepath.Join(records, "arc_easy.jsonl"), "--items", "2")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "piqa") || !strings.Contains(lines[2], "arc_easy") {
		t.Errorf("printed\n%s", out)
	}
	var results []eval.Result
	out = sh.ok("model", "eval", dir, "--task", "boolq="+filepath.Join(records, "boolq.jsonl"), "--json")
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || results[0].Items != 2 || len(results[0].Scores) != 2 {
		t.Errorf("printed %s, %v", out, err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--task NAME=FILE"},
		{[]string{"--task", "chess"}, "NAME=FILE"},
		{[]string{"--task", "piqa=nowhere"}, "nowhere"},
		{[]string{"--task", "trivia=" + filepath.Join(records, "piqa.jsonl")}, "arc_challenge"},
		{[]string{"--task", "hellaswag=" + filepath.Join(records, "piqa.jsonl")}, "line 1"},
		{[]string{"--task", "piqa=" + filepath.Join(records, "piqa.jsonl"), "--device", "gpu"}, "want cpu, auto or vulkan:N"},
	} {
		if _, _, err := sh.run(append([]string{"model", "eval", dir}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("eval %s: %v, want an error with %q", c.args, err, c.want)
		}
	}
	sh.fails([]string{"model", "generate", dir, "--prompt", "a", "--device", "gpu"}, "want cpu, auto or vulkan:N")
	sh.fails([]string{"model", "generate", dir, "--prompt", "a", "--device", "vulkan:200"}, "--device vulkan:200")
}
