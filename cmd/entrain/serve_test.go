package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/participant"
)

// A model is served, answers, and the receipt of an answer is verified; a changed one is not.
func TestAModelIsServedAndItsAnswerVerified(t *testing.T) {
	s := newShell(t)
	dir, _ := importForeign(t, s)
	url, stop := served(t, s, dir, "--receipts")
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
	}{{`"temperature":1`, `"temperature":2`, 1}, {`"text":"`, `"text":"no `, 1}, {`"model":"`, `"model":"0`, exitNotAudited}, {`"receipt":{`, `"receipts":{`, exitNotAudited}} {
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

// A model on a device answers requests side by side, and a conversation, with the processors' bits:
// they verify its answers, and it verifies theirs.
func TestADeviceAnswersLikeTheProcessors(t *testing.T) {
	t.Parallel()
	needDevice(t)
	s := newShell(t)
	from, _ := writeForeign(t)
	writeFile(t, filepath.Join(from, "tokenizer_config.json"), `{"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}"}`)
	dir := filepath.Join(t.TempDir(), "imported")
	s.ok("model", "import", from, "-o", dir)
	url, stop := served(t, s, dir, "--receipts", "--parallel", "3", "--device", "vulkan:0")
	var answers [5]string
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			r, err := http.Post(url+"/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":%q,"seed":%d,"max_tokens":%d}`, strings.Repeat("the light ", i+1), i, 5+2*i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			answer, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != http.StatusOK {
				t.Errorf("%s: %s, %v", r.Status, answer, err)
			}
			answers[i] = string(answer)
		})
	}
	group.Wait()
	stop()
	for i, answer := range answers {
		path := writeFile(t, filepath.Join(t.TempDir(), "answer.json"), answer)
		want := s.ok("audit", dir, "--answer", path)
		if i > 0 {
			continue
		}
		if got := s.ok("audit", dir, "--answer", path, "--device", "vulkan:0"); got != want {
			t.Errorf("the device reads %q, not %q", got, want)
		}
	}
	s.console.in = strings.NewReader("the light\n")
	if out := s.ok("model", "chat", dir, "--device", "vulkan:0"); !strings.HasSuffix(out, "\n") {
		t.Errorf("it says %q", out)
	}
	s.fails([]string{"model", "serve", dir, "--device", "vulkan:0,vulkan:0"}, "one device")
}

// needDevice skips a test where there is no Vulkan device.
func needDevice(t *testing.T) {
	t.Helper()
	i, err := gpu.Open()
	if err == nil {
		defer i.Close()
	}
	if err != nil || len(i.Devices()) == 0 {
		t.Skipf("no Vulkan device: %v (Debian's package mesa-vulkan-drivers has one that needs no GPU)", err)
	}
}

// served serves a model, and returns its address and what ends it.
func served(t *testing.T, s *shell, args ...string) (url string, stop func()) {
	t.Helper()
	c := s.console
	words, said := io.Pipe()
	c.err = said
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, c, append([]string{"model", "serve", "--addr", "127.0.0.1:0"}, args...))
		said.Close()
	}()
	lines := bufio.NewScanner(words)
	for url == "" {
		if !lines.Scan() {
			t.Fatalf("the server ended before it named its address: %v", <-ended)
		}
		url = regexp.MustCompile(`http://\S+/v1`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, words) }()
	return url, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ended with %v", err)
		}
	}
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
