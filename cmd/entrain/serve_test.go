package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/participant"
)

// A model is served, answers, and the receipt of an answer is verified; a changed one is not.
func TestAModelIsServedAndItsAnswerVerified(t *testing.T) {
	s := newShell(t)
	dir, _ := importForeign(t, s)
	c := s.console
	words, said := io.Pipe()
	c.err = said
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, c, []string{"model", "serve", dir, "--receipts", "--addr", "127.0.0.1:0"})
		said.Close()
	}()
	lines := bufio.NewScanner(words)
	if !lines.Scan() {
		t.Fatalf("the server ended before it named its address: %v", <-ended)
	}
	url := regexp.MustCompile(`http://\S+/v1`).FindString(lines.Text())
	r, err := http.Post(url+"/completions", "application/json", strings.NewReader(`{"prompt":"the light","seed":4,"max_tokens":9}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", r.Status, answer, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("serve ended with %v", err)
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "answer.json"), string(answer))
	s.ok("audit", dir, "--answer", path)
	// A run in which this user takes part names its newest checkpoint.
	s.console.places.Data = t.TempDir()
	runs := filepath.Join(s.console.places.Data, participant.MemberState)
	if err := errors.Join(os.Mkdir(runs, 0o700), os.Symlink(dir, filepath.Join(runs, "small-01234567"))); err != nil {
		t.Fatal(err)
	}
	s.ok("audit", "small", "--answer", path)
	for _, c := range []struct {
		old, new string
		status   int
	}{{`"temperature":1`, `"temperature":2`, 1}, {`"model":"`, `"model":"0`, exitNotAudited}, {`"receipt":{`, `"receipts":{`, exitNotAudited}} {
		changed := strings.ReplaceAll(string(answer), c.old, c.new)
		if changed == string(answer) {
			t.Fatalf("%s has no %s", answer, c.old)
		}
		if _, _, err := s.run("audit", dir, "--answer", writeFile(t, path+"x", changed)); err == nil || statusOf(err) != c.status {
			t.Errorf("%s: %v, status %d, want %d", c.new, err, statusOf(err), c.status)
		}
	}
	s.fails([]string{"model", "chat", dir}, "no chat_template.jinja")
	s.fails([]string{"model", "serve", dir, "--parallel", "0"}, "--parallel 0")
}

// A model that comes with a chat template converses, in the terminal and exported.
func TestAModelConverses(t *testing.T) {
	s := newShell(t)
	from, _ := writeForeign(t)
	writeFile(t, filepath.Join(from, "tokenizer_config.json"), `{"eos_token":"<|endoftext|>","chat_template":"{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}{% if messages[0].content == 'no' %}{{ raise_exception('not that') }}{% endif %}{{ 'a:' if add_generation_prompt }}"}`)
	dir := filepath.Join(t.TempDir(), "imported")
	s.ok("model", "import", from, "-o", dir)
	template, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	if err != nil || !strings.HasPrefix(string(template), "{% set eos_token = '<|endoftext|>' %}\n{% for m") {
		t.Fatalf("%s, %v", template, err)
	}
	s.console.in = strings.NewReader("the\n\n/new\n" + strings.Repeat("the light ", 20) + "\nthe\n/new\nhe\n")
	out, words, err := s.run("model", "chat", dir)
	if err != nil || strings.Count(out, "\n") < 3 || !strings.Contains(words, "fills the model's context of 64 tokens") {
		t.Errorf("%q, %q, %v", out, words, err)
	}
	// A data set for the model carries the template, and so do checkpoints of runs on it.
	set := filepath.Join(t.TempDir(), "set")
	s.ok("data", "prepare", "-o", set, "--tokenizer", dir, writeFile(t, filepath.Join(t.TempDir(), "a.txt"), strings.Repeat("the light\n", 200)))
	if m, err := data.ReadManifest(set); err != nil || m.Chat != string(template) {
		t.Errorf("the data set has the template %q, %v", m.Chat, err)
	}
	s.console.in = strings.NewReader("no\n")
	s.fails([]string{"model", "chat", dir}, "not that")
	bf16, gguf := filepath.Join(t.TempDir(), "bf16"), filepath.Join(t.TempDir(), "m.gguf")
	s.ok("model", "export", dir, "-o", bf16, "--type", "hf-bf16")
	s.ok("model", "export", dir, "-o", gguf)
	for _, path := range []string{filepath.Join(bf16, "chat_template.jinja"), gguf} {
		if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), string(template)) {
			t.Errorf("%s lacks the template: %v", path, err)
		}
	}
}
